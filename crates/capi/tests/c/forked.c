/* A device belongs to the process that opened it. Called with an image, or a URL. */

#include "check.h"

#include <sys/wait.h>

enum { PAIRS = 300, CHILDREN = 4, OWN = 100000 };

static void put(kvs_key_space_handle space, int from, int to) {
  char key[16], value[32];
  for (int i = from; i < to; i++) {
    snprintf(key, sizeof key, "key %06d", i);
    snprintf(value, sizeof value, "value %d", i);
    OK(store(space, key, value, KVS_STORE_POST));
  }
}

static void done(kvs_postprocess_context *context) { MUST(context->result == KVS_SUCCESS); }

/* Every call says whose the device is; closing it, and ending, change nothing. */
static void child(kvs_device_handle device, kvs_key_space_handle space, const char *drive, int way) {
  kvs_device info;
  kvs_device_handle own;
  uint8_t bits;
  char buffer[64];
  kvs_key key = key_of("key 000001");
  kvs_value value = {buffer, sizeof buffer, 0, 0};
  kvs_exist_list list = {0, NULL, 1, &bits};
  GIVES(KVS_ERR_DEV_NOT_OPENED, store(space, "of the child", "", KVS_STORE_POST));
  MUST(strstr(kvssd_last_error(), "forked") != NULL);
  GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_retrieve_kvp(space, &key, NULL, &value));
  GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_exist_kv_pairs(space, 1, &key, &list));
  GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_store_kvp_async(space, &key, &value, NULL, NULL, NULL, done));
  GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_get_device_info(device, &info));
  if (way % 2) {
    GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_close_key_space(space));
    GIVES(KVS_ERR_DEV_NOT_OPENED, kvs_close_device(device));
  }
  /* An image has one owner; a drive on the wire has room for both. */
  if (strncmp(drive, "nvme", 4) == 0) {
    OK(kvs_open_device((char *)drive, &own));
    OK(kvs_open_key_space(own, "1", &space));
    holds(space, "key 000001", "value 1");
    /* Each child is a host of its own: what one stores is not taken for what another one has stored. */
    put(space, OWN + PAIRS * way, OWN + PAIRS * (way + 1));
    OK(kvs_close_device(own));
  } else {
    MUST(kvs_open_device((char *)drive, &own) != KVS_SUCCESS);
  }
  way < 2 ? exit(0) : _exit(0);
}

int main(int count, char **arguments) {
  kvs_device_handle device;
  kvs_key_space_handle space;
  char key[16], value[32];
  pid_t children[CHILDREN];
  MUST(count == 2);
  OK(kvs_open_device(arguments[1], &device));
  OK(kvs_open_key_space(device, "1", &space));
  put(space, 0, PAIRS);
  for (int i = 0; i < CHILDREN; i++) {
    children[i] = fork();
    MUST(children[i] >= 0);
    if (children[i] == 0) child(device, space, arguments[1], i);
    put(space, PAIRS * (i + 1), PAIRS * (i + 2));
  }
  for (int i = 0; i < CHILDREN; i++) {
    int status;
    MUST(waitpid(children[i], &status, 0) == children[i] && status == 0);
  }
  put(space, PAIRS * (CHILDREN + 1), PAIRS * (CHILDREN + 2));
  OK(kvs_close_device(device));
  OK(kvs_open_device(arguments[1], &device));
  OK(kvs_open_key_space(device, "1", &space));
  for (int i = 0; i < PAIRS * (CHILDREN + 2); i++) {
    snprintf(key, sizeof key, "key %06d", i);
    snprintf(value, sizeof value, "value %d", i);
    holds(space, key, value);
  }
  for (int i = OWN; strncmp(arguments[1], "nvme", 4) == 0 && i < OWN + PAIRS * CHILDREN; i++) {
    snprintf(key, sizeof key, "key %06d", i);
    snprintf(value, sizeof value, "value %d", i);
    holds(space, key, value);
  }
  OK(kvs_close_device(device));
  puts("a device has one process");
  return 0;
}
