// Nobody waits: work is done when the queue is full. A device's memory is the host's here.
#include <cuda_runtime.h>
#include <stdio.h>

int main()
{
    unsigned char *p;
    int            n = 0;
    cudaMalloc(&p, 4);
    for (; p[0] != 7 && n < 100000; n++)
        if (cudaMemsetAsync(p, 7, 4))
            return 1;
    printf("seen after %d\n", n);
    return 0;
}
