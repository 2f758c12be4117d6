//! Numbered changes, a vendor specific extension: a Store or Delete that is sent again is made once.
//!
//! ```text
//!   Get Features C0h          -> dword 0: "KVn1", of a controller that has this
//!   Set Features C0h          dword 11: "KVn1", data: 16 bytes that name the program on the host
//!                             -> dwords 0, 1: 47:0 `since`, 63:48 the window
//!   Store, Delete             dwords 12, 13: the serial, low dword first; 0 for none
//! ```
//!
//! A client is a Host Identifier with 16 bytes that name a program. Set Features turns serials on for all I/O queues of
//! the controller, and an earlier controller of the client makes no numbered change any more
//! ([`Status::ClientSuperseded`](crate::Status::ClientSuperseded)). The drive recognizes the changes of a client that
//! it has made, until it forgets the client for others. A host that connects again compares `since`: if it differs, the
//! drive has forgotten in between, and a change that is sent again may be made twice. On a controller without Set
//! Features dwords 12 and 13 mean nothing.

use crate::SubmissionEntry;

/// "KVn1": tells this feature from those of other vendors.
pub const SIGNATURE: u32 = u32::from_le_bytes(*b"KVn1");

/// Length of the data of Set Features, which names a program on a host.
pub const INSTANCE_BYTES: usize = 16;

/// The result of Set Features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// 48 bits that name the drive's record of the client. After the client was forgotten it has another record.
    pub since: u64,
    /// A serial is recognized while it is less than this below the highest.
    pub window: u16,
}

impl Opened {
    /// Dwords 0 and 1 of the completion.
    #[must_use]
    pub fn result(self) -> u64 {
        self.since & 0xffff_ffff_ffff | u64::from(self.window) << 48
    }

    /// The inverse of [`Opened::result`].
    #[must_use]
    pub fn from_result(result: u64) -> Opened {
        Opened { since: result & 0xffff_ffff_ffff, window: (result >> 48) as u16 }
    }
}

/// The serial of a change; `None` for 0.
#[must_use]
pub fn serial(entry: &SubmissionEntry) -> Option<u64> {
    let serial = u64::from(entry.dword12.get()) | u64::from(entry.dword13.get()) << 32;
    (serial > 0).then_some(serial)
}

/// Sets the serial of a change.
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
