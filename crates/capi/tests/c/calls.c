/* Every call of the library, at once and asynchronously, with every option, limit and result code.
 * Called with an image that was just made (64 MiB), and a path where there is nothing. */

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

static kvs_key key_of(const char *text) { return (kvs_key){(void *)text, (uint16_t)strlen(text)}; }
static kvs_value value_of(const char *text) { return (kvs_value){(void *)text, (uint32_t)strlen(text), 0, 0}; }

static kvs_result store(kvs_key_space_handle space, const char *key, const char *value, kvs_store_type type) {
  kvs_key k = key_of(key);
  kvs_value v = value_of(value);
  kvs_option_store option = {type, NULL};
  return kvs_store_kvp(space, &k, &v, &option);
}

static void holds(kvs_key_space_handle space, const char *key, const char *value) {
  char buffer[256] = {0};
  kvs_key k = key_of(key);
  kvs_value v = {buffer, sizeof buffer, 0, 0};
  OK(kvs_retrieve_kvp(space, &k, NULL, &v));
  MUST(v.length == strlen(value) && v.actual_value_size == v.length && memcmp(buffer, value, v.length) == 0);
}

static int is_there(kvs_key_space_handle space, const char *key) {
  uint8_t bits = 0xff;
  kvs_key k = key_of(key);
  kvs_exist_list list = {0, NULL, 1, &bits};
  OK(kvs_exist_kv_pairs(space, 1, &k, &list));
  return bits;
}

static kvs_key_space_handle make(kvs_device_handle device, char *name, kvs_key_order order) {
  kvs_key_space_name named = {(uint32_t)strlen(name), name};
  kvs_key_space_handle space;
  OK(kvs_create_key_space(device, &named, 0, (kvs_option_key_space){order}));
  OK(kvs_open_key_space(device, name, &space));
  return space;
}

/* ---- The device. ---- */

static kvs_device_handle opens(char *image, char *nothing) {
  kvs_device_handle device = NULL;
  char long_path[5000];
  memset(long_path, 'x', sizeof long_path - 1);
  long_path[sizeof long_path - 1] = 0;
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_device(NULL, &device));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_device(image, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_device(long_path, &device));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_open_device(nothing, &device));
  MUST(strstr(kvssd_last_error(), nothing) != NULL);
  OK(kvs_open_device(image, &device));
  kvs_device_handle other;
  GIVES(KVS_ERR_SYS_IO, kvs_open_device(image, &other)); /* it is in use */
  return device;
}

static void describes(kvs_device_handle device) {
  uint64_t capacity = 0;
  uint32_t number = 0;
  kvs_device info;
  memset(&info, 0xff, sizeof info);
  OK(kvs_get_device_capacity(device, &capacity));
  OK(kvs_get_device_info(device, &info));
  MUST(capacity > (16 << 20) && info.capacity == capacity && info.unalloc_capacity == capacity);
  MUST(info.max_key_len == KVS_MAX_KEY_LENGTH && info.max_value_len > 0 && info.extended_info == NULL);
  OK(kvs_get_device_utilization(device, &number));
  MUST(number < 10000);
  OK(kvs_get_min_key_length(device, &number));
  MUST(number == KVS_MIN_KEY_LENGTH);
  OK(kvs_get_max_key_length(device, &number));
  MUST(number == KVS_MAX_KEY_LENGTH);
  OK(kvs_get_min_value_length(device, &number));
  MUST(number == KVS_MIN_VALUE_LENGTH);
  OK(kvs_get_max_value_length(device, &number));
  MUST(number == info.max_value_len && number <= KVS_MAX_VALUE_LENGTH);
  OK(kvs_get_optimal_value_length(device, &number));
  MUST(number == KVS_OPTIMAL_VALUE_LENGTH);

  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_device_capacity(device, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_device_capacity(device, (uint64_t *)((char *)&capacity + 1)));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_device_capacity(NULL, &capacity));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_device_info(device, NULL));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_get_device_capacity((kvs_device_handle)&capacity, &capacity));
}

/* ---- Key spaces. ---- */

