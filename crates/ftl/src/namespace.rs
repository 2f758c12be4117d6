//! Namespaces: key spaces of their own, which share the flash of one drive.
//!
//! ```text
//!   namespace 1   hash-compact  \
//!   namespace 2   lsm            >--- one log, one garbage collection, one journal: an entry of the out-of-band area
//!   namespace 5   dram-hash     /     and a note of the journal say whose they are
//! ```
//!
//! An index knows nothing of this: whose work is done stands in its [`Io`].

mod dram_shares;

use self::dram_shares::{Usage, Want, shares};
use crate::design::{Design, IndexChoice};
use crate::dram::DramUse;
use crate::index::{Growth, Index, IndexCounters, Room};
use crate::io::Io;
use crate::iterators::Iterators;
use crate::journal::attributes::{NamespaceAttributes, SavedKind};
use crate::layout::oob::{Kind, OobFormat};
use crate::layout::packing::RecordLayout;
use crate::space::utilization::{SavedUtilization, Utilization};
use kvssd_types::{KvError, NamespaceId, Nanos, OwnedKey};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A namespace, to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceInfo {
    /// Its number.
    pub id: NamespaceId,
    /// What was chosen.
    pub attributes: NamespaceAttributes,
    /// A number that no other namespace with the same number had before or will have; 0 if it is not known.
    pub birth: u64,
    /// The name of its index; empty where that is not known.
    pub index: Cow<'static, str>,
    /// Whether its keys have an order.
    pub is_ordered: bool,
    /// How full it is; `capacity_bytes` are its quota, or what the drive has for all.
    pub utilization: Utilization,
    /// The most pairs that its index takes; `None` where only flash or DRAM limits that, or it is not known.
    pub pairs_max: Option<u64>,
    /// DRAM of its index.
    pub dram: DramUse,
}

/// One of a drive's namespaces.
#[derive(Clone)]
pub(crate) struct Namespace {
    pub(crate) id: NamespaceId,
    pub(crate) attributes: NamespaceAttributes,
    pub(crate) kind: IndexChoice,
    /// The exclusive upper bound of its tags.
    pub(crate) tags: u64,
    pub(crate) index: Box<dyn Index>,
    pub(crate) iterators: Iterators,
    pub(crate) utilization: Utilization,
    /// Whether it lives or is being removed.
    pub(crate) fate: NamespaceFate,
    pub(crate) told: Told,
    pub(crate) is_ordered: bool,
    /// The last work of the index that kept commands out, and when that ended.
    pub(crate) closed: (Growth, Nanos),
    pub(crate) usage: Usage,
}

/// What becomes of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NamespaceFate {
    /// Hosts use it.
    Lives,
    /// It was deleted: hosts do not see it any more, and its pairs are removed, next from behind this key.
    Dies(Option<OwnedKey>),
    /// What is left of it cannot be read; the next mount tries again.
    Stays,
}

/// Of a namespace that is removed and whose list ends with what cannot be read: what is told of it all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Keys of pairs that are still to be removed.
    pub(crate) keys: Vec<OwnedKey>,
    /// How many pairs there were when keys were last looked for.
    pub(crate) pairs: u64,
}

impl Namespace {
    /// Whether hosts see it.
    pub(crate) fn lives(&self) -> bool {
        self.fate == NamespaceFate::Lives
    }

    /// Its index, to be written down.
    pub(crate) fn saved_kind(&self) -> SavedKind {
        self.kind.saved(self.tags).with_cache(self.attributes.cache.as_ref())
    }

    /// Whether its records may take `bytes` more, as far as its quota says.
    pub(crate) fn has_quota_for(&self, bytes: u64) -> bool {
        self.attributes.quota_bytes.is_none_or(|quota| self.utilization.record_bytes + bytes <= quota)
    }

    /// Bytes of flash that it takes.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.utilization.record_bytes + self.index.footprint_bytes()
    }
}

/// What a checkpoint holds of a namespace.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedNamespace {
    pub(crate) id: u32,
    pub(crate) attributes: NamespaceAttributes,
    pub(crate) fate: NamespaceFate,
    pub(crate) utilization: SavedUtilization,
    pub(crate) kind: SavedKind,
    pub(crate) index: Vec<u8>,
}

/// Builds what a namespace is made of.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) design: Design,
    pub(crate) room: Room,
    pub(crate) format: OobFormat,
    /// DRAM for values that iterators of one namespace read ahead.
    pub(crate) prefetch_bytes: u64,
    pub(crate) sector_bytes: u32,
}

