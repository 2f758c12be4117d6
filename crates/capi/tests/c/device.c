/* A simulated drive that is asked, forked and misused. */

#include "check.h"
#include "kvssd_device.h"

static kvssd_completion stored(kvssd_device_handle device, uint64_t at_ns, uint32_t number) {
  kvssd_completion completion;
  char key[16];
  int bytes = snprintf(key, sizeof key, "key%u", number);
  OK(kvssd_device_store(device, at_ns, key, (uint32_t)bytes, 4096, &completion));
  MUST(completion.is_done && completion.done_ns > at_ns && completion.value_bytes == 4096);
  return completion;
}

int main(void) {
  kvssd_device_handle device, copy, again;
  kvssd_completion completion, other;
  kvssd_device_stats stats;
  const char *set[] = {"nand.erase_ns=1000000", "design.gc_low_superblocks=9", NULL};
  const char *wrong[] = {"nand.erase_ns", NULL}, *unknown[] = {"design.colour=red", NULL};
  GIVES(KVS_ERR_OPTION_INVALID, kvssd_device_create("nonsense", "kvvirt", 1.0 / 512, NULL, &device));
  MUST(strstr(kvssd_last_error(), "nonsense"));
  GIVES(KVS_ERR_OPTION_INVALID, kvssd_device_create("block", "kvvirt", 1.0 / 512, NULL, &device)); /* it takes no keys */
  MUST(strstr(kvssd_last_error(), "takes blocks"));
  GIVES(KVS_ERR_OPTION_INVALID, kvssd_device_create("plus", "nowhere.toml", 1.0 / 512, NULL, &device));
  GIVES(KVS_ERR_OPTION_INVALID, kvssd_device_create("plus", "kvvirt", 0, NULL, &device));
  GIVES(KVS_ERR_OPTION_INVALID, kvssd_device_create("plus", "kvvirt", 1.0 / 512, wrong, &device));
  GIVES(KVS_ERR_OPTION_INVALID, kvssd_device_create("plus", "kvvirt", 1.0 / 512, unknown, &device));
  GIVES(KVS_ERR_PARAM_INVALID, kvssd_device_create(NULL, "kvvirt", 1.0 / 512, NULL, &device));
  OK(kvssd_device_create("plus", "kvvirt", 1.0 / 512, set, &device));
  OK(kvssd_device_create("plus", "kvvirt", 1.0 / 512, set, &again));

  /* The same commands get the same answers. */
  uint64_t at_ns = 0;
  for (uint32_t number = 0; number < 2000; number++) {
    completion = stored(device, at_ns, number);
    other = stored(again, at_ns, number);
    MUST(completion.done_ns == other.done_ns);
    at_ns = completion.done_ns;
  }
  OK(kvssd_device_retrieve(device, at_ns, "key7", 4, 96, UINT32_MAX, &completion));
  MUST(completion.is_done && completion.value_bytes == 4096 && completion.done_ns > at_ns + 10000);
  OK(kvssd_device_exist(device, at_ns, "nobody", 6, &completion));
  MUST(!completion.is_done);

  /* From the fork on the two live apart. */
  OK(kvssd_device_fork(device, &copy));
  OK(kvssd_device_delete(copy, at_ns, "key7", 4, &completion));
  MUST(completion.is_done);
  OK(kvssd_device_exist(copy, at_ns, "key7", 4, &completion));
  MUST(!completion.is_done);
  OK(kvssd_device_exist(device, at_ns, "key7", 4, &completion));
  MUST(completion.is_done);
  OK(kvssd_device_get_stats(device, &stats));
  MUST(stats.stored_bytes > 2000 * 4096 && stats.pages_programmed > 100 && stats.now_ns == at_ns && stats.flash_bytes > 0);

  GIVES(KVS_ERR_PARAM_INVALID, kvssd_device_store(device, at_ns - 1, "k", 1, 1, &completion));
  MUST(strstr(kvssd_last_error(), "order of time"));
  GIVES(KVS_ERR_PARAM_INVALID, kvssd_device_store(device, at_ns, "k", 0, 1, &completion));
  GIVES(KVS_ERR_PARAM_INVALID, kvssd_device_store(device, at_ns, NULL, 3, 1, &completion));
  GIVES(KVS_ERR_PARAM_INVALID, kvssd_device_store(device, at_ns, "k", 1, UINT32_MAX, &completion));
  GIVES(KVS_ERR_PARAM_INVALID, kvssd_device_store(device, at_ns, "k", 1, 1, NULL));
  OK(kvssd_device_destroy(device));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvssd_device_exist(device, at_ns, "k", 1, &completion));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvssd_device_destroy(device));
  GIVES(KVS_ERR_DEV_NOT_EXIST, kvs_close_device((kvs_device_handle)copy));
  OK(kvssd_device_destroy(copy));
  OK(kvssd_device_destroy(again));
  puts("a device answers what it must");
  return 0;
}