static void names(kvs_device_handle device) {
  kvs_option_key_space plain = {KVS_KEY_ORDER_NONE};
  kvs_key_space_name name = {8, "accounts"};
  kvs_key_space_handle space, again;
  OK(kvs_create_key_space(device, &name, 8 << 20, plain));
  GIVES(KVS_ERR_KS_EXIST, kvs_create_key_space(device, &name, 0, plain));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_key_space(device, NULL, 0, plain));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_key_space(device, &(kvs_key_space_name){3, NULL}, 0, plain));
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){7, "accounts"}, 0, plain));
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){0, ""}, 0, plain));
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){2, "17"}, 0, plain));
  char long_name[300];
  memset(long_name, 'n', sizeof long_name);
  long_name[65] = 0;
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){65, long_name}, 0, plain));
  long_name[65] = 'n';
  long_name[299] = 0;
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){299, long_name}, 0, plain));
  GIVES(KVS_ERR_OPTION_INVALID, kvs_create_key_space(device, &(kvs_key_space_name){1, "x"}, 0, (kvs_option_key_space){7}));
  GIVES(KVS_ERR_DEV_CAPAPCITY, kvs_create_key_space(device, &(kvs_key_space_name){1, "x"}, 1ULL << 50, plain));

  GIVES(KVS_ERR_KS_NOT_EXIST, kvs_open_key_space(device, "nobody", &space));
  GIVES(KVS_ERR_KS_NAME, kvs_open_key_space(device, "", &space));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_open_key_space(device, NULL, &space));
  OK(kvs_open_key_space(device, "accounts", &space));
  GIVES(KVS_ERR_KS_OPEN, kvs_open_key_space(device, "accounts", &again));

  char text[256];
  kvs_key_space_name written = {sizeof text, text};
  kvs_key_space info = {.name = &written};
  OK(store(space, "alice", "70", KVS_STORE_POST));
  OK(kvs_get_key_space_info(space, &info));
  MUST(info.opened && info.capacity == 8 << 20 && info.free_size < info.capacity && info.count == 1);
  MUST(written.name_len == 8 && strcmp(text, "accounts") == 0);
  written.name_len = 8;
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_get_key_space_info(space, &info)); /* the null behind it has no room */
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_key_space_info(space, NULL));

  char texts[4][256];
  kvs_key_space_name listed[4];
  uint32_t count = 0;
  for (int i = 0; i < 4; i++) listed[i] = (kvs_key_space_name){256, texts[i]};
  OK(kvs_list_key_spaces(device, 1, sizeof listed, listed, &count));
  MUST(count == 2 && strcmp(texts[0], "accounts") == 0 && strcmp(texts[1], "1") == 0);
  OK(kvs_list_key_spaces(device, 2, sizeof listed[0], listed + 2, &count));
  MUST(count == 1 && strcmp(texts[2], "1") == 0);
  GIVES(KVS_ERR_KS_INDEX, kvs_list_key_spaces(device, 0, sizeof listed, listed, &count));
  GIVES(KVS_ERR_KS_INDEX, kvs_list_key_spaces(device, 3, sizeof listed, listed, &count));
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_list_key_spaces(device, 1, 3, listed, &count));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_list_key_spaces(device, 1, sizeof listed, NULL, &count));

  OK(kvs_close_key_space(space));
  GIVES(KVS_ERR_KS_NOT_OPEN, kvs_close_key_space(space));
  GIVES(KVS_ERR_KS_NOT_OPEN, store(space, "alice", "70", KVS_STORE_POST));
  GIVES(KVS_ERR_PARAM_INVALID, store(NULL, "alice", "70", KVS_STORE_POST));
  OK(kvs_open_key_space(device, "accounts", &space));
  holds(space, "alice", "70");
  OK(kvs_delete_key_space(device, &name)); /* though it is open */
  GIVES(KVS_ERR_KS_NOT_EXIST, kvs_delete_key_space(device, &name));
  kvs_key_space_handle reborn = make(device, "accounts", KVS_KEY_ORDER_NONE);
  GIVES(KVS_ERR_KS_NOT_EXIST, store(space, "alice", "70", KVS_STORE_POST)); /* whoever got its number */
  MUST(!is_there(reborn, "alice"));
  OK(kvs_close_key_space(space));
  OK(kvs_close_key_space(reborn));
  OK(kvs_delete_key_space(device, &name));
  GIVES(KVS_ERR_OPTION_INVALID, kvs_delete_key_space(device, &(kvs_key_space_name){1, "1"})); /* the first one stays */
}

