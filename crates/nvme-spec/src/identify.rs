//! The data structures of Identify, 4096 B each (Base Specification, "Identify command").

use crate::structure::{layout, structures};
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

/// Length of every Identify data structure.
pub const IDENTIFY_BYTES: usize = 4096;

/// CNS: identifiers of data structures.
pub mod cns {
    /// Namespace, of the NVM command set.
    pub const NAMESPACE: u8 = 0x00;
    /// Identify Controller.
    pub const CONTROLLER: u8 = 0x01;
    /// Numbers of the active namespaces.
    pub const NAMESPACE_LIST: u8 = 0x02;
    /// Namespace identification descriptors.
    pub const NAMESPACE_DESCRIPTORS: u8 = 0x03;
    /// Namespace, of a command set.
    pub const COMMAND_SET_NAMESPACE: u8 = 0x05;
    /// Controller, of a command set.
    pub const COMMAND_SET_CONTROLLER: u8 = 0x06;
    /// Numbers of the active namespaces of a command set.
    pub const COMMAND_SET_NAMESPACE_LIST: u8 = 0x07;
    /// Namespace, whatever its command set.
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    /// A format of namespaces of a command set.
    pub const COMMAND_SET_FORMAT: u8 = 0x0a;
    /// Numbers of the allocated namespaces, attached or not.
    pub const ALLOCATED_LIST: u8 = 0x10;
    /// Namespace, of the NVM command set, attached or not.
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    /// Controllers that a namespace is attached to.
    pub const NAMESPACE_CONTROLLERS: u8 = 0x12;
    /// Controllers of the subsystem.
    pub const CONTROLLERS: u8 = 0x13;
    /// Numbers of the allocated namespaces of a command set.
    pub const COMMAND_SET_ALLOCATED_LIST: u8 = 0x1a;
    /// Namespace, of a command set, attached or not.
    pub const COMMAND_SET_ALLOCATED_NAMESPACE: u8 = 0x1b;
    /// Combinations of command sets.
    pub const COMMAND_SETS: u8 = 0x1c;
}

/// CSI of the NVM command set.
pub const COMMAND_SET_NVM: u8 = 0;
/// CSI of the Key Value command set.
pub const COMMAND_SET_KEY_VALUE: u8 = 1;

/// Identify Controller (CNS 01h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyController {
    /// VID, PCI vendor.
    pub vendor: U16,
    /// SSVID.
    pub subsystem_vendor: U16,
    /// SN, ASCII with spaces behind it.
    pub serial: [u8; 20],
    /// MN, ASCII with spaces behind it.
    pub model: [u8; 40],
    /// FR, ASCII with spaces behind it.
    pub firmware: [u8; 8],
    /// RAB.
    pub arbitration_burst: u8,
    /// IEEE OUI.
    pub oui: [u8; 3],
    /// CMIC: bit 1, more than one controller.
    pub multi_path: u8,
    /// MDTS: the most data of a command is 2 to this times 4 KiB; 0 for no limit.
    pub transfer_pages_log2: u8,
    /// CNTLID.
    pub controller: U16,
    /// VER.
    pub version: U32,
    /// RTD3R.
    pub resume_us: U32,
    /// RTD3E.
    pub entry_us: U32,
    /// OAES: which events there are; bit 8, changed namespaces; bit 31, a changed discovery log page.
    pub events: U32,
    /// CTRATT: bit 0, host identifiers of 128 bits.
    pub attributes: U32,
    /// RRLS.
    pub read_recovery_levels: U16,
    reserved_102: [u8; 9],
    /// CNTRLTYPE: 1 I/O, 2 discovery.
    pub kind: u8,
    /// FGUID.
    pub guid: [u8; 16],
    reserved_128: [u8; 128],
    /// OACS.
    pub optional_admin_commands: U16,
    /// ACL, less one: aborts at a time.
    pub abort_limit: u8,
    /// AERL, less one: event requests at a time.
    pub event_request_limit: u8,
    /// FRMW: bit 0, slot 1 is read only; bits 3:1, slots.
    pub firmware_updates: u8,
    /// LPA: bit 1, command effects; bit 2, long log pages with offsets.
    pub log_attributes: u8,
    /// ELPE, less one.
    pub error_log_entries: u8,
    /// NPSS, less one.
    pub power_states: u8,
    reserved_264: [u8; 2],
    /// WCTEMP, in kelvins.
    pub warning_temperature_k: U16,
    /// CCTEMP, in kelvins.
    pub critical_temperature_k: U16,
    reserved_270: [u8; 10],
    /// TNVMCAP.
    pub capacity_bytes: U128,
    /// UNVMCAP.
    pub unallocated_bytes: U128,
    reserved_312: [u8; 8],
    /// KAS: granularity of the keep-alive timer, in units of 100 ms.
    pub keep_alive_100ms: U16,
    reserved_322: [u8; 190],
    /// SQES: 6 in both halves, entries of 64 B.
    pub submission_entry_log2: u8,
    /// CQES: 4 in both halves, entries of 16 B.
    pub completion_entry_log2: u8,
    /// MAXCMD: commands outstanding in a queue.
    pub commands_max: U16,
    /// NN: the highest number of a namespace.
    pub namespaces_max: U32,
    /// ONCS.
    pub optional_commands: U16,
    /// FUSES.
    pub fused: U16,
    /// FNA.
    pub format_attributes: u8,
    /// VWC: bit 0, there is a volatile write cache; bits 2:1 11b, Flush takes all namespaces.
    pub volatile_write_cache: u8,
    /// AWUN.
    pub atomic_write: U16,
    /// AWUPF.
    pub atomic_write_power_fail: U16,
    reserved_530: [u8; 6],
    /// SGLS: bit 0, SGLs; bit 18, also longer than their data; bit 20, data in the capsule with an offset (bits 1:0,
    /// 01b: no alignment).
    pub sgl: U32,
    /// MNAN: the most namespaces at a time.
    pub allowed_namespaces_max: U32,
    reserved_544: [u8; 224],
    /// SUBNQN, and zeros.
    pub subsystem_nqn: [u8; 256],
    reserved_1024: [u8; 768],
    /// IOCCSZ: most bytes of a command capsule of an I/O queue, in units of 16.
    pub command_capsule_16b: U32,
    /// IORCSZ: most bytes of a response capsule of an I/O queue, in units of 16.
    pub response_capsule_16b: U32,
    /// ICDOFF: where data in a capsule begins behind the entry, in units of 16.
    pub capsule_data_offset_16b: U16,
    /// FCATT: bit 0 clear, the dynamic controller model.
    pub fabrics_attributes: u8,
    /// MSDBD: descriptors of an SGL.
    pub sgl_descriptors_max: u8,
    /// OFCS: bit 0, Disconnect.
    pub optional_fabrics: U16,
    reserved_1806: [u8; 242],
    /// PSD.
    pub power_state_descriptors: [[u8; 32]; 32],
    /// VS.
    pub vendor_specific: [u8; 1024],
}

