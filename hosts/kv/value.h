/* Values that tell what they are of. */
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills a value with bytes that follow from a seed. */
void value_fill(void *value, size_t bytes, uint64_t seed);
bool value_is(const void *value, size_t bytes, uint64_t seed);

#endif
