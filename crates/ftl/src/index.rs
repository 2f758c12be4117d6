//! The seam: where does a key live?
//!
//! ```text
//!   locate   where a key lives, for a command: sections are loaded, and time passes
//!   search   in one section or page;  find  in bytes that are at hand
//!   glance   answers a whole question beside others, without time, and changes nothing; none if something is not in sight
//!   look     shows a page, or what is shared, to a `see`: this is how a glance reads
//!   peek     is no read: what memory has at hand tells what to warm next
//! ```

mod contents;
mod counters;
mod forecast;
mod kept_values;
pub(crate) mod look;
mod lookups;
mod pair_change;
mod plan;
mod range_index;
mod search;
mod section_index;
mod section_plan;
mod sectioned;
mod sections;
mod split_directory;
mod split_index;
mod split_order;
mod view;

pub use crate::parameters::{Parameter, Parameters};
pub use crate::shared::Shared;
pub(crate) use contents::audit_tags;
pub use contents::{Audit, IndexContents, IndexEntry, IndexFault, OwnRecord};
pub use counters::{BytesFor, IndexCounters};
pub use forecast::{AtTimes, Changes, Forecast, Outlook, Visit};
pub use lookups::Lookups;
pub use pair_change::PairChange;
pub use plan::{IndexPlan, Room};
pub use range_index::{CursorPlan, EntryPlace, RangeIndex};
pub use search::{Search, Sight};
pub use section_index::{SECOND_FIRST_NUMBER, SectionIndex};
pub use section_plan::SectionPlan;
pub use sectioned::Sectioned;
pub use sections::{SavedSections, SectionCounters, SectionEdit, SectionForm, Ticket, cached_bytes};
pub use split_directory::SplitDirectory;
pub use split_index::{SplitForm, SplitIndex};
pub use split_order::{list_in_split_order, pairs_in_split_order};
pub use view::View;

use crate::dram::DramUse;
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use crate::layout::address::Grain;
use dyn_clone::DynClone;
use kvssd_types::{Key, KvError};

/// Where a key is, or would be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// What the index finds the pair by without its key; it goes into the out-of-band area. [`Position::FULL`] when the
    /// key is not there and the index has no room for it.
    pub tag: u64,
    /// The pair's place, if the key is there.
    pub place: Option<Grain>,
    /// The hash of the key.
    pub hash: u64,
    /// A note of the index to itself. The index gets it back with the change, now and when a mount redoes the change.
    pub note: u32,
    /// The bytes of the pair's value, from an index that keeps whole keys and so reads no record.
    pub value_bytes: Option<u32>,
}

impl Position {
    /// The tag of a position that cannot be bound.
    pub const FULL: u64 = u64::MAX;
}

/// A pair that garbage collection has copied.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The pair's tag.
    pub tag: u64,
    /// Where it was.
    pub from: Grain,
    /// Where its copy is.
    pub to: Grain,
    /// Its grains.
    pub grains: u32,
    /// Set by the index.
    pub fate: Fate,
}

/// What became of a pair that garbage collection has copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The pair was dead: its key lives elsewhere, or not at all.
    Dead,
    /// Its key lives at the copy now.
    Moved,
    /// The index cannot read where it keeps the key: nothing was changed.
    Unreadable,
}

/// The sizes of an index that is a table in DRAM, and moves to flash where DRAM has no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramTable {
    /// The fewest bytes with which it works.
    pub least_bytes: u64,
    /// Bytes of all of it.
    pub whole_bytes: u64,
}

/// Work of an index's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// There is none.
    None,
    /// It is done in the background.
    Background,
    /// No change is begun before it is done. Look-ups and lists pass: they find all that was there before. A full drive has it done
    /// in the superblocks that garbage collection keeps for itself.
    Changes,
    /// No command is begun before it is done.
    Foreground,
}

impl Growth {
    /// Whether a command, which is a change or not, has to wait for this work.
    pub(crate) fn keeps_out(self, is_change: bool) -> bool {
        self == Growth::Foreground || self == Growth::Changes && is_change
    }
}