/// Identify Namespace of the NVM command set (CNS 00h), as far as a key-value namespace has something to say in it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespace {
    /// NSZE, in blocks.
    pub size: U64,
    /// NCAP, in blocks.
    pub capacity: U64,
    /// NUSE, in blocks.
    pub utilization: U64,
    reserved_24: [u8; 6],
    /// NMIC: bit 0, more than one controller has it.
    pub sharing: u8,
    reserved_31: [u8; 68],
    /// NSATTR: bit 0, write protected.
    pub attributes: u8,
    reserved_100: [u8; 4],
    /// NGUID.
    pub guid: [u8; 16],
    /// EUI64.
    pub eui64: [u8; 8],
    /// LBAF: MS u16, LBADS u8 (log2 of the bytes of a block), RP u8.
    pub formats: [[u8; 4]; 64],
    reserved_384: [u8; 3712],
}

/// Identify Namespace of the Key Value command set (CNS 05h, CSI 01h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyKvNamespace {
    /// NSZE, in bytes.
    pub size_bytes: U64,
    /// NUSE, in bytes.
    pub utilization_bytes: U64,
    reserved_16: U64,
    /// NSFEAT.
    pub features: u8,
    /// NKVF, less one.
    pub formats: u8,
    /// NMIC: bit 0, more than one controller has it.
    pub sharing: u8,
    /// RESCAP.
    pub reservations: u8,
    /// FPI.
    pub format_progress: u8,
    /// KVFC: bits 3:0, the index of the format in use.
    pub format: u8,
    reserved_30: [u8; 2],
    /// NOVG: the best granularity of values, in bytes; 0 for none.
    pub value_granularity_bytes: U32,
    /// ANAGRPID.
    pub ana_group: U32,
    reserved_40: [u8; 3],
    /// NSATTR: bit 0, write protected.
    pub attributes: u8,
    /// NVMSETID.
    pub nvm_set: U16,
    /// ENDGID.
    pub endurance_group: U16,
    /// NGUID.
    pub guid: [u8; 16],
    /// EUI64.
    pub eui64: [u8; 8],
    /// KVF.
    pub kv_formats: [KvFormat; 16],
    reserved_328: [u8; 3768],
}

/// A format of [`IdentifyKvNamespace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct KvFormat {
    /// The most bytes of a key.
    pub key_bytes_max: U16,
    reserved_2: u8,
    /// AFO.
    pub additional: u8,
    /// The most bytes of a value.
    pub value_bytes_max: U32,
    /// The most keys; 0 where that is not given.
    pub keys_max: U32,
    reserved_12: U32,
}

