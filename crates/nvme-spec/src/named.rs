//! Namespaces by their names, a vendor specific extension: hosts make, delete and list them.
//!
//! ```text
//!   Get Features C1h       -> dword 0: "KVx1", of a controller that has this and the commands of `extended.rs`
//!   admin C1h, create      data: what it is to be, 128 B            -> dword 0: its number, dword 1: its birth
//!   admin C5h, delete      namespace: its number, data: its name, 64 B; both must be those of one namespace
//!   admin C9h, cache       namespace: its number, data: what cache it is to be, 256 B
//!   Get Log Page C1h       16 B | 128 B a namespace
//!   Get Log Page C2h       16 B | 256 B a namespace that is a cache
//!
//!   create   0 quota bytes, 0 for none | 8 flags | 16 name, 64 B | 80 index, 32 B | 112 zeros
//!   page     0 "KVx1" | 4 namespaces | 8 bytes of an entry | 12 zeros
//!   entry    0 number | 4 flags | 8 pairs | 16 pair bytes | 24 live bytes | 32 quota bytes | 40 capacity bytes
//!            48 name, 64 B | 112 index, 16 B
//!   flags    bit 0: keys have an order    bit 1: it is a cache (of entries alone)    bits 31:8: its birth (of entries alone)
//!
//!   cache    0 name, 64 B | 64 the cache as text, 176 B, zeros for none | 240 zeros
//!   page C2h 0 "KVx1" | 4 caches | 8 bytes of an entry | 12 zeros
//!   entry    0 number | 4 zeros | 8 budget bytes now | 16 held bytes | 24 DRAM bytes | 32 hits | 40 misses | 48 admitted
//!            56 kept out | 64 evicted | 72 too old | 80 the cache as text, 176 B
//! ```
//!
//! Texts are padded with zeros. A namespace that a host may not read is not in its page.
//!
//! Numbers come again, and births do not. So a command may say which namespace it means by its number, whatever its
//! controller was told: in the metadata pointer, which nothing else uses here. On another one it gets what one on a missing
//! namespace gets.
//!
//! ```text
//!   any I/O command, admin C5h, C9h    metadata pointer: 31:0 birth | 63:32 "KVx1"; anything else says nothing
//! ```

use crate::SubmissionEntry;
use crate::structure::{layout, structures};
use alloc::vec::Vec;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// "KVx1": tells this feature and this page from those of other vendors.
pub const SIGNATURE: u32 = u32::from_le_bytes(*b"KVx1");

/// Opcodes of vendor specific admin commands.
pub mod opcode {
    /// Makes a namespace.
    pub const CREATE: u8 = 0xc1;
    /// Deletes a namespace.
    pub const DELETE: u8 = 0xc5;
    /// Makes a namespace a cache, another one, or none.
    pub const CACHE: u8 = 0xc9;
}

/// Length of the longest name.
pub const NAME_BYTES_MAX: usize = 64;
/// Flag: keys have an order.
pub const FLAG_ORDERED: u32 = 1;
/// Flag: it is a cache.
pub const FLAG_CACHE: u32 = 2;
/// Where the birth of a namespace begins in the flags of its entry, and the largest.
const BIRTH_SHIFT: u32 = 8;
const BIRTH_MAX: u64 = (1 << (32 - BIRTH_SHIFT)) - 1;
/// Length of a cache as text.
pub const CACHE_TEXT_BYTES: usize = 176;
/// What a cache keeps behind each value: the largest that a host can store there is so much smaller than Identify says.
pub const CACHE_STAMP_BYTES: u32 = 8;
/// Length of the page's header.
pub const HEADER_BYTES: usize = 16;
/// Length of an entry of the page.
pub const ENTRY_BYTES: usize = size_of::<NamespaceEntry>();
/// Length of an entry of the page of caches.
pub const CACHE_ENTRY_BYTES: usize = size_of::<CacheEntry>();

/// What a namespace is to be: the data of the command that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CreateNamespace {
    /// The most bytes of flash that its pairs take; 0 for as many as there are.
    pub quota_bytes: U64,
    /// [`FLAG_ORDERED`]; other bits must be zeros.
    pub flags: U32,
    reserved_12: [u8; 4],
    /// What it is called.
    pub name: [u8; NAME_BYTES_MAX],
    /// The name of its index; zeros for the one that suits.
    pub index: [u8; 32],
    reserved_112: [u8; 16],
}

layout!(CreateNamespace: 128, flags at 8, name at 16, index at 80);

