//! A drive in a file: the array, the table of its blocks and the write buffer's memory, all of which outlive the
//! process. An image has one part, or several that are worked on side by side: each is an array by itself, and lies in the file as an
//! image of one part does, part after part.
//!
//! ```text
//!   0            header_bytes      staging_offset                      pages_offset                      file_bytes
//!   +------------+-----------------+----------------+------------------+--------+--------+-----------------+
//!   | header     | table of blocks | staging half 0 | staging half 1   | page 0 | page 1 | ...             |
//!   +------------+-----------------+----------------+------------------+--------+--------+-----------------+
//!     regions begin at multiples of 4096, with zeros before them; page p begins at
//!     pages_offset + p * (page_bytes + oob_bytes)
//!
//!   file      part i begins at i * file_bytes; where there are several, file_bytes is a multiple of 2 MiB, and offsets are those in the part
//!
//!   header    0  magic, 8 bytes: "KVSSDimg"; while it is created "KVSSDnew"
//!             8  format version u32: 3, or 4 of several parts        12  header_bytes u32
//!            16  crc32c u32 of the header's bytes 0 to 15 and 64 to its end
//!            20  who has the lock, not under the CRC: process u32 (0: nobody), 40 bytes of its name, zeros behind it
//!            64  channels u32, dies_per_channel u32, blocks_per_die u32, pages_per_block u32, pages_per_program u32,
//!                page_bytes u32, oob_bytes u32, superblock_dies u32
//!            96  staging_bytes u64, table_offset u64 (= header_bytes), staging_offset u64, half_bytes u64,
//!                pages_offset u64, file_bytes u64
//!           144  bytes of the description u32     148  description, UTF-8, and zeros to header_bytes
//!                version 4: 148  number of the part u32, parts u32, number of the image u64     164  description ...
//!
//!   entry     0  units_programmed u32     4  erases u32     of block superblock * dies + die; 16 bytes each
//!             8  0 u32                   12  crc32c u32 of the block's number u64 and the bytes 0 to 11
//!
//!   chunk     0  crc32c u32 of all that follows     4  n u32     8  epoch u64     16  sure bytes u64
//!            24  n bytes that were staged; the next chunk begins at the next multiple of 8
//!
//!   page      as in `codec`: its checksum covers its address and the erases of its block
//! ```
//!
//! Little endian. The chunks of a half are those from its start on whose CRC is right and that have the epoch of the
//! first; the half with the higher epoch counts. A half whose first head has n = 2^32 - 1 has been superseded by the
//! epoch in that head. The first `sure bytes` of a half were safe when the chunk was written: if chunks among them are
//! not whole, it is damage. half_bytes is staging_bytes and a quarter of them, rounded up to a multiple of 4096, and
//! 4096 more. Erasing a block leaves its bytes; its entry
//! says that they are none, and no later entry will make them pages again.
//!
//! The parts of an image have the same numbers and the same description; who has the lock stands in the first. The number of the image is
//! drawn when it is created, so that a part of another one is told from its own. An image is finished when all parts are.
//!
//! What is safe when, and in what order bytes are written for that: `order`.
//!
//! What it does not do: understand descriptions and staged bytes, or batch commits of several commands.

mod disk;
mod error;
mod files;
mod layout;
mod opened;
mod order;
mod parts;
mod staging;
mod system_files;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod torn_copies;
mod versions;
mod window;

pub use disk::DISK_WAITS_MAX;
pub use error::{ImageError, ImageFault};
pub use files::{Files, RawFile, Syncer};
pub use layout::is_image;
pub use system_files::SystemFiles;

use crate::backing::BegunCommit;
use crate::codec::{self, PageIdentity};
use crate::rope::{Rope, RopeRef};
use crate::{
    Backing, BlockAddress, BlockState, Geometry, MediaError, PageAddress, PageView, Span, UnitAddress, UnitImage,
};
use disk::Disk;
use kvssd_types::Nanos;
use layout::Layout;
use opened::OpenedPages;
use staging::Staging;
use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::ops::Range;
use std::path::Path;
use table::Table;

