/* Commands that cannot be. */
#include "command.h"
#include "suites.h"
#include "tally.h"

#include <linux/nvme_ioctl.h>

static void key_lengths(const struct device *device)
{
	static const uint8_t lengths[] = { 0, 17, 255 };
	for (unsigned at = 0; at < sizeof lengths; at++) {
		struct key key = { .length = lengths[at], .bytes = "0123456789abcdef" };
		char buffer[16] = { 0 };
		int stored = store(device, &key, buffer, sizeof buffer, 0).status;
		int got = retrieve(device, &key, buffer, sizeof buffer).status;
		int deleted = delete(device, &key).status;
		int there = exist(device, &key).status;
		bool is_refused = true;
		for (unsigned command = 0; command < 4; command++) {
			int status = (int[]){ stored, got, deleted, there }[command];
			is_refused = is_refused && (status == INVALID_FIELD || status == INVALID_KEY_SIZE);
		}
		check(is_refused, "a key of %u B: store %03xh, retrieve %03xh, delete %03xh, exist %03xh", lengths[at], stored,
		      got, deleted, there);
	}
}

/* The value would be larger than any: it is refused before its data is asked for. */
static void too_large(const struct device *device)
{
	char data[4096] = { 0 };
	struct nvme_passthru_cmd64 command = {
		.opcode = 0x01,
		.cdw2 = 0x6567726c,
		.cdw10 = 1u << 30,
		.cdw11 = 4,
		.addr = (uintptr_t)data,
		.data_len = sizeof data,
	};
	int status = device_send(device, &command).status;
	check(status == INVALID_VALUE_SIZE, "a value of 1 GiB: %03xh", status);
}

void refusals_suite(const struct device *device)
{
	key_lengths(device);
	too_large(device);
	struct nvme_passthru_cmd64 unknown = { .opcode = 0x7c };
	int status = device_send(device, &unknown).status;
	check(status == INVALID_OPCODE, "a command that there is not (7Ch): %03xh", status);
	struct key key = { .length = 4, .bytes = "none" };
	status = exist(device, &key).status;
	check(status == KEY_DOES_NOT_EXIST, "behind all of these the drive answers as before: %03xh", status);
}
