//! KVbench's workloads: what its ini files say (OpenMPDK KVbench, `bench_config.ini`), for a drive of ours.
//!
//! ```text
//!   [document]    ndocs                       pairs
//!   [population]  pop_first, nthreads         insert them, measured | not measured; by so many threads
//!   [threads]     readers, writers, deleters  threads of the run, and its mix when no ratios are given
//!   [kvs]         queue_depth, write_mode     commands of a thread under way; 1 when the mode is sync
//!   [key_length]  distribution = fixed | uniform | normal                fixed_size; lower_bound, upper_bound;
//!   [body_length] distribution = fixed | uniform | normal | ratio        median, standard_deviation;
//!                                                                        value_size = 512,4096 value_size_ratio = 60:40
//!   [operation]   read_write_insert_delete = 50:50:0:0      hundredths; a write is an update
//!                 batch_distribution = uniform | zipfian | sequential
//!                 nops | nbatches | duration, warmingup     operations, or seconds of virtual time
//! ```
//!
//! Defaults are KVbench's, except for threads of the population, which are one (KVbench: two for each core of the machine).
//!
//! What differs from KVbench: seconds are those of the simulated drive. Operations are drawn one by one, not in batches of neighbours.
//! `sequential` is ours: the records one after the other, in the order in which they were inserted, round and round. Zipfian is the
//! laboratory's, scattered with theta 0.99; another exponent (`batch_parameter1`) is refused. Keys are hashed numbers of their
//! length; prefixes and key files are not known, so that `seq_fill` makes no difference. With `pop_first = false`, where KVbench takes
//! what the device holds, the pairs are filled in without being measured. Iterators are refused. Keys of the file that are about
//! other stores, logs or memory are passed over.

mod ini;

use super::{Chooser, Distribution, KeyShape, Lengths, Operation, ValueSizes, WorkloadError};
use ini::Ini;
use kvssd_types::{KEY_BYTES_MAX, Random, VALUE_BYTES_MAX};

/// A workload that an ini file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvBench {
    /// Pairs that are inserted first.
    pub records: u64,
    /// Whether inserting them is measured.
    pub is_population_measured: bool,
    /// Threads that insert them.
    pub population_threads: u32,
    /// Threads of the run.
    pub threads: u32,
    /// Commands of a thread that are under way at once.
    pub queue_depth: u32,
    /// Lengths of keys in bytes.
    pub key_lengths: Lengths,
    /// Sizes of values in bytes.
    pub value_sizes: Lengths,
    /// Which records are asked for.
    pub distribution: Distribution,
    /// Which operations.
    pub percents: Percents,
    /// How long the run is.
    pub length: RunLength,
    /// Seconds of the run before it is measured.
    pub warmup_seconds: u32,
}

/// Of a hundred operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percents {
    pub reads: u32,
    pub updates: u32,
    pub inserts: u32,
    pub deletes: u32,
}

impl Percents {
    /// Reads alone.
    pub const READS: Percents = Percents { reads: 100, updates: 0, inserts: 0, deletes: 0 };
    /// Updates alone.
    pub const UPDATES: Percents = Percents { reads: 0, updates: 100, ..Percents::READS };
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// So many operations.
    Operations(u64),
    /// So many seconds of virtual time.
    Seconds(u32),
}

impl KvBench {
    /// The same with another run: all else decides the drive before it.
    #[must_use]
    pub(crate) fn population(&self) -> KvBench {
        KvBench {
            is_population_measured: false,
            threads: 1,
            distribution: Distribution::Uniform,
            percents: Percents::READS,
            length: RunLength::Operations(0),
            warmup_seconds: 0,
            ..self.clone()
        }
    }

