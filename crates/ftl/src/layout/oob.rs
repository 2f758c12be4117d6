//! What the firmware writes to the out-of-band area of a page: what lies in it, and for whom.
//!
//! ```text
//!   [kind u4 | stream u3 | continues u1] [sequence u48] [head of the continued record u40, if continues]
//!   then for each record that starts in the page: [grain in the page u8 or u16] [namespace u8] [tag, 4 to 8 bytes]
//!   or, for pairs whose tags follow from their keys: [bitmap of the grains that pairs start at] [namespace u8] of each
//! ```
//!
//! The bitmap is KAML's (section IV-B): 64 pairs a page leave no room for tags in the 256 bytes of its flash. Garbage
//! collection reads the page anyway, and has the index compute the tags from the keys in it. The paper's bits are set
//! at the last chunks of records; a record that ran in from the page before makes first ones plainer.
//!
//! A drive that can have one namespace only writes none. The tag of a pair is what its index finds it by without the
//! key (its hash index: Plus, section III-A); that of an index section is the section's number; that of a page of
//! invalid mappings is its superblock; that of a page of the journal or of a checkpoint is its number.

use crate::layout::address::Grain;
use kvssd_types::{NamespaceId, named_enum};
use serde::{Deserialize, Serialize};

named_enum! {
    /// What the records of a page are. A page holds one kind.
    #[derive(Serialize, Deserialize)]
    pub enum Kind: "kind of page" {
        /// Key-value pairs.
        Pair = "pairs",
        /// Sections of the index.
        Section = "sections",
        /// Invalid mappings of a superblock.
        InvalidMappings = "invalid mappings",
        /// Nothing.
        Padding = "padding",
        /// A page of the journal.
        Journal = "the journal",
        /// A page of a checkpoint.
        Checkpoint = "a checkpoint",
    }
}

/// Which logs a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stream {
    /// Pairs that commands store, and pages of invalid mappings, which live about as long.
    User,
    /// The same when garbage collection has moved them.
    Gc,
    /// Sections of the index.
    Map,
    /// The journal and its checkpoints.
    Journal,
}

impl Stream {
    /// All streams.
    pub const ALL: [Stream; 4] = [Stream::User, Stream::Gc, Stream::Map, Stream::Journal];

    /// The streams of records, which the journal speaks of.
    pub const RECORDS: [Stream; 3] = [Stream::User, Stream::Gc, Stream::Map];
}

/// A record that starts in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which of the page's grains it starts at.
    pub grain: u32,
    /// Whose it is, of pairs and sections.
    pub namespace: NamespaceId,
    /// What its owner finds it by. Of a pair in a bitmap 0, until the key has been read.
    pub tag: u64,
}

/// The out-of-band area of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oob {
    /// What the page holds.
    pub kind: Kind,
    /// The log that it belongs to.
    pub stream: Stream,
    /// Counts the pages of all logs in the order in which they were opened.
    pub sequence: u64,
    /// The first grain of the record that runs on into this page.
    pub continues: Option<Grain>,
    /// The records that start in the page, in order.
    pub entries: Vec<Entry>,
}

/// The widths of a drive's entries, chosen when it is made and written down where it lies in a file: other programs may
/// choose others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OobFormat {
    /// Bytes of a grain in its page.
    grain_bytes: u8,
    /// Bytes of a namespace's number; 0 where there is one only.
    namespace_bytes: u8,
    tag_bytes: u8,
    /// Bytes of the bitmap of pairs; 0 where these have tags.
    bitmap_bytes: u32,
}

const SEQUENCE_BYTES: usize = 6;
const GRAIN_BYTES: usize = 5;
const TAG_BYTES_MIN: u8 = 4;
const TAG_BYTES_MAX: u8 = 8;
const CONTINUES: u8 = 0x80;

