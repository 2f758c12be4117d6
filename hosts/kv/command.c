/* Commands of the Key Value command set, as submission queue entries.
 *
 *   dwords 2, 3      bytes 0 to 7 of the key
 *   dword 10         bytes of the value, or of the buffer
 *   dword 11         bits 7:0 bytes of the key, bits 15:8 options
 *   dwords 14, 15    bytes 8 to 15 of the key
 */
#include "command.h"

#include <linux/nvme_ioctl.h>
#include <string.h>

enum opcode {
	FLUSH = 0x00,
	STORE = 0x01,
	RETRIEVE = 0x02,
	LIST = 0x06,
	DELETE = 0x10,
	EXIST = 0x14,
};

static struct nvme_passthru_cmd64 of_key(enum opcode opcode, const struct key *key)
{
	struct nvme_passthru_cmd64 command = { .opcode = opcode, .cdw11 = key->length };
	uint32_t words[KEY_BYTES_MAX / sizeof(uint32_t)];
	memcpy(words, key->bytes, sizeof words);
	command.cdw2 = words[0];
	command.cdw3 = words[1];
	command.cdw14 = words[2];
	command.cdw15 = words[3];
	return command;
}

static struct answer with_data(const struct device *device, struct nvme_passthru_cmd64 command, const void *data,
			       uint32_t data_bytes)
{
	command.addr = (uintptr_t)data;
	command.data_len = data_bytes;
	command.cdw10 = data_bytes;
	return device_send(device, &command);
}

struct answer flush(const struct device *device)
{
	struct nvme_passthru_cmd64 command = { .opcode = FLUSH };
	return device_send(device, &command);
}

struct answer store(const struct device *device, const struct key *key, const void *value, uint32_t value_bytes,
		    enum store_option options)
{
	struct nvme_passthru_cmd64 command = of_key(STORE, key);
	command.cdw11 |= options << 8;
	return with_data(device, command, value, value_bytes);
}

struct answer retrieve(const struct device *device, const struct key *key, void *buffer, uint32_t buffer_bytes)
{
	return with_data(device, of_key(RETRIEVE, key), buffer, buffer_bytes);
}

struct answer list(const struct device *device, const struct key *from, void *buffer, uint32_t buffer_bytes)
{
	return with_data(device, of_key(LIST, from), buffer, buffer_bytes);
}

struct answer delete(const struct device *device, const struct key *key)
{
	struct nvme_passthru_cmd64 command = of_key(DELETE, key);
	return device_send(device, &command);
}

struct answer exist(const struct device *device, const struct key *key)
{
	struct nvme_passthru_cmd64 command = of_key(EXIST, key);
	return device_send(device, &command);
}
