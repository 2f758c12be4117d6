/* Devices, key spaces and pairs, with every option, limit and result code.
 * Called with an image that was just made, and a path where there is nothing. */

#include "check.h"
#include <sys/mman.h>

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
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_get_device_capacity((kvs_device_handle)(uintptr_t)7, &capacity)); /* a namespace's number */
}

/* ---- Key spaces. ---- */

/* A quota bounds records: the index of an ordered key space takes none of it. What others store is free for nobody. */
static void rooms(kvs_device_handle device) {
  kvs_key_space_name name = {6, "events"};
  kvs_key_space_handle events, others;
  kvs_key_space empty = {.name = NULL}, before = {.name = NULL}, behind = {.name = NULL};
  OK(kvs_create_key_space(device, &name, 512 << 10, (kvs_option_key_space){KVS_KEY_ORDER_ASCEND}));
  OK(kvs_open_key_space(device, "events", &events));
  OK(kvs_get_key_space_info(events, &empty));
  MUST(empty.capacity == 512 << 10 && empty.free_size == empty.capacity);
  OK(kvs_open_key_space(device, "1", &others));
  OK(kvs_get_key_space_info(others, &before));
  static char many[400000];
  kvs_key key = {"many", 4};
  kvs_value value = {many, sizeof many, 0, 0};
  OK(kvs_store_kvp(events, &key, &value, NULL));
  OK(kvs_get_key_space_info(others, &behind));
  MUST(behind.capacity == before.capacity && behind.free_size + sizeof many <= before.free_size);
  OK(kvs_close_key_space(others));
  OK(kvs_delete_key_space(device, &name));
}

static void names(kvs_device_handle device) {
  kvs_option_key_space plain = {KVS_KEY_ORDER_NONE};
  kvs_key_space_name name = {8, "accounts"};
  kvs_key_space_handle space, again;
  OK(kvs_create_key_space(device, &name, 8 << 20, plain));
  GIVES(KVS_ERR_KS_EXIST, kvs_create_key_space(device, &name, 0, plain));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_key_space(device, NULL, 0, plain));
  GIVES(KVS_ERR_PARAM_INVALID, kvs_create_key_space(device, &(kvs_key_space_name){3, NULL}, 0, plain));
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){9, "accounts"}, 0, plain));
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){0, ""}, 0, plain));
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){2, "17"}, 0, plain));
  char long_name[300];
  memset(long_name, 'n', sizeof long_name);
  long_name[65] = 0;
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){65, long_name}, 0, plain));
  long_name[65] = 'n';
  long_name[299] = 0;
  GIVES(KVS_ERR_KS_NAME, kvs_create_key_space(device, &(kvs_key_space_name){299, long_name}, 0, plain));
  /* A name is as long as it says: no null has to end it, and nothing behind it is touched. */
  long page_bytes = sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(pages != MAP_FAILED && mprotect(pages + page_bytes, page_bytes, PROT_NONE) == 0);
  kvs_key_space_name exact = {5, memcpy(pages + page_bytes - 5, "hello", 5)};
  OK(kvs_create_key_space(device, &exact, 0, plain));
  OK(kvs_delete_key_space(device, &exact));
  MUST(munmap(pages, 2 * page_bytes) == 0);

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
  rooms(device);
  OK(kvs_get_max_value_length(device, &value_bytes_max));
  kvs_key_space_handle space = make(device, "pairs", KVS_KEY_ORDER_NONE);
  pairs(space, value_bytes_max);
  deletes(space);
  OK(kvs_close_key_space(space));
  fills(device);
  OK(kvs_close_device(device));
  puts("all calls do what they say");
  return 0;
}