/* ---- Pairs. ---- */

static void pairs(kvs_key_space_handle space, uint32_t value_bytes_max) {
  GIVES(KVS_ERR_KEY_NOT_EXIST, store(space, "key one", "1", KVS_STORE_UPDATE_ONLY));
  OK(store(space, "key one", "1", KVS_STORE_NOOVERWRITE));
  GIVES(KVS_ERR_VALUE_UPDATE_NOT_ALLOWED, store(space, "key one", "2", KVS_STORE_NOOVERWRITE));
  OK(store(space, "key one", "two", KVS_STORE_UPDATE_ONLY));
  OK(store(space, "key one", " and", KVS_STORE_APPEND));
  OK(store(space, "key one", " more", KVS_STORE_APPEND));
  holds(space, "key one", "two and more");
  OK(store(space, "key two", "appended", KVS_STORE_APPEND));
  holds(space, "key two", "appended");
  OK(store(space, "key two", "", KVS_STORE_POST));
  holds(space, "key two", "");
  GIVES(KVS_ERR_OPTION_INVALID, store(space, "key one", "", (kvs_store_type)4));

  kvs_key key = key_of("key one"), none = {NULL, 7};
  kvs_value value = value_of("value"), nowhere = {NULL, 5, 0, 0}, empty = {NULL, 0, 0, 0};
  OK(kvs_store_kvp(space, &key, &empty, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp(space, NULL, &value, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp(space, &key, NULL, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp(space, &none, &value, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp(space, &key, &nowhere, NULL));
  value.offset = 512;
  GIVES(KVS_ERR_VALUE_OFFSET_INVALID, kvs_store_kvp(space, &key, &value, NULL));
  value.offset = 100;
  GIVES(KVS_ERR_VALUE_OFFSET_MISALIGNED, kvs_store_kvp(space, &key, &value, NULL));

  char *large = kvs_zalloc(KVS_MAX_VALUE_LENGTH + 1, 4096);
  MUST(large != NULL && (uintptr_t)large % 4096 == 0 && large[0] == 0 && large[KVS_MAX_VALUE_LENGTH] == 0);
  for (uint32_t i = 0; i < value_bytes_max; i++) large[i] = (char)(i / 7);
  value = (kvs_value){large, value_bytes_max + 1, 0, 0};
  GIVES(KVS_ERR_VALUE_LENGTH_INVALID, kvs_store_kvp(space, &key, &value, NULL));
  value.length = value_bytes_max;
  OK(kvs_store_kvp(space, &key, &value, NULL));
  GIVES(KVS_ERR_VALUE_LENGTH_INVALID, store(space, "key one", "x", KVS_STORE_APPEND));
  char *back = kvs_malloc(value_bytes_max, 4096);
  kvs_value got = {back, value_bytes_max, 0, 0};
  OK(kvs_retrieve_kvp(space, &key, NULL, &got));
  MUST(got.length == value_bytes_max && memcmp(large, back, got.length) == 0);

  got = (kvs_value){back, 1000, 0, 1024};
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_retrieve_kvp(space, &key, NULL, &got));
  MUST(got.actual_value_size == value_bytes_max && memcmp(large + 1024, back, 1000) == 0);
  uint32_t last = (value_bytes_max - 1) / 512 * 512;
  got = (kvs_value){back, value_bytes_max, 0, last};
  OK(kvs_retrieve_kvp(space, &key, NULL, &got));
  MUST(got.length == value_bytes_max - last && memcmp(large + last, back, got.length) == 0);
  got.offset = last + 512;
  GIVES(KVS_ERR_VALUE_OFFSET_INVALID, kvs_retrieve_kvp(space, &key, NULL, &got));
  got.offset = 7;
  GIVES(KVS_ERR_VALUE_OFFSET_MISALIGNED, kvs_retrieve_kvp(space, &key, NULL, &got));
  got = (kvs_value){NULL, 0, 0, 0};
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_retrieve_kvp(space, &key, NULL, &got));
  MUST(got.actual_value_size == value_bytes_max);
  GIVES(KVS_ERR_PARAM_INVALID, kvs_retrieve_kvp(space, &key, NULL, NULL));
  kvs_free(back);
  kvs_free(large);

  uint8_t name[KVS_MAX_KEY_LENGTH];
  kvs_kvp_info info = {0, name, 0};
  OK(kvs_get_kvp_info(space, &key, &info));
  MUST(info.key_len == 7 && info.value_len == value_bytes_max && memcmp(name, "key one", 7) == 0);
  key = key_of("missing");
  GIVES(KVS_ERR_KEY_NOT_EXIST, kvs_get_kvp_info(space, &key, &info));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_get_kvp_info(space, &key, NULL));

  char longest[KVS_MAX_KEY_LENGTH + 2];
  memset(longest, 'k', sizeof longest);
  longest[KVS_MAX_KEY_LENGTH + 1] = 0;
  GIVES(KVS_ERR_KEY_LENGTH_INVALID, store(space, longest, "", KVS_STORE_POST));
  GIVES(KVS_ERR_KEY_LENGTH_INVALID, store(space, "abc", "", KVS_STORE_POST));
  longest[KVS_MAX_KEY_LENGTH] = 0;
  OK(store(space, longest, "longest", KVS_STORE_POST));
  holds(space, longest, "longest");
  OK(store(space, "abcd", "shortest", KVS_STORE_POST));
  holds(space, "abcd", "shortest");
}

static void deletes(kvs_key_space_handle space) {
  kvs_option_delete must_exist = {true};
  kvs_option_retrieve taking = {true};
  kvs_key key = key_of("to take");
  char buffer[16];
  kvs_value small = {buffer, 2, 0, 0}, value = {buffer, sizeof buffer, 0, 0};
  OK(store(space, "to take", "taken", KVS_STORE_POST));
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_retrieve_kvp(space, &key, &taking, &small));
  MUST(is_there(space, "to take")); /* what was not given whole stays */
  OK(kvs_retrieve_kvp(space, &key, &taking, &value));
  MUST(value.length == 5 && memcmp(buffer, "taken", 5) == 0 && !is_there(space, "to take"));
  GIVES(KVS_ERR_KEY_NOT_EXIST, kvs_retrieve_kvp(space, &key, &taking, &value));
  OK(kvs_delete_kvp(space, &key, NULL));
  GIVES(KVS_ERR_KEY_NOT_EXIST, kvs_delete_kvp(space, &key, &must_exist));
  OK(store(space, "to take", "", KVS_STORE_POST));
  OK(kvs_delete_kvp(space, &key, &must_exist));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_delete_kvp(space, NULL, NULL));

  kvs_key keys[11];
  char texts[11][8];
  for (int i = 0; i < 11; i++) {
    snprintf(texts[i], sizeof texts[i], "bit %02d", i);
    keys[i] = key_of(texts[i]);
    if (i % 3 == 0) OK(store(space, texts[i], "", KVS_STORE_POST));
  }
  uint8_t bits[8] = {0xff, 0xff, 0xff};
  kvs_exist_list list = {0, NULL, sizeof bits, bits};
  OK(kvs_exist_kv_pairs(space, 11, keys, &list));
  MUST(bits[0] == 0x49 && bits[1] == 0x02 && bits[2] == 0xff && list.length == 2 && list.num_keys == 11);
  list.length = 1;
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_exist_kv_pairs(space, 11, keys, &list));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_exist_kv_pairs(space, 0, keys, &list));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_exist_kv_pairs(space, 1, NULL, &list));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_exist_kv_pairs(space, 1, keys, NULL));

  OK(store(space, "bits", "other group", KVS_STORE_POST));
  kvs_key_group_filter filter = {{0xff, 0xff, 0xff, 0xff}, {'b', 'i', 't', ' '}};
  OK(kvs_delete_key_group(space, &filter));
  list.length = sizeof bits;
  OK(kvs_exist_kv_pairs(space, 11, keys, &list));
  MUST(bits[0] == 0 && bits[1] == 0 && is_there(space, "bits"));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_delete_key_group(space, NULL));
}

