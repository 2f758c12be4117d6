/* A drive on the wire: what is as it is in an image, and what is refused there. Called with a URL. */

#include "check.h"

enum { PAIRS = 500 };

static char names[PAIRS][16], texts[PAIRS][32];
static kvs_key keys[PAIRS];
static kvs_value values[PAIRS];
static atomic_int stored;

static void done(kvs_postprocess_context *context) {
  MUST(context->result == KVS_SUCCESS);
  atomic_fetch_add(&stored, 1);
}

int main(int arguments_count, char **arguments) {
  kvs_device_handle device;
  kvs_key_space_handle space;
  uint32_t number;
  MUST(arguments_count == 2);
  OK(kvs_open_device(arguments[1], &device));
  OK(kvs_get_max_key_length(device, &number));
  MUST(number == 255);
  OK(kvs_get_max_value_length(device, &number));
  MUST(number > 0 && number <= KVS_MAX_VALUE_LENGTH);
  OK(kvs_get_device_utilization(device, &number));
  kvs_key_space_name named = {8, "accounts"};
  OK(kvs_create_key_space(device, &named, 0, (kvs_option_key_space){KVS_KEY_ORDER_NONE}));
  GIVES(KVS_ERR_KS_EXIST, kvs_create_key_space(device, &named, 0, (kvs_option_key_space){KVS_KEY_ORDER_NONE}));
  OK(kvs_open_key_space(device, "accounts", &space));
  char name[32];
  kvs_key_space_name listed[1] = {{sizeof name, name}};
  uint32_t count = 0;
  OK(kvs_list_key_spaces(device, 1, sizeof listed, listed, &count));
  MUST(count == 1 && strcmp(name, "accounts") == 0);

  for (int i = 0; i < PAIRS; i++) {
    snprintf(names[i], sizeof names[i], "%s%06d", i % 2 ? "odd " : "even", i);
    snprintf(texts[i], sizeof texts[i], "value %d", i);
    keys[i] = key_of(names[i]);
    values[i] = value_of(texts[i]);
    OK(kvs_store_kvp_async(space, &keys[i], &values[i], NULL, NULL, NULL, done));
  }
  while (atomic_load(&stored) < PAIRS) usleep(10);
  for (int i = 0; i < PAIRS; i++) holds(space, names[i], texts[i]);
  OK(store(space, "a key of 17 bytes", "long", KVS_STORE_NOOVERWRITE));
  OK(store(space, "a key of 17 byteS", "longer", KVS_STORE_NOOVERWRITE));
  holds(space, "a key of 17 bytes", "long");
  OK(kvs_delete_kvp(space, &(kvs_key){"a key of 17 bytes", 17}, &(kvs_option_delete){true}));
  holds(space, "a key of 17 byteS", "longer");
  OK(kvs_delete_kvp(space, &(kvs_key){"a key of 17 byteS", 17}, &(kvs_option_delete){true}));
  GIVES(KVS_ERR_VALUE_UPDATE_NOT_ALLOWED, store(space, names[0], "", KVS_STORE_NOOVERWRITE));
  GIVES(KVS_ERR_KEY_NOT_EXIST, store(space, "missing", "", KVS_STORE_UPDATE_ONLY));
  OK(store(space, names[0], " and more", KVS_STORE_APPEND));
  holds(space, names[0], "value 0 and more");

  static char large[100000], back[100000];
  memset(large, 'x', sizeof large);
  kvs_key key = key_of("large");
  kvs_value value = {large, sizeof large, 0, 0}, got = {back, 1000, 0, 0};
  OK(kvs_store_kvp(space, &key, &value, NULL));
  kvs_kvp_info info = {0, NULL, 0};
  OK(kvs_get_kvp_info(space, &key, &info));
  MUST(info.value_len == sizeof large);
  GIVES(KVS_ERR_BUFFER_SMALL, kvs_retrieve_kvp(space, &key, NULL, &got));
  MUST(got.actual_value_size == sizeof large);
  got = (kvs_value){back, sizeof back, 0, 99840};
  OK(kvs_retrieve_kvp(space, &key, &(kvs_option_retrieve){true}, &got));
  MUST(got.length == 160 && back[159] == 'x' && !is_there(space, "large"));

  kvs_key_space space_info = {.name = NULL};
  OK(kvs_get_key_space_info(space, &space_info));
  MUST(space_info.count == PAIRS);
  kvs_key_group_filter filter = {{0xff, 0xff, 0xff, 0xff}, {'o', 'd', 'd', ' '}};
  kvs_iterator_handle iterator;
  static uint8_t buffer[KVS_ITERATOR_BUFFER_SIZE];
  kvs_iterator_list list = {0, false, sizeof buffer, buffer};
  OK(kvs_create_iterator(space, &(kvs_option_iterator){KVS_ITERATOR_KEY_VALUE}, &filter, &iterator));
  OK(kvs_iterate_next(space, iterator, &list));
  MUST(list.num_entries == PAIRS / 2 && list.end);
  OK(kvs_delete_key_group(space, &filter));
  MUST(!is_there(space, names[1]) && is_there(space, names[2]));
  GIVES(KVS_ERR_KEY_NOT_EXIST, kvs_delete_kvp(space, &keys[1], &(kvs_option_delete){true}));
  OK(kvs_delete_kvp(space, &keys[2], &(kvs_option_delete){true}));
  void *memory = kvs_malloc(100, 4096);
  kvs_memstat();
  kvs_free(memory);
  kvs_memstat();
  OK(kvs_delete_key_space(device, &named));
  GIVES(KVS_ERR_KS_NOT_EXIST, store(space, "gone", "", KVS_STORE_POST));
  OK(kvs_close_device(device));
  puts("the wire makes no difference");
  return 0;
}
