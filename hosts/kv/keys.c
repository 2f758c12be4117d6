/* Lists: every key once, in pages of any size. */
#include "command.h"
#include "suites.h"
#include "tally.h"

#include <stdio.h>
#include <string.h>

#define KEYS 500
#define BUFFER_BYTES_MAX 65536

/* A list: how many keys, and for each of them its length, its bytes, and zeros to a multiple of 4. */
static uint8_t buffer[BUFFER_BYTES_MAX];

/* "key0000" to "key0499", with 0 to 9 bytes behind. */
static struct key key_of(unsigned number)
{
	struct key key = { .length = 7 + number % 10 };
	char text[KEY_BYTES_MAX + 1];
	snprintf(text, sizeof text, "key%04u.........", number);
	memcpy(key.bytes, text, key.length);
	return key;
}

static uint32_t count(void)
{
	uint32_t keys;
	memcpy(&keys, buffer, sizeof keys);
	return keys;
}

/* Reads the key at an offset and steps behind it; false when there can be none. */
static bool next(struct key *key, uint32_t *offset, uint32_t buffer_bytes)
{
	uint16_t length;
	if (*offset + sizeof length > buffer_bytes)
		return false;
	memcpy(&length, buffer + *offset, sizeof length);
	if (length == 0 || length > KEY_BYTES_MAX || *offset + sizeof length + length > buffer_bytes)
		return false;
	*key = (struct key){ .length = length };
	memcpy(key->bytes, buffer + *offset + sizeof length, length);
	*offset += (sizeof length + length + 3) / 4 * 4;
	return true;
}

static bool is_same(const struct key *one, const struct key *other)
{
	return one->length == other->length && memcmp(one->bytes, other->bytes, one->length) == 0;
}

static bool is_below(const struct key *one, const struct key *other)
{
	uint8_t shorter = one->length < other->length ? one->length : other->length;
	int order = memcmp(one->bytes, other->bytes, shorter);
	return order < 0 || (order == 0 && one->length < other->length);
}

/* What a walk over all keys has met. */
struct walk {
	unsigned commands, keys;
	bool is_seen[KEYS];
	bool is_in_order;
	/* What ended it early. */
	const char *wrong;
};

/* Takes one key down. */
static void meet(struct walk *walk, const struct key *key, const struct key *last)
{
	unsigned number = KEYS;
	char text[5] = { 0 };
	memcpy(text, key->bytes + 3, 4);
	sscanf(text, "%u", &number);
	struct key wanted = key_of(number % KEYS);
	if (number >= KEYS || !is_same(key, &wanted))
		walk->wrong = "a key that nobody stored";
	else if (walk->is_seen[number])
		walk->wrong = "a key for the second time";
	else
		walk->is_seen[number] = true;
	walk->is_in_order = walk->is_in_order && (last->length == 0 || is_below(last, key));
	walk->keys++;
}

/* Each page begins at the last key of the one before. */
static struct walk walk(const struct device *device, uint32_t buffer_bytes)
{
	struct walk walk = { .is_in_order = true };
	struct key last = { .length = 0 };
	while (!walk.wrong && walk.commands <= 2 * KEYS) {
		memset(buffer, 0xff, sizeof buffer);
		walk.commands++;
		if (list(device, &last, buffer, buffer_bytes).status != SUCCESS) {
			walk.wrong = "list";
			break;
		}
		uint32_t offset = sizeof(uint32_t), keys = count();
		struct key begin = last;
		for (uint32_t at = 0; at < keys && !walk.wrong; at++) {
			struct key key;
			if (!next(&key, &offset, buffer_bytes))
				walk.wrong = "a list that cannot be";
			else if (at > 0 || !is_same(&key, &begin))
				meet(&walk, &key, &last), last = key;
		}
		if (is_same(&last, &begin))
			return walk;
	}
	if (!walk.wrong)
		walk.wrong = "no end";
	return walk;
}

static void pages(const struct device *device, uint32_t buffer_bytes, bool is_ordered)
{
	struct walk seen = walk(device, buffer_bytes);
	check(!seen.wrong && seen.keys == KEYS, "list in pages of %u B: %u of %u keys with %u commands%s%s", buffer_bytes,
	      seen.keys, KEYS, seen.commands, seen.wrong ? ", then " : "", seen.wrong ? seen.wrong : "");
	if (is_ordered)
		check(seen.is_in_order, "and they come in order");
}

/* Begins in the middle: at a key that is there, and at one that is not. */
static void beginnings(const struct device *device, bool is_ordered)
{
	struct key from = key_of(123), first;
	uint32_t offset = sizeof(uint32_t);
	int status = list(device, &from, buffer, 4096).status;
	check(status == SUCCESS && count() > 0 && next(&first, &offset, 4096) && is_same(&first, &from),
	      "a list from a key on begins with it: %03xh", status);
	delete(device, &from);
	offset = sizeof(uint32_t);
	status = list(device, &from, buffer, 4096).status;
	bool is_there = status == SUCCESS && count() > 0 && next(&first, &offset, 4096);
	struct key behind = key_of(124);
	check(is_there && !is_same(&first, &from) && (!is_ordered || is_same(&first, &behind)),
	      "a list from a key that was deleted begins with the next one: %03xh", status);
}

void keys_suite(const struct device *device, bool is_ordered)
{
	static const uint32_t page_bytes[] = { 44, 64, 512, 4096, BUFFER_BYTES_MAX };
	struct key none = { .length = 0 };
	struct answer empty = list(device, &none, buffer, 4096);
	check(empty.status == SUCCESS && count() == 0, "list of a namespace without pairs: %03xh", empty.status);
	unsigned stored = 0, deleted = 0;
	for (unsigned number = 0; number < KEYS; number++) {
		struct key key = key_of(number);
		stored += store(device, &key, key.bytes, key.length, 0).status == SUCCESS;
	}
	check(stored == KEYS, "%u keys of 7 to 16 B are stored", stored);
	for (size_t at = 0; at < sizeof page_bytes / sizeof *page_bytes; at++)
		pages(device, page_bytes[at], is_ordered);
	int status = list(device, &none, buffer, 8).status;
	check(status == INVALID_FIELD, "a list into 8 B, where no key has room: %03xh", status);
	beginnings(device, is_ordered);
	for (unsigned number = 0; number < KEYS; number++) {
		struct key key = key_of(number);
		deleted += delete(device, &key).status == SUCCESS;
	}
	empty = list(device, &none, buffer, 4096);
	check(deleted == KEYS && empty.status == SUCCESS && count() == 0, "all keys are deleted, and none is listed");
}
