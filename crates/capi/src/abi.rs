//! The types of the C header, as they lie in memory (`include/kvs_struct.h` says what the fields mean). Whatever bytes C leaves in them
//! is a value: what C calls `bool` is a byte here, and what it calls an `enum` a number.

use crate::handle::Handle;
use crate::pointers::Place;
use std::ffi::{c_char, c_void};

/// Bytes of the shortest key.
pub const KEY_BYTES_MIN: u16 = 4;
/// Bytes of the longest key.
pub const KEY_BYTES_MAX: u16 = 255;
/// Bytes of the largest value.
pub const VALUE_BYTES_MAX: u32 = 2 << 20;
/// Bytes of a value that a drive likes best.
pub const VALUE_BYTES_OPTIMAL: u32 = 4096;
/// What offsets within a value are multiples of.
pub const OFFSET_ALIGNMENT_BYTES: u32 = 512;
/// Iterators of a device.
pub const ITERATORS_MAX: usize = 16;
/// Bytes of the smallest buffer that an iterator fills.
pub const ITERATOR_BUFFER_BYTES: u32 = 32 << 10;

/// `kvs_context`: which call an asynchronous one was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of the header")]
pub enum KvsContext {
    #[default]
    Delete = 1,
    DeleteGroup = 2,
    Exist = 3,
    IterNext = 6,
    Retrieve = 7,
    Store = 8,
}

/// A type of the header, with the fields that it has there.
macro_rules! c_struct {
    ($name:ident, $c_name:literal, { $($field:ident: $type:ty),* $(,)? }) => {
        #[doc = concat!("`", $c_name, "`.")]
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        #[expect(missing_docs, reason = "the header says what the fields are")]
        pub struct $name {
            $(pub $field: $type),*
        }
    };
}

c_struct!(KvsOptionKeySpace, "kvs_option_key_space", { ordering: u32 });
c_struct!(KvsOptionDelete, "kvs_option_delete", { kvs_delete_error: u8 });
c_struct!(KvsOptionIterator, "kvs_option_iterator", { iter_type: u32 });
c_struct!(KvsOptionRetrieve, "kvs_option_retrieve", { kvs_retrieve_delete: u8 });
c_struct!(KvsOptionStore, "kvs_option_store", { st_type: u32, assoc: Place<c_void> });
c_struct!(KvsKey, "kvs_key", { key: Place<u8>, length: u16 });
c_struct!(KvsValue, "kvs_value", { value: Place<u8>, length: u32, actual_value_size: u32, offset: u32 });
c_struct!(KvsKeySpaceName, "kvs_key_space_name", { name_len: u32, name: Place<c_char> });
c_struct!(KvsKeySpace, "kvs_key_space", {
    opened: u8,
    capacity: u64,
    free_size: u64,
    count: u64,
    name: Place<KvsKeySpaceName>,
});
c_struct!(KvsDevice, "kvs_device", {
    capacity: u64,
    unalloc_capacity: u64,
    max_value_len: u32,
    max_key_len: u32,
    optimal_value_len: u32,
    optimal_value_granularity: u32,
    extended_info: Place<c_void>,
});
c_struct!(KvsExistList, "kvs_exist_list", {
    num_keys: u32,
    keys: Place<KvsKey>,
    length: u32,
    result_buffer: Place<u8>,
});
c_struct!(KvsKeyGroupFilter, "kvs_key_group_filter", { bitmask: [u8; 4], bit_pattern: [u8; 4] });
c_struct!(KvsIteratorList, "kvs_iterator_list", { num_entries: u32, end: u8, size: u32, it_list: Place<u8> });
c_struct!(KvsKvpInfo, "kvs_kvp_info", { key_len: u16, key: Place<u8>, value_len: u32 });
c_struct!(KvsPostprocessContext, "kvs_postprocess_context", {
    context: KvsContext,
    ks_hd: Handle,
    key: Place<KvsKey>,
    value: Place<KvsValue>,
    option: Place<c_void>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    result: u32,
    iter_hd: u8,
    // A union of two pointers in the header.
    result_buffer: Place<c_void>,
});

c_struct!(KvssdCompletion, "kvssd_completion", { done_ns: u64, value_bytes: u32, is_done: u8 });
c_struct!(KvssdDeviceStats, "kvssd_device_stats", {
    now_ns: u64,
    flash_bytes: u64,
    page_bytes: u64,
    value_bytes_max: u64,
    stored_bytes: u64,
    pages_read: u64,
    pages_programmed: u64,
    erases: u64,
});
