//! What share of look-ups finds its piece of the index in DRAM.

use crate::drive::Drive;
use crate::load::Load;
use kvssd_ftl::index::Visit;

/// Ranks of Zipf's law that are looked at one by one; those behind in groups, each of which has as many more.
const RANKS_ALONE: f64 = 64.0;
const GROUP: f64 = 1.1;

/// The share of a look-up's visits that find DRAM, visit by visit; collection moves so many pairs for each store.
pub(crate) fn hits_of(drive: &Drive, load: &Load, moved: f64) -> Vec<f64> {
    let ranks = if load.skew == 0.0 { Vec::new() } else { ranks(load.pairs as f64, load.ranks as f64, load.skew) };
    let hit = |visit: &Visit| {
        let hit = hit_share(visit, &ranks);
        let comes = comes_share(visit, load, moved, &ranks);
        1.0 - comes * (1.0 - hit)
    };
    drive.forecast.visits.iter().map(hit).collect()
}

/// Keys in the order of how often they are asked for: of groups, how many, and the share of what is asked for that each key has. Of `drawn`
/// ranks those beyond the pairs are spread over all.
fn ranks(pairs: f64, drawn: f64, skew: f64) -> Vec<(f64, f64)> {
    let integral = |rank: f64| if (skew - 1.0).abs() < 1e-9 { rank.ln() } else { rank.powf(1.0 - skew) / (1.0 - skew) };
    let (mut ranks, mut from) = (Vec::new(), 0.5);
    while from < pairs + 0.5 {
        let is_alone = from < RANKS_ALONE;
        let to = if is_alone { from + 1.0 } else { (from * GROUP).min(pairs + 0.5) };
        let weight = if is_alone { (from + 0.5).powf(-skew) } else { (integral(to) - integral(from)) / (to - from) };
        ranks.push((to - from, weight));
        from = to;
    }
    let beyond = integral(drawn.max(pairs) + 0.5) - integral(pairs + 0.5);
    let sum = beyond + ranks.iter().map(|(count, weight)| count * weight).sum::<f64>();
    ranks.into_iter().map(|(count, weight)| (count, (weight + beyond / pairs) / sum)).collect()
}

/// Of look-ups that come so far where all keys are alike, the share that does where some are changed more often than others: so these are
/// found before. What collection moves is any pair.
fn comes_share(visit: &Visit, load: &Load, moved: f64, ranks: &[(f64, f64)]) -> f64 {
    let (_, stores) = load.points();
    if ranks.is_empty() || visit.newer == 0.0 || stores == 0.0 {
        return 1.0;
    }
    if visit.newer >= 1.0 {
        return 0.0;
    }
    // Stores among the changes that lie before; those of the run alone choose their keys so, and half of it has gone by.
    let pairs = load.pairs as f64;
    let skewed = (visit.newer * pairs / (1.0 + moved)).min(stores * load.operations as f64 / 2.0);
    let alike = (visit.newer - skewed / pairs).max(0.0);
    let late: f64 = ranks.iter().map(|(count, share)| count * share * (-share * skewed).exp()).sum();
    (late * (1.0 - alike) / (1.0 - visit.newer)).min(1.0)
}

/// The share of the visits that find the piece in a cache, first in first out, of that size; keys are spread over pieces by
/// their hashes, and none or some are asked for more often. Such a cache holds what one with random leavers does (Gelenbe, 1973): each
/// piece for the share of a characteristic time (Martina, Garetto, Leonardi, 2014).
fn hit_share(visit: &Visit, ranks: &[(f64, f64)]) -> f64 {
    let cached = visit.in_dram * visit.pieces;
    if ranks.is_empty() || visit.in_dram >= 1.0 || cached < 1.0 || visit.newer > 0.0 {
        return visit.in_dram.min(1.0);
    }
    // The hottest have pieces of their own, and the others share all alike.
    let mut seen = 0.0;
    let is_hot = |group: &&(f64, f64)| {
        seen += group.0;
        seen <= (visit.pieces * 0.5).max(1.0)
    };
    let hot: Vec<&(f64, f64)> = ranks.iter().take_while(is_hot).collect();
    let (hot_keys, hot_share): (f64, f64) =
        hot.iter().fold((0.0, 0.0), |(keys, sum), (count, share)| (keys + count, sum + count * share));
    let background = (1.0 - hot_share).max(0.0) / visit.pieces;
    let cold_pieces = visit.pieces - hot_keys;
    let stays = |share: f64, time: f64| share * time / (1.0 + share * time);
    let sum = |of: &dyn Fn(f64) -> f64| {
        hot.iter().map(|(count, share)| count * of(share + background)).sum::<f64>() + cold_pieces * of(background)
    };
    let (mut low, mut high) = (1e-9, 1e15);
    while high > 1.0001 * low {
        let middle = f64::sqrt(low * high);
        if sum(&|share| stays(share, middle)) < cached { low = middle } else { high = middle }
    }
    sum(&|share| share * stays(share, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_its_share_of_what_is_asked_for_alike_and_more_of_what_is_not() {
        let visit = |in_dram| Visit { pieces: 1000.0, reached: 1.0, in_dram, newer: 0.0, at_times: None };
        let hits = |in_dram, skew| hit_share(&visit(in_dram), &ranks(1e5, 1e5, skew));
        assert_eq!(hit_share(&visit(0.3), &[]), 0.3);
        assert_eq!(hits(1.0, 0.99), 1.0);
        let (skewed, more) = (hits(0.3, 0.99), hits(0.3, 1.2));
        assert!(0.35 < skewed && skewed < more && more < 1.0, "{skewed} {more}");
    }
}
