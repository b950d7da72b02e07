/* Several threads of the host may call: one at a time is inside. Who waits there for what others do lets them in. What each thread has for itself is no thread_local variable, since those are shared
 * memory when kernels are in the same file. */
#include "cudasim/sim.h"

#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static pthread_t       holder; /* where depth is not 0 */
static int             depth;

/* Others may look while it changes: what they see is not themselves. */
bool cudasim_is_inside(void)
{
    return __atomic_load_n(&depth, __ATOMIC_ACQUIRE) > 0 && pthread_equal(__atomic_load_n(&holder, __ATOMIC_RELAXED), pthread_self());
}

static void take(int n)
{
    __atomic_store_n(&holder, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&depth, n, __ATOMIC_RELEASE);
}

int cudasim_enter(void)
{
    if (cudasim_is_inside()) {
        take(depth + 1);
    } else {
        pthread_mutex_lock(&inside);
        take(1);
    }
    return depth;
}

void cudasim_leave(const int *entered)
{
    (void)entered;
    __atomic_store_n(&depth, depth - 1, __ATOMIC_RELEASE);
    if (depth == 0)
        pthread_mutex_unlock(&inside);
}

void cudasim_wait(void)
{
    const int n = depth;
    __atomic_store_n(&depth, 0, __ATOMIC_RELEASE);
    pthread_cond_wait(&changed, &inside);
    take(n);
}

void cudasim_wake(void)
{
    pthread_cond_broadcast(&changed);
}
