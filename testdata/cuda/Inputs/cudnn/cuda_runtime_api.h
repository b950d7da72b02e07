// The library's own header over the simulator of CUDA.
#include <cuda_runtime.h>