/// Pairs that were stored without being looked up.
#[derive(Clone, Copy, Debug)]
pub enum Uncompared<'u> {
    /// Those of a key.
    Of(Key<'u>),
    /// Those with these tags.
    Tagged(&'u [u64]),
    /// As many as one step of work compares; repeated steps compare all.
    Some,
}

/// Reads the record at a place and tells whether it is the key's.
pub type VerifyKey<'h> = dyn FnMut(&mut Io<'_>, Grain) -> Result<bool, KvError> + 'h;

/// Maps keys to places.
///
/// An index touches flash through `io` alone, so that every access takes time and is counted. It appends what it keeps
/// on flash to the map log ([`Io::append_own`]); garbage collection asks about it again ([`Index::relocate_own`]).
pub trait Index: DynClone + Send + Sync {
    /// Finds `key`. `verify` reads the record at a candidate place and compares the whole key.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, verify: &mut VerifyKey<'_>) -> Result<Position, KvError>;

    /// Finds `key` like [`Index::locate`], but changes nothing, so that others may look at the same time. `None` if only [`Index::locate`] can
    /// tell, because a part of the index cannot be seen. An index that keeps whole keys does not verify them.
    fn glance(&self, key: Key<'_>, sight: &mut dyn Sight) -> Option<Position> {
        let _ = (key, sight);
        None
    }

