//! Insertions into record tables that fail (rhik.4, rhik.5): hopscotch with 32 slots from a record's home, in tables of 32 KiB.

use super::drawn;
use crate::claims::{Claim, Verdict};
use kvssd_designs::{RecordTable, Signature};
use kvssd_ftl::Grain;
use kvssd_ftl::index::SectionForm;
use kvssd_measure::Figure;
use kvssd_types::{Key, Random};

const PAGE_BYTES: u32 = 32_768;
const SIGNATURE_BITS: u32 = 64;
/// How full tables are tried to be, in per cent of their records, up to which an attempt counts to a band.
const STEPS: [usize; 6] = [60, 70, 80, 90, 95, 100];
/// Tables of random signatures (rhik.4).
const TABLES: u32 = 50;
/// log2 of the tables that keys of each size fill (rhik.5): as many as a directory of that depth has.
const DIRECTORY_BITS: u32 = 10;
const KEY_BYTES: [usize; 4] = [16, 32, 64, 128];
/// Two sizes differ when their shares do by more than so many standard errors. With six pairs of sizes in two bands, chance alone
/// makes that of one experiment in two hundred.
const STANDARD_ERRORS_MAX: f64 = 3.5;

/// A table that is filled, and how many attempts there were and failed in each band.
struct Trial {
    table: kvssd_flash::Blob,
    attempts: usize,
    tried: [u32; STEPS.len()],
    failed: [u32; STEPS.len()],
}

impl Trial {
    fn new(form: &RecordTable) -> Self {
        Trial { table: form.empty(), attempts: 0, tried: [0; STEPS.len()], failed: [0; STEPS.len()] }
    }

    /// Whether it had as many attempts as it has room for records.
    fn is_over(&self, form: &RecordTable) -> bool {
        self.attempts == form.records()
    }

    fn insert(&mut self, form: &RecordTable, signature: Signature) {
        self.attempts += 1;
        let is_within = |step: &usize| self.attempts * 100 <= form.records() * step;
        let band = STEPS.iter().position(is_within).unwrap_or(STEPS.len() - 1);
        self.tried[band] += 1;
        self.failed[band] += u32::from(!form.insert(&mut self.table, signature, Grain(1)));
    }

    fn share(&self, band: usize) -> f64 {
        f64::from(self.failed[band]) / f64::from(self.tried[band].max(1))
    }
}

/// The mean of a share over many tables, and its standard error: failures of one table depend on each other, so that tables are counted
/// and not attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    mean: f64,
    error: f64,
}

impl Share {
    fn of(trials: &[Trial], band: usize) -> Self {
        let count = trials.len() as f64;
        let mean = trials.iter().map(|trial| trial.share(band)).sum::<f64>() / count;
        let squares: f64 = trials.iter().map(|trial| (trial.share(band) - mean).powi(2)).sum();
        Share { mean, error: (squares / (count - 1.0) / count).sqrt() }
    }

    /// How many standard errors of the difference lie between two of them.
    fn distance(self, other: Share) -> f64 {
        let error = self.error.hypot(other.error);
        if error == 0.0 { 0.0 } else { (self.mean - other.mean).abs() / error }
    }
}

/// Insertions that fail by how full tables are, with random signatures.
pub(super) fn by_occupancy(seed: u64) -> (Claim, Figure) {
    let form = RecordTable::new(PAGE_BYTES, SIGNATURE_BITS);
    let mut random = Random::new(seed);
    let mut filled = || {
        let mut trial = Trial::new(&form);
        while !trial.is_over(&form) {
            trial.insert(&form, random.below(u64::MAX));
        }
        trial
    };
    let trials: Vec<Trial> = (0..TABLES).map(|_| filled()).collect();
    let share = |band: usize| 100.0 * Share::of(&trials, band).mean;
    let shown: Vec<String> = (0..6).map(|band| format!("to {} % {:.2} %", STEPS[band], share(band))).collect();
    let below = share(0).max(share(1)).max(share(2));
    let rises = |band: usize| below < 1.0 && share(band) > 10.0 * below.max(0.1);
    let verdict = match (rises(3), rises(4) || rises(5)) {
        (true, true) => Verdict::Reproduced,
        // It rises, and later than at 80 %.
        (false, true) => Verdict::Direction,
        _ => Verdict::NotReproduced,
    };
    let bands: Vec<(String, f64)> =
        STEPS.iter().enumerate().map(|(band, step)| (format!("{step} %"), share(band) / 100.0)).collect();
    let claim = Claim::new("rhik.4", shown.join(", "), verdict, "tables of 32 KiB pages, by the code".to_owned());
    (claim, drawn::failures_by_occupancy(&bands))
}

