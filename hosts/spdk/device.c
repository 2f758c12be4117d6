/* Commands through SPDK's initiator: one controller and one queue pair for each device. */
#include "device.h"
#include "entry.h"

#include <errno.h>
#include <spdk/env.h>
#include <spdk/nvme.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMORY_MIB 512

struct driver {
	struct spdk_nvme_ctrlr *controller;
	struct spdk_nvme_qpair *queue;
};

struct outcome {
	bool is_over;
	struct answer answer;
};

static void fail(const char *address, const char *why)
{
	fprintf(stderr, "%s: %s\n", address, why);
	exit(2);
}

/* Without huge pages and PCI devices, so that no root is needed. */
static void start(const char *address)
{
	static bool is_started;
	struct spdk_env_opts options = { .opts_size = sizeof options };
	spdk_env_opts_init(&options);
	options.name = "kv";
	options.no_pci = true;
	options.no_huge = true;
	options.mem_size = MEMORY_MIB;
	if (!is_started && spdk_env_init(&options) != 0)
		fail(address, "SPDK's environment does not start");
	is_started = true;
}

struct device device_open(const char *address)
{
	struct spdk_nvme_transport_id transport = { 0 };
	struct driver *driver = calloc(1, sizeof *driver);
	start(address);
	if (!driver || spdk_nvme_transport_id_parse(&transport, address) != 0)
		fail(address, "it is no transport identifier of SPDK's");
	driver->controller = spdk_nvme_connect(&transport, NULL, 0);
	if (!driver->controller)
		fail(address, "SPDK does not connect to it");
	driver->queue = spdk_nvme_ctrlr_alloc_io_qpair(driver->controller, NULL, 0);
	uint32_t namespace = spdk_nvme_ctrlr_get_first_active_ns(driver->controller);
	if (!driver->queue || namespace == 0)
		fail(address, "it has no I/O queue or no namespace for SPDK");
	return (struct device){ .handle = (intptr_t)driver, .namespace = namespace };
}

static void complete(void *of, const struct spdk_nvme_cpl *completion)
{
	struct outcome *outcome = of;
	outcome->answer.status = completion->status.sct << 8 | completion->status.sc;
	outcome->answer.result = completion->cdw0;
	outcome->is_over = true;
}

static struct answer submit(struct driver *driver, struct spdk_nvme_cmd *entry, void *data, uint32_t data_bytes)
{
	struct outcome outcome = { 0 };
	int refused = spdk_nvme_ctrlr_cmd_io_raw(driver->controller, driver->queue, entry, data, data_bytes, complete,
						 &outcome);
	if (refused != 0)
		return (struct answer){ .status = refused };
	while (!outcome.is_over) {
		if (spdk_nvme_qpair_process_completions(driver->queue, 0) < 0)
			return (struct answer){ .status = -ENXIO };
	}
	return outcome.answer;
}

/* SPDK wants data in memory of its own. */
struct answer device_send(const struct device *device, struct nvme_passthru_cmd64 *command)
{
	struct driver *driver = (struct driver *)device->handle;
	struct spdk_nvme_cmd entry;
	void *outside = (void *)(uintptr_t)command->addr, *data = NULL;
	_Static_assert(sizeof entry == ENTRY_BYTES, "an entry of a submission queue");
	entry_fill(&entry, command, device->namespace);
	if (command->data_len != 0) {
		data = spdk_dma_malloc(command->data_len, 4096, NULL);
		if (!data)
			return (struct answer){ .status = -ENOMEM };
		memcpy(data, outside, command->data_len);
	}
	struct answer answer = submit(driver, &entry, data, command->data_len);
	if (data && (command->opcode & 2) != 0)
		memcpy(outside, data, command->data_len);
	spdk_dma_free(data);
	return answer;
}
