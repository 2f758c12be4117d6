//! The median of a command's time, from how many reads it makes and how these wait.
//!
//! ```text
//!   a die, a channel: works with chance ρ, then on something whose rest is as long as any part of it       r, the rest
//!   wait of a read  = no wait with chance 1 - ρ, else a rest and what had come before:  f = (1 - ρ) + ρ r * f    (Pollaczek, Khinchine)
//!   time of a command = its own, its reads, and as many waits        each number of reads with its chance
//! ```

use crate::busy::{Busy, Piece};
use crate::commands::Command;
use crate::drive::Drive;

/// Of more reads, one behind the other, the median is the mean.
const READS_MAX: usize = 24;
/// A share that does not reach half of all together with half of the others.
const FEW: f64 = 0.25;
/// Waits are told apart to a part of twice their mean, behind which no median lies (Markov).
const CELLS: usize = 128;

/// Waiting for room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stall {
    /// The share of commands that do.
    pub(crate) share: f64,
    /// How long it is for all commands, on average.
    pub(crate) mean_ns: f64,
}

/// The time that half of these commands take at most, in nanoseconds.
pub(crate) fn median_ns(drive: &Drive, busy: &Busy, command: &Command, stall: Stall) -> f64 {
    let reads = command.reads();
    let fixed_ns = command.fixed_ns + busy.core_wait_ns;
    let reads_ns = command.index_reads() * drive.index_read_ns + command.record_reads * drive.read_ns;
    let waits_ns = reads * busy.read_wait_ns() + command.crowd_wait_ns(busy);
    if reads > READS_MAX as f64 / 2.0 || waits_ns + stall.mean_ns <= 0.0 {
        return fixed_ns + reads_ns + waits_ns;
    }
    drive.work.add(READS_MAX as u64);
    let crowds = command.index.iter().copied().zip(busy.crowd_waits_ns.iter().copied());
    // Where few wait for room, the median is one of the others.
    let for_room_ns = if stall.share > FEW { stall.mean_ns } else { 0.0 };
    let waits = Waits::new(busy, crowds, stall, 2.0 * (waits_ns + for_room_ns).max(1.0));
    let (index, records) = (counts(&command.index), counts(&[command.record_reads]));
    let share_within = |time_ns: f64| {
        let mut share = 0.0;
        for (of_index, in_index) in index.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            for (of_records, in_records) in records.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
                let own_ns = of_index as f64 * drive.index_read_ns + of_records as f64 * drive.read_ns;
                share += in_index * in_records * waits.within(of_index + of_records, time_ns - own_ns);
            }
        }
        share
    };
    let (mut low, mut high) = (0.0, 2.0 * (reads_ns + waits_ns + stall.mean_ns));
    while high - low > 1e-3 * high {
        let middle = (low + high) / 2.0;
        if share_within(middle) < 0.5 { low = middle } else { high = middle }
    }
    fixed_ns + high
}

/// The chance of 0, 1, 2 ... reads: whole ones are always made, the rest of each by chance.
fn counts(reads: &[f64]) -> [f64; READS_MAX + 1] {
    let mut chances = [0.0; READS_MAX + 1];
    chances[0] = 1.0;
    for &reads in reads {
        let mut left = reads;
        while left > 1e-9 {
            let chance = left.min(1.0);
            left -= chance;
            for count in (0..READS_MAX).rev() {
                let more = chances[count] * chance;
                chances[count] -= more;
                chances[count + 1] += more;
            }
        }
    }
    chances
}

/// A share of all for each part of a time.
type Shares = [f64; CELLS];

/// How long reads wait, all together.
struct Waits {
    cell_ns: f64,
    /// Of so many reads, the share that waits no longer than each cell.
    within: Vec<Shares>,
}

impl Waits {
    /// Of reads in general, and beside them in crowds: each is there with a chance, and waits so long on average.
    fn new(busy: &Busy, crowds: impl Iterator<Item = (f64, f64)>, stall: Stall, longest_ns: f64) -> Self {
        let cell_ns = longest_ns / CELLS as f64;
        let one = both(&wait_of(&busy.on_die, cell_ns), &wait_of(&busy.on_channel, cell_ns));
        let mut shares = [0.0; CELLS];
        shares[0] = 1.0;
        for (reads, wait_ns) in crowds.filter(|(reads, wait_ns)| *reads > 0.0 && *wait_ns > 0.0) {
            let mut waits = rests_of(&[(reads.min(1.0), 2.0 * wait_ns)], cell_ns);
            waits[0] += (1.0 - reads).max(0.0);
            shares = both(&shares, &waits);
        }
        if stall.mean_ns > 0.0 {
            let share = stall.share;
            let mut waits = rests_of(&[(share, 2.0 * stall.mean_ns / share)], cell_ns);
            waits[0] += 1.0 - share;
            shares = both(&shares, &waits);
        }
        let mut within = Vec::with_capacity(READS_MAX + 1);
        for _ in 0..=READS_MAX {
            let mut sum = 0.0;
            within.push(shares.map(|share| {
                sum += share;
                sum
            }));
            if within.len() <= READS_MAX {
                shares = both(&shares, &one);
            }
        }
        Waits { cell_ns, within }
    }