/* ---- Iterators. ---- */

static uint32_t walk(kvs_key_space_handle space, kvs_iterator_type type, const char *pattern, char (*seen)[16], int *calls) {
  kvs_option_iterator option = {type};
  kvs_key_group_filter filter = {{0xff, 0xff, 0, 0}, {(uint8_t)pattern[0], (uint8_t)pattern[1], '?', '?'}};
  kvs_iterator_handle iterator;
  uint8_t *buffer = kvs_malloc(KVS_ITERATOR_BUFFER_SIZE, 4096);
  kvs_iterator_list list = {0, false, 0, buffer};
  uint32_t count = 0;
  OK(kvs_create_iterator(space, &option, &filter, &iterator));
  for (*calls = 0; !list.end; ++*calls) {
    list.size = KVS_ITERATOR_BUFFER_SIZE;
    OK(kvs_iterate_next(space, iterator, &list));
    uint8_t *at = buffer;
    for (uint32_t i = 0; i < list.num_entries; i++) {
      uint32_t length;
      memcpy(&length, at, 4);
      MUST(length == 8);
      memcpy(seen[count], at + 4, length);
      seen[count++][length] = 0;
      at += 4 + length;
      if (type == KVS_ITERATOR_KEY_VALUE) {
        memcpy(&length, at, 4);
        MUST(length == 8 && memcmp(at - 8, at + 4, 8) == 0);
        at += 4 + length;
      }
    }
    MUST(at == buffer + list.size);
  }
  list.size = KVS_ITERATOR_BUFFER_SIZE;
  OK(kvs_iterate_next(space, iterator, &list)); /* behind the end there is nothing */
  MUST(list.end && list.num_entries == 0 && list.size == 0);
  OK(kvs_delete_iterator(space, iterator));
  GIVES(KVS_ERR_ITERATOR_NOT_EXIST, kvs_delete_iterator(space, iterator));
  kvs_free(buffer);
  return count;
}

