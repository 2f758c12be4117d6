//! Records are appended to logs; pages and units that are full are programmed.

use super::Io;
use crate::io::media::Media;
use crate::io::spent::SpentOn;
use crate::journal::Change;
use crate::journal::staging::Item;
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, Stream};
use crate::space::Space;
use crate::space::log::NewRecord;
use crate::space::placement::LogId;
use crate::space::validity::Spill;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Blob, Cause, Emulator, PageAddress};
use kvssd_types::KvError;

impl Io<'_> {
    /// Appends a record of the index itself to the map log, where it lies in one page. Garbage collection asks the index about it by `number`.
    /// Returns its first grain. Its grains live.
    ///
    /// # Errors
    /// [`KvError::Failed`] when the flash fails to take a unit.
    #[inline]
    pub fn append_own(&mut self, number: u64, bytes: Blob) -> Result<Grain, KvError> {
        let mut record = Rope::default();
        record.push_blob(bytes);
        self.append(NewRecord {
            stream: Stream::Map,
            kind: Kind::Section,
            tag: number,
            unbroken_bytes: record.len(),
            bytes: &mut record,
            cause: self.index_cause(),
        })
    }

    /// Puts a record into the log; returns its first grain. Its grains live.
    ///
    /// # Errors
    /// As [`Io::append_own`].
    pub(crate) fn append(&mut self, record: NewRecord<'_>) -> Result<Grain, KvError> {
        let NewRecord { stream, kind, tag, bytes, unbroken_bytes, cause } = record;
        self.cpu(self.media.controller.costs.append_ns);
        let page_bytes = self.media.space.packing.page_bytes() as usize;
        let grain_bytes = self.media.space.packing.grain_bytes as usize;
        let log = self.choose_log(stream, bytes.len());
        if self.media.log.get(log).must_turn_page(kind, unbroken_bytes, page_bytes) {
            self.stage(&Item::Turned(log), None)?;
            self.turn_page(log)?;
        }
        self.open(log, false)?;
        let packing = self.media.space.packing;
        let place = self.media.log.get_mut(log).begin(&packing, kind, (self.namespace, tag), cause);
        let length = bytes.len();
        let straight = self.stage_begin(log, kind, tag, place, bytes)?;
        let copies = self.media.flash.backing().copies();
        let mut done = 0;
        while done < length {
            self.open(log, done > 0)?;
            let open = self.media.log.get_mut(log);
            if done > 0 {
                open.oob.kind = kind;
                open.oob.continues = Some(place);
                open.cause = cause;
            }
            let count = (page_bytes - open.data.len()).min(length - done);
            if count == length {
                open.data.push_rope(bytes);
            } else if copies {
                open.data.push_shared(bytes.as_ref(), done..done + count);
            } else {
                open.data.push_slice(bytes.as_ref(), done..done + count);
            }
            done += count;
            let padding = open.data.len().next_multiple_of(grain_bytes) - open.data.len();
            open.data.push_zeros(padding);
            if open.data.len() == page_bytes {
                self.turn_page(log)?;
            }
        }
        if straight > 0 {
            self.stage_end(place, bytes, straight)?;
        }
        self.occupy(place, packing.grains_of(length));
        Ok(place)
    }

    /// The log that takes a record of so many bytes.
    pub(crate) fn choose_log(&self, stream: Stream, bytes: usize) -> LogId {
        let Media { log, space, .. } = &*self.media;
        log.placement
            .choose(stream, self.namespace, self.handle, space.superblocks.free(), |log| self.media.room_of(log, bytes))
    }

    /// Writes a page of invalid mappings.
    pub(crate) fn write_spill(&mut self, spill: Spill) -> Result<(), KvError> {
        let mut bytes = Rope::default();
        bytes.push_blob(spill.bytes);
        let place = self.append(NewRecord {
            stream: Stream::User,
            kind: Kind::InvalidMappings,
            tag: spill.superblock.0.into(),
            unbroken_bytes: bytes.len(),
            bytes: &mut bytes,
            cause: Cause::InvalidMappings,
        })?;
        self.media.space.validity.spilled(spill.superblock, place);
        self.note(Change::Spilled { superblock: spill.superblock, place });
        Ok(())
    }

    /// Programs everything that a stream has gathered, padded to whole units.
    ///
    /// # Errors
    /// [`KvError::Failed`] when the flash fails to take a unit.
    pub(crate) fn flush_stream(&mut self, stream: Stream) -> Result<(), KvError> {
        for log in self.media.log.of(stream) {
            while {
                let open = self.media.log.get(log);
                !open.data.is_empty() || open.unit.pages() > 0
            } {
                self.open(log, false)?;
                self.stage(&Item::Turned(log), None)?;
                self.turn_page(log)?;
            }
        }
        Ok(())
    }

    /// Makes sure that a log has a page to write to, and its unit a slot of the write buffer. `within` says that a record
    /// continues into the superblock that is opened.
    fn open(&mut self, log: LogId, within: bool) -> Result<(), KvError> {
        if self.media.log.get(log).superblock.is_none() {
            self.open_superblock(log, within)?;
        }
        let Media { log: logs, flash, .. } = &mut *self.media;
        let next = logs.sequence + 1;
        let open = logs.get_mut(log);
        open.slot_since = match open.buffered {
            true => flash.buffer.exchange(open.slot_since, self.clock),
            false => flash.buffer.take(self.clock),
        };
        open.buffered = true;
        let since = open.slot_since.max(self.clock);
        open.since = open.since.max(since);
        self.wait_until(since, SpentOn::Buffer);
        let Media { log: logs, .. } = &mut *self.media;
        let open = logs.get_mut(log);
        if open.data.is_empty() && open.oob.entries.is_empty() {
            open.oob.sequence = next;
            logs.sequence = next;
        }
        Ok(())
    }

    fn open_superblock(&mut self, log: LogId, within: bool) -> Result<(), KvError> {
        let stream = log.stream;
        let Media { log: logs, flash, space, .. } = &mut *self.media;
        let Space { superblocks, geometry, victims, .. } = space;
        let target = logs.target_of(log);
        if victims.policy().erase_spread_max().is_some() {
            superblocks.bring_forward(target, |superblock| flash.superblock_erases(superblock));
        }
        let open = logs.get_mut(log);
        let (superblock, mut erased, must_erase) =
            superblocks.open(stream, target).ok_or_else(|| KvError::Failed("no superblock is free".to_owned()))?;
        if must_erase {
            erased = flash.erase(superblock, self.clock)?;
        }
        let before = within.then(|| geometry.superblock_of(open.page));
        if let Some(before) = before {
            superblocks.link(before, superblock);
        }
        open.superblock = Some(superblock);
        open.erased = erased;
        open.page = geometry.first_page(superblock);
        if self.media.durable.is_on() {
            // A cut must not find it in use and half erased.
            self.wait_until(erased, SpentOn::Buffer);
        }
        let generation = self.media.flash.generation(superblock);
        self.media.space.superblocks.set_generation(superblock, generation);
        if stream == Stream::User {
            self.media.held.get_mut().opened(superblock);
        }
        self.note_of(stream, Change::Opened { stream, superblock, within: before, generation });
        let by_default = LogId { stream, number: target };
        let item = if log == by_default { Item::Opened(stream, superblock) } else { Item::OpenedBy(log, superblock) };
        self.stage(&item, None)
    }

    /// Finishes a log's open page; programs its unit when that was the last page of it.
    fn turn_page(&mut self, log: LogId) -> Result<(), KvError> {
        if self.media.log.get(log).data.is_empty() {
            self.skip_page(log);
        }
        let Media { log: logs, space, .. } = &mut *self.media;
        let geometry = space.geometry;
        let unit_is_full = logs.turn_page(log, &geometry);
        let page = logs.get(log).page;
        if unit_is_full {
            self.program(log, page)?;
        }
        let Media { log: logs, space, .. } = &mut *self.media;
        let open = logs.get_mut(log);
        if !geometry.ends_superblock(page) {
            open.page.0 += 1;
        } else if let Some(superblock) = open.superblock.take() {
            space.superblocks.close(superblock, logs.sequence);
            self.note_of(log.stream, Change::Closed { superblock });
        }
        Ok(())
    }

    /// The open page will be programmed without a record: all of it counts as given to dead records.
    fn skip_page(&mut self, log: LogId) {
        let Media { log: logs, space, .. } = &mut *self.media;
        let superblock = space.geometry.superblock_of(logs.get(log).page);
        space.superblocks.add_appended(superblock, space.packing.grains_per_page.into());
        if log.stream == Stream::Journal {
            self.media.durable.journal.pages += 1;
        }
        self.note_of(log.stream, Change::Skipped { superblock });
    }

    fn program(&mut self, log: LogId, last: PageAddress) -> Result<(), KvError> {
        self.settle();
        let Media { log: logs, flash, space, .. } = &mut *self.media;
        logs.placement.turn(log.stream);
        let open = logs.get_mut(log);
        // A clock that is ahead may have appended the last record.
        let at = open.unit_since.iter().fold(self.clock.max(open.erased), |last, &since| last.max(since));
        let done = flash.program(space.geometry.unit_of(last), open.unit.finish(), &open.causes, at)?;
        open.causes.clear();
        open.unit_since.clear();
        open.buffered = false;
        if self.waits_for_program_of(log.stream) {
            self.wait_until(done, SpentOn::Buffer);
        }
        Ok(())
    }

    fn waits_for_program_of(&self, stream: Stream) -> bool {
        let Emulator { evictions_wait, stores_wait, .. } = self.media.controller.emulator;
        let waits = (stream == Stream::Map && evictions_wait) || (stream == Stream::User && stores_wait);
        waits && !self.background
    }
}