impl OobFormat {
    /// The narrowest format for pages of `grains_per_page`, so many namespaces and tags below `tags`.
    #[must_use]
    pub fn new(grains_per_page: u32, namespaces: u32, tags: u64) -> Self {
        let tag_bytes = (tags - 1).checked_ilog2().map_or(0, |bits| bits as u8 / 8 + 1).max(TAG_BYTES_MIN);
        OobFormat {
            grain_bytes: if grains_per_page > 1 << 8 { 2 } else { 1 },
            namespace_bytes: u8::from(namespaces > 1),
            tag_bytes,
            bitmap_bytes: 0,
        }
    }

    /// Whether pages of so many grains, of so many namespaces, can be described in this format.
    ///
    /// # Errors
    /// What is too narrow, or is no width at all.
    pub fn check(&self, grains_per_page: u32, namespaces: u32) -> Result<(), String> {
        let OobFormat { grain_bytes, namespace_bytes, tag_bytes, bitmap_bytes } = *self;
        if !(1..=2).contains(&grain_bytes) || grains_per_page > 1 << (8 * grain_bytes) {
            return Err(format!(
                "out_of_band.grain_bytes = {grain_bytes} is no width for {grains_per_page} grains a page"
            ));
        }
        if namespace_bytes > 1 || namespaces > 1 && namespace_bytes == 0 {
            let of = format!("for {namespaces} namespaces");
            return Err(format!("out_of_band.namespace_bytes = {namespace_bytes} is no width {of}"));
        }
        if !(TAG_BYTES_MIN..=TAG_BYTES_MAX).contains(&tag_bytes) {
            let bounds = format!("{TAG_BYTES_MIN} to {TAG_BYTES_MAX}");
            return Err(format!("out_of_band.tag_bytes = {tag_bytes} must be {bounds}"));
        }
        if bitmap_bytes != 0 && bitmap_bytes != grains_per_page.div_ceil(8) {
            return Err(format!("out_of_band.bitmap_bytes = {bitmap_bytes} is no bitmap of {grains_per_page} grains"));
        }
        Ok(())
    }

    /// What all tags that fit are below, as far as there is such a number.
    #[must_use]
    pub fn tags(&self) -> u64 {
        1u64.checked_shl(8 * u32::from(self.tag_bytes)).unwrap_or(u64::MAX)
    }

    fn bitmap(&self) -> Option<usize> {
        (self.bitmap_bytes > 0).then_some(self.bitmap_bytes as usize)
    }

    fn has_namespaces(&self) -> bool {
        self.namespace_bytes > 0
    }

    /// The same, where the tags of pairs follow from their keys.
    #[must_use]
    pub fn with_bitmap(self, grains_per_page: u32) -> Self {
        OobFormat { bitmap_bytes: grains_per_page.div_ceil(8), ..self }
    }

    /// Whether the tags of a page's records are to be computed from their keys.
    #[must_use]
    pub fn lacks_tags(&self, kind: Kind) -> bool {
        kind == Kind::Pair && self.bitmap_bytes > 0
    }

    /// The most bytes that a page of `entries` takes. Where pairs are in a bitmap, a page of other records has room for
    /// as many of them as their tags leave.
    #[must_use]
    pub fn bytes_max(&self, entries: u32) -> usize {
        let entries_bytes = match self.bitmap() {
            Some(bitmap_bytes) => {
                let owners_bytes = if self.has_namespaces() { entries as usize } else { 0 };
                (bitmap_bytes + owners_bytes).max(self.entry_bytes())
            }
            None => entries as usize * self.entry_bytes(),
        };
        1 + SEQUENCE_BYTES + GRAIN_BYTES + entries_bytes
    }

    fn entry_bytes(&self) -> usize {
        usize::from(self.grain_bytes + self.namespace_bytes + self.tag_bytes)
    }

