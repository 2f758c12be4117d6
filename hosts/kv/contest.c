/* Two hosts, each with a controller of its own, want the same keys. */
#include "command.h"
#include "suites.h"
#include "tally.h"

#include <pthread.h>
#include <string.h>

#define KEYS 300
#define VALUE_BYTES 600

struct host {
	const struct device *device;
	uint8_t name;
	bool has_won[KEYS];
	unsigned won, refused, failed;
};

static struct key key_of(unsigned number)
{
	struct key key = { .length = 6, .bytes = "want" };
	key.bytes[4] = number >> 8;
	key.bytes[5] = number;
	return key;
}

/* Both begin each key at once. */
static pthread_barrier_t both;

/* Stores its name under every key that nobody has. */
static void *take(void *of)
{
	struct host *host = of;
	for (unsigned number = 0; number < KEYS; number++) {
		struct key key = key_of(number);
		uint8_t value[VALUE_BYTES];
		memset(value, host->name, sizeof value);
		pthread_barrier_wait(&both);
		int status = store(host->device, &key, value, sizeof value, IF_ABSENT).status;
		host->has_won[number] = status == SUCCESS;
		host->won += status == SUCCESS;
		host->refused += status == KEY_EXISTS;
		host->failed += status != SUCCESS && status != KEY_EXISTS;
	}
	return NULL;
}

/* How many keys have exactly one winner, whose name the other host reads. */
static unsigned settled(const struct host *one, const struct host *other)
{
	unsigned good = 0;
	for (unsigned number = 0; number < KEYS; number++) {
		const struct host *winner = one->has_won[number] ? one : other;
		const struct host *loser = winner == one ? other : one;
		struct key key = key_of(number);
		uint8_t wanted[VALUE_BYTES], value[VALUE_BYTES] = { 0 };
		memset(wanted, winner->name, sizeof wanted);
		int status = retrieve(loser->device, &key, value, sizeof value).status;
		good += one->has_won[number] != other->has_won[number] && status == SUCCESS &&
			memcmp(value, wanted, sizeof value) == 0;
	}
	return good;
}

static void contest(const struct device *first, const struct device *second)
{
	struct host hosts[2] = {
		{ .device = first, .name = 'A' },
		{ .device = second, .name = 'B' },
	};
	pthread_t threads[2];
	pthread_barrier_init(&both, NULL, 2);
	for (unsigned at = 0; at < 2; at++)
		pthread_create(&threads[at], NULL, take, &hosts[at]);
	for (unsigned at = 0; at < 2; at++)
		pthread_join(threads[at], NULL);
	check(hosts[0].failed + hosts[1].failed == 0, "two hosts store %u keys, if absent, each at the same moment", KEYS);
	check(hosts[0].won > 0 && hosts[1].won > 0 && hosts[0].refused > 0 && hosts[1].refused > 0,
	      "A wins %u keys and is refused %u, B wins %u and is refused %u", hosts[0].won, hosts[0].refused, hosts[1].won,
	      hosts[1].refused);
	unsigned good = settled(&hosts[0], &hosts[1]);
	check(good == KEYS, "%u of %u keys have one winner, and the other host reads its value", good, KEYS);
}

void contest_suite(const struct device *first, const struct device *second)
{
	contest(first, second);
	unsigned gone = 0;
	for (unsigned number = 0; number < KEYS; number++) {
		struct key key = key_of(number);
		gone += delete(first, &key).status == SUCCESS && exist(second, &key).status == KEY_DOES_NOT_EXIST;
	}
	check(gone == KEYS, "%u keys that A deletes are gone for B", gone);
}