    /// The share of so many reads that wait no longer.
    fn within(&self, reads: usize, time_ns: f64) -> f64 {
        if time_ns < 0.0 {
            return 0.0;
        }
        let shares = &self.within[reads.min(READS_MAX)];
        let at = time_ns / self.cell_ns;
        let cell = (at as usize).min(CELLS - 1);
        let next = shares[(cell + 1).min(CELLS - 1)];
        shares[cell] + (next - shares[cell]) * (at - cell as f64).min(1.0)
    }
}

/// How much is left of the piece that a resource works on.
fn rests_of(pieces: &[Piece], cell_ns: f64) -> Shares {
    let mut rest = [0.0; CELLS];
    for &(chance, piece_ns) in pieces.iter().filter(|(chance, _)| *chance > 0.0) {
        // Rests of any length up to the piece are alike; each is shared by the two cells that it lies between.
        let cells = piece_ns / cell_ns;
        for (cell, share) in rest.iter_mut().enumerate() {
            let before = if cell == 0 { 0.0 } else { (cells - (cell as f64 - 1.0)).clamp(0.0, 1.0) };
            let behind = (cells - cell as f64).clamp(0.0, 1.0);
            *share += chance / cells * (before * before / 2.0 + behind - behind * behind / 2.0);
        }
    }
    rest
}

/// How long one waits for a resource that works on these pieces.
fn wait_of(pieces: &[Piece], cell_ns: f64) -> Shares {
    let rest = rests_of(pieces, cell_ns);
    let works: f64 = pieces.iter().map(|(chance, _)| chance).sum();
    let mut shares = [0.0; CELLS];
    for cell in 0..CELLS {
        let before: f64 = (1..=cell).map(|back| rest[back] * shares[cell - back]).sum();
        let first = if cell == 0 { 1.0 - works } else { 0.0 };
        shares[cell] = (first + before) / (1.0 - rest[0]);
    }
    shares
}

/// One wait behind the other.
fn both(one: &Shares, other: &Shares) -> Shares {
    let mut sum = [0.0; CELLS];
    for (at, share) in one.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        for (sum, other) in sum[at..].iter_mut().zip(other) {
            *sum += share * other;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_whole_or_by_chance() {
        assert_eq!(counts(&[0.25, 1.5])[..5], [0.0, 0.375, 0.5, 0.125, 0.0]);
        assert_eq!(counts(&[0.5, 0.5])[..3], [0.25, 0.5, 0.25], "each visit by itself");
    }

    /// Half of the time busy with equal pieces: half of those who come wait, and the mean is that of Pollaczek and Khinchine.
    #[test]
    fn waits_are_spread_as_those_of_a_queue_are() {
        let shares = wait_of(&[(0.5, 100.0)], 5.0);
        assert!((shares[0] - 0.5).abs() < 0.02, "{}", shares[0]);
        let all: f64 = shares.iter().sum();
        let mean_ns: f64 = shares.iter().enumerate().map(|(cell, share)| cell as f64 * 5.0 * share).sum();
        assert!((all - 1.0).abs() < 1e-3 && (mean_ns - 50.0).abs() < 0.5, "{all} {mean_ns}");
        // Of those who wait behind a piece alone, half wait for half of it at most.
        let rare = wait_of(&[(0.01, 100.0)], 1.0);
        let within: f64 = rare[..=50].iter().sum();
        assert!((within - 0.995).abs() < 2e-4, "{within}");
    }
    /// One in ten waits for room for long: the median is that of the others a little further up.
    #[test]
    fn who_waits_for_room_moves_the_median_of_all_by_little() {
        let waits = |share: f64, mean_ns: f64| {
            let mut shares = rests_of(&[(share, 2.0 * mean_ns / share)], 1.0);
            shares[0] += 1.0 - share;
            shares.iter().take(50).sum::<f64>()
        };
        assert!((waits(0.1, 1e6) - 0.9).abs() < 1e-3 && (waits(0.1, 2.5) - 1.0).abs() < 1e-3);
    }
}