/// Eighths of the memory for pages that the firmware may have for the heads of records. An estimate: a page that is not kept costs a read where
/// somebody asks for its pairs, and a head one where somebody replaces its pair; a page has 30 of 100 B.
const HEADS_EIGHTHS: u64 = 3;

/// The most runs of pages that are remembered until they are asked for: those of a record of 2 MiB, and as many more.
const WANTED_MAX: usize = 128;

/// How an image is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Whether all room is taken at once, so that no later write finds the disk full. Otherwise each write takes its room.
    pub preallocate: bool,
    /// Bytes that can be staged: what the write buffer holds, what it may run over by, and the heads of its items. At
    /// most 1 GiB; the file has two and a half times as much for them.
    pub staging_bytes: u64,
    /// As in [`OpenOptions`].
    pub sync: bool,
    /// As in [`OpenOptions`].
    pub cache_bytes: u64,
}

/// How an image is worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether commits outlive the machine. Otherwise they outlive the process.
    pub sync: bool,
    /// Whether nothing is written, and others may read at the same time.
    pub read_only: bool,
    /// Pages that are kept in memory, read or written, in bytes. The firmware takes some of them for what it knows of pairs. 0 keeps the last
    /// 64 that were read, and none that are written.
    pub cache_bytes: u64,
}

/// The array over an image file, or over a part of one. One process at a time, or several that only read.
#[derive(Debug)]
pub struct ImageBacking {
    disk: Disk,
    layout: Layout,
    description: String,
    table: Table,
    staging: Staging,
    sync: bool,
    /// Whether it has not been committed since it was created.
    is_new: bool,
    /// Pages and staged bytes were written that are not durable.
    has_loose_bytes: bool,
    /// Entries were written that are not durable.
    has_loose_entries: bool,
    /// Erases that must be durable before anything is written.
    has_loose_erases: bool,
    /// The earliest end of the loose programs that no staged bytes can bring back.
    loose_program_ends: Option<Nanos>,
    opened: OpenedPages,
    /// Whether pages that are written are kept in memory.
    keeps_written: bool,
    /// See [`Backing::heads_bytes`].
    heads_bytes: u64,
    /// Runs of pages that will be asked for.
    wanted: VecDeque<Range<u32>>,
    /// The page that was asked for last, and whether it followed the page asked for before.
    asked: (PageAddress, bool),
    /// Room for a unit that is written.
    bytes: Vec<u8>,
}

impl ImageBacking {
    fn new(
        mut disk: Disk,
        layout: Layout,
        description: String,
        (table, staging): (Table, Staging),
        sync: bool,
        cache_bytes: u64,
    ) -> Self {
        if !sync && !disk.is_read_only() {
            disk.file.prepare_staging(layout.staging_offset, 2 * layout.half_bytes);
        }
        let geometry = &layout.geometry;
        let pages_bytes = geometry.pages() * u64::from(geometry.page_bytes + geometry.oob_bytes);
        let heads_bytes = if disk.is_read_only() { 0 } else { cache_bytes.min(pages_bytes) / 8 * HEADS_EIGHTHS };
        ImageBacking {
            opened: OpenedPages::new(&layout.geometry, cache_bytes),
            keeps_written: cache_bytes > 0,
            heads_bytes,
            wanted: VecDeque::new(),
            asked: (PageAddress(0), false),
            disk,
            layout,
            description,
            table,
            staging,
            sync,
            is_new: false,
            has_loose_bytes: false,
            has_loose_entries: false,
            has_loose_erases: false,
            loose_program_ends: None,
            bytes: Vec::new(),
        }
    }