static int by_text(const void *left, const void *right) { return strcmp(left, right); }

static void iterates(kvs_device_handle device, char *name, kvs_key_order order) {
  enum { PAIRS = 4000 };
  static char seen[PAIRS][16];
  kvs_key_space_handle space = make(device, name, order);
  for (int i = 0; i < PAIRS; i++) {
    char key[16];
    snprintf(key, sizeof key, "%s%06d", i % 4 == 3 ? "zz" : "aa", i * 7919 % PAIRS);
    OK(store(space, key, key, KVS_STORE_POST));
  }
  int calls;
  MUST(walk(space, KVS_ITERATOR_KEY, "aa", seen, &calls) == PAIRS / 4 * 3 && calls == 2);
  if (order == KVS_KEY_ORDER_NONE) qsort(seen, PAIRS / 4 * 3, sizeof *seen, by_text);
  for (int i = 1; i < PAIRS / 4 * 3; i++)
    MUST(order == KVS_KEY_ORDER_DESCEND ? strcmp(seen[i - 1], seen[i]) > 0 : strcmp(seen[i - 1], seen[i]) < 0);
  MUST(walk(space, KVS_ITERATOR_KEY_VALUE, "zz", seen, &calls) == PAIRS / 4 && calls == 1);
  MUST(walk(space, KVS_ITERATOR_KEY, "mm", seen, &calls) == 0);

  kvs_key_group_filter filter = {{0xff, 0, 0, 0}, {'b'}};
  kvs_option_iterator option = {KVS_ITERATOR_KEY_VALUE};
  kvs_iterator_handle first, handle, all[KVS_MAX_ITERATE_HANDLE];
  OK(kvs_create_iterator(space, &option, &filter, &first));
  GIVES(KVS_ERR_ITERATOR_OPEN, kvs_create_iterator(space, &option, &filter, &handle));
  filter.bitmask[2] = 1;
  GIVES(KVS_ERR_ITERATOR_FILTER_INVALID, kvs_create_iterator(space, &option, &filter, &handle));
  filter.bitmask[2] = 0;
  option.iter_type = (kvs_iterator_type)2;
  GIVES(KVS_ERR_OPTION_INVALID, kvs_create_iterator(space, &option, &filter, &handle));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_iterator(space, NULL, NULL, &handle));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_iterator(space, NULL, &filter, NULL));
  for (int i = 1; i < KVS_MAX_ITERATE_HANDLE; i++) {
    filter.bit_pattern[0] = (uint8_t)('b' + i);
    OK(kvs_create_iterator(space, NULL, &filter, &all[i]));
  }
  filter.bit_pattern[0] = 'A';
  GIVES(KVS_ERR_ITERATOR_MAX, kvs_create_iterator(space, NULL, &filter, &handle));
  for (int i = 1; i < KVS_MAX_ITERATE_HANDLE; i++) OK(kvs_delete_iterator(space, all[i]));

  static uint8_t buffer[64 << 10];
  static char big[40 << 10];
  kvs_iterator_list list = {0, false, 100, buffer};
  kvs_key key = key_of("big pair");
  kvs_value value = {big, sizeof big, 0, 0};
  OK(kvs_store_kvp(space, &key, &value, NULL));
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_iterate_next(space, first, &list)); /* below the size that the API has */
  list.size = KVS_ITERATOR_BUFFER_SIZE;
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_iterate_next(space, first, &list)); /* the pair alone is larger */
  list.size = sizeof buffer;
  OK(kvs_iterate_next(space, first, &list));
  MUST(list.num_entries == 1 && list.end && list.size == 4 + 8 + 4 + sizeof big);
  GIVES(KVS_ERR_PARAM_INVALID, kvs_iterate_next(space, first, NULL));
  GIVES(KVS_ERR_ITERATOR_NOT_EXIST, kvs_iterate_next(space, 17, &(kvs_iterator_list){0, false, 32 << 10, buffer}));
  GIVES(KVS_ERR_ITERATOR_NOT_EXIST, kvs_iterate_next(space, 0, &(kvs_iterator_list){0, false, 32 << 10, buffer}));
  OK(kvs_close_key_space(space)); /* ends the iterator */
  OK(kvs_open_key_space(device, name, &space));
  GIVES(KVS_ERR_ITERATOR_NOT_EXIST, kvs_delete_iterator(space, first));
  OK(kvs_close_key_space(space));
}