    /// Writes `oob` to the empty `bytes`.
    pub fn encode(&self, oob: &Oob, bytes: &mut Vec<u8>) {
        let continues = if oob.continues.is_some() { CONTINUES } else { 0 };
        bytes.push(oob.kind as u8 | (oob.stream as u8) << 4 | continues);
        bytes.extend_from_slice(&oob.sequence.to_le_bytes()[..SEQUENCE_BYTES]);
        if let Some(head) = oob.continues {
            bytes.extend_from_slice(&head.0.to_le_bytes()[..GRAIN_BYTES]);
        }
        match self.bitmap().filter(|_| self.lacks_tags(oob.kind)) {
            Some(bitmap_bytes) => self.push_bitmap(&oob.entries, bitmap_bytes, bytes),
            None => oob.entries.iter().for_each(|entry| self.push_entry(entry, bytes)),
        }
    }

    fn push_entry(&self, entry: &Entry, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&entry.grain.to_le_bytes()[..usize::from(self.grain_bytes)]);
        if self.has_namespaces() {
            bytes.push(entry.namespace.0 as u8);
        }
        bytes.extend_from_slice(&entry.tag.to_le_bytes()[..usize::from(self.tag_bytes)]);
    }

    /// What `bytes` say; none when they are not an out-of-band area.
    #[must_use]
    pub fn decode(&self, bytes: &[u8]) -> Option<Oob> {
        let (&head, rest) = bytes.split_first()?;
        let kind = *Kind::ALL.get(usize::from(head & 0xf))?;
        let stream = *Stream::ALL.get(usize::from(head >> 4 & 7))?;
        let (sequence, mut rest) = rest.split_at_checked(SEQUENCE_BYTES)?;
        let continues = if head & CONTINUES != 0 {
            let (grain, after) = rest.split_at_checked(GRAIN_BYTES)?;
            rest = after;
            Some(Grain(number(grain)))
        } else {
            None
        };
        let entries = match self.bitmap().filter(|_| self.lacks_tags(kind)) {
            Some(bitmap_bytes) => self.bitmap_entries(rest, bitmap_bytes)?,
            None => self.tagged_entries(rest)?,
        };
        Some(Oob { kind, stream, sequence: number(sequence), continues, entries })
    }

    /// The first grain of the record that an area says runs on into its page: all that is looked at of it is there in
    /// every format.
    #[must_use]
    pub fn continued(bytes: &[u8]) -> Option<Grain> {
        let is_continued = bytes.first().is_some_and(|head| head & CONTINUES != 0);
        let grain = bytes.get(1 + SEQUENCE_BYTES..1 + SEQUENCE_BYTES + GRAIN_BYTES)?;
        is_continued.then(|| Grain(number(grain)))
    }

    fn tagged_entries(&self, bytes: &[u8]) -> Option<Vec<Entry>> {
        let is_whole = bytes.len().is_multiple_of(self.entry_bytes());
        is_whole.then(|| bytes.chunks_exact(self.entry_bytes()).map(|entry| self.decode_entry(entry)).collect())
    }

    fn decode_entry(&self, bytes: &[u8]) -> Entry {
        let (grain, rest) = bytes.split_at(self.grain_bytes.into());
        let (namespace, tag) = rest.split_at(self.namespace_bytes.into());
        let namespace = if self.has_namespaces() { NamespaceId(number(namespace) as u32) } else { NamespaceId::FIRST };
        Entry { grain: number(grain) as u32, namespace, tag: number(tag) }
    }

    fn push_bitmap(&self, entries: &[Entry], bitmap_bytes: usize, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.resize(start + bitmap_bytes, 0);
        for entry in entries {
            bytes[start + entry.grain as usize / 8] |= 1 << (entry.grain % 8);
        }
        if self.has_namespaces() {
            bytes.extend(entries.iter().map(|entry| entry.namespace.0 as u8));
        }
    }

    fn bitmap_entries(&self, bytes: &[u8], bitmap_bytes: usize) -> Option<Vec<Entry>> {
        let (bitmap, owners) = bytes.split_at_checked(bitmap_bytes)?;
        let grains = (0..8 * bitmap_bytes as u32).filter(|grain| bitmap[*grain as usize / 8] >> (grain % 8) & 1 == 1);
        let owner = |number: usize| match self.has_namespaces() {
            true => owners.get(number).map(|&owner| NamespaceId(owner.into())),
            false => Some(NamespaceId::FIRST),
        };
        let entry = |(number, grain)| Some(Entry { grain, namespace: owner(number)?, tag: 0 });
        let entries: Vec<Entry> = grains.enumerate().map(entry).collect::<Option<_>>()?;
        let owners_bytes = if self.has_namespaces() { entries.len() } else { 0 };
        (owners.len() == owners_bytes).then_some(entries)
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_area_reads_back(
            kind in 0usize..6, stream in 0usize..4, sequence in 0u64..1 << 48, continues in proptest::option::of(1u64..1 << 40),
            entries in prop::collection::vec((0u32..512, 1u32..256, 0u64..1 << 36), 0..64), wide: bool,
        ) {
            let format = if wide { OobFormat::new(512, 255, 1 << 36) } else { OobFormat::new(256, 1, 1 << 32) };
            let clip = |(grain, namespace, tag)| match wide {
                true => Entry { grain, namespace: NamespaceId(namespace), tag },
                false => Entry { grain: grain & 0xff, namespace: NamespaceId::FIRST, tag: tag & 0xffff_ffff },
            };
            let oob = Oob {
                kind: Kind::ALL[kind],
                stream: Stream::ALL[stream],
                sequence,
                continues: continues.map(Grain),
                entries: entries.into_iter().map(clip).collect(),
            };
            let mut bytes = Vec::new();
            format.encode(&oob, &mut bytes);
            prop_assert!(bytes.len() <= format.bytes_max(oob.entries.len() as u32));
            prop_assert_eq!(OobFormat::continued(&bytes), oob.continues);
            prop_assert_eq!(format.decode(&bytes), Some(oob));
        }

        #[test]
        fn any_bytes_are_an_area_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = OobFormat::continued(&bytes);
            let _ = OobFormat::new(64, 1, 1 << 31).decode(&bytes);
            let _ = OobFormat::new(64, 9, 1 << 56).with_bitmap(64).decode(&bytes);
        }

        /// A page of 64 pairs, in the 256 bytes of KAML's flash.
        #[test]
        fn a_bitmap_has_the_grains_and_owners_of_pairs_and_other_pages_have_tags(
            starts in prop::collection::btree_map(0u32..64, (1u32..256, 0u64..u64::MAX), 0..64), namespaces in 1u32..3,
            continues in proptest::option::of(1u64..1 << 40),
        ) {
            let format = OobFormat::new(64, namespaces, 1 << 63).with_bitmap(64);
            let owner = |namespace| NamespaceId(if namespaces == 1 { 1 } else { namespace });
            let entries = starts.into_iter().map(|(grain, (namespace, tag))| Entry { grain, namespace: owner(namespace), tag });
            let entries: Vec<Entry> = entries.collect();
            let whole = Oob { kind: Kind::Pair, stream: Stream::Gc, sequence: 7, continues: continues.map(Grain), entries };
            let mut bytes = Vec::new();
            format.encode(&whole, &mut bytes);
            prop_assert!(bytes.len() <= format.bytes_max(64) && format.bytes_max(64) <= 250);
            let known = whole.entries.iter().map(|entry| Entry { tag: 0, ..*entry });
            prop_assert_eq!(format.decode(&bytes), Some(Oob { entries: known.collect(), ..whole.clone() }));
            let section = Oob { kind: Kind::Section, entries: whole.entries.into_iter().take(1).collect(), ..whole };
            bytes.clear();
            format.encode(&section, &mut bytes);
            prop_assert!(bytes.len() <= format.bytes_max(64));
            prop_assert_eq!(format.decode(&bytes), Some(section));
        }
    }
}