    /// How the array is divided.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.layout.geometry
    }

    /// The description that the image was created with.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// Bytes that can be staged.
    #[must_use]
    pub fn staging_bytes(&self) -> u64 {
        self.layout.staging_bytes
    }

    /// Which part of the image it is, and how many there are.
    #[must_use]
    pub fn part(&self) -> (u32, u32) {
        (self.layout.part.number, self.layout.part.parts)
    }

    /// The byte of the file that a page begins at.
    #[must_use]
    pub fn offset_of(&self, page: PageAddress) -> u64 {
        self.layout.begin() + self.layout.page_at(page)
    }

    fn is_programmed(&self, page: PageAddress) -> bool {
        let geometry = &self.layout.geometry;
        let (block, row) = geometry.block_of(geometry.unit_of(page));
        row < self.table.get(geometry.block_index(block)).units_programmed
    }

    fn erases_of(&self, page: PageAddress) -> u32 {
        let geometry = &self.layout.geometry;
        self.table.get(geometry.block_index(geometry.block_of(geometry.unit_of(page)).0)).erases
    }

    /// The number of wanted pages from this one to the end of its run, which is then forgotten.
    fn pages_wanted(&mut self, page: PageAddress) -> Option<u32> {
        let number = self.wanted.iter().position(|run| run.contains(&page.0))?;
        self.wanted.remove(number).map(|run| run.end - page.0)
    }

    /// Reads a page into the cache, with up to `pages` of its unit. Damage to the others is found when they are asked for.
    fn open_pages(&mut self, first: PageAddress, pages: u32) -> Result<(), MediaError> {
        let mut places: Vec<IoSliceMut<'_>> = self.opened.places(first, pages).map(IoSliceMut::new).collect();
        let pages = places.len() as u32;
        self.disk.read_each(self.layout.page_at(first), &mut places, "pages")?;
        let erases = self.erases_of(first);
        for page in (first.0 + 1..first.0 + pages).map(PageAddress) {
            let _ = self.opened.open(PageIdentity { page, erases });
        }
        self.opened.open(PageIdentity { page: first, erases }).map_err(|why| MediaError::Damaged { page: first, why })
    }
}

impl Backing for ImageBacking {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError> {
        Ok(self.try_program(unit, &content, span)?)
    }

    fn copies(&self) -> bool {
        true
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        if !self.is_programmed(page) {
            return Err(MediaError::Damaged { page, why: "it was never written" });
        }
        let (before, has_run_on) = self.asked;
        if self.opened.holds(page) {
            if page != before {
                self.opened.ask_again(page);
            }
        } else {
            let pages = self.pages_wanted(page).unwrap_or_else(|| {
                // If the last record ran on into a second page, this one probably does too, and asking twice costs more than reading on.
                let left = self.layout.geometry.pages_per_program - page.0 % self.layout.geometry.pages_per_program;
                if has_run_on { left.min(2) } else { 1 }
            });
            self.open_pages(page, pages)?;
        }
        if page != before {
            self.asked = (page, page.0 == before.0.wrapping_add(1));
        }
        Ok(self.opened.get(page).expect("it was opened just now"))
    }

    fn heads_bytes(&self) -> u64 {
        self.heads_bytes
    }

    fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        let geometry = &self.layout.geometry;
        let (block, row) = geometry.block_of(geometry.unit_of(page));
        let BlockState { units_programmed, erases } = self.block(block);
        let read = |place: &mut [u8]| self.disk.read(self.layout.page_at(page), place, "pages").is_ok();
        row < units_programmed && self.opened.look(PageIdentity { page, erases }, read, see)
    }

    fn bring(&self, first: PageAddress, pages: u32) {
        let read =
            |places: &mut [IoSliceMut<'_>]| self.disk.read_each(self.layout.page_at(first), places, "pages").is_ok();
        self.opened.bring(PageIdentity { page: first, erases: self.erases_of(first) }, pages, read);
    }

    fn give_up(&self) -> u64 {
        if self.keeps_written { self.opened.give_up() } else { 0 }
    }

    fn warm(&self, places: &[(PageAddress, usize)]) {
        self.opened.warm(places);
    }

    fn let_go(&mut self, page: PageAddress) {
        self.opened.forget(page);
    }

    /// They are read when one of them is asked for.
    fn fetch(&mut self, first: PageAddress, pages: u32) {
        if pages > 1 {
            if self.wanted.len() == WANTED_MAX {
                self.wanted.pop_front();
            }
            self.wanted.push_back(first.0..first.0 + pages);
        }
    }

    fn read_through(&mut self, first: PageAddress, out: &mut [u8], is_wanted: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let Geometry { page_bytes, oob_bytes, .. } = self.layout.geometry;
        let pages = first.0..first.0 + out.len() as u32 / page_bytes;
        if !self.is_programmed(first) || pages.clone().any(|page| self.opened.holds(PageAddress(page))) {
            return false;
        }
        self.pages_wanted(first);
        self.bytes.resize(pages.len() * oob_bytes as usize, 0);
        let areas = out.chunks_exact_mut(page_bytes as usize).zip(self.bytes.chunks_exact_mut(oob_bytes as usize));
        let mut places: Vec<IoSliceMut<'_>> =
            areas.flat_map(|(data, oob)| [IoSliceMut::new(data), IoSliceMut::new(oob)]).collect();
        if self.disk.read_each(self.layout.page_at(first), &mut places, "pages").is_err() {
            return false;
        }
        let erases = self.erases_of(first);
        let areas = out.chunks_exact(page_bytes as usize).zip(self.bytes.chunks_exact(oob_bytes as usize));
        pages.zip(areas).all(|(page, (data, oob))| {
            let identity = PageIdentity { page: PageAddress(page), erases };
            codec::verify_areas(identity, data, oob).is_ok_and(&mut *is_wanted)
        })
    }

    fn origin(&mut self, page: PageAddress) -> Option<PageIdentity> {
        let geometry = self.layout.geometry;
        let mut bytes = vec![0; geometry.page_bytes as usize + geometry.oob_bytes as usize];
        self.disk.read(self.layout.page_at(page), &mut bytes, "pages").ok()?;
        let erases = |block| self.table.get(geometry.block_index(block)).erases;
        codec::origin(&geometry, &bytes, codec::suspects(&geometry, page, erases))
    }

    fn erase(&mut self, block: BlockAddress, _span: Span) -> Result<(), MediaError> {
        Ok(self.try_erase(block)?)
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        self.table.get(self.layout.geometry.block_index(block))
    }

    fn stage(&mut self, bytes: &[u8], _at: Nanos) -> Result<(), MediaError> {
        Ok(self.try_stage(bytes, Rope::default().as_ref())?)
    }

    fn stage_record(&mut self, head: &[u8], follows: RopeRef<'_>, _at: Nanos) -> Result<(), MediaError> {
        Ok(self.try_stage(head, follows)?)
    }

    /// If a process is killed, all its writes are in the file. If the machine stops, sectors reach the disk in any order.
    fn keeps_order(&self) -> bool {
        !self.sync
    }

    fn restage(&mut self, bytes: &[u8], _at: Nanos) -> Result<(), MediaError> {
        Ok(self.try_restage(bytes)?)
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        if !self.disk.is_read_only() {
            self.write_staged()?;
        }
        Ok(self.staging.read(&self.disk)?)
    }

    fn staging_note(&self) -> Option<&str> {
        self.disk.file.staging_note()
    }

    fn begin_commit(&mut self) -> Result<Option<BegunCommit>, MediaError> {
        Ok(self.try_begin_commit()?)
    }

    fn end_commit(&mut self, begun: BegunCommit) -> Result<bool, MediaError> {
        Ok(self.try_end_commit(&begun)?)
    }

    fn commit(&mut self) -> Result<(), MediaError> {
        Ok(self.try_commit()?)
    }
}

/// As if the process were killed: what was not committed may be lost. Only the note of the holder is removed.
impl Drop for ImageBacking {
    fn drop(&mut self) {
        if !self.disk.is_read_only() {
            self.disk.clear_holder();
        }
    }
}
