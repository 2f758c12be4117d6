/* What the calls of the SNIA key-value API give back. */

#ifndef KVS_RESULT_H
#define KVS_RESULT_H

typedef enum {
  KVS_SUCCESS = 0,
  KVS_ERR_BUFFER_SMALL = 0x001,             /* what was asked for does not fit into the buffer */
  KVS_ERR_DEV_CAPAPCITY = 0x002,            /* the device has no room for the key space (the API spells it so) */
  KVS_ERR_DEV_NOT_EXIST = 0x003,            /* no device has that path, or that handle */
  KVS_ERR_KS_CAPACITY = 0x004,              /* the key space or the device is full */
  KVS_ERR_KS_EXIST = 0x005,                 /* a key space has that name already */
  KVS_ERR_KS_INDEX = 0x006,                 /* there are not so many key spaces */
  KVS_ERR_KS_NAME = 0x007,                  /* no key space can have that name */
  KVS_ERR_KS_NOT_EXIST = 0x008,             /* no key space has that name, or it was deleted */
  KVS_ERR_KS_NOT_OPEN = 0x009,              /* no open key space has that handle */
  KVS_ERR_KS_OPEN = 0x00A,                  /* the key space is open already */
  KVS_ERR_ITERATOR_FILTER_INVALID = 0x00B,  /* the set bits of a bit mask are not its first ones */
  KVS_ERR_ITERATOR_MAX = 0x00C,             /* there are KVS_MAX_ITERATE_HANDLE iterators */
  KVS_ERR_ITERATOR_NOT_EXIST = 0x00D,       /* the key space has no such iterator */
  KVS_ERR_ITERATOR_OPEN = 0x00E,            /* the key space has an iterator over that key group already */
  KVS_ERR_KEY_LENGTH_INVALID = 0x00F,       /* a key is too short or too long */
  KVS_ERR_KEY_NOT_EXIST = 0x010,            /* the key is not there */
  KVS_ERR_OPTION_INVALID = 0x011,           /* there is no such option, or this host may not do it */
  KVS_ERR_PARAM_INVALID = 0x012,            /* a pointer is null or not aligned, or a count is 0 */
  KVS_ERR_SYS_IO = 0x013,                   /* anything else: kvssd_last_error says what */
  KVS_ERR_VALUE_LENGTH_INVALID = 0x014,     /* a value is too long */
  KVS_ERR_VALUE_OFFSET_INVALID = 0x015,     /* an offset lies behind the end of the value */
  KVS_ERR_VALUE_OFFSET_MISALIGNED = 0x016,  /* an offset is no multiple of KVS_ALIGNMENT_UNIT */
  KVS_ERR_VALUE_UPDATE_NOT_ALLOWED = 0x017, /* the key is there and was not to be overwritten */
  KVS_ERR_DEV_NOT_OPENED = 0x018            /* it is being closed, or a parent process opened it */
} kvs_result;

#endif