impl Maker {
    /// The index that attributes name.
    fn kind(&self, attributes: &NamespaceAttributes) -> Result<IndexChoice, String> {
        let mut kind = match &attributes.index {
            Some(name) => IndexChoice::named(name, self.design.index_choices())?,
            None if attributes.is_ordered => IndexChoice::ordered(self.design.ordered_choices())?,
            None => self.design.index.clone(),
        };
        for (key, value) in &attributes.parameters {
            kind.set(key, value)?;
        }
        kind.plan().check()?;
        Ok(kind)
    }

    /// An empty namespace, with the index that its attributes choose or one that was chosen already.
    fn make(
        &self,
        id: NamespaceId,
        attributes: NamespaceAttributes,
        known: Option<&SavedKind>,
    ) -> Result<Namespace, String> {
        let kind = known.map_or_else(
            || self.kind(&attributes),
            |known| IndexChoice::of_saved(known, self.design.index_choices()),
        )?;
        let tags = kind.plan().tags(&self.room);
        if let Some(known) = known.filter(|known| known.tags != tags) {
            let (name, known) = (kind.plan().name(), known.tags);
            return Err(format!("{name} has tags below {known} there, and below {tags} in this program"));
        }
        if tags > self.format.tags() {
            return Err(format!("{} needs wider tags than this drive's out-of-band areas have", kind.plan().name()));
        }
        if self.format.lacks_tags(Kind::Pair) && !kind.plan().has_tags_of_keys() {
            return Err(format!("this drive's out-of-band areas have no room for the tags of {}", kind.plan().name()));
        }
        let mut index = kind.plan().build(&self.room)?;
        let is_ordered = index.ranges().is_some();
        if attributes.is_ordered && !is_ordered {
            return Err(format!("{} keeps keys in no order", kind.plan().name()));
        }
        let iterators =
            Iterators::new(self.design.iterators, if is_ordered { self.prefetch_bytes } else { 0 }, self.sector_bytes);
        Ok(Namespace {
            id,
            attributes,
            kind,
            tags,
            index,
            iterators,
            utilization: Utilization::default(),
            fate: NamespaceFate::Lives,
            told: Told::default(),
            is_ordered,
            closed: (Growth::None, Nanos::ZERO),
            usage: Usage::default(),
        })
    }
}

/// All namespaces of a drive in the order of their numbers, with those that are being removed.
#[derive(Clone)]
pub(crate) struct Namespaces {
    maker: Maker,
    all: Vec<Namespace>,
    /// Numbers of removed namespaces that the journal still names: they are not reused before the next checkpoint.
    gone: Vec<(NamespaceId, Option<String>)>,
    /// Whether deleted ones keep their pairs for now.
    keeps_deleted: bool,
}

impl Namespaces {
    /// A drive's first namespace, as the design has it.
    pub(crate) fn new(maker: Maker) -> Result<Self, String> {
        let first = maker.make(NamespaceId::FIRST, NamespaceAttributes::PLAIN, None)?;
        Ok(Namespaces { maker, all: vec![first], gone: Vec::new(), keeps_deleted: false })
    }

    fn position(&self, id: NamespaceId) -> Option<usize> {
        // Most drives have one.
        self.all.iter().position(|namespace| namespace.id == id)
    }

    pub(crate) fn get(&self, id: NamespaceId) -> Option<&Namespace> {
        self.position(id).map(|position| &self.all[position])
    }

    pub(crate) fn get_mut(&mut self, id: NamespaceId) -> Option<&mut Namespace> {
        self.position(id).map(|position| &mut self.all[position])
    }

