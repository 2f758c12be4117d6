/* A command as an entry of a submission queue, for drivers that take such. */
#ifndef ENTRY_H
#define ENTRY_H

#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <string.h>

#define ENTRY_BYTES 64

/* Fills all but the command's identifier and its data pointer, which are the driver's. */
static inline void entry_fill(void *entry, const struct nvme_passthru_cmd64 *command, uint32_t namespace)
{
	uint32_t words[ENTRY_BYTES / sizeof(uint32_t)] = {
		[0] = command->opcode,
		[1] = command->nsid != 0 ? command->nsid : namespace,
		[2] = command->cdw2,
		[3] = command->cdw3,
		[10] = command->cdw10,
		[11] = command->cdw11,
		[12] = command->cdw12,
		[13] = command->cdw13,
		[14] = command->cdw14,
		[15] = command->cdw15,
	};
	memcpy(entry, words, sizeof words);
}

#endif