    /// Reads the text of an ini file.
    ///
    /// # Errors
    /// [`WorkloadError::KvBench`], with the line, for what cannot be or is not known here.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let ini = Ini::parse(text)?;
        refuse_what_is_not_known(&ini)?;
        let (percents, threads) = mix(&ini)?;
        let is_sync = ini.letter("kvs", "write_mode", 's') == 's';
        let queue_depth = if is_sync { 1 } else { positive(&ini, "kvs", "queue_depth", 8)? };
        Ok(KvBench {
            records: positive(&ini, "document", "ndocs", 10_000)?.into(),
            is_population_measured: ini.letter("population", "pop_first", 't') == 't',
            population_threads: positive(&ini, "population", "nthreads", 1)?,
            threads,
            queue_depth,
            key_lengths: key_lengths(&ini)?,
            value_sizes: value_sizes(&ini)?,
            distribution: distribution(&ini)?,
            percents,
            length: run_length(&ini)?,
            warmup_seconds: ini.number("operation", "warmingup", 0)?,
        })
    }

    /// The keys.
    ///
    /// # Errors
    /// When a key cannot have one of the lengths.
    pub fn keys(&self, seed: u64) -> Result<KeyShape, WorkloadError> {
        KeyShape::varied(self.key_lengths, seed)
    }

    /// The sizes of the values.
    ///
    /// # Errors
    /// When a value cannot have one of the sizes.
    pub fn sizes(&self, seed: u64) -> Result<ValueSizes, WorkloadError> {
        ValueSizes::varied(self.value_sizes, seed)
    }

    /// The operations of the run on a store of `records` records, of which there will be `records_max` in the end.
    #[must_use]
    pub fn operations(&self, records: u64, records_max: u64) -> KvBenchOperations {
        KvBenchOperations {
            percents: self.percents,
            chooser: Chooser::new(self.distribution, records_max),
            records_now: records,
        }
    }
}

/// Draws the operations of a run.
#[derive(Clone, Debug)]
pub struct KvBenchOperations {
    percents: Percents,
    chooser: Chooser,
    records_now: u64,
}

impl KvBenchOperations {
    /// Draws an operation. Inserts take the numbers that follow; records that were deleted are asked for like all others.
    pub fn next(&mut self, random: &mut Random) -> Operation {
        let Percents { reads, updates, inserts, .. } = self.percents;
        let draw = random.below(100) as u32;
        if (reads + updates..reads + updates + inserts).contains(&draw) {
            self.records_now += 1;
            return Operation::Insert { record: self.records_now - 1 };
        }
        let record = self.chooser.next(self.records_now, random);
        match draw {
            draw if draw < reads => Operation::Read { record },
            draw if draw < reads + updates => Operation::Update { record },
            _ => Operation::Delete { record },
        }
    }
}

fn positive(ini: &Ini<'_>, section: &str, key: &str, otherwise: u32) -> Result<u32, WorkloadError> {
    match ini.number(section, key, otherwise)? {
        0 => Err(ini.wrong(section, key, "is above 0")),
        number => Ok(number),
    }
}

fn refuse_what_is_not_known(ini: &Ini<'_>) -> Result<(), WorkloadError> {
    if !ini.text("document", "key_file", "").is_empty() {
        return Err(ini.wrong("document", "key_file", "must be empty here: keys are made from numbers"));
    }
    if ini.text("document", "amp_factor", "1").parse() != Ok(1.0) {
        return Err(ini.wrong("document", "amp_factor", "must be 1 here: only what was inserted is asked for"));
    }
    if ini.letter("kvs", "with_iterator", 'f') != 'f' {
        return Err(ini.wrong("kvs", "with_iterator", "must be false here"));
    }
    if ini.number("threads", "iterators", 0)? > 0 {
        return Err(ini.wrong("threads", "iterators", "must be 0 here"));
    }
    Ok(())
}

/// The operations, and the number of threads.
fn mix(ini: &Ini<'_>) -> Result<(Percents, u32), WorkloadError> {
    const KEY: [&str; 2] = ["operation", "read_write_insert_delete"];
    let [readers, writers, deleters] =
        [("readers", 0), ("writers", 0), ("deleters", 0)].map(|(key, otherwise)| ini.number("threads", key, otherwise));
    let (readers, writers, deleters) = (u64::from(readers?), u64::from(writers?), u64::from(deleters?));
    let threads = readers + writers + deleters;
    if threads == 0 || threads > 1 << 16 {
        return Err(ini.wrong("threads", "readers", "with writers and deleters is 1 to 65536 threads"));
    }
    let given = ini.numbers(KEY[0], KEY[1], ':')?.unwrap_or_else(|| vec![0; 4]);
    let [reads, updates, inserts, deletes] =
        given[..].try_into().map_err(|_| ini.wrong(KEY[0], KEY[1], "has four shares, such as 50:50:0:0"))?;
    let percents = match given.iter().map(|&percent| u64::from(percent)).sum() {
        100u64 => Percents { reads, updates, inserts, deletes },
        // Threads that all do what they can share the drive's time about evenly.
        0 => {
            let share = |count: u64| (count * 100 / threads) as u32;
            let (updates, deletes) = (share(writers), share(deleters));
            Percents { reads: 100 - updates - deletes, updates, inserts: 0, deletes }
        }
        _ => return Err(ini.wrong(KEY[0], KEY[1], "has shares that are 100 or 0 together")),
    };
    Ok((percents, threads as u32))
}

