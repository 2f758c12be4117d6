//! The header and the library must mean the same: what lies where, and which number says what.

use crate::compiler::{compile, desk_or_skip, output_of};
use kvssd::*;
use std::mem::offset_of;

/// Lines as `c/layout.c` prints them.
struct Lines(String);

impl Lines {
    fn number(&mut self, name: &str, number: u64) {
        self.0 += &format!("{name} = {number}\n");
    }
}

macro_rules! types {
    ($lines:ident: $($c_name:literal $name:ident { $($field:ident)* })*) => { $(
        $lines.0 += &format!("{}: {} bytes\n", $c_name, size_of::<$name>());
        $($lines.0 += &format!("{}.{} at {}\n", $c_name, stringify!($field), offset_of!($name, $field));)*
    )* };
}

#[test]
fn the_header_lays_types_out_as_the_library_does_and_has_its_numbers() {
    let Some(desk) = desk_or_skip() else { return };
    let mut lines = Lines(String::new());
    types! { lines:
        "kvs_option_key_space" KvsOptionKeySpace {}
        "kvs_option_delete" KvsOptionDelete {}
        "kvs_option_iterator" KvsOptionIterator {}
        "kvs_option_retrieve" KvsOptionRetrieve {}
        "kvs_option_store" KvsOptionStore { assoc }
        "kvs_key" KvsKey { length }
        "kvs_value" KvsValue { length actual_value_size offset }
        "kvs_key_space_name" KvsKeySpaceName { name }
        "kvs_key_space" KvsKeySpace { capacity free_size count name }
        "kvs_device" KvsDevice {
            unalloc_capacity max_value_len max_key_len optimal_value_len optimal_value_granularity extended_info
        }
        "kvs_exist_list" KvsExistList { keys length result_buffer }
        "kvs_key_group_filter" KvsKeyGroupFilter { bit_pattern }
        "kvs_iterator_list" KvsIteratorList { end size it_list }
        "kvs_postprocess_context" KvsPostprocessContext {
            ks_hd key value option private1 private2 result iter_hd result_buffer
        }
        "kvs_kvp_info" KvsKvpInfo { key value_len }
        "kvssd_completion" KvssdCompletion { value_bytes is_done }
        "kvssd_device_stats" KvssdDeviceStats { page_bytes erases }
    }
    lines.number("KVS_MIN_KEY_LENGTH", KEY_BYTES_MIN.into());
    lines.number("KVS_MAX_KEY_LENGTH", KEY_BYTES_MAX.into());
    lines.number("KVS_MAX_VALUE_LENGTH", VALUE_BYTES_MAX.into());
    lines.number("KVS_OPTIMAL_VALUE_LENGTH", VALUE_BYTES_OPTIMAL.into());
    lines.number("KVS_ALIGNMENT_UNIT", OFFSET_ALIGNMENT_BYTES.into());
    lines.number("KVS_MAX_ITERATE_HANDLE", ITERATORS_MAX as u64);
    lines.number("KVS_ITERATOR_BUFFER_SIZE", ITERATOR_BUFFER_BYTES.into());
    for (name, result) in [
        ("KVS_SUCCESS", KvsResult::Success),
        ("KVS_ERR_BUFFER_SMALL", KvsResult::BufferSmall),
        ("KVS_ERR_DEV_CAPAPCITY", KvsResult::DeviceCapacity),
        ("KVS_ERR_DEV_NOT_EXIST", KvsResult::DeviceNotExist),
        ("KVS_ERR_KS_CAPACITY", KvsResult::KeySpaceCapacity),
        ("KVS_ERR_KS_EXIST", KvsResult::KeySpaceExist),
        ("KVS_ERR_KS_INDEX", KvsResult::KeySpaceIndex),
        ("KVS_ERR_KS_NAME", KvsResult::KeySpaceName),
        ("KVS_ERR_KS_NOT_EXIST", KvsResult::KeySpaceNotExist),
        ("KVS_ERR_KS_NOT_OPEN", KvsResult::KeySpaceNotOpen),
        ("KVS_ERR_KS_OPEN", KvsResult::KeySpaceOpen),
        ("KVS_ERR_ITERATOR_FILTER_INVALID", KvsResult::IteratorFilterInvalid),
        ("KVS_ERR_ITERATOR_MAX", KvsResult::IteratorMax),
        ("KVS_ERR_ITERATOR_NOT_EXIST", KvsResult::IteratorNotExist),
        ("KVS_ERR_ITERATOR_OPEN", KvsResult::IteratorOpen),
        ("KVS_ERR_KEY_LENGTH_INVALID", KvsResult::KeyLengthInvalid),
        ("KVS_ERR_KEY_NOT_EXIST", KvsResult::KeyNotExist),
        ("KVS_ERR_OPTION_INVALID", KvsResult::OptionInvalid),
        ("KVS_ERR_PARAM_INVALID", KvsResult::ParamInvalid),
        ("KVS_ERR_SYS_IO", KvsResult::SysIo),
        ("KVS_ERR_VALUE_LENGTH_INVALID", KvsResult::ValueLengthInvalid),
        ("KVS_ERR_VALUE_OFFSET_INVALID", KvsResult::ValueOffsetInvalid),
        ("KVS_ERR_VALUE_OFFSET_MISALIGNED", KvsResult::ValueOffsetMisaligned),
        ("KVS_ERR_VALUE_UPDATE_NOT_ALLOWED", KvsResult::ValueUpdateNotAllowed),
        ("KVS_ERR_DEV_NOT_OPENED", KvsResult::DeviceNotOpened),
    ] {
        lines.number(name, result as u64);
    }
    for (name, context) in [
        ("KVS_CMD_DELETE", KvsContext::Delete),
        ("KVS_CMD_DELETE_GROUP", KvsContext::DeleteGroup),
        ("KVS_CMD_EXIST", KvsContext::Exist),
        ("KVS_CMD_ITER_NEXT", KvsContext::IterNext),
        ("KVS_CMD_RETRIEVE", KvsContext::Retrieve),
        ("KVS_CMD_STORE", KvsContext::Store),
    ] {
        lines.number(name, context as u64);
    }
    let program = compile(&desk, "layout.c", &["-std=c11"]);
    assert_eq!(output_of(&program, &[]), lines.0);
}
