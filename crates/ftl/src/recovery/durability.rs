//! What a drive writes for the day when the power goes: the journal, its checkpoints, and the write buffer's memory.
//!
//! | | `protected` | `volatile` | `ignored` |
//! |---|---|---|---|
//! | a change | staged as it happens | gathered | - |
//! | a large record | its full units programmed, the rest staged, where the medium keeps their order (`staging`) | gathered | - |
//! | a journal unit | programmed when it is full | when all that it speaks of is in flash | - |
//! | an erase | at once | when everything is in flash | at once |
//!
//! The journal is written between commands and steps of garbage collection, never within.

use crate::controller::gathered::GatheredBlock;
use crate::io::Io;
use crate::io::spent::SpentOn;
use crate::journal::batch_sequence::BatchSequence;
use crate::journal::clients::SavedClients;
use crate::journal::planted::PlantedBug;
use crate::journal::staging::{Item, LogPosition, encode, encode_before};
use crate::journal::{BatchNote, Change};
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, Stream};
use crate::namespace::{Namespaces, SavedNamespace};
use crate::space::Run;
use crate::space::log::{NewRecord, OpenLog};
use crate::space::placement::LogId;
use crate::space::superblock::{State, Superblock};
use kvssd_flash::checksum::crc32c;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, PowerLoss, SuperblockId};
use kvssd_types::{BLOCK_BYTES, KvError, Nanos};
use serde::{Deserialize, Serialize};

/// Records from this length on may go straight to flash.
const LARGE_BYTES: usize = 16 << 10;

/// Bytes before the content in the first page of a checkpoint: magic, length u64, crc32c u32.
pub(crate) const CHECKPOINT_HEAD_BYTES: usize = 16;
/// What the first page of a checkpoint begins with.
pub(crate) const CHECKPOINT_MAGIC: [u8; 4] = *b"KVcp";

/// What a checkpoint holds: everything in DRAM that is not in flash already.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Nothing will be written behind it: the drive was closed.
    pub(crate) is_last: bool,
    pub(crate) superblocks: Vec<Superblock>,
    pub(crate) validity: Vec<u8>,
    pub(crate) namespaces: Vec<SavedNamespace>,
    pub(crate) clients: SavedClients,
    /// The last batch over several drives that this one has decided. It is encoded behind the others, and only if there is one.
    #[serde(skip)]
    pub(crate) decided: BatchSequence,
}

impl Checkpoint {
    fn encode(&self, before: Vec<u8>) -> Vec<u8> {
        let bytes = postcard::to_extend(self, before).expect("a checkpoint is plain data");
        match self.decided {
            BatchSequence(0) => bytes,
            decided => postcard::to_extend(&decided, bytes).expect("a checkpoint is plain data"),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Checkpoint> {
        let (mut checkpoint, rest) = postcard::take_from_bytes::<Checkpoint>(bytes).ok()?;
        if !rest.is_empty() {
            checkpoint.decided = postcard::from_bytes(rest).ok()?;
        }
        Some(checkpoint)
    }
}

impl Io<'_> {
    /// Notes a change of what the firmware keeps in DRAM, for the journal. Flash may be ahead of the note, never behind
    /// it.
    pub fn note(&mut self, change: Change) {
        let is_lost = match change {
            Change::Moved { .. } => self.media.durable.planted == Some(PlantedBug::LostRelocation),
            Change::Batch(BatchNote::Begun) => self.media.durable.planted == Some(PlantedBug::TornBatch),
            _ => false,
        };
        if self.media.durable.is_on() && !is_lost {
            if self.media.durable.journal.namespace != Some(self.namespace) && change.is_of_namespace() {
                self.media.durable.journal.namespace = Some(self.namespace);
                self.write_down(Change::In { namespace: self.namespace.0 });
            }
            self.write_down(change);
        }
    }

    /// Notes all that `work` notes as one change: a mount makes all of it again, or nothing. It must not be part of another such change.
    ///
    /// # Errors
    /// What `work` answers.
    pub fn note_as_one<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, KvError>) -> Result<T, KvError> {
        self.note(Change::Batch(BatchNote::Begun));
        let given = work(self)?;
        self.note(Change::Batch(BatchNote::Committed));
        Ok(given)
    }

    /// Begins a change that the host may send again, if it is one: it is made together with its number, or not at all.
    pub(crate) fn begin_request(&mut self) {
        if self.request.is_some() {
            self.note(Change::Batch(BatchNote::Begun));
        }
    }

