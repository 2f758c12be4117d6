//! Mount: from flash and the write buffer's memory back to what DRAM held.
//!
//! ```text
//!   write buffer  -> records back into the streams, changes that no page has yet
//!   first page of every superblock -> those of the journal -> last whole checkpoint -> changes behind it
//!   state of the checkpoint, each change made again -> the state before the cut
//! ```
//!
//! It reads one page of each superblock, the journal's superblocks, and the sections that the changes touch: not the
//! pairs.
//!
//! [`durability`] has written what it reads. Both import `namespace` and what is below it.

pub(crate) mod durability;
mod redo;
mod trust;

use self::redo::Redo;
use self::trust::stands_at_the_end;
use crate::io::media::Media;
use crate::io::{Io, readable};
use crate::journal::batch_sequence::BatchSequence;
use crate::journal::planted::PlantedBug;
use crate::journal::staging::{self, GatheredPart, Item, Restored};
use crate::journal::torn::{Torn, without_torn_batches};
use crate::journal::{BatchNote, Change, changes};
use crate::layout::oob::{Kind, Oob, Stream};
use crate::namespace::Namespaces;
use crate::recovery::durability::{CHECKPOINT_HEAD_BYTES, Checkpoint, checkpoint_in, content_bytes};
use crate::space::Space;
use crate::space::superblock::{State, Superblock};
use crate::space::validity::Spill;
use kvssd_flash::{Cause, PageAddress, PowerLoss, SuperblockId};
use kvssd_types::{BLOCK_BYTES, KvError, Nanos, PlacementHandle, Value};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a mount did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// The virtual time that it took.
    pub took: Nanos,
    /// Pages of the checkpoint that it started from.
    pub checkpoint_pages: u64,
    /// Pages of the journal behind that.
    pub journal_pages: u64,
    /// Changes that were made again.
    pub changes: u64,
    /// How many of them split a section of the index.
    pub splits: u64,
    /// How many of them wrote or moved a page of invalid mappings.
    pub spills: u64,
    /// Whether a power cut tore a batch, whose first part was skipped.
    pub has_torn_batch: bool,
    /// Whether the drive had been closed.
    pub was_closed: bool,
    /// The last batch over several drives that it has decided.
    pub decided: BatchSequence,
}

/// A numbered page of the journal's stream.
pub(crate) type Numbered = BTreeMap<u64, (PageAddress, Kind)>;

/// Restores the last state of `media` and of the new `namespaces`. Shares of batches over several drives count up to `decided`.
///
/// # Errors
/// [`KvError::Unrecovered`] when flash does not hold a drive, and what the medium says when it could not be read: what is missing may be there.
pub(crate) fn mount(
    media: &mut Media,
    namespaces: &mut Namespaces,
    decided: BatchSequence,
) -> Result<MountReport, KvError> {
    let mut failure = None;
    restore(media, namespaces, decided, &mut failure).map_err(|error| match (error, failure) {
        (KvError::Unrecovered(_), Some(failure)) => failure,
        (error, _) => error,
    })
}

fn restore(
    media: &mut Media,
    namespaces: &mut Namespaces,
    decided: BatchSequence,
    failure: &mut Option<KvError>,
) -> Result<MountReport, KvError> {
    let restored = put_back(media)?;
    let has_torn_record = restored.torn_units.is_some();
    let mut io = Io::new(media, Nanos::ZERO, true);
    let known = read(&mut io, restored, decided, failure)?;
    let Known { pages, numbers, checkpoint, journal_pages, changes, torn, was_closed } = known;
    let mut redo = Redo { io: &mut io, namespaces, spills: Vec::new() };
    redo.redo_all(checkpoint, &changes)?;
    let Redo { spills, .. } = redo;
    // On a volatile drive, only the unfinished writes of interrupted mounts lie behind the end of the journal.
    let is_volatile = io.media.durable.power_loss == PowerLoss::Volatile;
    let end = if is_volatile { numbers.end + journal_pages } else { u64::MAX };
    settle_superblocks(&mut io, &pages, numbers.start..end)?;
    if !io.media.all_life_is_written() {
        return Err(damaged(
            "a superblock is erased in which records should live: what is known of it is of an earlier time",
        ));
    }
    if let Some(stale) = io.media.stale_superblock() {
        return Err(damaged(&format!("superblock {} is in another life than what is known of it", stale.0)));
    }
    if is_volatile {
        // Pages behind the last that counts may be on flash: their numbers are not used again.
        let last = pages.last_key_value().map_or(0, |(&number, _)| number);
        io.media.durable.journal.number = last + 1 + u64::from(io.media.space.geometry.pages_per_superblock());
    }
    io.media.durable.journal.pages = journal_pages;
    io.media.durable.journal.checkpoint_pages = numbers.end - numbers.start;
    begin_life(&mut io, namespaces, torn, spills, has_torn_record)?;
    let report = MountReport {
        took: io.settle(),
        checkpoint_pages: numbers.end - numbers.start,
        journal_pages,
        changes: changes.len() as u64,
        splits: count(&changes, |change| matches!(change, Change::Split { .. })),
        spills: count(&changes, |change| matches!(change, Change::Spilled { .. } | Change::SpillMoved { .. })),
        has_torn_batch: torn != Torn::Nothing,
        was_closed,
        decided: media.durable.decided,
    };
    Ok(report)
}