fn key_lengths(ini: &Ini<'_>) -> Result<Lengths, WorkloadError> {
    const SECTION: &str = "key_length";
    let lengths = match ini.letter(SECTION, "distribution", 'n') {
        'n' => {
            let (median, deviation) =
                (ini.number(SECTION, "median", 64)?, ini.number(SECTION, "standard_deviation", 8)?);
            Lengths::normal(median, deviation, 4, KEY_BYTES_MAX as u32)
        }
        'u' => Lengths::uniform(ini.number(SECTION, "lower_bound", 32)?, ini.number(SECTION, "upper_bound", 96)?)
            .map_err(|_| ini.wrong(SECTION, "lower_bound", "is not above upper_bound"))?,
        'f' => Lengths::fixed(ini.number(SECTION, "fixed_size", 16)?),
        _ => return Err(ini.wrong(SECTION, "distribution", "is fixed, uniform or normal")),
    };
    if lengths.bytes_min() == 0 || lengths.bytes_max() as usize > KEY_BYTES_MAX {
        return Err(ini.wrong(SECTION, "distribution", "leads to keys of 1 to 255 bytes"));
    }
    Ok(lengths)
}

fn value_sizes(ini: &Ini<'_>) -> Result<Lengths, WorkloadError> {
    const SECTION: &str = "body_length";
    let lengths = match ini.letter(SECTION, "distribution", 'n') {
        'n' => {
            let median = ini.number(SECTION, "median", 512)?;
            Lengths::normal(median, ini.number(SECTION, "standard_deviation", 32)?, 0, VALUE_BYTES_MAX as u32)
        }
        'u' => Lengths::uniform(ini.number(SECTION, "lower_bound", 448)?, ini.number(SECTION, "upper_bound", 576)?)
            .map_err(|_| ini.wrong(SECTION, "lower_bound", "is not above upper_bound"))?,
        'f' => Lengths::fixed(ini.number(SECTION, "fixed_size", 512)?),
        'r' => {
            let sizes = ini.numbers(SECTION, "value_size", ',')?.unwrap_or_else(|| vec![4096]);
            let percents = ini.numbers(SECTION, "value_size_ratio", ':')?.unwrap_or_else(|| vec![100]);
            Lengths::mix(&sizes, &percents)
                .map_err(|_| ini.wrong(SECTION, "value_size_ratio", "has a share for each value_size, 100 together"))?
        }
        _ => return Err(ini.wrong(SECTION, "distribution", "is fixed, ratio, uniform or normal")),
    };
    if lengths.bytes_max() as usize > VALUE_BYTES_MAX {
        return Err(ini.wrong(SECTION, "distribution", "leads to values of at most 2 MiB"));
    }
    Ok(lengths)
}

fn distribution(ini: &Ini<'_>) -> Result<Distribution, WorkloadError> {
    const SECTION: &str = "operation";
    match ini.letter(SECTION, "batch_distribution", 'u') {
        'u' => Ok(Distribution::Uniform),
        's' => Ok(Distribution::Sequential),
        'z' => {
            let exponent: Option<f64> = ini.text(SECTION, "batch_parameter1", "1").parse().ok();
            if exponent.is_some_and(|exponent| (0.95..=1.05).contains(&exponent)) {
                Ok(Distribution::Zipfian)
            } else {
                Err(ini.wrong(SECTION, "batch_parameter1", "must be about 1 here: the zipfian law has theta 0.99"))
            }
        }
        _ => Err(ini.wrong(SECTION, "batch_distribution", "is uniform, zipfian or sequential")),
    }
}

fn run_length(ini: &Ini<'_>) -> Result<RunLength, WorkloadError> {
    const SECTION: &str = "operation";
    let count = |key| ini.number(SECTION, key, 0);
    Ok(match (count("nops")?, count("nbatches")?, count("duration")?) {
        (0, 0, 0) => RunLength::Seconds(60),
        (0, 0, seconds) => RunLength::Seconds(seconds),
        (0, batches, _) => RunLength::Operations(batches.into()),
        (operations, ..) => RunLength::Operations(operations.into()),
    })
}

#[cfg(test)]
mod tests;
