//! What is done to the pairs of a key space: at once, or by a worker of the queue.
//!
//! ```text
//!   arguments -> Operation (keys copied, all checked that can be) -> run -> results into C's memory
//! ```

use crate::abi::*;
use crate::group::{GroupCursor, KeyGroup};
use crate::key_space::KeySpace;
use crate::pointers::Place;
use crate::refusal::{KvsResult, Refusal};
use kvssd_host::StoreCondition;
use std::sync::PoisonError;

/// An operation on pairs.
pub(crate) enum Operation {
    Store { key: Box<[u8]>, value: KvsValue, mode: StoreMode },
    Retrieve { key: Box<[u8]>, value: Place<KvsValue>, and_delete: bool },
    Delete { key: Box<[u8]>, must_exist: bool },
    DeleteGroup { group: KeyGroup },
    Exist { keys: Vec<Box<[u8]>>, list: Place<KvsExistList> },
    Next { iterator: u8, list: Place<KvsIteratorList> },
}

/// `kvs_store_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreMode {
    If(StoreCondition),
    Append,
}

impl Operation {
    pub(crate) fn store(
        key_space: &KeySpace,
        key: Place<KvsKey>,
        value: Place<KvsValue>,
        option: Place<KvsOptionStore>,
    ) -> Result<Self, Refusal> {
        let mode = match option.get_unless_null()?.map_or(0, |option| option.st_type) {
            0 => StoreMode::If(StoreCondition::Always),
            1 => StoreMode::If(StoreCondition::IfExists),
            2 => StoreMode::If(StoreCondition::IfAbsent),
            3 => StoreMode::Append,
            other => return Err(Refusal::new(KvsResult::OptionInvalid, format!("there is no store type {other}"))),
        };
        let (key, value) = (key_of(key_space, key)?, value_of(value)?);
        if value.offset > 0 {
            let why = "a value is stored from its beginning: its offset must be 0";
            return Err(Refusal::new(KvsResult::ValueOffsetInvalid, why));
        }
        key_space.device.check_value(value.length.into())?;
        Ok(Operation::Store { key, value, mode })
    }

    pub(crate) fn retrieve(
        key_space: &KeySpace,
        key: Place<KvsKey>,
        option: Place<KvsOptionRetrieve>,
        value: Place<KvsValue>,
    ) -> Result<Self, Refusal> {
        let key = key_of(key_space, key)?;
        value_of(value)?;
        let and_delete = option.get_unless_null()?.is_some_and(|option| option.kvs_retrieve_delete != 0);
        Ok(Operation::Retrieve { key, value, and_delete })
    }

    pub(crate) fn delete(
        key_space: &KeySpace,
        key: Place<KvsKey>,
        option: Place<KvsOptionDelete>,
    ) -> Result<Self, Refusal> {
        let must_exist = option.get_unless_null()?.is_some_and(|option| option.kvs_delete_error != 0);
        Ok(Operation::Delete { key: key_of(key_space, key)?, must_exist })
    }

    pub(crate) fn delete_group(filter: Place<KvsKeyGroupFilter>) -> Result<Self, Refusal> {
        Ok(Operation::DeleteGroup { group: KeyGroup::of(&filter.get()?)? })
    }

    pub(crate) fn exist(
        key_space: &KeySpace,
        count: u32,
        keys: Place<KvsKey>,
        list: Place<KvsExistList>,
    ) -> Result<Self, Refusal> {
        let wanted = list.get()?;
        keys.check()?;
        wanted.result_buffer.check()?;
        if count == 0 {
            return Err(Refusal::new(KvsResult::ParamInvalid, "no keys are asked for"));
        }
        let bytes = count.div_ceil(8);
        if wanted.length < bytes {
            let why = format!("{count} keys take {bytes} bytes of bits, and the buffer has {}", wanted.length);
            return Err(Refusal::new(KvsResult::BufferSmall, why));
        }
        let copied = (0..count as usize).map(|index| key_of(key_space, keys.at(index))).collect::<Result<_, _>>()?;
        list.set(KvsExistList { num_keys: count, keys, ..wanted })?;
        Ok(Operation::Exist { keys: copied, list })
    }

    pub(crate) fn next(iterator: u8, list: Place<KvsIteratorList>) -> Result<Self, Refusal> {
        let wanted = list.get()?;
        wanted.it_list.check()?;
        if wanted.size < ITERATOR_BUFFER_BYTES {
            let why = format!("an iterator's buffer has {ITERATOR_BUFFER_BYTES} bytes or more, not {}", wanted.size);
            return Err(Refusal::new(KvsResult::BufferSmall, why));
        }
        Ok(Operation::Next { iterator, list })
    }

    /// Does it.
    pub(crate) fn run(&self, key_space: &KeySpace) -> Result<(), Refusal> {
        match self {
            Operation::Store { key, value, mode: StoreMode::If(condition) } => {
                let _key = key_space.device.lock_key(key_space.id, key);
                let store = |bytes: &[u8]| key_space.on_pairs(|pairs| Ok(pairs.store_if(key, bytes, *condition)?));
                value.value.read(value.length as usize, store)?
            }
            Operation::Store { key, value, mode: StoreMode::Append } => {
                value.value.read(value.length as usize, |bytes| append(key_space, key, bytes))?
            }
            Operation::Retrieve { key, value, and_delete } => retrieve(key_space, key, *value, *and_delete),
            Operation::Delete { key, must_exist } => {
                let _key = key_space.device.lock_key(key_space.id, key);
                let was_there = key_space.on_pairs(|pairs| Ok(pairs.delete(key)?))?;
                if was_there || !must_exist { Ok(()) } else { Err(no_key()) }
            }
            Operation::DeleteGroup { group } => delete_group(key_space, *group),
            Operation::Exist { keys, list } => exist(key_space, keys, *list),
            Operation::Next { iterator, list } => next(key_space, *iterator, *list),
        }
    }
}

