/* Pairs of all sizes, buffers that are too short or too long, and conditions. */
#include "command.h"
#include "suites.h"
#include "tally.h"
#include "value.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES_MAX (2u << 20)
#define PAGE_BYTES 4096

/* What stands in a buffer before a command. */
#define UNTOUCHED 0xa5

/* Whole pages, so that a buffer begins where it is told to. */
static uint8_t *value, *buffer;

static struct key key_of(uint8_t length, uint8_t first)
{
	struct key key = { .length = length };
	for (uint8_t at = 0; at < length; at++)
		key.bytes[at] = first + at * 17;
	return key;
}

/* One pair's whole life; what was wrong with it, or nothing. */
static const char *live(const struct device *device, const struct key *key, uint32_t value_bytes)
{
	uint64_t seed = (uint64_t)value_bytes << 8 | key->length;
	value_fill(value, value_bytes, seed);
	memset(buffer, UNTOUCHED, value_bytes + 1);
	if (exist(device, key).status != KEY_DOES_NOT_EXIST)
		return "it exists before it was stored";
	if (store(device, key, value, value_bytes, 0).status != SUCCESS)
		return "store";
	if (exist(device, key).status != SUCCESS)
		return "exist";
	struct answer got = retrieve(device, key, buffer, value_bytes);
	if (got.status != SUCCESS || got.result != value_bytes)
		return "retrieve";
	if (!value_is(buffer, value_bytes, seed))
		return "retrieve gives another value";
	if (buffer[value_bytes] != UNTOUCHED)
		return "retrieve writes behind the buffer";
	if (delete(device, key).status != SUCCESS)
		return "delete";
	if (exist(device, key).status != KEY_DOES_NOT_EXIST)
		return "it exists behind the delete";
	if (retrieve(device, key, buffer, value_bytes).status != KEY_DOES_NOT_EXIST)
		return "retrieve behind the delete";
	return NULL;
}

/* In the capsule, up to 8 KiB here, and beyond it by R2T. */
static void sizes(const struct device *device)
{
	static const uint32_t bytes[] = { 0, 1, 3, 512, 4095, 4096, 4097, 8192, 8193, 65536, 100001, 131072 };
	for (size_t at = 0; at < sizeof bytes / sizeof *bytes; at++) {
		const char *wrong = NULL;
		uint8_t length = 0;
		while (!wrong && length < KEY_BYTES_MAX) {
			struct key key = key_of(++length, 'a');
			wrong = live(device, &key, bytes[at]);
		}
		if (wrong)
			check(false, "value of %u B, key of %u B: %s", bytes[at], length, wrong);
		else
			check(true, "value of %u B, keys of 1 to 16 B: store, exist, retrieve, delete", bytes[at]);
	}
}

/* The host's driver takes so much data with a command; what it takes must work. */
static void largest(const struct device *device)
{
	const uint32_t wanted = 256 << 10;
	struct key key = key_of(KEY_BYTES_MAX, 'l');
	uint32_t taken = 0;
	for (uint32_t bytes = PAGE_BYTES; bytes <= VALUE_BYTES_MAX; bytes *= 2) {
		struct answer stored = store(device, &key, value, bytes, 0);
		if (stored.status != SUCCESS)
			break;
		taken = bytes;
	}
	delete(device, &key);
	const char *wrong = live(device, &key, taken);
	check(!wrong, "value of %u B, the largest that the driver takes: %s", taken, wrong ? wrong : "as the others");
	check(taken >= wanted, "the driver takes values of %u B", wanted);
}

/* Any byte of a page may be the first of a buffer. */
static void unaligned(const struct device *device)
{
	static const uint32_t offsets[] = { 1, 4, 511, 4095 };
	struct key key = key_of(5, 'u');
	uint32_t bytes = 3 * PAGE_BYTES + 7;
	for (size_t at = 0; at < sizeof offsets / sizeof *offsets; at++) {
		uint32_t offset = offsets[at];
		value_fill(value + offset, bytes, offset);
		memset(buffer, UNTOUCHED, offset + bytes + 1);
		int stored = store(device, &key, value + offset, bytes, 0).status;
		struct answer got = retrieve(device, &key, buffer + offset, bytes);
		bool is_alone = buffer[offset - 1] == UNTOUCHED && buffer[offset + bytes] == UNTOUCHED;
		check(stored == SUCCESS && got.status == SUCCESS && is_alone && value_is(buffer + offset, bytes, offset),
		      "buffers that begin at byte %u of a page: %03xh, %03xh", offset, stored, got.status);
	}
	delete(device, &key);
}