/// Puts back what the write buffer held.
fn put_back(media: &mut Media) -> Result<Restored, KvError> {
    let staged = media.flash.backing_mut().staged()?;
    let Media { log, flash, space, durable, .. } = &mut *media;
    let restored = staging::restore(&staged, log, flash, &space.packing, &mut durable.journal)?;
    media.durable.staged_bytes = staged.len() as u64;
    gather_again(media, &restored.gathered)?;
    Ok(restored)
}

/// What flash and the write buffer's memory say of the state before the cut.
struct Known {
    /// The pages of the journal's stream.
    pages: Numbered,
    /// The numbers of the checkpoint's pages.
    numbers: Range<u64>,
    checkpoint: Checkpoint,
    /// Pages of the journal behind the checkpoint.
    journal_pages: u64,
    /// The changes since the checkpoint, without those that do not count.
    changes: Vec<Change>,
    torn: Torn,
    was_closed: bool,
}

/// Reads what the drive was before the cut, and checks that nothing of it is missing.
fn read(
    io: &mut Io<'_>,
    restored: Restored,
    decided: BatchSequence,
    failure: &mut Option<KvError>,
) -> Result<Known, KvError> {
    let (pages, sequence) = numbered_pages(io, failure);
    if io.media.durable.power_loss == PowerLoss::Volatile
        && let Some(failure) = failure.take()
    {
        // Nothing would tell a page of the journal that could not be read from the journal's end.
        return Err(failure);
    }
    let (numbers, checkpoint) = last_checkpoint(io, &pages)?;
    if io.media.durable.power_loss == PowerLoss::Protected {
        let is_there = restored.journal_number.is_some() || checkpoint.is_last;
        if !is_there
            || sequence > io.media.log.sequence
            || !stands_at_the_end(&io.media.log, &io.media.flash, &io.media.space.geometry)
        {
            return Err(damaged("what the write buffer's memory held is not there, or ends too early"));
        }
    }
    if let Some(units) = restored.torn_units {
        io.stage(&Item::Torn(units), None)?;
    }
    let (mut all, journal_pages) = journal_changes(io, &pages, numbers.end, restored.journal_number)?;
    all.extend(restored.changes);
    let believes_all = io.media.durable.planted == Some(PlantedBug::UndecidedBatch);
    let decided = if believes_all { BatchSequence(u64::MAX) } else { decided };
    let (changes, torn) = without_torn_batches(all, decided).map_err(damaged)?;
    let was_closed = checkpoint.is_last && changes.is_empty() && restored.gathered.is_empty();
    Ok(Known { pages, numbers, checkpoint, journal_pages, changes, torn, was_closed })
}

/// Notes what this mount has found and skipped, so that the next one finds the same, and makes safe what others build on.
fn begin_life(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    torn: Torn,
    spills: Vec<Spill>,
    has_torn_record: bool,
) -> Result<(), KvError> {
    io.stage(&Item::Mounted, None)?;
    if torn != Torn::Nothing {
        io.note(Change::Batch(BatchNote::Abandoned));
    }
    for spill in spills {
        io.write_spill(spill)?;
    }
    if io.media.durable.power_loss == PowerLoss::Volatile {
        io.checkpoint_only(namespaces)?;
    } else if has_torn_record {
        // An earlier program would take the torn record for the end of what is staged.
        io.flush()?;
    }
    if torn == Torn::Undecided || io.media.durable.decided != BatchSequence::default() {
        // What is staged is written anew. An abandoned share must be safe before a batch with its number can be decided, and a coordinator's
        // decision before anybody builds on it: after a sync that failed it may be in the system's memory alone.
        io.media.flash.backing_mut().commit()?;
    }
    Ok(())
}

