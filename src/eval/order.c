#include "eval/order.h"

#include <string.h>

void order_sort(int64_t *order, int64_t *room, int64_t n, bool (*before)(void *cookie, int64_t a, int64_t b), void *cookie)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * run) { /* order[lo..mid) and order[mid..hi) are sorted */
            int64_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n;
            int64_t a = lo, b = mid;
            for (int64_t k = lo; k < hi; k++) {
                bool right = a == mid || (b < hi && before(cookie, order[b], order[a]));
                room[k] = right ? order[b++] : order[a++];
            }
        }
        memcpy(order, room, (size_t)n * sizeof order[0]);
    }
}
