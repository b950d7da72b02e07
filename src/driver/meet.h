/* Several devices run compiled code, a thread each, and exchange blocks where it says so.
 *
 *   device 0   kernel kernel |            | exchange: copies | kernel ...
 *   device 1   kernel kernel kernel kernel | exchange: copies | kernel ...
 *
 * Whoever comes to an exchange waits until the others of its group have come there, too; then each copies what it gets out of the others'
 * arrays, and goes on when all have done so. Nothing depends on which of them is fast. A device that fails ends; when all have ended or wait,
 * the failure of the first device is reported, or, when none failed, that they wait for each other. */
#ifndef DRIVER_MEET_H
#define DRIVER_MEET_H

#include "driver/compiled.h"
#include "driver/driver.h"

/* The pointers of one device's call. */
typedef struct DeviceCall {
    const void *const *args;
    void *const       *results;
    void              *scratch;
} DeviceCall;

/* Calls e's compiled code once on each of its devices, with env but for what differs from device to device. False after reporting. */
bool meet_run(const Execution *e, const HloEnv *env, const DeviceCall *calls, Diag *d);

#endif
