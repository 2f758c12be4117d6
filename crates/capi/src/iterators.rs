//! Iterators: numbers 1 to 16 of a device, each a cursor over a key group of a key space.
//!
//! ```text
//!   create -> slot { key space, group, cursor, keys that come next }
//!   next   -> entries into C's buffer while they fit; the one that does not stays for the next call
//! ```

use crate::abi::*;
use crate::group::{GroupCursor, KeyGroup};
use crate::order::Order;
use crate::refusal::{KvsResult, Refusal};
use kvssd_host::{Namespace, NamespaceId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The iterators of a device.
#[derive(Default)]
pub(crate) struct Iterators {
    slots: Mutex<[Option<Slot>; ITERATORS_MAX]>,
}

struct Slot {
    namespace: NamespaceId,
    group: KeyGroup,
    /// Calls on one iterator take turns.
    iterator: Arc<Mutex<KeyGroupIterator>>,
}

/// How far an iterator has come.
pub(crate) struct KeyGroupIterator {
    with_values: bool,
    cursor: GroupCursor,
    /// Keys that come next.
    coming: VecDeque<Box<[u8]>>,
}

impl Iterators {
    /// Makes an iterator on a key space that is not being deleted meanwhile; gives its number.
    pub(crate) fn create(
        &self,
        namespace: NamespaceId,
        order: Order,
        group: KeyGroup,
        iter_type: u32,
    ) -> Result<u8, Refusal> {
        let with_values = match iter_type {
            0 => false,
            1 => true,
            other => return Err(Refusal::new(KvsResult::OptionInvalid, format!("there is no iterator type {other}"))),
        };
        let iterator =
            KeyGroupIterator { with_values, cursor: GroupCursor::new(group, order), coming: VecDeque::new() };
        let mut slots = self.lock();
        if slots.iter().flatten().any(|slot| slot.namespace == namespace && slot.group == group) {
            let why = "there is an iterator over that key group already";
            return Err(Refusal::new(KvsResult::IteratorOpen, why));
        }
        let Some(free) = slots.iter().position(Option::is_none) else {
            let why = format!("the device has {ITERATORS_MAX} iterators already: delete one");
            return Err(Refusal::new(KvsResult::IteratorMax, why));
        };
        slots[free] = Some(Slot { namespace, group, iterator: Arc::new(Mutex::new(iterator)) });
        Ok(free as u8 + 1)
    }

    /// Ends an iterator.
    pub(crate) fn delete(&self, namespace: NamespaceId, number: u8) -> Result<(), Refusal> {
        let mut slots = self.lock();
        let slot = slots.get_mut(usize::from(number).wrapping_sub(1));
        match slot {
            Some(slot) if slot.as_ref().is_some_and(|slot| slot.namespace == namespace) => *slot = None,
            _ => return Err(none_such(number)),
        }
        Ok(())
    }

    /// Ends all iterators of a key space.
    pub(crate) fn end_all_of(&self, namespace: NamespaceId) {
        for slot in self.lock().iter_mut() {
            slot.take_if(|slot| slot.namespace == namespace);
        }
    }

    pub(crate) fn find(&self, namespace: NamespaceId, number: u8) -> Result<Arc<Mutex<KeyGroupIterator>>, Refusal> {
        let slots = self.lock();
        let slot = slots.get(usize::from(number).wrapping_sub(1)).and_then(Option::as_ref);
        let slot = slot.filter(|slot| slot.namespace == namespace).ok_or_else(|| none_such(number))?;
        Ok(Arc::clone(&slot.iterator))
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Slot>; ITERATORS_MAX]> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call put into the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    pub(crate) entries: u32,
    pub(crate) bytes: usize,
    pub(crate) is_end: bool,
}

impl KeyGroupIterator {
    /// Fills the buffer of a list with what comes next; gives entries, bytes, and whether that was all.
    pub(crate) fn fill(&mut self, pairs: Namespace<'_>, buffer: &mut [u8]) -> Result<Filled, Refusal> {
        let mut filled = Filled::default();
        loop {
            if self.coming.is_empty() {
                if self.cursor.is_at_end() {
                    return Ok(Filled { is_end: true, ..filled });
                }
                self.coming = self.cursor.next_page(pairs)?.into();
                continue;
            }
            let Some(bytes) = self.put(pairs, &mut buffer[filled.bytes..])? else {
                if filled.entries == 0 {
                    let why = "the next pair alone is larger than the buffer";
                    return Err(Refusal::new(KvsResult::BufferSmall, why));
                }
                return Ok(filled);
            };
            self.coming.pop_front();
            filled.entries += u32::from(bytes > 0);
            filled.bytes += bytes;
        }
    }

    /// Puts the next entry at the beginning of a buffer, if it fits; gives its bytes, none for a key that is gone.
    fn put(&self, pairs: Namespace<'_>, buffer: &mut [u8]) -> Result<Option<usize>, Refusal> {
        const LENGTH_BYTES: usize = 4;
        let key = &self.coming[0];
        let key_end = LENGTH_BYTES + key.len();
        let head_bytes = key_end + if self.with_values { LENGTH_BYTES } else { 0 };
        if buffer.len() < head_bytes {
            return Ok(None);
        }
        buffer[..LENGTH_BYTES].copy_from_slice(&(key.len() as u32).to_ne_bytes());
        buffer[LENGTH_BYTES..key_end].copy_from_slice(key);
        if !self.with_values {
            return Ok(Some(key_end));
        }
        let Some(value_bytes) = pairs.retrieve_into(key, 0, &mut buffer[head_bytes..])? else { return Ok(Some(0)) };
        let end = head_bytes + value_bytes as usize;
        if end > buffer.len() {
            return Ok(None);
        }
        buffer[key_end..head_bytes].copy_from_slice(&value_bytes.to_ne_bytes());
        Ok(Some(end))
    }
}

fn none_such(number: u8) -> Refusal {
    Refusal::new(KvsResult::IteratorNotExist, format!("the key space has no iterator {number}"))
}