/// Identify Namespace whatever its command set (CNS 08h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyIndependentNamespace {
    /// NSFEAT.
    pub features: u8,
    /// NMIC.
    pub sharing: u8,
    /// RESCAP.
    pub reservations: u8,
    /// FPI.
    pub format_progress: u8,
    /// ANAGRPID.
    pub ana_group: U32,
    /// NSATTR: bit 0, write protected.
    pub attributes: u8,
    reserved_9: u8,
    /// NVMSETID.
    pub nvm_set: U16,
    /// ENDGID.
    pub endurance_group: U16,
    /// NSTAT: bit 0, ready.
    pub status: u8,
    reserved_15: [u8; 4081],
}

/// Identify Controller of the Key Value command set (CNS 06h, CSI 01h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyKvController {
    /// VER: bits 31:16 MJR, 15:8 MNR, 7:0 TER.
    pub version: U32,
    reserved_4: [u8; 4092],
}

layout!(
    IdentifyController: IDENTIFY_BYTES,
    kind at 111, optional_admin_commands at 256, warning_temperature_k at 266, capacity_bytes at 280,
    keep_alive_100ms at 320, submission_entry_log2 at 512, sgl at 536, subsystem_nqn at 768,
    command_capsule_16b at 1792, power_state_descriptors at 2048
);
layout!(IdentifyNamespace: IDENTIFY_BYTES, attributes at 99, guid at 104, formats at 128);
layout!(
    IdentifyKvNamespace: IDENTIFY_BYTES,
    features at 24, format at 29, value_granularity_bytes at 32, attributes at 43, guid at 48, kv_formats at 72
);
layout!(KvFormat: 16, value_bytes_max at 4, keys_max at 8);
layout!(IdentifyIndependentNamespace: IDENTIFY_BYTES, status at 14);
layout!(IdentifyKvController: IDENTIFY_BYTES);

structures! {
    |bytes| TryFromBytes::try_ref_from_bytes(bytes).ok();
    IdentifyController, IdentifyNamespace, IdentifyKvNamespace, IdentifyIndependentNamespace, IdentifyKvController
}

/// A namespace list (CNS 02h and 07h): the first 1024 of `namespaces` above `after`.
#[must_use]
pub fn namespace_list(namespaces: impl Iterator<Item = u32>, after: u32) -> [u8; IDENTIFY_BYTES] {
    let mut list = [0; IDENTIFY_BYTES];
    for (slot, namespace) in list.chunks_exact_mut(4).zip(namespaces.filter(|&namespace| namespace > after)) {
        slot.copy_from_slice(&namespace.to_le_bytes());
    }
    list
}

/// The namespace identifiers of a namespace list.
pub fn read_namespace_list(list: &[u8]) -> impl Iterator<Item = u32> {
    let number = |slot: &[u8]| slot.try_into().map_or(0, u32::from_le_bytes);
    list.chunks_exact(4).map(number).take_while(|&namespace| namespace != 0)
}

/// NIDT of a namespace's GUID, 16 B.
const DESCRIPTOR_GUID: u8 = 2;
/// NIDT of a namespace's UUID, 16 B.
const DESCRIPTOR_UUID: u8 = 3;
/// NIDT of a namespace's command set, 1 B.
const DESCRIPTOR_COMMAND_SET: u8 = 4;

/// The identification descriptors (CNS 03h) of a namespace: NGUID, UUID and command set.
#[must_use]
pub fn namespace_descriptors(guid: [u8; 16], uuid: [u8; 16], command_set: u8) -> [u8; IDENTIFY_BYTES] {
    let mut data = [0; IDENTIFY_BYTES];
    let mut at = 0;
    for (kind, id) in
        [(DESCRIPTOR_GUID, &guid[..]), (DESCRIPTOR_UUID, &uuid[..]), (DESCRIPTOR_COMMAND_SET, &[command_set][..])]
    {
        data[at] = kind;
        data[at + 1] = id.len() as u8;
        data[at + 4..][..id.len()].copy_from_slice(id);
        at += 4 + id.len();
    }
    data
}

/// The command set (CSI) in identification descriptors.
#[must_use]
pub fn descriptor_command_set(mut descriptors: &[u8]) -> Option<u8> {
    while let &[kind, length, _, _, ref rest @ ..] = descriptors {
        let id = rest.get(..usize::from(length)).filter(|id| !id.is_empty())?;
        if kind == DESCRIPTOR_COMMAND_SET {
            return id.first().copied();
        }
        descriptors = &rest[id.len()..];
    }
    None
}

/// I/O Command Set data (CNS 1Ch) with one combination: the Key Value command set alone.
#[must_use]
pub fn command_set_combinations() -> [u8; IDENTIFY_BYTES] {
    let mut data = [0; IDENTIFY_BYTES];
    data[0] = 1 << COMMAND_SET_KEY_VALUE;
    data
}
