/* The SNIA key-value API with the names of Samsung's KVSSD host software, over kvssd: a drive in a file, or one that is reached over
 * NVMe/TCP. docs/C.md says how to build and link it, and where it differs from the API.
 *
 *   kvs_open_device      "drive.kv" or "nvme+tcp://127.0.0.1:4420/?ns=1"
 *     kvs_create_key_space, kvs_open_key_space, ...
 *       kvs_store_kvp, kvs_retrieve_kvp, kvs_delete_kvp, kvs_exist_kv_pairs, kvs_create_iterator, kvs_iterate_next, ...
 *
 * Every function can be called from any thread. Options that are null are the default ones. */

#ifndef KVS_API_H
#define KVS_API_H

#include <memory.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "kvs_const.h"
#include "kvs_result.h"
#include "kvs_struct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory for keys and values. Any other memory will do as well. ---- */

/* `alignment` is a power of two; null when there is no memory. `file` is not looked at. */
void *_kvs_malloc(size_t size_bytes, size_t alignment, const char *file);
void *_kvs_zalloc(size_t size_bytes, size_t alignment, const char *file);
void _kvs_free(void *buf, const char *file);

#define kvs_malloc(size, alignment) _kvs_malloc(size, alignment, __FILE__)
#define kvs_zalloc(size, alignment) _kvs_zalloc(size, alignment, __FILE__)
#define kvs_free(buf) _kvs_free(buf, __FILE__)

/* A line on the standard error: how many pieces of that memory are not freed. */
void _kvs_report_memstat(void);

#define kvs_memstat() _kvs_report_memstat()

/* ---- What went wrong: not a part of the API. ---- */

/* One line about the last call of this thread that gave an error; within a callback, about the call that it is for. It is there until
 * the next error of the thread. Never null. */
const char *kvssd_last_error(void);

/* ---- The device. ---- */

/* Opens the drive in an image (made with `kvssd create`), or at a URL. One program has an image at a time. */
kvs_result kvs_open_device(char *URI, kvs_device_handle *dev_hd);

/* Waits for what is under way, callbacks too, closes its key spaces and the drive. Not to be called by a callback. */
kvs_result kvs_close_device(kvs_device_handle dev_hd);

kvs_result kvs_get_device_info(kvs_device_handle dev_hd, kvs_device *dev_info);

/* Bytes of flash that pairs may take. */
kvs_result kvs_get_device_capacity(kvs_device_handle dev_hd, uint64_t *dev_capacity);

/* The part of the capacity that is used, 0 to 10 000. */
kvs_result kvs_get_device_utilization(kvs_device_handle dev_hd, uint32_t *dev_utilization);

kvs_result kvs_get_min_key_length(kvs_device_handle dev_hd, uint32_t *min_key_length);
kvs_result kvs_get_max_key_length(kvs_device_handle dev_hd, uint32_t *max_key_length);
kvs_result kvs_get_min_value_length(kvs_device_handle dev_hd, uint32_t *min_value_length);
kvs_result kvs_get_max_value_length(kvs_device_handle dev_hd, uint32_t *max_value_length);
kvs_result kvs_get_optimal_value_length(kvs_device_handle dev_hd, uint32_t *opt_value_length);

/* ---- Key spaces: the namespaces of the drive. ---- */

/* `size` is the most bytes of flash that its pairs may take, 0 for as many as the drive has. */
kvs_result kvs_create_key_space(kvs_device_handle dev_hd, kvs_key_space_name *key_space_name, uint64_t size,
                                kvs_option_key_space opt);

/* Deletes it with all its pairs; who has it open gets KVS_ERR_KS_NOT_EXIST from then on. */
kvs_result kvs_delete_key_space(kvs_device_handle dev_hd, kvs_key_space_name *key_space_name);

/* Writes names from the one with number `index`, counted from 1, on into buffers that `names` has: as many as `buffer_size` bytes of
 * kvs_key_space_name are. */
kvs_result kvs_list_key_spaces(kvs_device_handle dev_hd, uint32_t index, uint32_t buffer_size, kvs_key_space_name *names,
                               uint32_t *ks_cnt);

/* A namespace without a name is called by its number, such as "1", which every drive begins with. */
kvs_result kvs_open_key_space(kvs_device_handle dev_hd, char *name, kvs_key_space_handle *ks_hd);

/* Ends its iterators, too. */
kvs_result kvs_close_key_space(kvs_key_space_handle ks_hd);

kvs_result kvs_get_key_space_info(kvs_key_space_handle ks_hd, kvs_key_space *ks);

/* ---- Pairs. ---- */

/* The asynchronous functions give KVS_SUCCESS when the call was taken, and call `post_fn` once, from another thread, when it is done; or
 * an error, and do not call it. Until then the memory that the call names belongs to the library, options excepted. 1024 calls
 * wait at the most: who makes another one waits, except for a callback, which gets KVS_ERR_SYS_IO. */

/* Bytes of the value, without reading it. */
kvs_result kvs_get_kvp_info(kvs_key_space_handle ks_hd, kvs_key *key, kvs_kvp_info *info);

/* What does not fit is left out, and the result KVS_ERR_BUFFER_SMALL; `actual_value_size` says what would. */
kvs_result kvs_retrieve_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_retrieve *opt, kvs_value *value);
kvs_result kvs_retrieve_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_retrieve *opt, void *private1,
                                  void *private2, kvs_value *value, kvs_postprocess_function post_fn);

/* What has returned KVS_SUCCESS outlives the process. */
kvs_result kvs_store_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_value *value, kvs_option_store *opt);
kvs_result kvs_store_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_value *value, kvs_option_store *opt,
                               void *private1, void *private2, kvs_postprocess_function post_fn);

kvs_result kvs_delete_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_delete *opt);
kvs_result kvs_delete_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_delete *opt, void *private1,
                                void *private2, kvs_postprocess_function post_fn);

/* Deletes the pairs of a key group one by one. */
kvs_result kvs_delete_key_group(kvs_key_space_handle ks_hd, kvs_key_group_filter *grp_fltr);
kvs_result kvs_delete_key_group_async(kvs_key_space_handle ks_hd, kvs_key_group_filter *grp_fltr, void *private1,
                                      void *private2, kvs_postprocess_function post_fn);

/* Sets a bit of `list->result_buffer` for each of `keys` that is there. */
kvs_result kvs_exist_kv_pairs(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key *keys, kvs_exist_list *list);
kvs_result kvs_exist_kv_pairs_async(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key *keys, kvs_exist_list *list,
                                    void *private1, void *private2, kvs_postprocess_function post_fn);

/* ---- Iterators over key groups. ---- */

/* Keys that are there all the time are met once; those that come or go meanwhile may be met or not. */
kvs_result kvs_create_iterator(kvs_key_space_handle ks_hd, kvs_option_iterator *iter_op, kvs_key_group_filter *iter_fltr,
                               kvs_iterator_handle *iter_hd);
kvs_result kvs_delete_iterator(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd);

/* KVS_ERR_BUFFER_SMALL when the next pair alone is larger than the buffer: the iterator stays before it. */
kvs_result kvs_iterate_next(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list *iter_list);
kvs_result kvs_iterate_next_async(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list *iter_list,
                                  void *private1, void *private2, kvs_postprocess_function post_fn);

#ifdef __cplusplus
}
#endif

#endif
