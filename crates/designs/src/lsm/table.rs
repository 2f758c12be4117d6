//! Tables (SSTables): sorted runs of a few pages on flash.

use super::page::{Entry, PageWriter, prefix};
use crate::bloom::Bloom;
use kvssd_flash::Blob;
use kvssd_ftl::TablePlace;
use kvssd_types::OwnedKey;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Pages of a table at the most: the log knows page p of table t by 4 t + p.
pub(super) const TABLE_PAGES_MAX: u32 = 4;

/// Names a table, in four bytes.
pub(super) type TableId = u32;

/// What the tables of a tree look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableForm {
    pub(super) page_bytes: u32,
    pub(super) pages_max: u32,
    /// Bits of a filter for each key; 0 for none.
    pub(super) filter_bits: u32,
}

impl TableForm {
    /// Bytes of a table.
    pub(super) fn table_bytes(&self) -> u64 {
        u64::from(self.pages_max) * u64::from(self.page_bytes)
    }

    /// Bytes of DRAM for what is known of a table with keys of that length, filter aside: [`Table::dram_bytes`], and its number in the
    /// Summary.
    pub(super) fn known_bytes(&self, key_bytes: usize) -> u64 {
        let pages = u64::from(self.pages_max);
        16 + 5 * pages + (pages + 1) * (1 + key_bytes as u64)
    }
}

/// Which keys a table has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeyRange {
    /// The first of each page.
    pub(super) firsts: Vec<OwnedKey>,
    /// The last of all.
    pub(super) last: OwnedKey,
}

impl KeyRange {
    /// The first key of all.
    pub(super) fn first(&self) -> &[u8] {
        self.firsts.first().map_or(&[], |first| first)
    }

    pub(super) fn overlaps(&self, other: &KeyRange) -> bool {
        self.first() <= &*other.last && other.first() <= &*self.last
    }

    /// The page in which a key would be, if it is not out of the range.
    pub(super) fn page_of(&self, key: &[u8]) -> Option<usize> {
        let behind = self.firsts.partition_point(|first| **first <= *key);
        behind.checked_sub(1).filter(|_| *key <= *self.last)
    }

    pub(super) fn dram_bytes(&self) -> u64 {
        self.firsts.iter().chain([&self.last]).map(|key| 1 + key.len() as u64).sum()
    }
}

/// A table that is not in the log yet.
#[derive(Debug)]
pub(super) struct NewTable {
    pub(super) pages: Vec<Blob>,
    pub(super) range: KeyRange,
    pub(super) filter: Option<Bloom>,
}

/// Tables of these entries, which come in the order of their keys.
pub(super) fn write_tables<'k>(form: &TableForm, entries: impl Iterator<Item = (&'k [u8], Entry)>) -> Vec<NewTable> {
    let mut tables: Vec<NewTable> = Vec::new();
    let mut page = PageWriter::new(form.page_bytes);
    let mut hashes = Vec::new();
    let end_page = |page: &mut PageWriter<'_>, hashes: &mut Vec<u64>, tables: &mut Vec<NewTable>| {
        let Some((first, last)) = page.ends() else { return };
        let bytes = page.finish();
        match tables.last_mut().filter(|table| table.pages.len() < form.pages_max as usize) {
            Some(table) => {
                table.pages.push(bytes);
                table.range.firsts.push(first.into());
                table.range.last = last.into();
            }
            None => {
                let filter = (form.filter_bits > 0).then(|| {
                    // As many as a table of such keys may come to have.
                    Bloom::new(hashes.len() as u64 * u64::from(form.pages_max * form.filter_bits))
                });
                let range = KeyRange { firsts: vec![first.into()], last: last.into() };
                tables.push(NewTable { pages: vec![bytes], range, filter });
            }
        }
        if let Some(filter) = tables.last_mut().and_then(|table| table.filter.as_mut()) {
            hashes.iter().for_each(|&hash| filter.add(hash));
        }
        hashes.clear();
    };
    for (key, entry) in entries {
        if !page.push(key, entry) {
            end_page(&mut page, &mut hashes, &mut tables);
            assert!(page.push(key, entry), "an empty page takes any key");
        }
        if form.filter_bits > 0 {
            hashes.push(xxh3_64(key));
        }
    }
    end_page(&mut page, &mut hashes, &mut tables);
    tables
}

/// The [`prefix`]es of the keys of a [`KeyRange`], in one place. No bytes of a device: it has the keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fences {
    firsts: [u64; TABLE_PAGES_MAX as usize],
    last: u64,
}

impl Fences {
    pub(super) fn of(range: &KeyRange) -> Self {
        let mut firsts = [u64::MAX; TABLE_PAGES_MAX as usize];
        firsts.iter_mut().zip(&range.firsts).for_each(|(fence, first)| *fence = prefix(first));
        Fences { firsts, last: prefix(&range.last) }
    }

    /// The prefixes of the first key of a page, and of one that none of its keys comes behind.
    pub(super) fn ends(&self, page: usize) -> (u64, u64) {
        let next = self.firsts.get(page + 1).copied().unwrap_or(u64::MAX);
        (self.firsts.get(page).copied().unwrap_or(0), next.min(self.last))
    }
}

/// What DRAM knows of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Table {
    pub(super) place: TablePlace,
    pub(super) range: KeyRange,
    pub(super) filter: Option<Bloom>,
    /// Made when the pool takes it in.
    #[serde(skip)]
    pub(super) fences: Fences,
    /// Its pages, while they stay in DRAM.
    #[serde(skip)]
    pub(super) pinned: Vec<Blob>,
    /// How many summaries have it.
    #[serde(skip)]
    pub(super) summaries: u32,
    /// Whether the present one has it.
    #[serde(skip)]
    pub(super) is_current: bool,
}

impl Table {
    /// A table that is in the log, and in no summary yet.
    pub(super) fn new(place: TablePlace, range: KeyRange, filter: Option<Bloom>) -> Self {
        let fences = Fences::default();
        Table { place, range, filter, fences, pinned: Vec::new(), summaries: 0, is_current: false }
    }

    /// The page in which a key would be, if it may be in the table; `hash` is that of the key, for the filter.
    pub(super) fn page_of(&self, key: &[u8], hash: u64) -> Option<usize> {
        let (wanted, Fences { firsts, last }) = (prefix(key), &self.fences);
        let page = if wanted == *last || firsts.contains(&wanted) {
            self.range.page_of(key)
        } else {
            let behind = firsts.iter().filter(|first| **first < wanted).count();
            behind.checked_sub(1).filter(|_| wanted < *last)
        };
        page.filter(|_| self.filter.as_ref().is_none_or(|filter| filter.may_have(hash)))
    }

    /// Bytes of DRAM except for pinned pages: id, level, age and count, and for each page a place.
    pub(super) fn dram_bytes(&self) -> u64 {
        let filter_bytes = self.filter.as_ref().map_or(0, Bloom::bytes);
        12 + 5 * self.place.pages.len() as u64 + self.range.dram_bytes() + filter_bytes
    }

    pub(super) fn pinned_bytes(&self) -> u64 {
        self.pinned.iter().map(|page| page.len() as u64).sum()
    }
}
