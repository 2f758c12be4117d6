/* What Linux itself refuses. */
#include "command.h"
#include "suites.h"
#include "tally.h"

#include <errno.h>
#include <linux/nvme_ioctl.h>
#include <stdlib.h>

/* The drive says that a transfer has 2 MiB at the most (MDTS). */
#define TRANSFER_BYTES_MAX (2u << 20)

void kernel_suite(const struct device *device)
{
	struct nvme_passthru_cmd64 elsewhere = { .opcode = 0x14, .cdw11 = 1, .nsid = device->namespace + 1 };
	int status = device_send(device, &elsewhere).status;
	check(status == -EINVAL, "a command to another namespace is refused by the kernel: %d", status);
	struct key key = { .length = 6, .bytes = "kernel" };
	uint32_t bytes = TRANSFER_BYTES_MAX + 4096;
	void *value = calloc(1, bytes);
	status = store(device, &key, value, bytes, 0).status;
	check(value && status == -EINVAL, "a value of %u B, more than a transfer has, is refused by the kernel: %d", bytes,
	      status);
	free(value);
	status = exist(device, &key).status;
	check(status == KEY_DOES_NOT_EXIST, "and it does not exist: %03xh", status);
}
