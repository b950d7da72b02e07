// The toolkit's header, CUDNN_HEADER, in place of the simulator's; the functions are those of cudnn-plans.c.
#define HLO_CUDNN_IS_LINKED 1
#include CUDNN_HEADER