/// A namespace in the page of those that a host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NamespaceEntry {
    /// NSID.
    pub number: U32,
    /// [`FLAG_ORDERED`], [`FLAG_CACHE`], and its [birth](NamespaceEntry::birth).
    pub flags: U32,
    /// Pairs that it has.
    pub pairs: U64,
    /// Bytes of their keys and values.
    pub pair_bytes: U64,
    /// Bytes of flash that they take.
    pub live_bytes: U64,
    /// The most of those; 0 for as many as there are.
    pub quota_bytes: U64,
    /// The same, or what the drive has for all.
    pub capacity_bytes: U64,
    /// What it is called; zeros for nothing.
    pub name: [u8; NAME_BYTES_MAX],
    /// The name of its index.
    pub index: [u8; 16],
}

layout!(NamespaceEntry: 128, pairs at 8, capacity_bytes at 40, name at 48, index at 112);

impl NamespaceEntry {
    /// A number that differs from that of who had its NSID and name before; 0 where that is not known.
    #[must_use]
    pub fn birth(&self) -> u32 {
        self.flags.get() >> BIRTH_SHIFT
    }

    /// Sets the birth to what is told of a number.
    pub fn set_birth(&mut self, birth: u64) {
        let flags = self.flags.get() & ((1 << BIRTH_SHIFT) - 1);
        self.flags = (flags | told_birth(birth) << BIRTH_SHIFT).into();
    }
}

/// What is told of a birth: as much as 24 bits have room for; 0 for one that is not known.
#[must_use]
pub fn told_birth(birth: u64) -> u32 {
    birth.checked_sub(1).map_or(0, |birth| (birth % BIRTH_MAX + 1) as u32)
}

/// Which birth a command means by its namespace's number; `None` if it does not say.
#[must_use]
pub fn meant_birth(entry: &SubmissionEntry) -> Option<u32> {
    let metadata = entry.metadata.get();
    (metadata >> 32 == u64::from(SIGNATURE)).then_some(metadata as u32)
}

/// Has a command say which birth it means, as [`NamespaceEntry::birth`] tells it.
pub fn set_meant_birth(entry: &mut SubmissionEntry, birth: u32) {
    entry.metadata = (u64::from(SIGNATURE) << 32 | u64::from(birth)).into();
}

/// What cache a namespace is to be: the data of the command that makes it one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SetCache {
    /// What the namespace is called.
    pub name: [u8; NAME_BYTES_MAX],
    /// The cache as text; zeros for none.
    pub cache: [u8; CACHE_TEXT_BYTES],
    reserved_240: [u8; 16],
}

layout!(SetCache: 256, cache at 64);

/// A cache in the page of those that a host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CacheEntry {
    /// NSID.
    pub number: U32,
    reserved_4: [u8; 4],
    /// The most bytes of keys and values now: the budget, or what a full drive has left of it.
    pub budget_bytes: U64,
    /// Those that it holds.
    pub held_bytes: U64,
    /// Bytes of DRAM that it keeps.
    pub dram_bytes: U64,
    /// Retrieves that found their pair, and those that did not, since the drive was opened or the cache changed; so with what follows.
    pub hits: U64,
    /// See [`CacheEntry::hits`].
    pub misses: U64,
    /// Pairs that came in.
    pub admitted: U64,
    /// Pairs that a rule kept out.
    pub kept_out: U64,
    /// Pairs that left so that others had room.
    pub evicted: U64,
    /// Pairs that were too old.
    pub expired: U64,
    /// The cache as text.
    pub cache: [u8; CACHE_TEXT_BYTES],
}

layout!(CacheEntry: 256, budget_bytes at 8, expired at 72, cache at 80);

structures! {
    |bytes| FromBytes::ref_from_bytes(bytes).ok(); CreateNamespace, NamespaceEntry, SetCache, CacheEntry
}

impl SetCache {
    /// Whether all is zeros that must be.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.reserved_240 == [0; 16]
    }
}

impl CreateNamespace {
    /// Whether all is zeros that must be.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.flags.get() & !FLAG_ORDERED == 0 && self.reserved_12 == [0; 4] && self.reserved_112 == [0; 16]
    }
}

/// The page of those namespaces.
#[must_use]
pub fn namespaces_page(entries: &[NamespaceEntry]) -> Vec<u8> {
    page_of(entries)
}

/// The page of those caches.
#[must_use]
pub fn caches_page(entries: &[CacheEntry]) -> Vec<u8> {
    page_of(entries)
}