/// Restores the parts of blocks that were gathered when the power went.
fn gather_again(media: &mut Media, parts: &[GatheredPart]) -> Result<(), KvError> {
    let mapped_bytes = media.space.packing.grain_bytes;
    for GatheredPart { block, start, handle, bytes } in parts {
        let end = u64::from(*start) + bytes.len() as u64;
        let is_whole = [u64::from(*start), end].iter().all(|at| at.is_multiple_of(BLOCK_BYTES.into()));
        let fits = is_whole && !bytes.is_empty() && end <= mapped_bytes.into();
        let handle = PlacementHandle(*handle);
        let Media { gathered, log, space, .. } = &mut *media;
        let is_there = *block < space.geometry.raw_bytes() / u64::from(mapped_bytes) && log.has_handle(handle);
        let has_place = gathered.get(*block).is_some() || gathered.free_places() > 0;
        if !fits || !is_there || !has_place {
            return Err(damaged("what the write buffer's memory gathered cannot be of this drive"));
        }
        gathered.put(*block, *start as usize, &Value::from(&bytes[..]), handle, Nanos::ZERO);
    }
    Ok(())
}

fn count(changes: &[Change], is_one: impl Fn(&Change) -> bool) -> u64 {
    changes.iter().filter(|change| is_one(change)).count() as u64
}

fn damaged(why: &str) -> KvError {
    KvError::Unrecovered(format!("the drive cannot be mounted: {why}"))
}

/// The out-of-band area of a page, if it was written and can be read. Notes why the medium could not read one; it may be one that nobody needs.
fn oob_of(io: &mut Io<'_>, page: PageAddress, failure: &mut Option<KvError>) -> Option<Oob> {
    let format = io.media.log.format;
    if let Some(view) = io.media.log.gathered_page(&io.media.space.geometry, page) {
        return format.decode(view.oob);
    }
    if !io.media.flash.is_programmed(page) {
        return None;
    }
    io.read(page, Cause::Journal);
    match readable(io.page(page)) {
        Ok(view) => format.decode(view?.oob),
        Err(error) => {
            failure.get_or_insert(error);
            None
        }
    }
}

/// All pages of the journal's stream that can be read, and the highest sequence number of a superblock's first page.
fn numbered_pages(io: &mut Io<'_>, failure: &mut Option<KvError>) -> (Numbered, u64) {
    let (mut pages, mut sequence) = (Numbered::new(), 0);
    let geometry = io.media.space.geometry;
    for superblock in (1..geometry.superblocks()).map(SuperblockId) {
        // The first page says whose it is; if that is damaged, one of its neighbours does.
        let mut neighbours = geometry.superblock_pages(superblock).take(4 * geometry.pages_per_program as usize);
        let known = neighbours.find_map(|page| oob_of(io, page, failure));
        sequence = sequence.max(known.as_ref().map_or(0, |oob| oob.sequence));
        if known.is_none_or(|oob| oob.stream != Stream::Journal) {
            continue;
        }
        for page in geometry.superblock_pages(superblock) {
            if let Some(oob) = oob_of(io, page, failure)
                && let Some(entry) = oob.entries.first()
            {
                pages.insert(entry.tag, (page, oob.kind));
            }
        }
    }
    (pages, sequence)
}

fn content(io: &mut Io<'_>, page: PageAddress) -> Result<Vec<u8>, KvError> {
    let page_bytes = io.media.space.packing.page_bytes() as usize;
    let content = io.data(page)?.whole_blob(0..page_bytes);
    Ok(content.ok_or_else(|| damaged("a page of its journal is not whole"))?.to_vec())
}

