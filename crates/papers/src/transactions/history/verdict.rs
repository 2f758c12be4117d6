//! What the checker found.

use super::graph::Cycle;
use crate::transactions::row::RowId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Something that no serializable engine lets happen. Transactions are named by the number of their attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A committed transaction read what an aborted one wrote (G1a).
    AbortedRead {
        /// Which row.
        row: RowId,
        /// Who read.
        reader: u64,
        /// Who wrote.
        writer: u64,
    },
    /// A committed transaction read what one wrote that never came to an end.
    DirtyRead {
        /// Which row.
        row: RowId,
        /// Who read.
        reader: u64,
        /// Who wrote.
        writer: u64,
    },
    /// A transaction read what its writer changed again (G1b).
    IntermediateRead {
        /// Which row.
        row: RowId,
        /// Who read.
        reader: u64,
        /// Who wrote.
        writer: u64,
    },
    /// Two transactions read the same version and wrote the next one.
    LostUpdate {
        /// Which row.
        row: RowId,
        /// One.
        first: u64,
        /// The other.
        second: u64,
    },
    /// A transaction read a row twice and saw two versions (P2).
    FuzzyRead {
        /// Which row.
        row: RowId,
        /// Who read.
        transaction: u64,
    },
    /// A transaction did not read what it wrote before.
    OwnWriteUnseen {
        /// Which row.
        row: RowId,
        /// Who.
        transaction: u64,
    },
    /// A transaction read the value of another row, or saw a row gone that was there.
    WrongRow {
        /// Which row was asked for.
        row: RowId,
        /// Who read.
        transaction: u64,
    },
}

impl Anomaly {
    /// The name in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Anomaly::AbortedRead { .. } => "aborted read",
            Anomaly::DirtyRead { .. } => "dirty read",
            Anomaly::IntermediateRead { .. } => "intermediate read",
            Anomaly::LostUpdate { .. } => "lost update",
            Anomaly::FuzzyRead { .. } => "fuzzy read",
            Anomaly::OwnWriteUnseen { .. } => "own write unseen",
            Anomaly::WrongRow { .. } => "wrong row",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Anomaly::AbortedRead { row, reader, writer } => {
                write!(f, "T{reader} read of {row} what T{writer} wrote, which aborted")
            }
            Anomaly::DirtyRead { row, reader, writer } => {
                write!(f, "T{reader} read of {row} what T{writer} wrote, which never ended")
            }
            Anomaly::IntermediateRead { row, reader, writer } => {
                write!(f, "T{reader} read of {row} what T{writer} wrote before its last write")
            }
            Anomaly::LostUpdate { row, first, second } => {
                write!(f, "T{first} and T{second} read the same version of {row}, and both wrote the next one")
            }
            Anomaly::FuzzyRead { row, transaction } => write!(f, "T{transaction} saw two versions of {row}"),
            Anomaly::OwnWriteUnseen { row, transaction } => {
                write!(f, "T{transaction} did not see what it wrote to {row}")
            }
            Anomaly::WrongRow { row, transaction } => {
                write!(f, "T{transaction} read of {row} what was never written there")
            }
        }
    }
}

/// What the history is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Committed transactions.
    pub transactions: u64,
    /// Rows that they read before they wrote them, or without.
    pub reads: u64,
    /// Rows that they wrote.
    pub writes: u64,
    /// Edges of the graph.
    pub dependencies: u64,
    /// Versions whose place among those of their row nobody saw.
    pub versions_unordered: u64,
    /// How often each anomaly was found.
    pub anomalies: BTreeMap<&'static str, u64>,
    /// The first of each.
    pub examples: Vec<String>,
    /// A short cycle, if there is one.
    pub cycle: Option<Cycle>,
}

impl Verdict {
    /// Whether the committed transactions did what they would have done one after the other, as far as versions have an order.
    #[must_use]
    pub fn is_serializable(&self) -> bool {
        self.anomalies.is_empty() && self.cycle.is_none()
    }

    pub(super) fn add(&mut self, anomaly: Anomaly) {
        let count = self.anomalies.entry(anomaly.name()).or_default();
        *count += 1;
        if *count == 1 {
            self.examples.push(anomaly.to_string());
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { transactions, dependencies, .. } = self;
        if self.is_serializable() {
            return write!(f, "serializable: {transactions} transactions, {dependencies} dependencies, no cycle");
        }
        write!(f, "not serializable")?;
        for example in &self.examples {
            write!(f, "; {example}")?;
        }
        self.cycle.as_ref().map_or(Ok(()), |cycle| write!(f, "; cycle: {cycle}"))
    }
}
