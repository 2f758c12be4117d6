//! The order in which bytes reach the file, so that whatever a crash leaves can be mounted.
//!
//! What holds when `commit` has returned, and how:
//!
//! | | without `sync`: the process may be killed | with `sync`: the machine may stop |
//! |---|---|---|
//! | staged | written | durable |
//! | programmed | written, pages before the entry | so are those that no staged bytes can bring back |
//! | entry | written, in the order of the programs, before what was staged behind them | written when pages and staged bytes before it are durable |
//! | erased | as an entry | durable before anything later is written |
//! | restaged | written, then the old half is marked | programs and entries durable, then written, durable, marked |
//!
//! So a crash leaves the state after some prefix of the calls, plus pages that no entry names. For a drive that stages nothing,
//! it leaves the state at some virtual time: an operation that was issued after another had ended is not there without it. The
//! design relies on the system to write a sector completely or not at all.
//!
//! A commit that has one wait for the disk may be begun and ended, with other calls between, other such commits among them: it promises what was
//! called before it began. Entries are written behind it if nothing was written meanwhile, and by a later commit otherwise.

use super::ImageBacking;
use super::error::{ImageError, ImageFault};
use super::layout::MAGIC;
use crate::backing::BegunCommit;
use crate::codec::{self, PageIdentity};
use crate::rope::RopeRef;
use crate::{BlockAddress, PageAddress, Span, UnitAddress, UnitImage};

impl ImageBacking {
    /// Writes what was gathered, after the erases that came before it.
    pub(super) fn write_staged(&mut self) -> Result<(), ImageError> {
        if self.staging.is_gathered() {
            self.settle_erases()?;
            if !self.sync {
                self.write_entries()?;
            }
            self.staging.write(&mut self.disk, self.sync)?;
            self.has_loose_bytes = true;
        }
        Ok(())
    }

    /// Makes erases durable, before anything is written that relies on them.
    fn settle_erases(&mut self) -> Result<(), ImageError> {
        if self.has_loose_erases {
            self.write_entries()?;
            self.make_durable()?;
            self.has_loose_erases = false;
        }
        Ok(())
    }

    fn write_entries(&mut self) -> Result<(), ImageError> {
        self.has_loose_entries |= self.table.write(&mut self.disk)?;
        Ok(())
    }

    /// Makes durable what is on file.
    fn make_durable(&mut self) -> Result<(), ImageError> {
        if self.sync && (self.has_loose_bytes || self.has_loose_entries) {
            self.disk.sync()?;
            self.staging.synced();
        }
        self.has_loose_bytes = false;
        self.has_loose_entries = false;
        Ok(())
    }

    /// Makes everything so far durable, in an order in which nothing names data that is not there.
    fn settle(&mut self) -> Result<(), ImageError> {
        self.write_staged()?;
        if self.has_loose_bytes {
            self.make_durable()?;
        }
        self.write_entries()?;
        self.make_durable()?;
        self.has_loose_erases = false;
        self.loose_program_ends = None;
        Ok(())
    }

    pub(super) fn try_program(&mut self, unit: UnitAddress, content: &UnitImage, span: Span) -> Result<(), ImageError> {
        if self.loose_program_ends.is_some_and(|end| span.issued >= end) {
            self.settle()?;
        }
        self.write_staged()?;
        self.settle_erases()?;
        let geometry = &self.layout.geometry;
        let first = PageAddress(unit.0 * geometry.pages_per_program);
        let (block, row) = geometry.block_of(unit);
        let erases = self.table.get(geometry.block_index(block)).erases;
        let page_bytes = geometry.page_bytes as usize + geometry.oob_bytes as usize;
        self.bytes.resize(content.pages() * page_bytes, 0);
        for (index, bytes) in self.bytes.chunks_exact_mut(page_bytes).enumerate() {
            let page = PageAddress(first.0 + index as u32);
            // The table of blocks rejects a read of an erased page, so this is early enough.
            self.opened.forget(page);
            codec::encode_to(geometry, PageIdentity { page, erases }, content.page(index), bytes);
        }
        self.disk.write(self.layout.page_at(first), &self.bytes, "pages")?;
        if self.keeps_written {
            for (index, bytes) in self.bytes.chunks_exact(page_bytes).enumerate() {
                self.opened.keep(PageAddress(first.0 + index as u32), bytes, content.page(index).oob.len());
            }
        }
        self.has_loose_bytes = true;
        let number = geometry.block_index(block);
        if !self.sync && !self.table.is_behind_all(number) {
            self.write_entries()?;
        }
        self.table.programmed(number, row);
        if self.sync && self.staging.is_empty() {
            self.loose_program_ends = Some(self.loose_program_ends.map_or(span.end, |end| end.min(span.end)));
        }
        Ok(())
    }

