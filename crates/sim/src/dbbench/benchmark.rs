//! The benchmarks of db_bench.

use kvssd_types::named_enum;

named_enum! {
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
    pub enum DbBenchmark: "benchmark of db_bench" {
        /// Writes all records in order.
        FillSeq = "fillseq",
        /// Writes as many records as there are, at random.
        FillRandom = "fillrandom",
        /// As `FillRandom`, on what is there.
        Overwrite = "overwrite",
        /// Gets.
        ReadRandom = "readrandom",
        /// One long range.
        ReadSeq = "readseq",
        /// Short ranges.
        SeekRandom = "seekrandom",
        /// Gets beside a writer.
        ReadWhileWriting = "readwhilewriting",
        /// Short ranges beside a writer.
        SeekRandomWhileWriting = "seekrandomwhilewriting",
        /// Short ranges beside a writer that deletes, too.
        SeekRandomWhileChanging = "seekrandomwhilechanging",
    }
}

impl DbBenchmark {
    /// Whether its operations write.
    #[must_use]
    pub fn writes(self) -> bool {
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
