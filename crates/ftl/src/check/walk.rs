//! The state of a check: what must live, and what was found so far.

use crate::check::CheckReport;
use crate::index::{Audit, IndexContents};
use crate::io::media::Media;
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, Oob};
use crate::layout::packing::Packing;
use crate::layout::record::RecordHead;
use crate::namespace::Namespaces;
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{MediaError, PageAddress};
use kvssd_types::{Key, NamespaceId};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Something that lives, and where it must be found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Living {
    pub(super) place: Grain,
    pub(super) kind: Kind,
    pub(super) namespace: NamespaceId,
    pub(super) tag: u64,
    /// Its bytes, where these are known without its head.
    pub(super) bytes: u32,
}

impl Living {
    pub(super) fn name(&self) -> String {
        match self.kind {
            Kind::Pair => format!("the pair of slot {}", self.tag),
            Kind::Section => format!("section {} of the index", self.tag),
            _ => format!("a page of invalid mappings of superblock {}", self.tag),
        }
    }
}

/// A page as it is now: nothing, or its out-of-band area if it has one, and its data.
type PageNow<'m> = Result<Option<(Option<Oob>, RopeRef<'m>)>, MediaError>;

/// A pair that was read.
#[derive(Debug)]
pub(super) struct PairSeen {
    pub(super) head: RecordHead,
    pub(super) key: Vec<u8>,
}

/// What was found of all that lives.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// First grain, grains and record of each run in a superblock.
    pub(super) runs: Vec<(Grain, u32, Grain)>,
    /// Namespace, hash and place of each key.
    pub(super) keys: Vec<(NamespaceId, u64, Grain)>,
    /// Grains of all pairs.
    pub(super) record_bytes: u64,
}

impl Ledger {
    pub(super) fn add(&mut self, namespace: NamespaceId, place: Grain, key: Key<'_>, bytes_charged: u64) {
        self.keys.push((namespace, xxh3_64(key.bytes()), place));
        self.record_bytes += bytes_charged;
    }
}

/// A check in progress.
pub(super) struct Walk<'a> {
    pub(super) media: &'a mut Media,
    pub(super) namespaces: &'a Namespaces,
    pub(super) report: CheckReport,
    pub(super) indexes: BTreeMap<NamespaceId, IndexContents>,
    /// For each namespace, the audit of whether its index finds its pairs.
    pub(super) audits: BTreeMap<NamespaceId, Box<dyn Audit + 'a>>,
    /// Everything that must live, sorted by place.
    pub(super) living: Vec<Living>,
    /// For each page, the record that continues in it, grain 0 if none does; `None` if the page cannot be read.
    pub(super) continues: Vec<Option<Grain>>,
    pub(super) ledger: Ledger,
    /// The pages of the journal.
    pub(super) numbered: BTreeMap<u64, (PageAddress, Kind)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(media: &'a mut Media, namespaces: &'a Namespaces) -> Self {
        let (report, ledger) = (CheckReport::default(), Ledger::default());
        let continues = vec![None; media.space.geometry.pages() as usize];
        Walk {
            media,
            namespaces,
            report,
            indexes: BTreeMap::new(),
            audits: BTreeMap::new(),
            living: Vec::new(),
            continues,
            ledger,
            numbered: BTreeMap::new(),
        }
    }
}

/// A place as readable text.
pub(super) fn place(media: &Media, place: Grain) -> String {
    let Packing { grains_per_superblock, grains_per_page, .. } = media.space.packing;
    let page = place.0 / u64::from(grains_per_page);
    let grain = media.space.packing.index_in_page(place);
    format!("superblock {}, page {page}, grain {grain}", place.0 / grains_per_superblock)
}

/// A page as readable text.
pub(super) fn page_name(media: &Media, page: PageAddress) -> String {
    format!("superblock {}, page {}", media.space.geometry.superblock_of(page).0, page.0)
}

/// A page as it is in the write buffer or in flash.
pub(super) fn page_now(media: &mut Media, page: PageAddress) -> PageNow<'_> {
    let Media { log, flash, .. } = media;
    let gathered = |stream: &&crate::space::log::OpenLog| {
        stream.superblock.is_some() && stream.page == page && !stream.data.is_empty()
    };
    if let Some(stream) = log.iter().find(gathered) {
        return Ok(Some((Some(stream.oob.clone()), stream.data.as_ref())));
    }
    if let Some(view) = log.gathered_page(flash.geometry(), page) {
        return Ok(Some((log.format.decode(view.oob), view.data)));
    }
    if !flash.is_programmed(page) {
        return Ok(None);
    }
    let view = flash.page(page)?;
    Ok(Some((log.format.decode(view.oob), view.data)))
}