/// The numbers of the pages of the last checkpoint that is whole, and what it holds.
pub(crate) fn last_checkpoint(io: &mut Io<'_>, pages: &Numbered) -> Result<(Range<u64>, Checkpoint), KvError> {
    let page_bytes = u64::from(io.media.space.packing.page_bytes());
    for (&start, &(page, _)) in pages.iter().rev().filter(|(_, (_, kind))| *kind == Kind::Checkpoint) {
        let Some(first) = readable(content(io, page))? else { continue };
        let Some(length) = content_bytes(&first) else { continue };
        let count = length.saturating_add(CHECKPOINT_HEAD_BYTES as u64).div_ceil(page_bytes);
        if count > io.media.space.geometry.pages() {
            continue;
        }
        let mut bytes = Vec::new();
        for number in start..start + count {
            let Some(&(page, Kind::Checkpoint)) = pages.get(&number) else { break };
            bytes.extend(content(io, page)?);
        }
        if let Some(checkpoint) = checkpoint_in(&bytes) {
            return Ok((start..start + count, checkpoint));
        }
    }
    Err(damaged("it has no checkpoint: it was never formatted, or copied while it was written to"))
}

/// The changes in the journal pages from number `first` on, and how many pages these are.
fn journal_changes(
    io: &mut Io<'_>,
    pages: &Numbered,
    first: u64,
    staged_from: Option<u64>,
) -> Result<(Vec<Change>, u64), KvError> {
    let mut all = Vec::new();
    let mut number = first;
    while let Some(&(page, kind)) = pages.get(&number) {
        // A checkpoint that was not finished is passed over; what is staged need not be read.
        if kind == Kind::Journal && staged_from.is_none_or(|staged| number < staged) {
            all.extend(changes(&content(io, page)?));
        }
        number += 1;
    }
    // A unit of the journal is begun only when the one before the last is in flash: no cut leaves pages further behind a hole.
    let torn = 2 * u64::from(io.media.space.geometry.pages_per_program);
    let is_hole = pages.range(number + torn..).any(|(_, &(_, kind))| kind == Kind::Journal);
    if staged_from.is_some_and(|staged| number < staged) || staged_from.is_none() && is_hole {
        return Err(damaged(&format!("page {number} of its journal is missing")));
    }
    Ok((all, number - first))
}

/// Sets the state of each superblock: the journal's by what lies in it; one that a stream has left is full.
fn settle_superblocks(io: &mut Io<'_>, pages: &Numbered, wanted: Range<u64>) -> Result<(), KvError> {
    let Media { log, flash, space, durable, .. } = &mut *io.media;
    let Space { superblocks, geometry, packing, .. } = space;
    // The journal pages that were read belong to the present life of their superblocks: others could not be read.
    let of_journal_in =
        |state, id| Superblock { generation: flash.generation(id), ..Superblock::new(state, Stream::Journal) };
    let open: Vec<SuperblockId> = log.iter().filter_map(|log| log.superblock).collect();
    let of_journal = |number: u64| pages.get(&number).map(|&(page, _)| geometry.superblock_of(page));
    let wanted: Vec<SuperblockId> = pages.range(wanted).filter_map(|(&number, _)| of_journal(number)).collect();
    for number in 1..geometry.superblocks() {
        let id = SuperblockId(number);
        let Some(superblock) = superblocks.get_mut(id) else { continue };
        let is_open = open.contains(&id);
        if wanted.contains(&id) {
            if superblock.live_grains > 0 {
                return Err(damaged("pages of its journal lie among living records"));
            }
            let state = if is_open { State::Open } else { State::Closed };
            *superblock = of_journal_in(state, id);
        } else if superblock.stream == Stream::Journal && !is_open {
            *superblock = Superblock::new(State::Free, Stream::Journal);
        } else if superblock.state == State::Open && !is_open {
            // What was not written of it is neither padding nor to be written: its blocks may end with a torn unit.
            superblock.state = State::Closed;
            superblock.appended_grains = packing.grains_per_superblock;
        } else if is_open && superblock.state != State::Open {
            *superblock = of_journal_in(State::Open, id);
        }
        // Nothing records whether an erase was completed, not even a close, which leaves the old journal to the next
        // mount.
        if superblock.state == State::Free && durable.planted != Some(PlantedBug::ReusedBlock) {
            superblock.must_erase = true;
        }
    }
    superblocks.list_free();
    Ok(())
}
