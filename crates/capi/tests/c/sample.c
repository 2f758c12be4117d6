/* A program as they are written for the API: it knows nothing of kvssd but the path that it is given.
 *   sample -d device [-n pairs] [-k bytes of a key] [-v bytes of a value] */

#include <getopt.h>
#include <kvs_api.h>
#include <stdlib.h>
#include <string.h>

#define ITER_BUFF (32 * 1024)

static int store_pairs(kvs_key_space_handle ks_hd, int count, uint16_t klen, uint32_t vlen) {
  char *key = (char *)kvs_malloc(klen, 4096);
  char *value = (char *)kvs_malloc(vlen, 4096);
  int stored = 0;
  for (int i = 0; i < count; i++) {
    snprintf(key, klen, "%0*d", klen - 1, i);
    memset(value, 'a' + i % 26, vlen);
    kvs_option_store option;
    option.st_type = KVS_STORE_POST;
    option.assoc = NULL;
    kvs_key kvskey = {key, klen};
    kvs_value kvsvalue = {value, vlen, 0, 0};
    kvs_result ret = kvs_store_kvp(ks_hd, &kvskey, &kvsvalue, &option);
    if (ret != KVS_SUCCESS) {
      fprintf(stderr, "store failed with error 0x%x\n", ret);
      break;
    }
    stored++;
  }
  kvs_free(key);
  kvs_free(value);
  return stored;
}

static int retrieve_pairs(kvs_key_space_handle ks_hd, int count, uint16_t klen, uint32_t vlen) {
  char *key = (char *)kvs_malloc(klen, 4096);
  char *value = (char *)kvs_malloc(vlen, 4096);
  int retrieved = 0;
  for (int i = 0; i < count; i++) {
    snprintf(key, klen, "%0*d", klen - 1, i);
    memset(value, 0, vlen);
    kvs_option_retrieve option;
    option.kvs_retrieve_delete = false;
    kvs_key kvskey = {key, klen};
    kvs_value kvsvalue = {value, vlen, 0, 0};
    kvs_result ret = kvs_retrieve_kvp(ks_hd, &kvskey, &option, &kvsvalue);
    if (ret != KVS_SUCCESS || kvsvalue.actual_value_size != vlen || value[vlen - 1] != 'a' + i % 26) {
      fprintf(stderr, "retrieve %s failed with error 0x%x\n", key, ret);
      break;
    }
    retrieved++;
  }
  kvs_free(key);
  kvs_free(value);
  return retrieved;
}

static int iterate(kvs_key_space_handle ks_hd) {
  kvs_option_iterator iter_mode = {KVS_ITERATOR_KEY};
  kvs_key_group_filter iter_fltr = {{0xff, 0xff, 0, 0}, {'0', '0', '0', '0'}};
  kvs_iterator_handle iter_handle;
  kvs_iterator_list iter_list;
  int total = 0;
  if (kvs_create_iterator(ks_hd, &iter_mode, &iter_fltr, &iter_handle) != KVS_SUCCESS) return -1;
  iter_list.it_list = (uint8_t *)kvs_malloc(ITER_BUFF, 4096);
  iter_list.end = 0;
  iter_list.num_entries = 0;
  while (1) {
    iter_list.size = ITER_BUFF;
    memset(iter_list.it_list, 0, ITER_BUFF);
    if (kvs_iterate_next(ks_hd, iter_handle, &iter_list) != KVS_SUCCESS) return -1;
    total += iter_list.num_entries;
    if (iter_list.end) break;
  }
  kvs_free(iter_list.it_list);
  return kvs_delete_iterator(ks_hd, iter_handle) == KVS_SUCCESS ? total : -1;
}

int main(int argc, char *argv[]) {
  char *dev_path = NULL;
  int num_ios = 1000, option;
  uint16_t klen = 16;
  uint32_t vlen = 4096;
  while ((option = getopt(argc, argv, "d:n:k:v:")) != -1) {
    if (option == 'd') dev_path = optarg;
    if (option == 'n') num_ios = atoi(optarg);
    if (option == 'k') klen = (uint16_t)atoi(optarg);
    if (option == 'v') vlen = (uint32_t)atoi(optarg);
  }

  kvs_device_handle dev;
  if (kvs_open_device(dev_path, &dev) != KVS_SUCCESS) {
    fprintf(stderr, "Device open failed\n");
    return 1;
  }
  char name[] = "keyspace_test";
  kvs_key_space_name ks_name;
  ks_name.name = name;
  ks_name.name_len = strlen(name);
  kvs_option_key_space ks_option = {KVS_KEY_ORDER_NONE};
  kvs_key_space_handle ks_hd;
  if (kvs_create_key_space(dev, &ks_name, 0, ks_option) != KVS_SUCCESS) return 1;
  if (kvs_open_key_space(dev, name, &ks_hd) != KVS_SUCCESS) return 1;

  int stored = store_pairs(ks_hd, num_ios, klen, vlen);
  int retrieved = retrieve_pairs(ks_hd, num_ios, klen, vlen);
  int iterated = iterate(ks_hd);
  uint32_t dev_util = 0;
  kvs_get_device_utilization(dev, &dev_util);
  printf("stored %d, retrieved %d, iterated %d, used %s\n", stored, retrieved, iterated, dev_util > 0 ? "some" : "none");

  kvs_close_key_space(ks_hd);
  kvs_delete_key_space(dev, &ks_name);
  return kvs_close_device(dev) == KVS_SUCCESS ? 0 : 1;
}
