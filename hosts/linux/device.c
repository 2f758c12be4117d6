/* Commands through the NVMe generic character device of Linux, /dev/ngXnY. */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Type and code of a status, without More and Do Not Retry. */
#define STATUS_MASK 0x7ff

struct device device_open(const char *path)
{
	int file = open(path, O_RDWR);
	if (file < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	int namespace = ioctl(file, NVME_IOCTL_ID);
	if (namespace <= 0) {
		fprintf(stderr, "%s: it is no namespace of an NVMe drive\n", path);
		exit(2);
	}
	return (struct device){ .handle = file, .namespace = namespace };
}

struct answer device_send(const struct device *device, struct nvme_passthru_cmd64 *command)
{
	if (command->nsid == 0)
		command->nsid = device->namespace;
	int status = ioctl(device->handle, NVME_IOCTL_IO64_CMD, command);
	if (status < 0)
		return (struct answer){ .status = -errno };
	return (struct answer){ .status = status & STATUS_MASK, .result = command->result };
}
