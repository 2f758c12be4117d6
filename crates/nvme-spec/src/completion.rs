//! Completion queue entries, 16 bytes each.

use crate::Status;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a completion queue entry.
pub const COMPLETION_ENTRY_BYTES: usize = 16;

/// A completion queue entry (Base Specification, "Completion Queue Entry").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CompletionEntry {
    /// Command specific; of a Retrieve the length of the whole value.
    pub dword0: U32,
    /// Command specific.
    pub dword1: U32,
    /// SQHD: head of the submission queue.
    pub queue_head: U16,
    /// SQID; reserved in fabrics.
    pub queue_id: U16,
    /// CID of the command.
    pub command_id: U16,
    /// Phase (reserved in fabrics) in bit 0, code in 8:1, type in 11:9, More in bit 14, Do Not Retry in bit 15.
    pub status: U16,
}

const _: () = assert!(size_of::<CompletionEntry>() == COMPLETION_ENTRY_BYTES);

const DO_NOT_RETRY: u16 = 1 << 15;

impl CompletionEntry {
    /// A completion of `command_id` with zeros in dwords 0 and 1.
    #[must_use]
    pub fn new(command_id: u16, status: Status) -> Self {
        CompletionEntry { command_id: command_id.into(), ..CompletionEntry::default() }.with_status(status)
    }

    /// Sets the status, with Do Not Retry unless the same command may succeed later.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        let may_retry = matches!(
            status,
            Status::Success
                | Status::CommandAborted
                | Status::TransientTransportError
                | Status::QueueDeleted
                | Status::NamespaceNotReady
                | Status::ConnectControllerBusy
        );
        let do_not_retry = if may_retry { 0 } else { DO_NOT_RETRY };
        self.status = (status.code() << 1 | do_not_retry).into();
        self
    }

    /// Sets dwords 0 and 1.
    #[must_use]
    pub fn with_result(mut self, result: u64) -> Self {
        self.dword0 = (result as u32).into();
        self.dword1 = ((result >> 32) as u32).into();
        self
    }

    /// Dwords 0 and 1, low dword first.
    #[must_use]
    pub fn result(&self) -> u64 {
        u64::from(self.dword0.get()) | u64::from(self.dword1.get()) << 32
    }

    /// The status.
    ///
    /// # Errors
    /// The type and code of an unknown status, as in [`Status::code`].
    pub fn status(&self) -> Result<Status, u16> {
        let code = self.status.get() >> 1 & 0x7ff;
        Status::from_code(code).ok_or(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_gives_back_what_was_put_in() {
        for &status in Status::ALL {
            let entry = CompletionEntry::new(7, status).with_result(0x0123_4567_89ab_cdef);
            assert_eq!((entry.status(), entry.result()), (Ok(status), 0x0123_4567_89ab_cdef));
            assert!(!(status.is_success() && entry.status.get() & DO_NOT_RETRY != 0));
        }
        assert_eq!(CompletionEntry { status: (0x7fe << 1).into(), ..Default::default() }.status(), Err(0x7fe));
    }
}
