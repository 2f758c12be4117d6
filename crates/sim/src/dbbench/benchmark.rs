//! The benchmarks of db_bench.

use crate::error::SimError;
use std::fmt;
use std::str::FromStr;

/// One of db_bench's benchmarks (RocksDB, tools/db_bench_tool.cc).
///
/// | name | each operation |
/// |---|---|
/// | `fillseq` | writes the next record, in the order of keys |
/// | `fillrandom`, `overwrite` | writes a record at random |
/// | `readrandom` | gets a record at random, which may not be there |
/// | `readseq` | the next pair of an iterator over everything |
/// | `seekrandom` | an iterator, sent to a record at random, and so many pairs behind it |
/// | `readwhilewriting`, `seekrandomwhilewriting` | the same while another thread writes records at random |
/// | `seekrandomwhilechanging` | the same while it deletes one of four, too (not db_bench's) |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbBenchmark {
    /// Writes all records in order.
    FillSeq,
    /// Writes as many records as there are, at random.
    FillRandom,
    /// As `FillRandom`, on what is there.
    Overwrite,
    /// Gets.
    ReadRandom,
    /// One long range.
    ReadSeq,
    /// Short ranges.
    SeekRandom,
    /// Gets beside a writer.
    ReadWhileWriting,
    /// Short ranges beside a writer.
    SeekRandomWhileWriting,
    /// Short ranges beside a writer that deletes, too.
    SeekRandomWhileChanging,
}

impl DbBenchmark {
    /// All of them.
    pub const ALL: [DbBenchmark; 9] = [
        DbBenchmark::FillSeq,
        DbBenchmark::FillRandom,
        DbBenchmark::Overwrite,
        DbBenchmark::ReadRandom,
        DbBenchmark::ReadSeq,
        DbBenchmark::SeekRandom,
        DbBenchmark::ReadWhileWriting,
        DbBenchmark::SeekRandomWhileWriting,
        DbBenchmark::SeekRandomWhileChanging,
    ];

    /// The name a user types.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DbBenchmark::FillSeq => "fillseq",
            DbBenchmark::FillRandom => "fillrandom",
            DbBenchmark::Overwrite => "overwrite",
            DbBenchmark::ReadRandom => "readrandom",
            DbBenchmark::ReadSeq => "readseq",
            DbBenchmark::SeekRandom => "seekrandom",
            DbBenchmark::ReadWhileWriting => "readwhilewriting",
            DbBenchmark::SeekRandomWhileWriting => "seekrandomwhilewriting",
            DbBenchmark::SeekRandomWhileChanging => "seekrandomwhilechanging",
        }
    }

    /// Whether its operations write.
    pub(super) fn writes(self) -> bool {
        matches!(self, DbBenchmark::FillSeq | DbBenchmark::FillRandom | DbBenchmark::Overwrite)
    }

    /// Whether its operations go along ranges.
    pub(super) fn seeks(self) -> bool {
        matches!(
            self,
            DbBenchmark::ReadSeq
                | DbBenchmark::SeekRandom
                | DbBenchmark::SeekRandomWhileWriting
                | DbBenchmark::SeekRandomWhileChanging
        )
    }

    /// Of how many changes by a thread of its own one is a delete, if there is such a thread: 0 for none.
    pub(super) fn changes_beside(self) -> Option<u64> {
        match self {
            DbBenchmark::ReadWhileWriting | DbBenchmark::SeekRandomWhileWriting => Some(0),
            DbBenchmark::SeekRandomWhileChanging => Some(4),
            _ => None,
        }
    }
}

impl fmt::Display for DbBenchmark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for DbBenchmark {
    type Err = SimError;

    fn from_str(name: &str) -> Result<Self, SimError> {
        DbBenchmark::ALL.into_iter().find(|benchmark| benchmark.name() == name).ok_or_else(|| {
            let names = DbBenchmark::ALL.map(DbBenchmark::name).join(", ");
            SimError::Setup(format!("db_bench has no benchmark {name:?} here (there are: {names})"))
        })
    }
}