    /// Ends such a change: all of it is made.
    pub(crate) fn end_request(&mut self) {
        if self.request.is_some() {
            self.note_request();
            self.note(Change::Batch(BatchNote::Committed));
        }
    }

    /// Notes that the changes up to [`BatchNote::Committed`] are a client's request, if it may come again.
    pub(crate) fn note_request(&mut self) {
        if let Some(request) = self.request.take()
            && let Some(slot) = self.media.durable.clients.record(request)
        {
            self.note(Change::Request { slot, serial: request.serial });
        }
    }

    fn write_down(&mut self, change: Change) {
        let page_bytes = self.media.space.packing.page_bytes() as usize;
        self.media.durable.journal.gather(&change, page_bytes);
        // When it cannot be staged the power is gone: the next program says so.
        let _ = self.stage(&Item::Changed(change), None);
    }

    /// Notes a change of a stream's superblock, except for the journal's: a mount finds those by their pages.
    pub(crate) fn note_of(&mut self, stream: Stream, change: Change) {
        if stream != Stream::Journal {
            self.note(change);
        }
    }

    /// Puts an item into the write buffer's memory.
    pub(crate) fn stage(&mut self, item: &Item, follows: Option<&Rope>) -> Result<(), KvError> {
        if self.media.durable.power_loss != PowerLoss::Protected {
            return Ok(());
        }
        let nothing = Rope::default();
        let follows = follows.unwrap_or(&nothing);
        let head = encode_before(item, follows.as_ref());
        self.media.durable.staged_bytes += (head.len() + follows.len()) as u64;
        Ok(self.media.flash.backing_mut().stage_record(&head, follows.as_ref(), self.clock)?)
    }

    /// How many of the first bytes of a record, which begins in a log's open page, need not be staged: those that fill units, with the padding
    /// behind the last one. None, unless they are most of the record and the medium keeps the order of what is programmed and staged.
    fn straight_bytes(&mut self, log: LogId, length: usize) -> usize {
        let keeps_order = length >= LARGE_BYTES
            && self.media.durable.power_loss == PowerLoss::Protected
            && self.media.flash.backing().keeps_order();
        if !keeps_order {
            return 0;
        }
        let packing = &self.media.space.packing;
        let page_bytes = packing.page_bytes() as usize;
        let pages = self.media.space.geometry.pages_per_program as usize;
        let open = self.media.log.get(log);
        let room = (pages - open.unit.pages()) * page_bytes - open.data.len();
        let padded = length.next_multiple_of(packing.grain_bytes as usize);
        let units = padded.checked_sub(room).map_or(0, |behind| room + behind - behind % (pages * page_bytes));
        if 2 * units < length { 0 } else { units }
    }

    /// Stages the beginning of a record in a log, with those of its bytes that do not go straight to flash. Returns how many bytes go straight;
    /// [`Io::stage_end`] is due behind them.
    pub(crate) fn stage_begin(
        &mut self,
        log: LogId,
        kind: Kind,
        tag: u64,
        place: Grain,
        bytes: &Rope,
    ) -> Result<usize, KvError> {
        let (stream, namespace) = (log.stream, self.namespace.0);
        let straight = if kind == Kind::Pair { self.straight_bytes(log, bytes.len()) } else { 0 };
        match straight {
            0 => self.stage(&Item::Appended { stream, kind, namespace, tag, place }, Some(bytes))?,
            _ => self.stage(&Item::Begun { stream, kind, namespace, tag, place, bytes: straight as u32 }, None)?,
        }
        Ok(straight)
    }

    /// Stages the bytes behind those that went straight to flash: from here on the record exists.
    pub(crate) fn stage_end(&mut self, place: Grain, bytes: &Rope, straight: usize) -> Result<(), KvError> {
        let mut behind = Rope::default();
        behind.push_shared(bytes.as_ref(), straight.min(bytes.len())..bytes.len());
        self.stage(&Item::Ended(place), Some(&behind))
    }