/// Fills the tables of a directory with keys of `key_bytes`, each table with as many as it has room for. The keys are decimal numbers with
/// noughts before them: only their last bytes differ, which asks the most of the hash.
fn fill_with_keys(form: &RecordTable, key_bytes: usize, directory_bits: u32, seed: u64) -> Vec<Trial> {
    let tables = 1 << directory_bits;
    let mut trials: Vec<Trial> = (0..tables).map(|_| Trial::new(form)).collect();
    let mut open = tables;
    // Other seeds, other numbers: none comes twice within one.
    let mut number = Random::new(seed).below(1 << 40);
    while open > 0 {
        let digits = format!("{number:0key_bytes$}");
        let key = Key::new(digits.as_bytes()).expect("a key has 1 to 255 bytes");
        let signature = form.signature_of(key);
        // As the directory chooses: by the low bits.
        let trial = &mut trials[(signature % tables as u64) as usize];
        number += 1;
        if !trial.is_over(form) {
            trial.insert(form, signature);
            open -= usize::from(trial.is_over(form));
        }
    }
    trials
}

/// Insertions that fail by the size of keys, which the index's own hash makes signatures of.
pub(super) fn by_key_size(seed: u64) -> (Claim, Figure) {
    let form = RecordTable::new(PAGE_BYTES, SIGNATURE_BITS);
    let shares: Vec<[Share; STEPS.len()]> = KEY_BYTES
        .iter()
        .map(|&key_bytes| fill_with_keys(&form, key_bytes, DIRECTORY_BITS, seed))
        .map(|trials| std::array::from_fn(|band| Share::of(&trials, band)))
        .collect();
    let shown: Vec<String> = KEY_BYTES
        .iter()
        .zip(&shares)
        .map(|(key_bytes, shares)| {
            let [below, near, full] = [3, 4, 5].map(|band: usize| 100.0 * shares[band].mean);
            format!("{key_bytes} B {below:.2}, {near:.2}, {full:.2} %")
        })
        .collect();
    let distance = farthest(&shares);
    let error = shares.iter().map(|shares| shares[4].error.max(shares[5].error)).fold(0.0, f64::max);
    let bands = [3, 4, 5].map(|band: usize| {
        (
            format!("{} to {} % full", STEPS[band - 1], STEPS[band]),
            shares.iter().map(|shares| shares[band].mean).collect(),
        )
    });
    let claim = Claim::new(
        "rhik.5",
        format!(
            "{}; sizes differ by {distance:.1} standard errors at most (noise: up to {STANDARD_ERRORS_MAX}; one is {:.2} % at most)",
            shown.join("; "),
            100.0 * error
        ),
        Verdict::at_most(STANDARD_ERRORS_MAX, distance),
        format!("{} tables of 32 KiB pages a size, by the code", 1 << DIRECTORY_BITS),
    );
    (claim, drawn::failures_by_key_size(&KEY_BYTES, &bands))
}

/// How many standard errors lie between the two sizes that differ most, in any band.
fn farthest(shares: &[[Share; STEPS.len()]]) -> f64 {
    let bands = (0..STEPS.len()).flat_map(|band| shares.iter().map(move |shares| (band, shares[band])));
    bands.flat_map(|(band, one)| shares.iter().map(move |other| one.distance(other[band]))).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_filled_to_the_brim_by_keys_of_their_own() {
        let form = RecordTable::new(4096, SIGNATURE_BITS);
        let trials = fill_with_keys(&form, 16, 3, 1);
        assert_eq!(trials.len(), 8);
        for trial in &trials {
            assert_eq!(trial.tried.iter().sum::<u32>() as usize, form.records());
            assert_eq!(form.fault(&trial.table), None);
            assert_eq!(trial.share(0), 0.0);
        }
        assert!(Share::of(&trials, 5).mean > Share::of(&trials, 4).mean);
    }

    #[test]
    fn a_size_that_fails_more_often_stands_out() {
        let share = |mean| std::array::from_fn(|band| Share { mean: if band == 5 { mean } else { 0.0 }, error: 0.003 });
        assert!(farthest(&[share(0.22), share(0.23), share(0.22)]) < STANDARD_ERRORS_MAX);
        assert!(farthest(&[share(0.22), share(0.25), share(0.22)]) > STANDARD_ERRORS_MAX);
    }
}
