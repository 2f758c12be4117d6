//! Numbered changes, which no standard has: a Store or Delete that comes again is made once.
//!
//! ```text
//!   Get Features C0h          -> dword 0: "KVn1", of a controller that has this
//!   Set Features C0h          dword 11: "KVn1", data: 16 bytes that name the program on the host
//!                             -> dwords 0, 1: 47:0 since when the client is remembered, 63:48 the window
//!   Store, Delete             dwords 12, 13: the number, low dword first; 0 for none
//! ```
//!
//! The client is who has this Host Identifier and these 16 bytes. From Set Features on its numbers count on all I/O queues of the controller, and no
//! other controller that the client had before makes any numbered change ([`Status::ClientSuperseded`](crate::Status::ClientSuperseded)).
//! The drive remembers which changes of a client were made, until it forgets the client for others. When the host connects again and the number "since"
//! is another one, the drive has forgotten in between, and a change that is sent again may be made again.
//! Of a controller that was not told so, dwords 12 and 13 mean nothing.

use crate::SubmissionEntry;

/// Says that a controller, or a host, means this: "KVn1".
pub const SIGNATURE: u32 = u32::from_le_bytes(*b"KVn1");

/// Bytes that name a program on a host.
pub const INSTANCE_BYTES: usize = 16;

/// What Set Features answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Since when the drive remembers which of the client's changes were made: a number of 48 bits that no other time has.
    pub since: u64,
    /// A change is known again while the client has numbered fewer than so many behind it.
    pub window: u16,
}

impl Opened {
    /// Dwords 0 and 1.
    #[must_use]
    pub fn result(self) -> u64 {
        self.since & 0xffff_ffff_ffff | u64::from(self.window) << 48
    }

    /// What dwords 0 and 1 say.
    #[must_use]
    pub fn from_result(result: u64) -> Opened {
        Opened { since: result & 0xffff_ffff_ffff, window: (result >> 48) as u16 }
    }
}

/// The number of a change, if it has one.
#[must_use]
pub fn serial(entry: &SubmissionEntry) -> Option<u64> {
    let serial = u64::from(entry.dword12.get()) | u64::from(entry.dword13.get()) << 32;
    (serial > 0).then_some(serial)
}

/// Gives a change a number.
pub fn set_serial(entry: &mut SubmissionEntry, serial: u64) {
    entry.dword12 = (serial as u32).into();
    entry.dword13 = ((serial >> 32) as u32).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_dwords_12_and_13() {
        let mut entry = SubmissionEntry::new(crate::kv::opcode::STORE, 1);
        assert_eq!(serial(&entry), None);
        set_serial(&mut entry, 0x1122_3344_5566_7788);
        assert_eq!((entry.dword12.get(), entry.dword13.get()), (0x5566_7788, 0x1122_3344));
        assert_eq!(serial(&entry), Some(0x1122_3344_5566_7788));
    }

    #[test]
    fn what_set_features_answers_is_read_back() {
        for opened in [Opened { since: (1 << 48) - 1, window: 1024 }, Opened { since: 0, window: 1 }] {
            assert_eq!(Opened::from_result(opened.result()), opened);
        }
        assert_eq!(Opened { since: 7, window: 1024 }.result(), 0x0400_0000_0000_0007);
    }
}
