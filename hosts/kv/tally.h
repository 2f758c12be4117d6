/* Checks: a line for each, and their sum. */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>

/* Counts a check and prints a line about it. */
bool check(bool is_good, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* Prints the sum; the exit status of the program. */
int tally_end(void);

#endif
