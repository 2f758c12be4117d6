/* Checks: a line for each, and their sum. */
#include "tally.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned checks, failures;

bool check(bool is_good, const char *what, ...)
{
	va_list values;
	va_start(values, what);
	printf("%s", is_good ? "ok      " : "FAILED  ");
	vprintf(what, values);
	printf("\n");
	fflush(stdout);
	va_end(values);
	checks++;
	failures += !is_good;
	return is_good;
}

int tally_end(void)
{
	printf("%u checks, %u failed\n", checks, failures);
	return failures == 0 && checks > 0 ? 0 : 1;
}
