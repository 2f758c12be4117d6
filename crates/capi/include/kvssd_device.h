/* A simulated drive to ask, for simulators of whole systems: a command at a moment, and when it is done. docs/C.md has an example.
 *
 *   kvssd_device_create      a design (kvssd designs) on a part of the hardware of a profile (kvssd profiles)
 *     kvssd_device_store, _retrieve, _delete, _exist      at_ns -> completion.done_ns
 *     kvssd_device_fork      the same drive once more, so that an aged one need be aged once
 *
 * Times are nanoseconds since the drive was switched on. Commands come in the order of their times; any number may be under way, since
 * each says when it is done. Values are told by their lengths alone. The same commands get the same answers, on any machine. Every function
 * can be called from any thread; kvssd_last_error() of kvs_api.h has a line about what went wrong. */

#ifndef KVSSD_DEVICE_H
#define KVSSD_DEVICE_H

#include <stdint.h>

#include "kvs_result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvssd_device *kvssd_device_handle;

typedef struct {
  uint64_t done_ns;     /* when the host has the answer */
  uint32_t value_bytes; /* of the value that was stored, or of the whole one that was asked for */
  uint8_t is_done;      /* whether the key was there; of a store, whether the drive had room */
} kvssd_completion;

/* What the flash did since the drive was new, and how large the drive is. */
typedef struct {
  uint64_t now_ns, flash_bytes, page_bytes, value_bytes_max, stored_bytes, pages_read, pages_programmed, erases;
} kvssd_device_stats;

/* `profile` is a name or a TOML file, `scale` the part of its capacity and DRAM, such as 1.0 / 64. `set` is null, or texts
 * "nand.erase_ns=3500000" and "design.grain_bytes=64" with a null behind the last. KVS_ERR_OPTION_INVALID when there is no such drive. */
kvs_result kvssd_device_create(const char *design, const char *profile, double scale, const char *const *set,
                               kvssd_device_handle *device);
kvs_result kvssd_device_destroy(kvssd_device_handle device);

/* Keys have 1 to 255 bytes. KVS_ERR_PARAM_INVALID for a time before that of the last command. */
kvs_result kvssd_device_store(kvssd_device_handle device, uint64_t at_ns, const void *key, uint32_t key_bytes,
                              uint32_t value_bytes, kvssd_completion *completion);
/* UINT32_MAX is a `length_bytes` for all of a value. */
kvs_result kvssd_device_retrieve(kvssd_device_handle device, uint64_t at_ns, const void *key, uint32_t key_bytes,
                                 uint32_t offset_bytes, uint32_t length_bytes, kvssd_completion *completion);
kvs_result kvssd_device_delete(kvssd_device_handle device, uint64_t at_ns, const void *key, uint32_t key_bytes,
                               kvssd_completion *completion);
kvs_result kvssd_device_exist(kvssd_device_handle device, uint64_t at_ns, const void *key, uint32_t key_bytes,
                              kvssd_completion *completion);

kvs_result kvssd_device_fork(kvssd_device_handle device, kvssd_device_handle *copy);
kvs_result kvssd_device_get_stats(kvssd_device_handle device, kvssd_device_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
