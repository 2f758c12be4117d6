/* A key-value namespace as a host's driver gives it to programs: one device.c for each driver. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

struct device {
	/* What the driver knows it by. */
	intptr_t handle;
	uint32_t namespace;
};

/* What became of a command. */
struct answer {
	/* 0 for success; the drive's status, its type and code (as 087h); negative when the driver has refused it. */
	int status;
	/* Dword 0 of the completion. */
	uint32_t result;
};

struct nvme_passthru_cmd64;

/* Opens a device by its address, or ends the program with one line that says why not. */
struct device device_open(const char *address);

/* Sends one command to the namespace, or to another if it says so, and waits for its completion. */
struct answer device_send(const struct device *device, struct nvme_passthru_cmd64 *command);

#endif