    /// Makes sure that a new key at `position` can be bound.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn reserve(&mut self, io: &mut Io<'_>, position: Position) -> Result<(), KvError> {
        let _ = (io, position);
        Ok(())
    }

    /// The position for a pair of `key` that is stored without a look-up. The pair is bound like that of a new key, and retrieves
    /// find it from then on. The index finds out whether it replaced an older pair when it merges its changes, or when it is told to
    /// ([`Index::compare`]). `None` if the index cannot do that, or not now.
    fn position_uncompared(&mut self, io: &mut Io<'_>, key: Key<'_>) -> Option<Position> {
        let _ = (io, key);
        None
    }

    /// Compares the pairs that were stored at such positions with the older pairs of their keys, and removes those that were replaced
    /// ([`Io::pair_replaced`]). [`Index::grow`] may do so on its own.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn compare(&mut self, io: &mut Io<'_>, which: Uncompared<'_>) -> Result<(), KvError> {
        let _ = (io, which);
        Ok(())
    }

    /// The places of the pairs that were not compared yet.
    fn uncompared(&self) -> Vec<Grain> {
        Vec::new()
    }

    /// Binds `key` at its `position` to `pair`. The change was noted just before: whatever the index writes from here on must
    /// contain it. Nothing has happened to the key since it was located.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn bind(&mut self, io: &mut Io<'_>, key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError>;

    /// Removes `key`, which was found at its position.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn unbind(&mut self, io: &mut Io<'_>, key: Key<'_>, position: Position) -> Result<(), KvError>;

    /// Binds each pair that still lives at `from` to `to`, and says in `fate` what it found, in any order. Each move is
    /// noted ([`Io::note`]) right before it is made: the index writes nothing in between. Every step of garbage
    /// collection ends with this call, if need be without moves.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError>;

    /// Whether a pair with `tag` lives at `place`.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError>;

    /// As [`Index::is_bound`], for many pairs at once; none for a pair about which the index cannot read.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn are_bound(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)]) -> Result<Vec<Option<bool>>, KvError> {
        pairs.iter().map(|&(tag, place)| readable(self.is_bound(io, tag, place))).collect()
    }

    /// Garbage collection found the index's own record with tag `number` at `from`, in a page that was read. The index
    /// appends it again if it still wants it.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError>;

    /// Whether there is work of its own to do, and who may go on meanwhile.
    fn growth(&self) -> Growth {
        Growth::None
    }

    /// Does a bounded step of its own work, which writes two superblocks of pages at the most. It is called again while [`Index::growth`]
    /// says that there is work: so it takes time, or ends that.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let _ = io;
        Ok(())
    }

    /// Why the index takes no changes any more, if so: it cannot read what it would have to merge.
    fn refuses_changes(&self) -> Option<String> {
        None
    }

    /// These keys will be looked up soon: memory may begin to bring what it knows of them closer ([`Io::warm`]), down
    /// to their records.
    fn expect(&self, io: &Io<'_>, keys: &[Key<'_>]) {
        let _ = (io, keys);
    }

    /// The index's own records with these tags will be relocated soon: memory may begin to bring closer what is known
    /// of them.
    fn warm(&self, numbers: &[u64]) {
        let _ = numbers;
    }

    /// The places of up to `count` pairs, in the index's own order, from a located position on: from its key, or from the next
    /// one if the key does not exist. The order stays as it is while no key comes or goes.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn list(&mut self, io: &mut Io<'_>, from: Option<Position>, count: usize) -> Result<Vec<Grain>, KvError>;

    /// For a namespace that is removed: removes a part of the index with the pairs that only this part had ([`Io::pair_replaced`]), all as one
    /// ([`Io::note_as_one`]). Returns whether it did; if not, pairs are removed one by one. What was removed need not be written down, so this
    /// makes room also where there is none to write deletes.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn remove_part(&mut self, io: &mut Io<'_>) -> Result<bool, KvError> {
        let _ = io;
        Ok(false)
    }

    /// The index's own records on flash.
    fn own_records(&self) -> Vec<OwnRecord>;

    /// Reads all that the index holds, and finds what is wrong with it, for a check. Changes nothing.
    fn contents(&self, io: &mut Io<'_>) -> IndexContents;

    /// An audit of the pairs that live, against what the index holds.
    fn audit(&self, contents: IndexContents) -> Box<dyn Audit + '_> {
        let _ = contents;
        audit_tags(|key| self.tag_of(key))
    }

    /// The tag of the pair of `key`, where it follows from the key ([`IndexPlan::has_tags_of_keys`]).
    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        let _ = key;
        None
    }

    /// The index again, if it has keys in their own order.
    fn ranges(&mut self) -> Option<&mut dyn RangeIndex> {
        None
    }

    /// As [`Index::ranges`], beside others who look.
    fn ranges_beside(&self) -> Option<&dyn RangeIndex> {
        None
    }

    /// Whether its changes are noted with their keys ([`Change::Key`]), because it cannot redo them by tags alone.
    fn notes_keys(&mut self) -> bool {
        self.ranges().is_some()
    }

    /// The sizes of the table, if the index is a table in DRAM.
    fn dram_table(&self) -> Option<DramTable> {
        None
    }

    /// The most bytes that it may keep in DRAM.
    fn set_dram_budget(&mut self, bytes: u64);

    /// Bytes beyond its budget that it keeps in DRAM until it is used, or until [`Index::shrink`] is called.
    fn surplus_bytes(&self) -> u64 {
        0
    }

    /// Gives back some of its surplus: a bounded step, which writes two superblocks of pages at the most.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn shrink(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let _ = io;
        Ok(())
    }

    /// Whether [`Index::drop_blank`] may have something to do.
    fn may_have_blank(&self) -> bool {
        false
    }

    /// Gives up what it keeps in DRAM, and counts as taking flash, for no pair: what was only looked at.
    fn drop_blank(&mut self) {}

    /// Every byte that is kept in DRAM.
    fn dram(&self, dram: &mut DramUse);

    /// Bytes that the index takes on flash when all that it keeps in DRAM is written, with the padding of its pages.
    fn footprint_bytes(&self) -> u64;

    /// What was counted so far.
    fn counters(&self) -> IndexCounters;

    /// Encodes the state of the index that only DRAM holds, for a checkpoint.
    fn save(&self) -> Vec<u8>;

    /// Restores what [`Index::save`] encoded, when a mount begins. `None` if these are not the bytes of such an index.
    fn restore(&mut self, bytes: &[u8]) -> Option<()>;

    /// Redoes a record that the index wrote as change number `position` behind the checkpoint ([`Change::Own`]). All of these
    /// are redone before the first [`Index::redo`]. `None` if there can be no such record.
    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()>;

    /// Makes change number `position` again, which bound, unbound or moved a key, where flash does not have it already.
    /// Changes come in order, and DRAM has no bound meanwhile.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn redo(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError>;

    /// All changes were redone.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError>;
}

dyn_clone::clone_trait_object!(Index);