    /// Programs everything that is gathered, padded to whole units; returns the moment when it is in flash.
    ///
    /// # Errors
    /// [`KvError::Failed`] when the flash fails to take a unit.
    pub(crate) fn flush(&mut self) -> Result<Nanos, KvError> {
        self.flush_records()?;
        self.write_journal(true)?;
        self.flush_stream(Stream::Journal)?;
        if self.media.durable.power_loss == PowerLoss::Protected {
            let position =
                |open: &OpenLog| -> LogPosition { open.superblock.map(|superblock| (superblock, open.page)) };
            let stale = self.media.durable.planted == Some(PlantedBug::StaleSequence);
            let journal_number = self.media.durable.journal.number.saturating_sub(stale.into());
            let (logs, sequence) = (self.media.log.iter().map(position).collect(), self.media.log.sequence);
            let item = Item::Positions { logs, sequence, journal_number };
            let mut bytes = encode(&item, Rope::default().as_ref());
            for (item, part) in self.media.gathered.blocks().flat_map(gathered_items) {
                bytes.extend(encode(&item, part.as_ref()));
            }
            self.media.durable.staged_bytes = bytes.len() as u64;
            self.media.flash.backing_mut().restage(&bytes, self.clock)?;
        }
        Ok(self.media.flash.buffer.drained())
    }

    /// Makes sure that a cut loses nothing of what was done so far; returns the clock when that is so.
    pub(crate) fn make_durable(&mut self) -> Result<Nanos, KvError> {
        if self.media.durable.power_loss == PowerLoss::Volatile {
            let drained = self.flush()?;
            self.wait_until(drained, SpentOn::Buffer);
        }
        Ok(self.settle())
    }

    fn flush_records(&mut self) -> Result<(), KvError> {
        for stream in Stream::RECORDS {
            self.flush_stream(stream)?;
        }
        if self.media.durable.power_loss == PowerLoss::Volatile {
            self.wait_until(self.media.flash.buffer.drained(), SpentOn::Buffer);
        }
        Ok(())
    }

    /// Appends the journal pages that are full, with `all` also the one that is not.
    pub(crate) fn write_journal(&mut self, all: bool) -> Result<(), KvError> {
        while let Some(page) = self.media.durable.journal.next_page(all) {
            self.append_numbered(Kind::Journal, page)?;
            self.media.durable.journal.pages += 1;
        }
        Ok(())
    }

    fn append_numbered(&mut self, kind: Kind, mut page: Vec<u8>) -> Result<(), KvError> {
        let pages_per_program = self.media.space.geometry.pages_per_program as usize;
        let fills_unit =
            self.media.log.get(self.choose_log(Stream::Journal, page.len())).unit.pages() + 1 == pages_per_program;
        if self.media.durable.power_loss == PowerLoss::Volatile && fills_unit {
            self.flush_records()?;
        }
        let page_bytes = self.media.space.packing.page_bytes() as usize;
        page.resize(page_bytes, 0);
        let mut bytes = Rope::default();
        bytes.push_blob(page.into());
        let tag = self.media.durable.journal.number;
        let stream = Stream::Journal;
        let record =
            NewRecord { stream, kind, tag, bytes: &mut bytes, unbroken_bytes: page_bytes, cause: Cause::Journal };
        let place = self.append(record)?;
        self.media.durable.journal.number += 1;
        // Neither journal nor checkpoint is kept by garbage collection.
        self.vacate(place, self.media.space.packing.grains_per_page);
        Ok(())
    }

    /// Between commands and steps: writes what the journal has, ends an overlong write buffer, and tells the medium
    /// that what was done must be safe.
    pub(crate) fn commit_journal(&mut self) -> Result<(), KvError> {
        self.write_journal(false)?;
        self.end_long_staging()?;
        Ok(self.media.flash.backing_mut().commit()?)
    }