/* A short buffer gets the beginning of the value, a long one all of it; the size is said each time. */
static void buffers(const struct device *device)
{
	static const uint32_t lengths[] = { 0, 1, 4, 100, 4096, 9999, 10000, 10001, 65536 };
	const uint32_t value_bytes = 10000;
	struct key key = key_of(9, 'b');
	value_fill(value, value_bytes, 1);
	store(device, &key, value, value_bytes, 0);
	for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
		uint32_t length = lengths[at];
		uint32_t wanted = length < value_bytes ? length : value_bytes;
		memset(buffer, UNTOUCHED, length + 1);
		struct answer got = retrieve(device, &key, buffer, length);
		bool is_good = got.status == SUCCESS && got.result == value_bytes && buffer[length] == UNTOUCHED;
		check(is_good && memcmp(buffer, value, wanted) == 0,
		      "a value of %u B into %u B: %03xh, %u B are said", value_bytes, length, got.status, got.result);
	}
	delete(device, &key);
}

static bool holds(const struct device *device, const struct key *key, uint32_t bytes, uint64_t seed)
{
	struct answer got = retrieve(device, key, buffer, VALUE_BYTES_MAX / 16);
	return got.status == SUCCESS && got.result == bytes && value_is(buffer, bytes, seed);
}

static void conditions(const struct device *device)
{
	struct key key = key_of(7, 'c');
	value_fill(value, 300, 1);
	int status = store(device, &key, value, 300, IF_PRESENT).status;
	check(status == KEY_DOES_NOT_EXIST, "store if present, and it is absent: %03xh", status);
	check(exist(device, &key).status == KEY_DOES_NOT_EXIST, "and it is absent still");
	status = store(device, &key, value, 300, IF_ABSENT).status;
	check(status == SUCCESS && holds(device, &key, 300, 1), "store if absent, and it is: %03xh", status);
	value_fill(value, 9000, 2);
	status = store(device, &key, value, 9000, IF_ABSENT).status;
	check(status == KEY_EXISTS, "store if absent, and it is present, by R2T: %03xh", status);
	check(holds(device, &key, 300, 1), "and it has its old value");
	status = store(device, &key, value, 9000, IF_PRESENT).status;
	check(status == SUCCESS && holds(device, &key, 9000, 2), "store if present, and it is: %03xh", status);
	value_fill(value, 200, 3);
	status = store(device, &key, value, 200, NOT_COMPRESSED).status;
	check(status == SUCCESS && holds(device, &key, 200, 3), "store over it, not compressed: %03xh", status);
	status = flush(device).status;
	check(status == SUCCESS && holds(device, &key, 200, 3), "flush: %03xh", status);
	delete(device, &key);
	status = delete(device, &key).status;
	check(status == SUCCESS, "delete of a key that does not exist: %03xh", status);
}

/* A key is the prefix of another, has bytes of any kind, and is another key all the same. */
static void prefixes(const struct device *device)
{
	struct key keys[KEY_BYTES_MAX];
	unsigned stored = 0, found = 0;
	for (uint8_t at = 0; at < KEY_BYTES_MAX; at++) {
		keys[at] = (struct key){ .length = at + 1 };
		value_fill(value, at + 1, at);
		stored += store(device, &keys[at], value, at + 1, 0).status == SUCCESS;
	}
	for (uint8_t at = 0; at < KEY_BYTES_MAX; at++)
		found += holds(device, &keys[at], at + 1, at) && delete(device, &keys[at]).status == SUCCESS;
	check(stored == KEY_BYTES_MAX && found == KEY_BYTES_MAX, "keys of 1 to 16 zeros are %u keys", found);
}

void pairs_suite(const struct device *device)
{
	value = aligned_alloc(PAGE_BYTES, VALUE_BYTES_MAX + 2 * PAGE_BYTES);
	buffer = aligned_alloc(PAGE_BYTES, VALUE_BYTES_MAX + 2 * PAGE_BYTES);
	if (!value || !buffer) {
		check(false, "there is no memory for values");
		return;
	}
	sizes(device);
	largest(device);
	unaligned(device);
	buffers(device);
	conditions(device);
	prefixes(device);
	free(value);
	free(buffer);
}
