//! The heads of records that are known ([`Heads`](crate::controller::heads::Heads)), by the place that a record has now.

use super::Io;
use crate::controller::heads::Record;
use crate::io::media::Media;
use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use kvssd_types::Key;

impl Io<'_> {
    /// A pair was appended.
    pub(crate) fn note_head(&mut self, place: Grain, key: Key<'_>, value_bytes: u32) {
        if self.media.heads.is_on() {
            let record = self.record_at(place);
            let Media { heads, flash, .. } = &mut *self.media;
            heads.note(record, key, value_bytes, flash.backing());
        }
    }

    /// A pair was copied to another place.
    pub(crate) fn move_head(&mut self, from: Grain, to: Grain) {
        if self.media.heads.is_on() {
            let (before, after) = (self.record_at(from), self.record_at(to));
            self.media.heads.copy(before, after);
            self.media.heads.forget(from);
        }
    }

    /// The head of the record at a place, if it is known to be the key's.
    pub(crate) fn known_head(&mut self, place: Grain, key: Key<'_>) -> Option<RecordHead> {
        if !self.media.heads.is_on() {
            return None;
        }
        let record = self.record_at(place);
        self.media.heads.find(record, key)
    }

    fn record_at(&self, place: Grain) -> Record {
        Record { place, generation: self.media.generation_of(place) }
    }
}