    /// The write buffer's memory is bounded: what is in flash need not stay in it.
    fn end_long_staging(&mut self) -> Result<(), KvError> {
        if self.media.durable.staged_bytes > 2 * self.media.controller.write_buffer_bytes {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes a checkpoint and gives up the journal before it. The drive's last checkpoint leaves the old journal to the next
    /// mount, since nothing may happen behind it that the mount would not know. Victims go in as superblocks that are full.
    pub(crate) fn checkpoint(&mut self, namespaces: &mut Namespaces, is_last: bool) -> Result<(), KvError> {
        self.flush()?;
        let before: Vec<SuperblockId> = self.journal_superblocks().collect();
        let kept = self.kept_for_iterators(namespaces);
        let (superblocks, validity) = self.media.space.saved_without(&kept);
        let namespaces = namespaces.save();
        let clients = self.media.durable.clients.save();
        let decided = self.media.durable.decided;
        let checkpoint = Checkpoint { is_last, superblocks, validity, namespaces, clients, decided };
        let bytes = checkpoint.encode(vec![0; CHECKPOINT_HEAD_BYTES]);
        let (first, page_bytes) = (self.media.durable.journal.number, self.media.space.packing.page_bytes() as usize);
        for page in with_head(bytes).chunks(page_bytes) {
            self.append_numbered(Kind::Checkpoint, page.to_vec())?;
            self.end_long_staging()?;
        }
        let drained = self.flush()?;
        self.wait_until(drained, SpentOn::Buffer);
        // A mount that cannot read this checkpoint starts from the one before, and comes here with any namespace: so the
        // next change names its own again.
        self.media.durable.journal.namespace = None;
        self.media.durable.journal.pages = 0;
        self.media.durable.journal.checkpoint_pages = self.media.durable.journal.number - first;
        if is_last {
            return Ok(());
        }
        for superblock in before {
            // One that is open, or was closed by the checkpoint's own pages, goes with the next.
            if self.media.space.superblocks.get(superblock).state == State::Closed {
                let freed = self.clock;
                let erased = self.media.flash.erase(superblock, freed)?;
                self.media.space.superblocks.condemn(superblock);
                self.media.space.superblocks.release(superblock, freed, erased);
                self.note(Change::Erased { superblock });
            }
        }
        Ok(())
    }

    /// The runs of grains that live for iterators alone, each in one superblock: there will be no iterators after a
    /// mount.
    fn kept_for_iterators(&mut self, namespaces: &mut Namespaces) -> Vec<Run> {
        let mut kept: Vec<(Grain, u32)> = self.media.held.look().dead().map(|dead| (dead.place, dead.grains)).collect();
        let ranges = namespaces.iter_mut().filter_map(|namespace| namespace.index.ranges());
        kept.extend(ranges.flat_map(|ranges| ranges.kept_for_cursors()));
        kept.into_iter().filter_map(|(place, grains)| self.media.space.runs_of(place, grains)).flatten().collect()
    }

    /// Writes a checkpoint in place of what was noted since the mount began. If the power goes before the checkpoint is whole, the next mount
    /// finds nothing but pieces of it behind the numbers that this one left out, and begins again.
    pub(crate) fn checkpoint_only(&mut self, namespaces: &mut Namespaces) -> Result<(), KvError> {
        self.flush_records()?;
        self.media.durable.journal.forget();
        self.checkpoint(namespaces, false)
    }

    fn journal_superblocks(&self) -> impl Iterator<Item = SuperblockId> {
        let all = self.media.space.superblocks.all().iter().enumerate();
        all.filter(|(_, superblock)| superblock.stream == Stream::Journal && superblock.state == State::Closed)
            .map(|(number, _)| SuperblockId(number as u32))
    }
}

/// The gathered parts of a block, to be staged anew when the memory begins again.
fn gathered_items(block: &GatheredBlock) -> impl Iterator<Item = (Item, Rope)> {
    let come = block.pieces.iter().enumerate().filter_map(|(number, piece)| Some((number, piece.as_ref()?)));
    come.map(|(number, piece)| {
        let mut part = Rope::default();
        part.push_value(piece);
        let (start, handle) = (number as u32 * BLOCK_BYTES, block.handle.0);
        (Item::Gathered { block: block.number, start, handle }, part)
    })
}

/// The content of a checkpoint behind room for its head, with the head.
fn with_head(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() - CHECKPOINT_HEAD_BYTES) as u64;
    let crc = crc32c(&bytes[CHECKPOINT_HEAD_BYTES..]);
    bytes[..4].copy_from_slice(&CHECKPOINT_MAGIC);
    bytes[4..12].copy_from_slice(&length.to_le_bytes());
    bytes[12..CHECKPOINT_HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The checkpoint whose pages are `bytes`, if it is whole.
pub(crate) fn checkpoint_in(bytes: &[u8]) -> Option<Checkpoint> {
    let (head, rest) = bytes.split_at_checked(CHECKPOINT_HEAD_BYTES)?;
    let crc = u32::from_le_bytes(head[12..].try_into().ok()?);
    let body = rest.get(..content_bytes(head)? as usize)?;
    (crc32c(body) == crc).then(|| Checkpoint::decode(body))?
}

/// How long the content of a checkpoint is whose head the page begins with, if it is one.
pub(crate) fn content_bytes(page: &[u8]) -> Option<u64> {
    let length = page.get(4..12)?.try_into().ok()?;
    (page[..4] == CHECKPOINT_MAGIC).then(|| u64::from_le_bytes(length))
}
