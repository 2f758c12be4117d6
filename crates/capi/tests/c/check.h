/* What the test programs have in common: a call that must give a result, and short ways to common calls. */

#ifndef CHECK_H
#define CHECK_H

#include "kvs_api.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAIL(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputs("\n", stderr), exit(1))
#define MUST(condition) ((condition) ? (void)0 : FAIL("not so: %s", #condition))
#define GIVES(wanted, call)                                                                             \
  do {                                                                                                  \
    kvs_result given = (call);                                                                          \
    if (given != (wanted)) FAIL("%s: 0x%x (%s), not %s", #call, given, kvssd_last_error(), #wanted);    \
  } while (0)
#define OK(call) GIVES(KVS_SUCCESS, call)

static inline kvs_key key_of(const char *text) { return (kvs_key){(void *)text, (uint16_t)strlen(text)}; }
static inline kvs_value value_of(const char *text) { return (kvs_value){(void *)text, (uint32_t)strlen(text), 0, 0}; }

static inline kvs_result store(kvs_key_space_handle space, const char *key, const char *value, kvs_store_type type) {
  kvs_key k = key_of(key);
  kvs_value v = value_of(value);
  kvs_option_store option = {type, NULL};
  return kvs_store_kvp(space, &k, &v, &option);
}

static inline void holds(kvs_key_space_handle space, const char *key, const char *value) {
  char buffer[256] = {0};
  kvs_key k = key_of(key);
  kvs_value v = {buffer, sizeof buffer, 0, 0};
  OK(kvs_retrieve_kvp(space, &k, NULL, &v));
  MUST(v.length == strlen(value) && v.actual_value_size == v.length && memcmp(buffer, value, v.length) == 0);
}

static inline int is_there(kvs_key_space_handle space, const char *key) {
  uint8_t bits = 0xff;
  kvs_key k = key_of(key);
  kvs_exist_list list = {0, NULL, 1, &bits};
  OK(kvs_exist_kv_pairs(space, 1, &k, &list));
  return bits;
}

static inline kvs_key_space_handle make(kvs_device_handle device, char *name, kvs_key_order order) {
  kvs_key_space_name named = {(uint32_t)strlen(name), name};
  kvs_key_space_handle space;
  OK(kvs_create_key_space(device, &named, 0, (kvs_option_key_space){order}));
  OK(kvs_open_key_space(device, name, &space));
  return space;
}

#endif
