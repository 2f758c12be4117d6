/* The types of the SNIA key-value API. Fields lie in memory as in Samsung's KVSSD host software. */

#ifndef KVS_STRUCT_H
#define KVS_STRUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "kvs_const.h"
#include "kvs_result.h"

typedef struct {
  uint8_t major;
  uint8_t minor;
  uint8_t micro;
} kvs_api_version;

/* Which call an asynchronous one was. */
typedef enum {
  KVS_CMD_DELETE = 0x01,
  KVS_CMD_DELETE_GROUP = 0x02,
  KVS_CMD_EXIST = 0x03,
  KVS_CMD_ITER_CREATE = 0x04,
  KVS_CMD_ITER_DELETE = 0x05,
  KVS_CMD_ITER_NEXT = 0x06,
  KVS_CMD_RETRIEVE = 0x07,
  KVS_CMD_STORE = 0x08
} kvs_context;

/* In which order iterators meet the keys of a key space. */
typedef enum {
  KVS_KEY_ORDER_NONE = 0,
  KVS_KEY_ORDER_ASCEND = 1,
  KVS_KEY_ORDER_DESCEND = 2
} kvs_key_order;

typedef struct {
  kvs_key_order ordering;
} kvs_option_key_space;

typedef struct {
  bool kvs_delete_error; /* that the key is not there is an error */
} kvs_option_delete;

/* What kvs_iterate_next fills its buffer with, entry behind entry without padding, numbers in the machine's order of bytes:
 *   KVS_ITERATOR_KEY        uint32_t length of the key, the key
 *   KVS_ITERATOR_KEY_VALUE  uint32_t length of the key, the key, uint32_t length of the value, the value */
typedef enum {
  KVS_ITERATOR_KEY = 0,
  KVS_ITERATOR_KEY_VALUE = 1
} kvs_iterator_type;

typedef struct {
  kvs_iterator_type iter_type;
} kvs_option_iterator;

typedef struct {
  bool kvs_retrieve_delete; /* the pair is removed when the whole rest of its value was given */
} kvs_option_retrieve;

typedef enum {
  KVS_STORE_POST = 0,        /* whether or not the key is there */
  KVS_STORE_UPDATE_ONLY = 1, /* only if it is */
  KVS_STORE_NOOVERWRITE = 2, /* only if it is not */
  KVS_STORE_APPEND = 3       /* behind the value that it has; as KVS_STORE_POST where it has none */
} kvs_store_type;

/* Which pairs belong together, as a hint. It is not looked at. */
typedef enum {
  KVS_NOASSOCIATION = 0,
  KVS_ASSOCIATION_STREAM = 1
} kvs_association_type;

typedef struct {
  void *key;
  uint16_t length;
} kvs_key;

typedef struct {
  void *value;
  uint32_t length;            /* bytes of the buffer; after a retrieve that went well, bytes that were put into it */
  uint32_t actual_value_size; /* bytes of the whole value, after a retrieve */
  uint32_t offset;            /* where within the value a retrieve begins */
} kvs_value;

typedef struct {
  kvs_association_type assoc_type;
  uint16_t assoc_hint;
} kvs_association;

typedef struct {
  kvs_store_type st_type;
  kvs_association *assoc;
} kvs_option_store;

struct _kvs_device_handle;
struct _kvs_key_space_handle;
typedef struct _kvs_device_handle *kvs_device_handle;
typedef struct _kvs_key_space_handle *kvs_key_space_handle;
typedef uint8_t kvs_iterator_handle;

typedef struct {
  uint32_t name_len; /* bytes of the name; of the buffer where a call is to write one */
  char *name;
} kvs_key_space_name;

typedef struct {
  bool opened;
  uint64_t capacity;        /* bytes of flash that its pairs may take */
  uint64_t free_size;       /* bytes of that which are left */
  uint64_t count;           /* pairs */
  kvs_key_space_name *name; /* where its name is written to, unless null */
} kvs_key_space;

typedef struct {
  uint64_t capacity;         /* bytes of flash that pairs may take */
  uint64_t unalloc_capacity; /* bytes of that which no key space has for itself */
  uint32_t max_value_len;
  uint32_t max_key_len;
  uint32_t optimal_value_len;
  uint32_t optimal_value_granularity;
  void *extended_info; /* null */
} kvs_device;

typedef struct {
  uint32_t num_keys;
  kvs_key *keys;
  uint32_t length;        /* bytes of result_buffer; afterwards, bytes that were written */
  uint8_t *result_buffer; /* a bit a key, the first key's the lowest of the first byte */
} kvs_exist_list;

/* The keys whose first four bytes are those of bit_pattern in all places where bitmask has a bit. The set bits of bitmask are its first ones. */
typedef struct {
  uint8_t bitmask[KVS_MAX_KEY_GROUP_BYTES];
  uint8_t bit_pattern[KVS_MAX_KEY_GROUP_BYTES];
} kvs_key_group_filter;

typedef struct {
  uint32_t num_entries;
  bool end;         /* there are no more */
  uint32_t size;    /* bytes of it_list, KVS_ITERATOR_BUFFER_SIZE or more; afterwards, bytes that were written */
  uint8_t *it_list; /* see kvs_iterator_type */
} kvs_iterator_list;

/* What a callback is told. It lives as long as the callback runs; all pointers are those that the call was given. */
typedef struct {
  kvs_context context;
  kvs_key_space_handle ks_hd;
  kvs_key *key;
  kvs_value *value;
  void *option;
  void *private1;
  void *private2;
  kvs_result result;
  kvs_iterator_handle iter_hd;
  union {
    kvs_iterator_list *iter_list; /* KVS_CMD_ITER_NEXT */
    kvs_exist_list *list;         /* KVS_CMD_EXIST */
  } result_buffer;
} kvs_postprocess_context;

typedef void (*kvs_postprocess_function)(kvs_postprocess_context *ctx);

typedef struct {
  uint16_t key_len;
  uint8_t *key; /* where the key is copied to, unless null: as many bytes as the key has */
  uint32_t value_len;
} kvs_kvp_info;

#endif
