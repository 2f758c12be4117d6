//! How a cursor comes to the pages of tables: with the drive to itself, in its time, or beside others who only look.

use super::table::TableId;
use super::tables::{Tables, damaged};
use kvssd_flash::Blob;
use kvssd_ftl::index::Sight;
use kvssd_ftl::{Io, SpentOn};
use kvssd_types::{KvError, Nanos};

/// What a cursor reads tables with.
pub(super) trait TableReader {
    /// What is known of them.
    fn tables(&self) -> &Tables;

    /// Two keys are compared, so often.
    fn compare(&mut self, times: usize);

    /// Has pages at hand, read side by side.
    fn fetch(&mut self, wanted: &[(TableId, usize)]);

    /// Waits until what was read ahead is there.
    fn wait(&mut self, ready: Nanos);

    /// The bytes of a page that is at hand.
    fn content(&mut self, id: TableId, page: usize) -> Result<Blob, KvError>;
}

/// Reads by flash operations, which take virtual time.
pub(super) struct Timed<'t, 'i> {
    pub(super) io: &'t mut Io<'i>,
    pub(super) tables: &'t mut Tables,
}

impl TableReader for Timed<'_, '_> {
    fn tables(&self) -> &Tables {
        self.tables
    }

    fn compare(&mut self, times: usize) {
        self.io.cpu(times as u64 * self.io.costs().comparison_ns);
    }

    fn fetch(&mut self, wanted: &[(TableId, usize)]) {
        self.tables.fetch(self.io, wanted);
    }

    fn wait(&mut self, ready: Nanos) {
        self.io.wait_for_flash(ready, SpentOn::Map);
    }

    fn content(&mut self, id: TableId, page: usize) -> Result<Blob, KvError> {
        self.tables.content(self.io, id, page)
    }
}

/// Looks at pages where they lie: it changes nothing, takes no time, and fails where a page is not to be seen.
pub(super) struct Glancing<'t> {
    pub(super) sight: &'t dyn Sight,
    pub(super) tables: &'t Tables,
}

impl TableReader for Glancing<'_> {
    fn tables(&self) -> &Tables {
        self.tables
    }

    fn compare(&mut self, _times: usize) {}

    fn fetch(&mut self, _wanted: &[(TableId, usize)]) {}

    fn wait(&mut self, _ready: Nanos) {}

    /// An error where the page is not to be seen: the drive then executes the command, which reads it.
    fn content(&mut self, id: TableId, page: usize) -> Result<Blob, KvError> {
        self.tables.seen_content(self.sight, id, page).ok_or_else(|| damaged(id))
    }
}
