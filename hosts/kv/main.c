/* A host of a key-value drive: checks of it, through the driver whose device.c is compiled along.
 *
 *   kv check DEVICE [ordered]      every command, on a namespace without pairs; its keys come in order
 *   kv kernel DEVICE               what Linux itself refuses
 *   kv contest DEVICE DEVICE       one namespace, through controllers of two hosts
 *   kv loss DEVICE                 the service is killed at each line "host: kill"
 */
#include "suites.h"
#include "tally.h"

#include <stdio.h>
#include <string.h>

int main(int count, char **arguments)
{
	const char *suite = count > 1 ? arguments[1] : "";
	if (strcmp(suite, "check") == 0 && (count == 3 || (count == 4 && strcmp(arguments[3], "ordered") == 0))) {
		struct device device = device_open(arguments[2]);
		pairs_suite(&device);
		keys_suite(&device, count == 4);
		refusals_suite(&device);
	} else if (strcmp(suite, "kernel") == 0 && count == 3) {
		struct device device = device_open(arguments[2]);
		kernel_suite(&device);
	} else if (strcmp(suite, "contest") == 0 && count == 4) {
		struct device first = device_open(arguments[2]), second = device_open(arguments[3]);
		contest_suite(&first, &second);
	} else if (strcmp(suite, "loss") == 0 && count == 3) {
		struct device device = device_open(arguments[2]);
		loss_suite(&device);
	} else {
		fprintf(stderr, "usage: kv check DEVICE [ordered] | kernel DEVICE | contest DEVICE DEVICE | loss DEVICE\n");
		return 2;
	}
	return tally_end();
}
