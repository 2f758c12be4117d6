/* Iterators over key groups, of key spaces of every order. Called with an image that was just made. */

#include "check.h"

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

/* Keys as long as they may be, of more than one page of the iterator. */
static void meets_the_longest_keys_once(kvs_device_handle device) {
  enum { PAIRS = 600 };
  static char name[KVS_MAX_KEY_LENGTH + 1];
  kvs_key_space_handle space = make(device, "longest", KVS_KEY_ORDER_DESCEND);
  for (int i = 0; i < PAIRS; i++) {
    snprintf(name, sizeof name, "%0*d", KVS_MAX_KEY_LENGTH, i);
    OK(store(space, name, "", KVS_STORE_POST));
  }
  static char greatest[KVS_MAX_KEY_LENGTH + 1];
  memset(greatest, 0xff, KVS_MAX_KEY_LENGTH);
  OK(store(space, greatest, "", KVS_STORE_POST));
  kvs_option_iterator option = {KVS_ITERATOR_KEY};
  kvs_key_group_filter filter = {{0, 0, 0, 0}, {0}};
  kvs_iterator_handle iterator;
  uint8_t *buffer = kvs_malloc(KVS_ITERATOR_BUFFER_SIZE, 4096);
  kvs_iterator_list list = {0, false, 0, buffer};
  OK(kvs_create_iterator(space, &option, &filter, &iterator));
  int met = 0;
  while (!list.end) {
    list.size = KVS_ITERATOR_BUFFER_SIZE;
    OK(kvs_iterate_next(space, iterator, &list));
    for (uint32_t i = 0; i < list.num_entries; i++, met++) {
      memcpy(name, buffer + i * (4 + KVS_MAX_KEY_LENGTH) + 4, KVS_MAX_KEY_LENGTH);
      MUST(met == 0 ? strcmp(name, greatest) == 0 : met <= PAIRS && atoi(name) == PAIRS - met);
    }
  }
  MUST(met == PAIRS + 1);
  OK(kvs_delete_iterator(space, iterator));
  kvs_free(buffer);
  OK(kvs_close_key_space(space));
}

int main(int count, char **arguments) {
  MUST(count == 2);
  kvs_device_handle device;
  OK(kvs_open_device(arguments[1], &device));
  iterates(device, "none", KVS_KEY_ORDER_NONE);
  iterates(device, "ascending", KVS_KEY_ORDER_ASCEND);
  iterates(device, "descending", KVS_KEY_ORDER_DESCEND);
  meets_the_longest_keys_once(device);
  OK(kvs_close_device(device));
  puts("iterators meet what they must");
  return 0;
}