/// Bytes of the value of a key, and where its key is to be copied to.
pub(crate) fn pair_info(key_space: &KeySpace, key: Place<KvsKey>, info: Place<KvsKvpInfo>) -> Result<(), Refusal> {
    let (key, wanted) = (key_of(key_space, key)?, info.get()?);
    let found = key_space.on_pairs(|pairs| Ok(pairs.retrieve_into(&key, 0, &mut [])?))?;
    let value_len = found.ok_or_else(no_key)?;
    if !wanted.key.is_null() {
        wanted.key.change(key.len(), |buffer| buffer.copy_from_slice(&key))?;
    }
    info.set(KvsKvpInfo { key_len: key.len() as u16, value_len, ..wanted })
}

fn key_of(key_space: &KeySpace, key: Place<KvsKey>) -> Result<Box<[u8]>, Refusal> {
    let key = key.get()?;
    key_space.device.check_key(key.length)?;
    key.key.read(key.length.into(), |bytes| bytes.into())
}

/// A value or the buffer for one, when it can be.
fn value_of(value: Place<KvsValue>) -> Result<KvsValue, Refusal> {
    let value = value.get()?;
    if !value.offset.is_multiple_of(OFFSET_ALIGNMENT_BYTES) {
        let why = format!("offset {} is no multiple of {OFFSET_ALIGNMENT_BYTES}", value.offset);
        return Err(Refusal::new(KvsResult::ValueOffsetMisaligned, why));
    }
    if value.length > 0 {
        value.value.check()?;
    }
    Ok(value)
}

/// Nobody changes the key between the look and the store.
fn append(key_space: &KeySpace, key: &[u8], bytes: &[u8]) -> Result<(), Refusal> {
    let _key = key_space.device.lock_key(key_space.id, key);
    key_space.on_pairs(|pairs| {
        let mut value = pairs.retrieve(key)?.unwrap_or_default();
        key_space.device.check_value(value.len() as u64 + bytes.len() as u64)?;
        value.extend_from_slice(bytes);
        Ok(pairs.store(key, &value)?)
    })
}

/// With `and_delete` nobody else gets the value, or changes it before it is gone. What does not fit stays.
fn retrieve(key_space: &KeySpace, key: &[u8], value: Place<KvsValue>, and_delete: bool) -> Result<(), Refusal> {
    let wanted = value.get()?;
    let _key = and_delete.then(|| key_space.device.lock_key(key_space.id, key));
    key_space.on_pairs(|pairs| {
        let copy = |buffer: &mut [u8]| pairs.retrieve_into(key, wanted.offset, buffer);
        let value_bytes = wanted.value.change(wanted.length as usize, copy)??.ok_or_else(no_key)?;
        if wanted.offset > 0 && wanted.offset >= value_bytes {
            let why = format!("offset {} lies behind the end of a value of {value_bytes} bytes", wanted.offset);
            return Err(Refusal::new(KvsResult::ValueOffsetInvalid, why));
        }
        let rest_bytes = value_bytes - wanted.offset;
        if rest_bytes > wanted.length {
            value.set(KvsValue { actual_value_size: value_bytes, ..wanted })?;
            let why = format!("{rest_bytes} bytes of value do not fit into a buffer of {}", wanted.length);
            return Err(Refusal::new(KvsResult::BufferSmall, why));
        }
        if and_delete {
            pairs.delete(key)?;
        }
        value.set(KvsValue { length: rest_bytes, actual_value_size: value_bytes, ..wanted })
    })
}

fn delete_group(key_space: &KeySpace, group: KeyGroup) -> Result<(), Refusal> {
    let mut cursor = GroupCursor::new(group, key_space.order);
    while !cursor.is_at_end() {
        for key in key_space.on_pairs(|pairs| cursor.next_page(pairs))? {
            let _key = key_space.device.lock_key(key_space.id, &key);
            key_space.on_pairs(|pairs| Ok(pairs.delete(&key)?))?;
        }
    }
    Ok(())
}

fn exist(key_space: &KeySpace, keys: &[Box<[u8]>], list: Place<KvsExistList>) -> Result<(), Refusal> {
    let mut bits = vec![0u8; keys.len().div_ceil(8)];
    key_space.on_pairs(|pairs| {
        for (index, key) in keys.iter().enumerate() {
            bits[index / 8] |= u8::from(pairs.exist(key)?) << (index % 8);
        }
        Ok(())
    })?;
    let wanted = list.get()?;
    wanted.result_buffer.change(bits.len(), |buffer| buffer.copy_from_slice(&bits))?;
    list.set(KvsExistList { length: bits.len() as u32, ..wanted })
}

fn next(key_space: &KeySpace, iterator: u8, list: Place<KvsIteratorList>) -> Result<(), Refusal> {
    let wanted = list.get()?;
    let fill = |buffer: &mut [u8]| {
        let iterator = key_space.device.iterators.find(key_space.id, iterator)?;
        key_space.on_pairs(|pairs| iterator.lock().unwrap_or_else(PoisonError::into_inner).fill(pairs, buffer))
    };
    let filled = wanted.it_list.change(wanted.size as usize, fill)??;
    list.set(KvsIteratorList {
        num_entries: filled.entries,
        end: filled.is_end.into(),
        size: filled.bytes as u32,
        it_list: wanted.it_list,
    })
}

fn no_key() -> Refusal {
    Refusal::new(KvsResult::KeyNotExist, "the key does not exist")
}
