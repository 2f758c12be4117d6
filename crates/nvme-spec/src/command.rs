//! Submission queue entries: the 64 bytes of a command.
//!
//! ```text
//!   byte 0 opcode | 1 flags | 2 command id | 4 namespace | 8 dword 2 | 12 dword 3 | 16 metadata | 24 data pointer | 40 dwords 10 to 15
//! ```

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a submission queue entry.
pub const SUBMISSION_ENTRY_BYTES: usize = 64;

/// Flags of an entry: the data pointer is an SGL (PSDT = 01b), which is all that fabrics have.
pub const FLAGS_SGL: u8 = 0x40;

/// The namespace number that means all of them.
pub const NAMESPACE_ALL: u32 = u32::MAX;

/// A submission queue entry (Base Specification, "Submission Queue Entry").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SubmissionEntry {
    /// OPC. Bits 1:0 are the direction of data: 01b to the controller, 10b to the host.
    pub opcode: u8,
    /// FUSE in bits 1:0, PSDT in bits 7:6.
    pub flags: u8,
    /// CID: unique among the outstanding commands of the queue.
    pub command_id: U16,
    /// NSID; of a fabrics command FCTYPE, in the lowest byte.
    pub namespace: U32,
    /// Command dword 2; of a Key Value command bytes 0 to 3 of the key.
    pub dword2: U32,
    /// Command dword 3; of a Key Value command bytes 4 to 7 of the key.
    pub dword3: U32,
    /// MPTR; here which namespace is meant ([`named`](crate::named)).
    pub metadata: U64,
    /// SGL1: where the data is, or is to go.
    pub data: SglDescriptor,
    /// Command dword 10.
    pub dword10: U32,
    /// Command dword 11.
    pub dword11: U32,
    /// Command dword 12.
    pub dword12: U32,
    /// Command dword 13.
    pub dword13: U32,
    /// Command dword 14; of a Key Value command bytes 8 to 11 of the key.
    pub dword14: U32,
    /// Command dword 15; of a Key Value command bytes 12 to 15 of the key.
    pub dword15: U32,
}

const _: () = assert!(size_of::<SubmissionEntry>() == SUBMISSION_ENTRY_BYTES);

impl SubmissionEntry {
    /// An entry with an SGL, and zeros in all other fields.
    #[must_use]
    pub fn new(opcode: u8, namespace: u32) -> Self {
        SubmissionEntry { opcode, flags: FLAGS_SGL, namespace: namespace.into(), ..SubmissionEntry::default() }
    }

    /// Sets the data pointer.
    #[must_use]
    pub fn with_data(mut self, data: DataPointer) -> Self {
        self.data = data.into();
        self
    }
}

/// An SGL descriptor (Base Specification, "SGL Descriptor"; 16 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SglDescriptor {
    /// Address, or offset in the capsule's data.
    pub address: U64,
    /// Length of the data.
    pub length_bytes: U32,
    /// Must be zeros.
    pub reserved: [u8; 3],
    /// Type in bits 7:4, subtype in bits 3:0.
    pub identifier: u8,
}

const _: () = assert!(size_of::<SglDescriptor>() == 16);

/// SGL data block, offset: the data is in the capsule.
const SGL_IN_CAPSULE: u8 = 0x01;
/// Transport SGL data block: the data comes by PDUs of its own.
const SGL_TRANSPORT: u8 = 0x5a;

/// The SGL descriptors of NVMe/TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPointer {
    /// In-capsule data.
    InCapsule {
        /// Where the command's data begins in the capsule's.
        offset_bytes: u64,
        /// Length of the data.
        length_bytes: u32,
    },
    /// Data by R2T and H2CData, or by C2HData. A command without data has a length of 0, or all zeros.
    Transport {
        /// Length of the data.
        length_bytes: u32,
    },
    /// Any other descriptor, which NVMe/TCP does not allow.
    Other {
        /// Type and subtype.
        identifier: u8,
    },
}

impl DataPointer {
    /// The pointer of a command without data.
    pub const NONE: DataPointer = DataPointer::Transport { length_bytes: 0 };
}

impl From<SglDescriptor> for DataPointer {
    fn from(descriptor: SglDescriptor) -> Self {
        let length_bytes = descriptor.length_bytes.get();
        match descriptor.identifier {
            SGL_IN_CAPSULE => DataPointer::InCapsule { offset_bytes: descriptor.address.get(), length_bytes },
            SGL_TRANSPORT => DataPointer::Transport { length_bytes },
            // Some hosts leave zeros when there is no data.
            0 if length_bytes == 0 => DataPointer::NONE,
            identifier => DataPointer::Other { identifier },
        }
    }
}

impl From<DataPointer> for SglDescriptor {
    fn from(pointer: DataPointer) -> Self {
        let (address, length_bytes, identifier) = match pointer {
            DataPointer::InCapsule { offset_bytes, length_bytes } => (offset_bytes, length_bytes, SGL_IN_CAPSULE),
            DataPointer::Transport { length_bytes } => (0, length_bytes, SGL_TRANSPORT),
            DataPointer::Other { identifier } => (0, 0, identifier),
        };
        SglDescriptor { address: address.into(), length_bytes: length_bytes.into(), reserved: [0; 3], identifier }
    }
}
