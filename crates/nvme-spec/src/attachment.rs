//! Which controllers have a namespace: Namespace Attachment, and lists of controllers (Base Specification, "Namespace
//! Attachment command", "Controller List").
//!
//! ```text
//!   admin, opcode 15h   namespace: its number   dword 10, 3:0: 0 attach, 1 detach   data, 4096 B: a list of controllers
//!   a list              0 count, u16 | 2 CNTLIDs, u16 each, ascending | zeros
//! ```

use crate::identify::IDENTIFY_BYTES;
use alloc::vec::Vec;

/// Opcode of Namespace Attachment.
pub const NAMESPACE_ATTACHMENT: u8 = 0x15;
/// SEL: the controllers get the namespace.
pub const ATTACH: u8 = 0;
/// SEL: the controllers lose the namespace.
pub const DETACH: u8 = 1;
/// The most controllers of a list.
pub const CONTROLLERS_MAX: usize = IDENTIFY_BYTES / 2 - 1;

/// A list of the first 2047 of `controllers`.
#[must_use]
pub fn controller_list(controllers: impl Iterator<Item = u16>) -> [u8; IDENTIFY_BYTES] {
    let mut list = [0; IDENTIFY_BYTES];
    let (count, slots) = list.split_at_mut(2);
    let mut listed: u16 = 0;
    for (slot, controller) in slots.chunks_exact_mut(2).zip(controllers) {
        slot.copy_from_slice(&controller.to_le_bytes());
        listed += 1;
    }
    count.copy_from_slice(&listed.to_le_bytes());
    list
}

/// The controllers of a list; `None` of a list that is cut off, or says that it has more than it can have.
#[must_use]
pub fn read_controller_list(list: &[u8]) -> Option<Vec<u16>> {
    let number = |slot: &[u8]| slot.try_into().ok().map(u16::from_le_bytes);
    let count = usize::from(number(list.get(..2)?)?);
    if count > CONTROLLERS_MAX {
        return None;
    }
    list.get(2..2 + 2 * count)?.chunks_exact(2).map(number).collect()
}