    /// A namespace that hosts see.
    pub(crate) fn living(&mut self, id: NamespaceId) -> Result<&mut Namespace, KvError> {
        self.get_mut(id).filter(|namespace| namespace.lives()).ok_or(KvError::NoSuchNamespace(id))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Namespace> {
        self.all.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Namespace> {
        self.all.iter_mut()
    }

    /// The most pairs that an index of that kind takes on this drive.
    pub(crate) fn pairs_max(&self, kind: &IndexChoice) -> Option<u64> {
        kind.plan().pairs_max(&self.maker.room)
    }

    /// Makes `io` work on a namespace from here on, and returns its index. `None`, and `io` stays as it is, if there is no such namespace any more.
    pub(crate) fn enter<'n>(&'n mut self, io: &mut Io<'_>, id: NamespaceId) -> Option<&'n mut dyn Index> {
        let namespace = self.get_mut(id)?;
        io.namespace = id;
        Some(namespace.index.as_mut())
    }

    /// The same, for a record that a page assigns to the namespace. `None` if the namespace can have no such tag: the record
    /// belonged to another namespace, which had the number before.
    pub(crate) fn enter_for<'n>(&'n mut self, io: &mut Io<'_>, id: NamespaceId, tag: u64) -> Option<&'n mut dyn Index> {
        let is_possible = self.get(id).is_some_and(|namespace| tag < namespace.tags);
        if is_possible { self.enter(io, id) } else { None }
    }

    /// The numbers that a new one may get, in order.
    pub(crate) fn free_ids(&self) -> impl Iterator<Item = NamespaceId> {
        let most = self.maker.design.namespaces_max;
        (1..=most).map(NamespaceId).filter(|id| self.get(*id).is_none() && self.gone.iter().all(|(gone, _)| gone != id))
    }

    /// Checks the attributes of a new namespace, and that its name is not taken.
    pub(crate) fn check(&self, attributes: &NamespaceAttributes) -> Result<(), String> {
        attributes.check()?;
        let has_it = |other: &&Namespace| other.lives() && other.attributes.name == attributes.name;
        match attributes.name.as_ref().and_then(|_| self.all.iter().find(has_it)) {
            Some(other) => Err(format!("namespace {} has that name", other.id)),
            None => Ok(()),
        }
    }

    /// Creates a namespace. Returns its index, to be written down.
    pub(crate) fn create(&mut self, id: NamespaceId, attributes: NamespaceAttributes) -> Result<SavedKind, String> {
        self.put(id, attributes, None).map(|namespace| namespace.saved_kind())
    }

    /// Adds a namespace, with a known index or the one that its attributes choose.
    pub(crate) fn put(
        &mut self,
        id: NamespaceId,
        attributes: NamespaceAttributes,
        known: Option<&SavedKind>,
    ) -> Result<&mut Namespace, String> {
        if self.maker.design.layout == RecordLayout::Blocks && !self.all.is_empty() {
            return Err("a block drive has one namespace".to_owned());
        }
        if id.0 == 0 || id.0 > self.maker.design.namespaces_max || self.get(id).is_some() {
            return Err(format!("there can be no namespace {id}"));
        }
        let known = known.map(SavedKind::split).transpose()?;
        let mut made = self.maker.make(id, attributes, known.as_ref().map(|(kind, _)| kind))?;
        if let Some((_, cache)) = known {
            made.attributes.cache = cache;
        }
        let position = self.all.partition_point(|namespace| namespace.id < id);
        self.all.insert(position, made);
        Ok(&mut self.all[position])
    }

    /// Whether a namespace of that number and name was deleted and still holds the number.
    pub(crate) fn has_deleted(&self, id: NamespaceId, name: Option<&str>) -> bool {
        let is_dying = |other: &Namespace| other.id == id && !other.lives() && other.attributes.name.as_deref() == name;
        let is_gone = |(other, of): &(NamespaceId, Option<String>)| *other == id && of.as_deref() == name;
        self.all.iter().any(is_dying) || self.gone.iter().any(is_gone)
    }

    /// Whether deleted namespaces still hold numbers that could become free.
    pub(crate) fn holds_numbers(&self) -> bool {
        self.dying().is_some() || !self.gone.is_empty()
    }

    /// Frees the numbers of removed namespaces, which nothing names any more.
    pub(crate) fn forget_gone(&mut self) {
        self.gone.clear();
    }

    /// Removes a namespace that has nothing left.
    pub(crate) fn remove(&mut self, id: NamespaceId) -> Option<Namespace> {
        let removed = self.all.remove(self.position(id)?);
        self.gone.push((id, removed.attributes.name.clone()));
        Some(removed)
    }

    /// Undoes the creation of a namespace of which nothing was noted yet.
    pub(crate) fn withdraw(&mut self, id: NamespaceId) {
        self.all.retain(|namespace| namespace.id != id);
    }

    /// Sets whether deleted ones keep their pairs for now.
    pub(crate) fn keep_deleted(&mut self, keeps: bool) {
        self.keeps_deleted = keeps;
    }

    /// The namespace whose pairs are to be removed next.
    pub(crate) fn dying(&self) -> Option<NamespaceId> {
        let is_dying = |namespace: &&Namespace| matches!(namespace.fate, NamespaceFate::Dies(_));
        self.all.iter().find(is_dying).filter(|_| !self.keeps_deleted).map(|namespace| namespace.id)
    }

    /// The first namespace whose index has such work of its own to do. One that is removed does it on its way.
    pub(crate) fn growing(&self, is_wanted: impl Fn(Growth) -> bool) -> Option<NamespaceId> {
        let dying = self.dying();
        let mut growing = self.all.iter().filter(|namespace| is_wanted(namespace.index.growth()));
        growing.find(|namespace| Some(namespace.id) != dying).map(|namespace| namespace.id)
    }

    /// The first namespace that keeps DRAM of others.
    pub(crate) fn owing(&self) -> Option<NamespaceId> {
        self.all.iter().find(|namespace| namespace.index.surplus_bytes() > 0).map(|namespace| namespace.id)
    }

    /// Bytes of flash that all of them take.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.all.iter().map(Namespace::taken_bytes).sum()
    }

    /// Bytes of flash that the namespaces that hosts see take.
    pub(crate) fn living_bytes(&self) -> u64 {
        self.all.iter().filter(|namespace| namespace.lives()).map(Namespace::taken_bytes).sum()
    }

    /// Bytes of flash that all others take.
    pub(crate) fn taken_beside(&self, id: NamespaceId) -> u64 {
        self.all.iter().filter(|namespace| namespace.id != id).map(Namespace::taken_bytes).sum()
    }

    /// How full all of them are together.
    pub(crate) fn utilization(&self) -> Utilization {
        self.all.iter().fold(Utilization::default(), |sum, namespace| sum.plus(&namespace.utilization))
    }

    pub(crate) fn counters(&self) -> IndexCounters {
        self.all.iter().fold(IndexCounters::default(), |sum, namespace| sum.plus(&namespace.index.counters()))
    }

    /// DRAM of values that iterators read ahead.
    pub(crate) fn prefetch_bytes(&self) -> u64 {
        self.all.iter().map(|namespace| namespace.iterators.dram_bytes()).sum()
    }

    /// Sets each index's share of `bytes` of DRAM. Returns whether no index still has to give DRAM back.
    pub(crate) fn share_dram(&mut self, bytes: u64, now: Nanos) -> bool {
        let want = |namespace: &Namespace| {
            let mut dram = DramUse::default();
            namespace.index.dram(&mut dram);
            let (table, held_bytes) = (namespace.index.dram_table(), dram.total_bytes());
            Want { table, held_bytes, usage: namespace.usage }
        };
        let wants: Vec<Want> = self.all.iter().map(want).collect();
        let shares = shares(bytes, &wants, now);
        for (namespace, &share) in self.all.iter_mut().zip(&shares) {
            namespace.index.set_dram_budget(share);
        }
        // A single namespace has all of it.
        wants.len() == 1 || wants.iter().zip(shares).all(|(want, share)| want.held_bytes <= share)
    }

    pub(crate) fn dram(&self, dram: &mut DramUse) {
        self.all.iter().for_each(|namespace| namespace.index.dram(dram));
        if self.prefetch_bytes() > 0 {
            dram.add("prefetch_buffer", self.prefetch_bytes());
        }
    }

    /// What a checkpoint holds of them.
    pub(crate) fn save(&mut self) -> Vec<SavedNamespace> {
        self.forget_gone();
        let saved = |namespace: &Namespace| SavedNamespace {
            id: namespace.id.0,
            attributes: namespace.attributes.clone(),
            fate: namespace.fate.clone(),
            utilization: namespace.utilization.saved(),
            kind: namespace.saved_kind(),
            index: namespace.index.save(),
        };
        self.all.iter().map(saved).collect()
    }

    /// Restores the saved namespaces, when a mount begins.
    ///
    /// # Errors
    /// Why there can be no such namespaces.
    pub(crate) fn restore(&mut self, saved: Vec<SavedNamespace>) -> Result<(), String> {
        self.all.clear();
        for SavedNamespace { id, attributes, fate, utilization, kind, index } in saved {
            let namespace = self.put(NamespaceId(id), attributes, Some(&kind))?;
            namespace.fate = if fate == NamespaceFate::Stays { NamespaceFate::Dies(None) } else { fate };
            namespace.utilization = Utilization::from_saved(utilization);
            namespace.index.set_dram_budget(u64::MAX);
            let restored = namespace.index.restore(&index);
            restored.ok_or_else(|| format!("what its checkpoint says of namespace {id} is that of another index"))?;
        }
        Ok(())
    }
}
