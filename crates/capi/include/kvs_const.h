/* The limits of the SNIA key-value API as Samsung's KVSSD host software has them. */

#ifndef KVS_CONST_H
#define KVS_CONST_H

/* Bytes of a key. Over NVMe a drive of another make takes 16 at the most: kvs_get_max_key_length says. */
#define KVS_MIN_KEY_LENGTH 4
#define KVS_MAX_KEY_LENGTH 255

/* Bytes of a value. */
#define KVS_MIN_VALUE_LENGTH 0
#define KVS_MAX_VALUE_LENGTH (2 * 1024 * 1024)
#define KVS_OPTIMAL_VALUE_LENGTH 4096

/* What the offset within a value is a multiple of. */
#define KVS_ALIGNMENT_UNIT 512
/* What the size of a buffer for a value is a multiple of on a real drive; here any size will do. */
#define KVS_VALUE_LENGTH_ALIGNMENT_UNIT 4

/* Iterators that a device has at a time, and bytes of the buffer that kvs_iterate_next fills. */
#define KVS_MAX_ITERATE_HANDLE 16
#define KVS_ITERATOR_BUFFER_SIZE (32 * 1024)
#define G_ITER_KEY_SIZE_FIXED 16

/* Bytes of a key that bit mask and bit pattern of a key group are about: the first ones. */
#define KVS_MAX_KEY_GROUP_BYTES 4

/* Bytes of the name of a key space in that API. Here names have 64 bytes at the most: see docs/C.md. */
#define MAX_CONT_PATH_LEN 255
#define MAX_KEYSPACE_NAME_LEN MAX_CONT_PATH_LEN

#endif
