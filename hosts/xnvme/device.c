/* Commands through xNVMe: its SPDK back end for an address of NVMe/TCP, the one of the system for a path. */
#include "device.h"
#include "entry.h"

#include <errno.h>
#include <libxnvme.h>
#include <stdio.h>
#include <stdlib.h>

struct device device_open(const char *address)
{
	struct xnvme_opts options = xnvme_opts_default();
	if (address[0] != '/') {
		options.be = "spdk";
		options.nsid = 1;
	}
	struct xnvme_dev *opened = xnvme_dev_open(address, &options);
	if (!opened) {
		fprintf(stderr, "%s: xNVMe does not open it: %s\n", address, strerror(errno));
		exit(2);
	}
	return (struct device){ .handle = (intptr_t)opened, .namespace = xnvme_dev_get_nsid(opened) };
}

/* xNVMe wants data in memory of its back end. */
struct answer device_send(const struct device *device, struct nvme_passthru_cmd64 *command)
{
	struct xnvme_dev *opened = (struct xnvme_dev *)device->handle;
	struct xnvme_cmd_ctx context = xnvme_cmd_ctx_from_dev(opened);
	void *outside = (void *)(uintptr_t)command->addr, *data = NULL;
	_Static_assert(sizeof context.cmd == ENTRY_BYTES, "an entry of a submission queue");
	entry_fill(&context.cmd, command, device->namespace);
	if (command->data_len != 0) {
		data = xnvme_buf_alloc(opened, command->data_len);
		if (!data)
			return (struct answer){ .status = -ENOMEM };
		memcpy(data, outside, command->data_len);
	}
	int refused = xnvme_cmd_pass(&context, data, command->data_len, NULL, 0);
	if (data && (command->opcode & 2) != 0)
		memcpy(outside, data, command->data_len);
	xnvme_buf_free(opened, data);
	/* An error of the drive is one of the call, too. */
	int status = context.cpl.status.sct << 8 | context.cpl.status.sc;
	return (struct answer){ .status = status == 0 ? refused : status, .result = context.cpl.cdw0 };
}
