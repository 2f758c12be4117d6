//! What share of look-ups finds its piece of the index in DRAM.

use crate::drive::Drive;
use crate::load::Load;
use kvssd_ftl::index::Visit;

/// The ranks of Zipf's law that are looked at one by one; those behind are alike.
const RANKS: u64 = 2000;

/// The share of a look-up's visits that find DRAM, visit by visit.
pub(crate) fn hits_of(drive: &Drive, load: &Load) -> Vec<f64> {
    drive.forecast.visits.iter().map(|visit| hit_share(visit, load.pairs, load.skew)).collect()
}

/// The share of a look-up's visits that find the piece in a cache, first in first out, of that size; keys are spread over pieces by
/// their hashes and chosen by Zipf's law with exponent `skew`. Such a cache holds what one with random leavers does (Gelenbe, 1973): each
/// piece for the share of a characteristic time (Martina, Garetto, Leonardi, 2014).
fn hit_share(visit: &Visit, pairs: u64, skew: f64) -> f64 {
    let cached = visit.in_dram * visit.pieces;
    if skew == 0.0 || visit.in_dram >= 1.0 || cached < 1.0 {
        return visit.in_dram.min(1.0);
    }
    let ranks = RANKS.min(pairs).min((visit.pieces * 0.5) as u64).max(1);
    let weight = |rank: u64| (rank as f64).powf(-skew);
    // The sum over the other ranks, by its integral.
    let (from, to) = (ranks as f64 + 0.5, pairs as f64 + 0.5);
    let rest = if (skew - 1.0).abs() < 1e-9 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - skew) - from.powf(1.0 - skew)) / (1.0 - skew)
    };
    let hot: Vec<f64> = (1..=ranks).map(weight).collect();
    let sum = hot.iter().sum::<f64>() + rest.max(0.0);
    let background = rest.max(0.0) / sum / visit.pieces;
    let cold_pieces = visit.pieces - ranks as f64;
    let shares = || hot.iter().map(|weight| weight / sum + background);
    let stays = |share: f64, time: f64| share * time / (1.0 + share * time);
    let occupied =
        |time: f64| shares().map(|share| stays(share, time)).sum::<f64>() + cold_pieces * stays(background, time);
    let (mut low, mut high) = (0.0, 1e15);
    for _ in 0..60 {
        let middle = if low == 0.0 { high / 1e3 } else { f64::sqrt(low * high) };
        if occupied(middle) < cached { low = middle.max(1e-9) } else { high = middle }
    }
    shares().map(|share| share * stays(share, high)).sum::<f64>() + cold_pieces * background * stays(background, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_its_share_of_what_is_asked_for_alike_and_more_of_what_is_not() {
        let visit = |in_dram| Visit { pieces: 1000.0, reached: 1.0, in_dram };
        assert_eq!(hit_share(&visit(0.3), 100_000, 0.0), 0.3);
        assert_eq!(hit_share(&visit(1.0), 100_000, 0.99), 1.0);
        let (skewed, more) = (hit_share(&visit(0.3), 100_000, 0.99), hit_share(&visit(0.3), 100_000, 1.2));
        assert!(0.35 < skewed && skewed < more && more < 1.0, "{skewed} {more}");
    }
}