fn page_of<E: IntoBytes + Immutable>(entries: &[E]) -> Vec<u8> {
    let mut page = Vec::with_capacity(HEADER_BYTES + core::mem::size_of_val(entries));
    for field in [SIGNATURE, entries.len() as u32, size_of::<E>() as u32, 0] {
        page.extend_from_slice(&field.to_le_bytes());
    }
    entries.iter().for_each(|entry| page.extend_from_slice(entry.as_bytes()));
    page
}

/// How many entries a page is of; `None` if it is another vendor's, or too short.
fn count(page: &[u8], entry_bytes: usize) -> Option<u32> {
    let field = |at: usize| page.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let is_ours = field(0)? == SIGNATURE && field(8)? == entry_bytes as u32;
    field(4).filter(|_| is_ours && page.len() >= HEADER_BYTES)
}

/// The namespaces of a page; `None` if it is another vendor's, or ends before the last of them.
#[must_use]
pub fn read_namespaces(page: &[u8]) -> Option<Vec<NamespaceEntry>> {
    entries(page, ENTRY_BYTES)?.map(|entry| NamespaceEntry::from_data(entry).copied()).collect()
}

/// The caches of a page; `None` if it is another vendor's, or ends before the last of them.
#[must_use]
pub fn read_caches(page: &[u8]) -> Option<Vec<CacheEntry>> {
    entries(page, CACHE_ENTRY_BYTES)?.map(|entry| CacheEntry::from_data(entry).copied()).collect()
}

fn entries(page: &[u8], entry_bytes: usize) -> Option<core::slice::ChunksExact<'_, u8>> {
    let count = count(page, entry_bytes)? as usize;
    Some(page[HEADER_BYTES..].get(..count.checked_mul(entry_bytes)?)?.chunks_exact(entry_bytes))
}

/// The name in a field: its bytes up to the first zero. `None` if they are no text, or none.
#[must_use]
pub fn read_name(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    core::str::from_utf8(&field[..end]).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_text;
    use alloc::vec;

    #[test]
    fn a_page_is_read_as_it_was_written_and_no_other_is() {
        let mut entry = NamespaceEntry::zeroed();
        (entry.number, entry.pairs, entry.quota_bytes) = (3.into(), 7.into(), 100.into());
        write_text(&mut entry.name, "accounts");
        let page = namespaces_page(&[entry, entry]);
        let read = read_namespaces(&page).unwrap();
        assert_eq!(read, [entry, entry]);
        assert_eq!((read_name(&read[0].name), read_name(&read[0].index)), (Some("accounts"), None));
        for end in 0..page.len() {
            assert_eq!(read_namespaces(&page[..end]), None, "the first {end} bytes");
        }
        for at in [0, 7, 8] {
            let mut other = page.clone();
            other[at] ^= 0x80;
            assert_eq!(read_namespaces(&other), None, "byte {at} is another");
        }
        assert_eq!(read_namespaces(&namespaces_page(&[])), Some(Vec::new()));
    }

    #[test]
    fn a_page_of_caches_is_read_as_it_was_written_and_no_other_is() {
        let mut entry = CacheEntry::zeroed();
        (entry.number, entry.hits, entry.expired) = (3.into(), 7.into(), 100.into());
        write_text(&mut entry.cache, "lru budget=1");
        let page = caches_page(&[entry, entry]);
        assert_eq!(read_caches(&page), Some(vec![entry, entry]));
        assert_eq!(read_name(&entry.cache), Some("lru budget=1"));
        assert!((0..page.len()).all(|end| read_caches(&page[..end]).is_none()));
        assert_eq!((read_namespaces(&page), read_caches(&namespaces_page(&[]))), (None, None));
        let mut wanted = SetCache::zeroed();
        assert!(wanted.is_known());
        wanted.as_mut_bytes()[255] = 1;
        assert!(!wanted.is_known());
    }

    #[test]
    fn what_is_to_be_zeros_is_checked() {
        let mut wanted = CreateNamespace::zeroed();
        wanted.flags = FLAG_ORDERED.into();
        assert!(wanted.is_known());
        for at in [8, 12, 15, 112, 127] {
            let mut bytes: Vec<u8> = wanted.as_bytes().to_vec();
            bytes[at] |= 2;
            assert!(!CreateNamespace::from_data(&bytes).unwrap().is_known(), "byte {at}");
        }
    }
}
