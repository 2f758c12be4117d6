//! Operations.

/// One thing a host asks of the store, in record numbers (see [`KeyShape`](super::KeyShape) for the keys).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Get a record.
    Read {
        /// The record.
        record: u64,
    },
    /// Write a record that exists, whole.
    Update {
        /// The record.
        record: u64,
    },
    /// Write a record that does not exist yet.
    Insert {
        /// The record, the lowest number that was never inserted.
        record: u64,
    },
    /// Remove a record, which may be asked for all the same.
    Delete {
        /// The record.
        record: u64,
    },
    /// Get a record, then write it: two commands, the second after the first is answered.
    ReadModifyWrite {
        /// The record.
        record: u64,
    },
    /// Get a record and those that follow it in the order of keys.
    Scan {
        /// The record to begin with.
        record: u64,
        /// The number of records to get, this one included. There may be fewer.
        length: u32,
    },
}

impl Operation {
    /// The record that it is about, or begins with.
    #[must_use]
    pub fn record(self) -> u64 {
        match self {
            Operation::Read { record }
            | Operation::Update { record }
            | Operation::Insert { record }
            | Operation::Delete { record }
            | Operation::ReadModifyWrite { record }
            | Operation::Scan { record, .. } => record,
        }
    }
}