    pub(super) fn try_erase(&mut self, block: BlockAddress) -> Result<(), ImageError> {
        self.disk.check()?;
        // Erases that follow each other need not wait for each other.
        if !self.has_loose_erases || self.staging.is_gathered() {
            self.settle()?;
        }
        let geometry = self.layout.geometry;
        self.table.erased(geometry.block_index(block));
        if self.sync {
            self.has_loose_erases = true;
            return Ok(());
        }
        self.write_entries()
    }

    pub(super) fn try_commit(&mut self) -> Result<(), ImageError> {
        // An image that is only read has nothing to commit, and a mount of it may say so.
        if self.disk.is_read_only() {
            return Ok(());
        }
        self.disk.check()?;
        if self.is_new {
            return self.finish();
        }
        if self.loose_program_ends.is_some() {
            return self.settle();
        }
        self.write_staged()?;
        if self.has_loose_bytes {
            self.make_durable()?;
        }
        self.write_entries()
    }

    /// Writes what a commit makes safe, and gives what waits for the disk; none where the order asks for more than one wait, or for none.
    pub(super) fn try_begin_commit(&mut self) -> Result<Option<BegunCommit>, ImageError> {
        self.disk.check()?;
        if !self.sync || self.is_new || self.loose_program_ends.is_some() {
            return Ok(None);
        }
        self.write_staged()?;
        if !self.has_loose_bytes {
            return Ok(None);
        }
        let begun = |(disk, writes)| BegunCommit { disk, writes, staged: self.staging.written() };
        Ok(self.disk.begin_sync().map(begun))
    }

    /// Ends the commit whose wait is over. If nothing was written meanwhile, it is as if it had not waited beside others; entries of pages
    /// that were have to wait for a later commit. Whether there is nothing more to commit.
    pub(super) fn try_end_commit(&mut self, begun: &BegunCommit) -> Result<bool, ImageError> {
        self.disk.check()?;
        self.disk.end_sync(begun.writes);
        self.staging.synced_to(begun.staged);
        let is_all = self.disk.is_synced() && !self.staging.is_gathered();
        if is_all {
            self.try_commit()?;
        }
        Ok(is_all)
    }

    /// Makes the file an image that can be opened.
    fn finish(&mut self) -> Result<(), ImageError> {
        self.settle()?;
        self.disk.write(0, &MAGIC, "the header")?;
        self.is_new = false;
        if self.sync {
            self.disk.sync()?;
            self.disk.sync_name()?;
        }
        Ok(())
    }

    pub(super) fn try_stage(&mut self, head: &[u8], follows: RopeRef<'_>) -> Result<(), ImageError> {
        self.disk.check()?;
        self.staging.gather(head, follows).map_err(|wanted| self.disk.fail(no_room(wanted, self.layout.staging_bytes)))
    }

    pub(super) fn try_restage(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        self.disk.check()?;
        if bytes.len() as u64 > self.layout.staging_bytes {
            return Err(self.disk.fail(no_room(bytes.len() as u64, self.layout.staging_bytes)));
        }
        self.settle()?;
        self.staging.replace(&mut self.disk, bytes, self.sync)
    }
}

/// The fault that more is staged than there is room for.
fn no_room(wanted_bytes: u64, staging_bytes: u64) -> ImageFault {
    let why = format!("{wanted_bytes} bytes would be staged, and it was created with room for {staging_bytes}");
    ImageFault::Failed { what: "keep the write buffer".to_owned(), why }
}
