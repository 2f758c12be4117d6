/* Values that tell what they are of: the bytes of a generator (splitmix64) from a seed on. */
#include "value.h"

#include <string.h>

static uint64_t word(uint64_t seed, uint64_t number)
{
	uint64_t mixed = seed + (number + 1) * 0x9e3779b97f4a7c15;
	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
	return mixed ^ (mixed >> 31);
}

static size_t part(size_t bytes, size_t done)
{
	size_t rest = bytes - done;
	return rest < sizeof(uint64_t) ? rest : sizeof(uint64_t);
}

void value_fill(void *value, size_t bytes, uint64_t seed)
{
	for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
		uint64_t next = word(seed, done);
		memcpy((uint8_t *)value + done, &next, part(bytes, done));
	}
}

bool value_is(const void *value, size_t bytes, uint64_t seed)
{
	for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
		uint64_t next = word(seed, done);
		if (memcmp((const uint8_t *)value + done, &next, part(bytes, done)) != 0)
			return false;
	}
	return true;
}
