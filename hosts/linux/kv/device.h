/* A key-value namespace as Linux gives it to programs: the character device /dev/ngXnY. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

struct device {
	int file;
	uint32_t namespace;
	const char *path;
};

/* What became of a command. */
struct answer {
	/* 0 for success; the drive's status, its type and code (as 087h); negative when the kernel has refused it. */
	int status;
	/* Dword 0 of the completion. */
	uint32_t result;
};

struct nvme_passthru_cmd64;

/* Opens a device, or ends the program with one line that says why not. */
struct device device_open(const char *path);

/* Sends one command to the namespace and waits for its completion. */
struct answer device_send(const struct device *device, struct nvme_passthru_cmd64 *command);

#endif
