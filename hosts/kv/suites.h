/* What is checked. */
#ifndef SUITES_H
#define SUITES_H

#include "device.h"

#include <stdbool.h>

/* Sizes of keys and values, buffers, conditions: on a namespace without pairs, which it leaves without pairs. */
void pairs_suite(const struct device *device);
/* Lists and their pages; whether keys come in order is checked where they should. */
void keys_suite(const struct device *device, bool is_ordered);
/* What the drive must refuse. */
void refusals_suite(const struct device *device);
/* What Linux must refuse. */
void kernel_suite(const struct device *device);
/* Two hosts want the same keys. */
void contest_suite(const struct device *first, const struct device *second);
/* The service is killed under load: nothing that was acknowledged is lost. */
void loss_suite(const struct device *device);

#endif
