//! The core workloads of YCSB.

use super::{Chooser, Distribution, Operation};
use kvssd_types::{Random, named_enum};

/// The longest scan in records (YCSB core property `maxscanlength`; lengths are uniform from 1).
const SCAN_LENGTH_MAX: u32 = 100;

named_enum! {
    /// One of YCSB's core workloads (YCSB, workloads/workloada to workloadf).
    ///
    /// | name     | operations                        | records |
    /// |----------|-----------------------------------|---------|
    /// | `ycsb-a` | 50% read, 50% update              | zipfian |
    /// | `ycsb-b` | 95% read, 5% update               | zipfian |
    /// | `ycsb-c` | read                              | zipfian |
    /// | `ycsb-d` | 95% read, 5% insert               | latest  |
    /// | `ycsb-e` | 95% scan of 1 to 100, 5% insert   | zipfian |
    /// | `ycsb-f` | 50% read, 50% read-modify-write   | zipfian |
    ///
    /// The table of the Plus paper calls D "95% read 5% update (latest)". Here the 5% are inserts, as YCSB has them.
    pub enum YcsbCore: "YCSB workload" {
        /// Update heavy.
        A = "ycsb-a",
        /// Read mostly.
        B = "ycsb-b",
        /// Read only.
        C = "ycsb-c",
        /// Read latest.
        D = "ycsb-d",
        /// Short ranges.
        E = "ycsb-e",
        /// Read, modify, write.
        F = "ycsb-f",
    }
}

/// Of a hundred operations of a workload, those that write, and those that scan. The others read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Updates of a record that is there.
    pub(crate) updates: u64,
    /// Stores of one that was not.
    pub(crate) inserts: u64,
    /// Reads of a record with an update of it behind them.
    pub(crate) modifies: u64,
    /// Ranges.
    pub(crate) scans: u64,
}

impl YcsbCore {
    /// Whether it stores keys that were not there.
    #[must_use]
    pub fn inserts(self) -> bool {
        self.shares().inserts > 0
    }

    /// Whether it goes along ranges.
    #[must_use]
    pub fn scans(self) -> bool {
        self.shares().scans > 0
    }

    /// Whether it overwrites pairs that are there, also after it has read them.
    #[must_use]
    pub fn updates(self) -> bool {
        self.shares().updates + self.shares().modifies > 0
    }

    /// The distribution of requests that YCSB gives the workload.
    #[must_use]
    pub fn default_distribution(self) -> Distribution {
        match self {
            YcsbCore::D => Distribution::Latest,
            _ => Distribution::Zipfian,
        }
    }

    /// What it consists of.
    pub(crate) fn shares(self) -> Shares {
        let reads = Shares { updates: 0, inserts: 0, modifies: 0, scans: 0 };
        match self {
            YcsbCore::A => Shares { updates: 50, ..reads },
            YcsbCore::B => Shares { updates: 5, ..reads },
            YcsbCore::C => reads,
            YcsbCore::D => Shares { inserts: 5, ..reads },
            YcsbCore::E => Shares { inserts: 5, scans: 95, ..reads },
            YcsbCore::F => Shares { modifies: 50, ..reads },
        }
    }
}

/// The operations of a core workload on a store that was loaded with some records.
#[derive(Clone, Debug)]
pub struct Ycsb {
    core: YcsbCore,
    chooser: Chooser,
    records_now: u64,
}

impl Ycsb {
    /// The workload `core` on a store of `records` records, with its own or another `distribution`.
    ///
    /// `operations` is how many are going to be asked for. It decides how much room a zipfian leaves for inserts: twice
    /// the number expected (YCSB, CoreWorkload.java, `init`). There may be more.
    ///
    /// # Panics
    /// When `records` is zero.
    #[must_use]
    pub fn new(core: YcsbCore, distribution: Option<Distribution>, records: u64, operations: u64) -> Self {
        let distribution = distribution.unwrap_or(core.default_distribution());
        let inserts_expected = operations.saturating_mul(2 * core.shares().inserts) / 100;
        let records_expected = match distribution {
            Distribution::Zipfian => records.saturating_add(inserts_expected),
            Distribution::Uniform | Distribution::Sequential | Distribution::Latest => records,
        };
        Ycsb { core, chooser: Chooser::new(distribution, records_expected), records_now: records }
    }

    /// The same, where those that are popular under a zipfian law are those that were loaded first.
    #[must_use]
    pub fn unscattered(self) -> Self {
        Ycsb { chooser: self.chooser.unscattered(), ..self }
    }

    /// The number of records, those inserted included: the next insert is of this number.
    #[must_use]
    pub fn records_now(&self) -> u64 {
        self.records_now
    }

    /// The next operation. An inserted record can be asked for from the next operation on.
    pub fn next(&mut self, random: &mut Random) -> Operation {
        let Shares { updates, inserts, modifies, scans } = self.core.shares();
        let drawn = random.below(100);
        if drawn < inserts {
            self.insert()
        } else if drawn < inserts + updates {
            Operation::Update { record: self.choose(random) }
        } else if drawn < inserts + updates + modifies {
            Operation::ReadModifyWrite { record: self.choose(random) }
        } else if drawn < inserts + updates + modifies + scans {
            let record = self.choose(random);
            Operation::Scan { record, length: 1 + random.below(u64::from(SCAN_LENGTH_MAX)) as u32 }
        } else {
            Operation::Read { record: self.choose(random) }
        }
    }

    fn insert(&mut self) -> Operation {
        let record = self.records_now;
        self.records_now += 1;
        Operation::Insert { record }
    }

