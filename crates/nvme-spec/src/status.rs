//! Status codes.

use core::fmt;

/// Dword 0 beside [`Status::CapacityExceeded`] where the host's own quota is full, whatever room the drive has: "KVq1".
pub const HOST_QUOTA: u32 = u32::from_le_bytes(*b"KVq1");

/// Bits of a status field: type in 10:8, code in 7:0.
const CODE_BITS: u16 = 0x7ff;

macro_rules! statuses {
    ($($(#[$meta:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The status of a completion: type (SCT) in bits 10:8, code (SC) in bits 7:0 (Base Specification, "Status
        /// Field Definition"; Fabrics, "Connect"; Key Value, "Status Codes").
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Status {
            $($(#[$meta])* #[doc = $text] $name = $code,)*
        }

        impl Status {
            /// In the order of their codes.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// Decodes SCT and SC; `None` for an unknown status.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Status> {
                match code & CODE_BITS {
                    $($code => Some(Status::$name),)*
                    _ => None,
                }
            }

            /// The specification's name of it.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Status::$name => $text,)*
                }
            }
        }
    };
}

statuses! {
    Success = 0x000, "success";
    InvalidOpcode = 0x001, "invalid command opcode";
    InvalidField = 0x002, "invalid field in command";
    CommandIdConflict = 0x003, "command identifier conflict";
    DataTransferError = 0x004, "data transfer error";
    InternalError = 0x006, "internal error";
    CommandAborted = 0x007, "command abort requested";
    QueueDeleted = 0x008, "command aborted due to submission queue deletion";
    InvalidNamespace = 0x00b, "invalid namespace or format";
    CommandSequenceError = 0x00c, "command sequence error";
    SglDescriptorInvalid = 0x00d, "invalid SGL segment descriptor";
    SglLengthInvalid = 0x00f, "data SGL length invalid";
    SglTypeInvalid = 0x011, "SGL descriptor type invalid";
    OperationDenied = 0x015, "operation denied";
    SglOffsetInvalid = 0x016, "SGL offset invalid";
    KeepAliveExpired = 0x019, "keep alive timer expired";
    KeepAliveInvalid = 0x01a, "keep alive timeout invalid";
    NamespaceWriteProtected = 0x020, "namespace is write protected";
    TransientTransportError = 0x022, "transient transport error";
    CapacityExceeded = 0x081, "capacity exceeded";
    NamespaceNotReady = 0x082, "namespace not ready";
    ReservationConflict = 0x083, "reservation conflict";
    FormatInProgress = 0x084, "format in progress";
    InvalidValueSize = 0x085, "invalid value size";
    InvalidKeySize = 0x086, "invalid key size";
    KeyDoesNotExist = 0x087, "key does not exist";
    UnrecoveredError = 0x088, "unrecovered error";
    KeyExists = 0x089, "key exists";
    InvalidQueueId = 0x101, "invalid queue identifier";
    InvalidQueueSize = 0x102, "invalid queue size";
    AbortLimitExceeded = 0x103, "abort command limit exceeded";
    EventRequestLimitExceeded = 0x105, "asynchronous event request limit exceeded";
    InvalidLogPage = 0x109, "invalid log page";
    FeatureNotSaveable = 0x10d, "feature identifier not saveable";
    FeatureNotChangeable = 0x10e, "feature not changeable";
    NamespaceIdUnavailable = 0x116, "namespace identifier unavailable";
    NamespaceAlreadyAttached = 0x118, "namespace already attached";
    NamespaceNotAttached = 0x11a, "namespace not attached";
    ControllerListInvalid = 0x11c, "controller list invalid";
    CommandSetNotSupported = 0x129, "I/O command set not supported";
    CommandSetNotEnabled = 0x12a, "I/O command set not enabled";
    CommandSetRejected = 0x12b, "I/O command set combination rejected";
    InvalidCommandSet = 0x12c, "invalid I/O command set";
    ConnectIncompatibleFormat = 0x180, "connect: incompatible format";
    ConnectControllerBusy = 0x181, "connect: controller busy";
    ConnectInvalidParameters = 0x182, "connect: invalid parameters";
    ConnectInvalidHost = 0x184, "connect: invalid host";
    AuthenticationRequired = 0x191, "authentication required";
    RequestForgotten = 0x7c0, "vendor specific: it is not known whether that change was made before";
    ClientSuperseded = 0x7c1, "vendor specific: the client has another controller now";
    NamespaceNameTaken = 0x7c2, "vendor specific: another namespace has that name";
    IteratorEnded = 0x7c3, "vendor specific: there is no such iterator any more";
    TooManyIterators = 0x7c4, "vendor specific: there is no memory for another iterator, or the controller has its most";
}

impl Status {
    /// SCT in bits 10:8, SC in bits 7:0.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Whether this is Successful Completion.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Status::Success)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (status {:03x}h)", self.text(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_found_by_its_code_and_nothing_else_is() {
        let known = (0..=CODE_BITS).filter_map(Status::from_code);
        assert!(known.eq(Status::ALL.iter().copied()), "the list is in the order of the codes, each once");
        assert!(Status::ALL.iter().all(|status| status.code() <= CODE_BITS));
    }
}