/* ---- Asynchronous calls. ---- */

enum { THREADS = 4, CALLS = 1500 };

struct call {
  kvs_key key;
  kvs_value value;
  char name[24], bytes[64];
  atomic_int times;
  kvs_result result;
};

static kvs_key_space_handle async_space;
static kvs_context async_kind;
static struct call calls_of[THREADS][CALLS];

static void done(kvs_postprocess_context *context) {
  struct call *call = context->private1;
  MUST(context->ks_hd == async_space && context->context == async_kind && context->private2 == &async_kind);
  MUST(context->key == &call->key && (async_kind == KVS_CMD_DELETE || context->value == &call->value));
  call->result = context->result;
  atomic_fetch_add(&call->times, 1);
}

static void *submit(void *argument) {
  struct call *calls = argument;
  for (int i = 0; i < CALLS; i++) {
    struct call *call = &calls[i];
    call->times = 0;
    void *one = call, *two = &async_kind;
    if (async_kind == KVS_CMD_STORE) {
      kvs_option_store option = {KVS_STORE_NOOVERWRITE, NULL}; /* gone when the call is done */
      OK(kvs_store_kvp_async(async_space, &call->key, &call->value, &option, one, two, done));
    } else if (async_kind == KVS_CMD_RETRIEVE) {
      memset(call->bytes, 0, sizeof call->bytes);
      call->value.length = sizeof call->bytes;
      OK(kvs_retrieve_kvp_async(async_space, &call->key, NULL, one, two, &call->value, done));
    } else {
      kvs_option_delete option = {true};
      OK(kvs_delete_kvp_async(async_space, &call->key, &option, one, two, done));
    }
  }
  for (int i = 0; i < CALLS; i++)
    while (atomic_load(&calls[i].times) == 0) usleep(10);
  return NULL;
}

static void round_of(kvs_context kind, kvs_result wanted) {
  pthread_t threads[THREADS];
  async_kind = kind;
  for (int t = 0; t < THREADS; t++) MUST(pthread_create(&threads[t], NULL, submit, calls_of[t]) == 0);
  for (int t = 0; t < THREADS; t++) MUST(pthread_join(threads[t], NULL) == 0);
  for (int t = 0; t < THREADS; t++)
    for (int i = 0; i < CALLS; i++) MUST(calls_of[t][i].times == 1 && calls_of[t][i].result == wanted);
}

static atomic_int others_done;

static void other_done(kvs_postprocess_context *context) {
  MUST(context->result == KVS_SUCCESS && context->private1 == NULL && context->ks_hd == async_space);
  if (context->context == KVS_CMD_EXIST) MUST(context->result_buffer.list->length == 1 && context->key != NULL);
  if (context->context == KVS_CMD_ITER_NEXT) MUST(context->result_buffer.iter_list->num_entries == 1 && context->iter_hd > 0);
  MUST(kvs_close_device(*(kvs_device_handle *)context->private2) == KVS_ERR_SYS_IO);
  /* A callback may make other calls. */
  GIVES(KVS_ERR_KEY_NOT_EXIST, store(context->ks_hd, "not there", "", KVS_STORE_UPDATE_ONLY));
  atomic_fetch_add(&others_done, 1);
}