    fn choose(&mut self, random: &mut Random) -> u64 {
        self.chooser.next(self.records_now, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RECORDS: u64 = 1000;
    const OPERATIONS: u64 = 100_000;

    fn operations(core: YcsbCore, distribution: Option<Distribution>, mut random: Random) -> Vec<Operation> {
        let mut ycsb = Ycsb::new(core, distribution, RECORDS, OPERATIONS);
        (0..OPERATIONS).map(|_| ycsb.next(&mut random)).collect()
    }

    /// Reads, updates, inserts, read-modify-writes and scans, in hundredths.
    fn percents(operations: &[Operation]) -> [f64; 5] {
        let mut percents = [0.0; 5];
        for operation in operations {
            let kind = match operation {
                Operation::Read { .. } => 0,
                Operation::Update { .. } => 1,
                Operation::Insert { .. } => 2,
                Operation::ReadModifyWrite { .. } => 3,
                Operation::Scan { .. } => 4,
                Operation::Delete { .. } => panic!("YCSB deletes nothing"),
            };
            percents[kind] += 100.0 / operations.len() as f64;
        }
        percents
    }

    #[test]
    fn names_read_back_and_wrong_ones_are_told_the_choices() {
        for core in YcsbCore::ALL {
            assert_eq!(core.to_string().parse(), Ok(core));
        }
        let message = "a".parse::<YcsbCore>().unwrap_err().to_string();
        assert!(YcsbCore::ALL.iter().all(|core| message.contains(core.name())), "{message}");
    }

    #[test]
    fn proportions_are_those_of_ycsb() {
        let expected = [
            (YcsbCore::A, [50.0, 50.0, 0.0, 0.0, 0.0]),
            (YcsbCore::B, [95.0, 5.0, 0.0, 0.0, 0.0]),
            (YcsbCore::C, [100.0, 0.0, 0.0, 0.0, 0.0]),
            (YcsbCore::D, [95.0, 0.0, 5.0, 0.0, 0.0]),
            (YcsbCore::E, [0.0, 0.0, 5.0, 0.0, 95.0]),
            (YcsbCore::F, [50.0, 0.0, 0.0, 50.0, 0.0]),
        ];
        for (core, expected) in expected {
            let percents = percents(&operations(core, None, Random::new(1)));
            for (percent, expected) in percents.into_iter().zip(expected) {
                let tolerance = 5.0 * (expected * (100.0 - expected) / OPERATIONS as f64).sqrt() + 1e-6;
                assert!((percent - expected).abs() < tolerance, "{core}: {percent} and {expected}");
            }
        }
    }

    #[test]
    fn scan_lengths_are_uniform_from_1_to_100() {
        let mut counts = [0.0; 101];
        for operation in operations(YcsbCore::E, None, Random::new(2)) {
            if let Operation::Scan { length, .. } = operation {
                counts[length as usize] += 1.0;
            }
        }
        let expected = counts.iter().sum::<f64>() / 100.0;
        assert_eq!(counts[0], 0.0);
        let chi_square: f64 = counts[1..].iter().map(|count| (count - expected).powi(2) / expected).sum();
        assert!(chi_square < 99.0 + 5.0 * (2.0 * 99.0f64).sqrt(), "{chi_square}");
    }

    #[test]
    fn the_distribution_is_that_of_the_workload_or_the_one_asked_for() {
        // The share of the most popular distance from the newest, and of the most popular record.
        let tops = |core, distribution| {
            let mut ycsb = Ycsb::new(core, distribution, RECORDS, OPERATIONS);
            let mut random = Random::new(4);
            let (mut ages, mut records) = (vec![0u32; 20_000], vec![0u32; 20_000]);
            for _ in 0..OPERATIONS {
                if let Operation::Read { record } | Operation::Scan { record, .. } = ycsb.next(&mut random) {
                    ages[(ycsb.records_now() - 1 - record) as usize] += 1;
                    records[record as usize] += 1;
                }
            }
            (ages[0], records.into_iter().max().unwrap())
        };
        let (newest, _) = tops(YcsbCore::D, None);
        assert!(newest > 8_000, "{newest}");
        let (newest, top) = tops(YcsbCore::C, None);
        assert!(newest < 1_000 && top > 3_500, "{newest}, {top}");
        let (newest, top) = tops(YcsbCore::D, Some(Distribution::Uniform));
        assert!(newest < 200 && top < 1_000, "{newest}, {top}");
    }

    #[test]
    fn a_seed_names_one_stream_and_threads_differ() {
        for core in YcsbCore::ALL {
            let first = operations(core, None, Random::stream(9, 0));
            assert_eq!(first, operations(core, None, Random::stream(9, 0)));
            assert_ne!(first, operations(core, None, Random::stream(9, 1)));
        }
    }

    proptest! {
        #[test]
        fn inserts_come_in_order_and_all_else_exists(
            seed: u64, core in 0usize..6, which in 0usize..5, records in 1u64..2000
        ) {
            let distribution = Distribution::ALL.get(which).copied();
            let mut ycsb = Ycsb::new(YcsbCore::ALL[core], distribution, records, 300);
            let mut random = Random::new(seed);
            let mut records_now = records;
            for _ in 0..300 {
                match ycsb.next(&mut random) {
                    Operation::Insert { record } => {
                        prop_assert_eq!(record, records_now);
                        records_now += 1;
                    }
                    Operation::Delete { .. } => prop_assert!(false, "YCSB deletes nothing"),
                    Operation::Read { record }
                    | Operation::Update { record }
                    | Operation::ReadModifyWrite { record }
                    | Operation::Scan { record, .. } => prop_assert!(record < records_now),
                }
                prop_assert_eq!(ycsb.records_now(), records_now);
            }
        }
    }
}
