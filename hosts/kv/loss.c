/* The service is killed while threads store and delete. Whoever runs this program kills it, and starts it anew, at each
 * line "host: kill".
 *
 *   thread 0   slot 1   versions 1, 65, 129 ...     each fifth version is a Delete
 *              slot 2   versions 2, 66, 130 ...
 *
 * A thread ends at its first error. Linux says EINTR of a command that it had sent: that change was made or not. It
 * says EAGAIN of one that it had not sent, for there was no connection any more. All others were acknowledged. Where the
 * connection breaks while it sends, the program gets SIGPIPE, as if the socket were its own.
 */
#include "command.h"
#include "suites.h"
#include "tally.h"
#include "value.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 3
#define THREADS 8
#define SLOTS 64
#define VALUE_BYTES_MAX 24000
/* So many are acknowledged before the service is killed. */
#define ACKNOWLEDGED_BEFORE 400
/* A load that nothing ends, or a drive that does not come back, is a fault. */
#define SECONDS_MAX 60

struct worker {
	const struct device *device;
	uint8_t number;
	uint64_t version;
	/* The last version that was acknowledged, of each slot; 0 for none. */
	uint64_t acknowledged[SLOTS];
	/* The status of the last version, which is in doubt where it failed behind the kernel. */
	int status;
	uint8_t buffer[VALUE_BYTES_MAX];
};

static atomic_uint acknowledged, running;
static atomic_bool is_over;

static struct key key_of(const struct worker *worker, unsigned slot)
{
	struct key key = { .length = 12, .bytes = "loss under " };
	key.bytes[10] = worker->number;
	key.bytes[11] = slot;
	return key;
}

static bool is_delete(uint64_t version)
{
	return version == 0 || version % 5 == 0;
}

static uint64_t seed_of(const struct worker *worker, uint64_t version)
{
	return version << 8 | worker->number;
}

/* In the capsule and by R2T. */
static uint32_t bytes_of(uint64_t version)
{
	return version * 7919 % VALUE_BYTES_MAX;
}

/* Makes changes until one fails. */
static void *work(void *of)
{
	struct worker *worker = of;
	worker->status = SUCCESS;
	while (!is_over && worker->status == SUCCESS) {
		uint64_t version = ++worker->version;
		unsigned slot = version % SLOTS;
		struct key key = key_of(worker, slot);
		if (is_delete(version)) {
			worker->status = delete(worker->device, &key).status;
		} else {
			value_fill(worker->buffer, bytes_of(version), seed_of(worker, version));
			worker->status = store(worker->device, &key, worker->buffer, bytes_of(version), 0).status;
		}
		if (worker->status == SUCCESS) {
			worker->acknowledged[slot] = version;
			acknowledged++;
		}
	}
	running--;
	return NULL;
}

/* A slot is as a version has left it. */
static bool is_as(struct worker *worker, unsigned slot, uint64_t version)
{
	struct key key = key_of(worker, slot);
	struct answer got = retrieve(worker->device, &key, worker->buffer, VALUE_BYTES_MAX);
	if (is_delete(version))
		return got.status == KEY_DOES_NOT_EXIST;
	uint32_t bytes = bytes_of(version);
	return got.status == SUCCESS && got.result == bytes && value_is(worker->buffer, bytes, seed_of(worker, version));
}

static bool is_in_doubt(const struct worker *worker)
{
	return worker->status != SUCCESS && worker->status != -EAGAIN;
}

/* Compares every slot with what was acknowledged, and takes over what was not. */
static unsigned lost(struct worker *worker)
{
	unsigned slots = 0;
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (is_as(worker, slot, worker->acknowledged[slot]))
			continue;
		bool is_last = is_in_doubt(worker) && worker->version % SLOTS == slot;
		if (is_last && is_as(worker, slot, worker->version))
			worker->acknowledged[slot] = worker->version;
		else
			slots++;
	}
	return slots;
}

/* Waits for the drive; how many milliseconds it took, or -1. */
static long wait_for(const struct device *device)
{
	struct key key = { .length = 4, .bytes = "wait" };
	for (long waited_ms = 0; waited_ms < SECONDS_MAX * 1000; waited_ms += 100) {
		int status = exist(device, &key).status;
		if (status == SUCCESS || status == KEY_DOES_NOT_EXIST)
			return waited_ms;
		usleep(100 * 1000);
	}
	return -1;
}

/* Runs all workers until the service has been killed; how many of them saw it. */
static unsigned run(struct worker *workers)
{
	pthread_t threads[THREADS];
	unsigned failed = 0;
	acknowledged = 0;
	running = THREADS;
	is_over = false;
	for (unsigned at = 0; at < THREADS; at++)
		pthread_create(&threads[at], NULL, work, &workers[at]);
	time_t begin = time(NULL);
	while (acknowledged < ACKNOWLEDGED_BEFORE && running > 0 && time(NULL) < begin + SECONDS_MAX)
		usleep(1000);
	printf("host: kill\n");
	fflush(stdout);
	while (running > 0 && time(NULL) < begin + SECONDS_MAX)
		usleep(1000);
	is_over = true;
	for (unsigned at = 0; at < THREADS; at++) {
		pthread_join(threads[at], NULL);
		failed += workers[at].status != SUCCESS;
	}
	return failed;
}

/* One kill; false when the drive has not come back. */
static bool survive(struct worker *workers, unsigned round)
{
	unsigned in_doubt = 0, slots = 0;
	unsigned failed = run(workers);
	check(failed == THREADS, "kill -9, round %u: %u of %u threads see it", round, failed, THREADS);
	long waited_ms = wait_for(workers[0].device);
	if (!check(waited_ms >= 0, "the drive is there again, %ld ms later", waited_ms))
		return false;
	for (unsigned at = 0; at < THREADS; at++) {
		in_doubt += is_in_doubt(&workers[at]);
		slots += lost(&workers[at]);
	}
	check(slots == 0 && acknowledged >= ACKNOWLEDGED_BEFORE,
	      "%u changes were acknowledged, %u are in doubt, %u of %u keys are not as they were left", acknowledged, in_doubt,
	      slots, THREADS * SLOTS);
	return true;
}

void loss_suite(const struct device *device)
{
	struct worker *workers = calloc(THREADS, sizeof *workers);
	unsigned round = 1, deleted = 0;
	signal(SIGPIPE, SIG_IGN);
	for (unsigned at = 0; at < THREADS; at++) {
		workers[at].device = device;
		workers[at].number = at;
	}
	while (round <= ROUNDS && survive(workers, round))
		round++;
	for (unsigned pair = 0; pair < THREADS * SLOTS; pair++) {
		struct key key = key_of(&workers[pair / SLOTS], pair % SLOTS);
		deleted += delete(device, &key).status == SUCCESS;
	}
	check(deleted == THREADS * SLOTS, "all keys are deleted");
	free(workers);
}
