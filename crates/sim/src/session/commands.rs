//! The commands that a record takes: by its key, or, on a block drive, by its blocks.
//!
//! ```text
//!   record 7   key drive     key 7 -> value
//!              block drive   from byte 7 x (the largest value, in whole blocks) on, in whole blocks
//! ```

use super::Session;
use kvssd_types::{BLOCK_BYTES, Command, Key, Pattern, PlacementHandle, StoreCondition, Value};

impl Session {
    /// Writes the value that `record` must have now.
    pub(super) fn write_command<'k>(&self, record: u64, key: Key<'k>) -> Command<'k> {
        let value = Value::Pattern(self.pattern(record));
        if self.takes_keys() {
            Command::Store { key, value, condition: StoreCondition::Always }
        } else {
            Command::Write { offset_bytes: self.offset_bytes(record), value, handle: PlacementHandle::DEFAULT }
        }
    }

    /// Reads the value of `record`.
    pub(super) fn read_command<'k>(&self, record: u64, key: Key<'k>) -> Command<'k> {
        if self.takes_keys() {
            // A host brings a buffer for the largest value.
            Command::Retrieve { key, offset_bytes: 0, length_bytes: self.sizes.bytes_max() }
        } else {
            Command::Read { offset_bytes: self.offset_bytes(record), length_bytes: self.pattern(record).length }
        }
    }

    /// `pattern` as the drive takes it.
    pub(super) fn whole(&self, pattern: Pattern) -> Pattern {
        if self.takes_keys() {
            return pattern;
        }
        Pattern { length: pattern.length.max(1).next_multiple_of(BLOCK_BYTES), ..pattern }
    }

    fn offset_bytes(&self, record: u64) -> u64 {
        record * u64::from(self.sizes.bytes_max().max(1).next_multiple_of(BLOCK_BYTES))
    }

    fn takes_keys(&self) -> bool {
        self.setup.bed.design.takes_keys()
    }
}