static void others(kvs_device_handle device, kvs_key_space_handle space) {
  OK(store(space, "group one", "1", KVS_STORE_POST));
  OK(store(space, "other one", "1", KVS_STORE_POST));
  kvs_key key = key_of("group one");
  uint8_t bits = 0;
  kvs_exist_list list = {0, NULL, 1, &bits};
  kvs_key_group_filter filter = {{0xff, 0xff, 0xff, 0xff}, {'g', 'r', 'o', 'u'}};
  kvs_iterator_handle iterator;
  static uint8_t buffer[KVS_ITERATOR_BUFFER_SIZE];
  kvs_iterator_list entries = {0, false, sizeof buffer, buffer};
  others_done = 0;
  OK(kvs_exist_kv_pairs_async(space, 1, &key, &list, NULL, &device, other_done));
  OK(kvs_create_iterator(space, NULL, &filter, &iterator));
  OK(kvs_iterate_next_async(space, iterator, &entries, NULL, &device, other_done));
  while (atomic_load(&others_done) < 2) usleep(10);
  MUST(bits == 1 && entries.end);
  OK(kvs_delete_iterator(space, iterator));
  OK(kvs_delete_key_group_async(space, &filter, NULL, &device, other_done));
  while (atomic_load(&others_done) < 3) usleep(10);
  MUST(!is_there(space, "group one") && is_there(space, "other one"));

  kvs_value value = value_of("x");
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp_async(space, &key, &value, NULL, NULL, NULL, NULL));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_store_kvp_async(space, NULL, &value, NULL, NULL, &device, other_done));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_retrieve_kvp_async(space, &key, NULL, NULL, &device, NULL, other_done));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_delete_kvp_async(space, NULL, NULL, NULL, &device, other_done));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_delete_key_group_async(space, NULL, NULL, &device, other_done));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_exist_kv_pairs_async(space, 1, NULL, &list, NULL, &device, other_done));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_iterate_next_async(space, 1, NULL, NULL, &device, other_done));
  MUST(atomic_load(&others_done) == 3); /* what was refused does not call back */
}

/* Everybody appends a byte to one value, and nobody's is lost; then everybody takes, and one gets it. */
static atomic_int taken;

static void *append_and_take(void *space) {
  kvs_key key = key_of("shared");
  kvs_value value = value_of("+");
  kvs_option_store append = {KVS_STORE_APPEND, NULL};
  for (int i = 0; i < 100; i++) OK(kvs_store_kvp(space, &key, &value, &append));
  return NULL;
}

static void *take(void *space) {
  char buffer[1024];
  kvs_key key = key_of("shared");
  kvs_value value = {buffer, sizeof buffer, 0, 0};
  kvs_option_retrieve option = {true};
  kvs_result given = kvs_retrieve_kvp(space, &key, &option, &value);
  MUST(given == KVS_SUCCESS ? value.length == THREADS * 100 : given == KVS_ERR_KEY_NOT_EXIST);
  if (given == KVS_SUCCESS) atomic_fetch_add(&taken, 1);
  return NULL;
}

static void together(kvs_key_space_handle space) {
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) MUST(pthread_create(&threads[t], NULL, append_and_take, space) == 0);
  for (int t = 0; t < THREADS; t++) MUST(pthread_join(threads[t], NULL) == 0);
  for (int t = 0; t < THREADS; t++) MUST(pthread_create(&threads[t], NULL, take, space) == 0);
  for (int t = 0; t < THREADS; t++) MUST(pthread_join(threads[t], NULL) == 0);
  MUST(taken == 1);
}

