/* Asynchronous calls from several threads: each calls back once. Called with an image that was just made. */

#include "check.h"

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

int main(int count, char **arguments) {
  MUST(count == 2);
  kvs_device_handle device;
  OK(kvs_open_device(arguments[1], &device));
  asynchronously(device);
  closes(device);
  puts("every call calls back once");
  return 0;
}
