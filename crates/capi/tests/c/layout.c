/* Says how the header lays things out in memory, line by line; the test compares it with what the library says. */

#include "kvs_api.h"
#include "kvssd_device.h"

#include <stddef.h>

#define TYPE(type) printf("%s: %zu bytes\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s at %zu\n", #type, #field, offsetof(type, field))
#define NUMBER(name) printf("%s = %llu\n", #name, (unsigned long long)(name))

int main(void) {
  TYPE(kvs_option_key_space);
  TYPE(kvs_option_delete);
  TYPE(kvs_option_iterator);
  TYPE(kvs_option_retrieve);
  TYPE(kvs_option_store);
  FIELD(kvs_option_store, assoc);
  TYPE(kvs_key);
  FIELD(kvs_key, length);
  TYPE(kvs_value);
  FIELD(kvs_value, length);
  FIELD(kvs_value, actual_value_size);
  FIELD(kvs_value, offset);
  TYPE(kvs_key_space_name);
  FIELD(kvs_key_space_name, name);
  TYPE(kvs_key_space);
  FIELD(kvs_key_space, capacity);
  FIELD(kvs_key_space, free_size);
  FIELD(kvs_key_space, count);
  FIELD(kvs_key_space, name);
  TYPE(kvs_device);
  FIELD(kvs_device, unalloc_capacity);
  FIELD(kvs_device, max_value_len);
  FIELD(kvs_device, max_key_len);
  FIELD(kvs_device, optimal_value_len);
  FIELD(kvs_device, optimal_value_granularity);
  FIELD(kvs_device, extended_info);
  TYPE(kvs_exist_list);
  FIELD(kvs_exist_list, keys);
  FIELD(kvs_exist_list, length);
  FIELD(kvs_exist_list, result_buffer);
  TYPE(kvs_key_group_filter);
  FIELD(kvs_key_group_filter, bit_pattern);
  TYPE(kvs_iterator_list);
  FIELD(kvs_iterator_list, end);
  FIELD(kvs_iterator_list, size);
  FIELD(kvs_iterator_list, it_list);
  TYPE(kvs_postprocess_context);
  FIELD(kvs_postprocess_context, ks_hd);
  FIELD(kvs_postprocess_context, key);
  FIELD(kvs_postprocess_context, value);
  FIELD(kvs_postprocess_context, option);
  FIELD(kvs_postprocess_context, private1);
  FIELD(kvs_postprocess_context, private2);
  FIELD(kvs_postprocess_context, result);
  FIELD(kvs_postprocess_context, iter_hd);
  FIELD(kvs_postprocess_context, result_buffer);
  TYPE(kvs_kvp_info);
  FIELD(kvs_kvp_info, key);
  FIELD(kvs_kvp_info, value_len);
  TYPE(kvssd_completion);
  FIELD(kvssd_completion, value_bytes);
  FIELD(kvssd_completion, is_done);
  TYPE(kvssd_device_stats);
  FIELD(kvssd_device_stats, page_bytes);
  FIELD(kvssd_device_stats, erases);

  NUMBER(KVS_MIN_KEY_LENGTH);
  NUMBER(KVS_MAX_KEY_LENGTH);
  NUMBER(KVS_MAX_VALUE_LENGTH);
  NUMBER(KVS_OPTIMAL_VALUE_LENGTH);
  NUMBER(KVS_ALIGNMENT_UNIT);
  NUMBER(KVS_MAX_ITERATE_HANDLE);
  NUMBER(KVS_ITERATOR_BUFFER_SIZE);

  NUMBER(KVS_SUCCESS);
  NUMBER(KVS_ERR_BUFFER_SMALL);
  NUMBER(KVS_ERR_DEV_CAPAPCITY);
  NUMBER(KVS_ERR_DEV_NOT_EXIST);
  NUMBER(KVS_ERR_KS_CAPACITY);
  NUMBER(KVS_ERR_KS_EXIST);
  NUMBER(KVS_ERR_KS_INDEX);
  NUMBER(KVS_ERR_KS_NAME);
  NUMBER(KVS_ERR_KS_NOT_EXIST);
  NUMBER(KVS_ERR_KS_NOT_OPEN);
  NUMBER(KVS_ERR_KS_OPEN);
  NUMBER(KVS_ERR_ITERATOR_FILTER_INVALID);
  NUMBER(KVS_ERR_ITERATOR_MAX);
  NUMBER(KVS_ERR_ITERATOR_NOT_EXIST);
  NUMBER(KVS_ERR_ITERATOR_OPEN);
  NUMBER(KVS_ERR_KEY_LENGTH_INVALID);
  NUMBER(KVS_ERR_KEY_NOT_EXIST);
  NUMBER(KVS_ERR_OPTION_INVALID);
  NUMBER(KVS_ERR_PARAM_INVALID);
  NUMBER(KVS_ERR_SYS_IO);
  NUMBER(KVS_ERR_VALUE_LENGTH_INVALID);
  NUMBER(KVS_ERR_VALUE_OFFSET_INVALID);
  NUMBER(KVS_ERR_VALUE_OFFSET_MISALIGNED);
  NUMBER(KVS_ERR_VALUE_UPDATE_NOT_ALLOWED);
  NUMBER(KVS_ERR_DEV_NOT_OPENED);

  NUMBER(KVS_CMD_DELETE);
  NUMBER(KVS_CMD_DELETE_GROUP);
  NUMBER(KVS_CMD_EXIST);
  NUMBER(KVS_CMD_ITER_NEXT);
  NUMBER(KVS_CMD_RETRIEVE);
  NUMBER(KVS_CMD_STORE);
  return 0;
}