static void asynchronously(kvs_device_handle device) {
  async_space = make(device, "async", KVS_KEY_ORDER_NONE);
  for (int t = 0; t < THREADS; t++)
    for (int i = 0; i < CALLS; i++) {
      struct call *call = &calls_of[t][i];
      snprintf(call->name, sizeof call->name, "key %d %d", t, i);
      snprintf(call->bytes, sizeof call->bytes, "value %d %d", t, i);
      call->key = key_of(call->name);
      call->value = value_of(call->bytes);
    }
  round_of(KVS_CMD_STORE, KVS_SUCCESS);
  round_of(KVS_CMD_STORE, KVS_ERR_VALUE_UPDATE_NOT_ALLOWED);
  round_of(KVS_CMD_RETRIEVE, KVS_SUCCESS);
  for (int t = 0; t < THREADS; t++)
    for (int i = 0; i < CALLS; i++) {
      char wanted[64];
      int length = snprintf(wanted, sizeof wanted, "value %d %d", t, i);
      struct call *call = &calls_of[t][i];
      MUST(call->value.length == (uint32_t)length && memcmp(call->bytes, wanted, (size_t)length) == 0);
    }
  round_of(KVS_CMD_DELETE, KVS_SUCCESS);
  round_of(KVS_CMD_DELETE, KVS_ERR_KEY_NOT_EXIST);
  others(device, async_space);
  together(async_space);
}

/* A device that is closed while calls wait does them first. */
static void closes(kvs_device_handle device) {
  async_kind = KVS_CMD_STORE;
  for (int i = 0; i < CALLS; i++) {
    struct call *call = &calls_of[0][i];
    call->times = 0;
    call->value.length = 1;
    OK(kvs_store_kvp_async(async_space, &call->key, &call->value, NULL, call, &async_kind, done));
  }
  OK(kvs_close_device(device));
  for (int i = 0; i < CALLS; i++) MUST(calls_of[0][i].times == 1 && calls_of[0][i].result == KVS_SUCCESS);
  uint64_t capacity;
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_close_device(device));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_get_device_capacity(device, &capacity));
  GIVES(KVS_ERR_KS_NOT_OPEN, store(async_space, "any key", "", KVS_STORE_POST));
}

static void fills(kvs_device_handle device) {
  kvs_option_key_space plain = {KVS_KEY_ORDER_NONE};
  kvs_key_space_handle space;
  kvs_key_space_name name = {5, "small"};
  OK(kvs_create_key_space(device, &name, 1 << 20, (kvs_option_key_space){KVS_KEY_ORDER_NONE}));
  OK(kvs_open_key_space(device, "small", &space));
  static char bytes[64 << 10];
  kvs_value value = {bytes, sizeof bytes, 0, 0};
  kvs_result given = KVS_SUCCESS;
  for (int i = 0; given == KVS_SUCCESS && i < 100; i++) {
    char text[16];
    snprintf(text, sizeof text, "pair %d", i);
    kvs_key key = key_of(text);
    given = kvs_store_kvp(space, &key, &value, NULL);
  }
  MUST(given == KVS_ERR_KS_CAPACITY);
  OK(kvs_close_key_space(space));
  OK(kvs_delete_key_space(device, &name));

  int made = 0;
  for (char many[] = "many a"; made < 100; made++, many[5]++) {
    given = kvs_create_key_space(device, &(kvs_key_space_name){6, many}, 0, plain);
    if (given == KVS_SUCCESS) continue;
    MUST(given == KVS_ERR_DEV_CAPAPCITY);
    break;
  }
  MUST(made > 0 && made < 100);
  char many[] = "many a";
  for (int i = 0; i < made; i++, many[5]++) OK(kvs_delete_key_space(device, &(kvs_key_space_name){6, many}));
}

int main(int count, char **arguments) {
  MUST(count == 3);
  MUST(_kvs_malloc(100, 24, "") == NULL);
  kvs_device_handle device = opens(arguments[1], arguments[2]);
  uint32_t value_bytes_max;
  describes(device);
  names(device);
  OK(kvs_get_max_value_length(device, &value_bytes_max));
  kvs_key_space_handle space = make(device, "pairs", KVS_KEY_ORDER_NONE);
  pairs(space, value_bytes_max);
  deletes(space);
  OK(kvs_close_key_space(space));
  iterates(device, "none", KVS_KEY_ORDER_NONE);
  iterates(device, "ascending", KVS_KEY_ORDER_ASCEND);
  iterates(device, "descending", KVS_KEY_ORDER_DESCEND);
  asynchronously(device);
  fills(device);
  closes(device);
  puts("all calls do what they say");
  return 0;
}
