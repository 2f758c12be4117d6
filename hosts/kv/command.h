/* The commands of the Key Value command set. */
#ifndef COMMAND_H
#define COMMAND_H

#include "device.h"

#define KEY_BYTES_MAX 16

enum status {
	SUCCESS = 0x00,
	INVALID_OPCODE = 0x01,
	INVALID_FIELD = 0x02,
	INVALID_VALUE_SIZE = 0x85,
	INVALID_KEY_SIZE = 0x86,
	KEY_DOES_NOT_EXIST = 0x87,
	KEY_EXISTS = 0x89,
};

enum store_option {
	IF_PRESENT = 1 << 0,
	IF_ABSENT = 1 << 1,
	NOT_COMPRESSED = 1 << 2,
};

struct key {
	/* A command may say a length that no key has. */
	uint8_t length;
	uint8_t bytes[KEY_BYTES_MAX];
};

struct answer flush(const struct device *device);
struct answer store(const struct device *device, const struct key *key, const void *value, uint32_t value_bytes,
		    enum store_option options);
/* The result is the value's size, also where the buffer is shorter. */
struct answer retrieve(const struct device *device, const struct key *key, void *buffer, uint32_t buffer_bytes);
/* Keys from this one on; from the first one on when it has no bytes. */
struct answer list(const struct device *device, const struct key *from, void *buffer, uint32_t buffer_bytes);
struct answer delete(const struct device *device, const struct key *key);
struct answer exist(const struct device *device, const struct key *key);

#endif
