//! The paper's figures 2 and 5 to 8, of what was measured. Its text gives few values of them.

use crate::claims::size_name;
use kvssd_measure::figure::{Along, Kind, Source, Values};
use kvssd_measure::{Figure, Unit};

/// What the multi-level drive is called.
const MULTILEVEL: &str = "8-level hash";
const RHIK: &str = "rhik";

/// Figure 2: stores a second while the index grows; of both, and how many pairs there are behind each part.
pub(super) fn growing(pairs: &[f64], rates: &[Vec<f64>; 2]) -> Figure {
    let caption = "Stores a second while the index grows to 10 times its cache. The paper names no rate; its multi-level drive drops from 1.83 M to 3.1 B keys.";
    let along = Along::numbers("pairs on the drive", Unit::Count, pairs.iter().copied());
    Figure::new("rhik", "2", &[9], caption, Kind::Lines, along, Values::log("stores a second", Unit::PerSecond))
        .ours(MULTILEVEL, rates[1].iter().copied())
        .ours(RHIK, rates[0].iter().copied())
}

/// Figure 5a: misses by how many times its cache the index is.
pub(super) fn misses(sizes: &[f64], ratios: [Vec<f64>; 2]) -> Figure {
    let caption = "Misses of the index cache on made-up traces of the sizes of the paper's clusters. The paper names no ratio: for large indexes the 8-level hash misses more.";
    let along = Along::names("index over its cache", sizes.iter().map(|times| format!("{times}x")));
    let [rhik, multilevel] = ratios;
    Figure::new("rhik", "5a", &[2], caption, Kind::Bars, along, Values::linear("index-cache misses", Unit::Share))
        .ours(MULTILEVEL, multilevel)
        .ours(RHIK, rhik)
}

/// Figure 5b: flash reads of a look-up, the most and the mean.
pub(super) fn flash_reads([rhik, multilevel]: [[f64; 2]; 2]) -> Figure {
    let caption = "Flash reads of an index look-up, the index 20 times its cache. The paper draws percentiles of its traces: RHIK needs 1 at most.";
    let along = Along::names("reads of a look-up", ["the most", "the mean"]);
    Figure::new("rhik", "5b", &[1], caption, Kind::Bars, along, Values::linear("flash reads a look-up", Unit::Plain))
        .ours(MULTILEVEL, multilevel)
        .ours(RHIK, rhik)
        .with(RHIK, Source::PaperUpTo, &[Some(1.0), None])
}

/// Figure 6: throughput by size of values; of each mode, write and read.
pub(super) fn throughput(value_bytes: &[u32], [asynchronous, synchronous]: [Vec<[f64; 2]>; 2]) -> [Figure; 4] {
    let panels = [
        ("6a", "asynchronous writes", &asynchronous, 0),
        ("6b", "asynchronous reads", &asynchronous, 1),
        ("6c", "synchronous writes", &synchronous, 0),
        ("6d", "synchronous reads", &synchronous, 1),
    ];
    panels.map(|(number, what, ratios, side)| {
        let caption = format!(
            "Throughput of {what} over that of the 8-level drive, which is 1. The paper names no ratio: higher for almost all sizes."
        );
        let along = Along::names("value size", value_bytes.iter().map(|bytes| size_name(*bytes)));
        let values = Values::linear(&format!("{what} over 8-level"), Unit::Plain);
        Figure::new("rhik", number, &[7], &caption, Kind::Bars, along, values)
            .ours(RHIK, ratios.iter().map(|ratio| ratio[side]))
    })
}

/// Figure 7: what the time a key to double grows by from one doubling to the next; the paper's two times as their mean rate.
pub(super) fn doubling(pairs: &[f64], rates: &[f64], (paper_pairs, paper_rate): ([f64; 2], f64)) -> Figure {
    let caption = "Time a key to double the index, over that of the doubling before. The paper's two times (11 M keys 5 ms, 345 M keys 172 ms) are shown as the mean rate between them.";
    let mut places: Vec<f64> = pairs.iter().copied().chain(paper_pairs).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let value_at = |place: f64| pairs.iter().position(|pairs| *pairs == place).map(|at| rates[at]);
    let ours: Vec<Option<f64>> = places.iter().map(|place| value_at(*place)).collect();
    let paper: Vec<Option<f64>> =
        places.iter().map(|place| paper_pairs.contains(place).then_some(paper_rate)).collect();
    let along = Along::numbers("pairs that are moved", Unit::Count, places);
    let values = Values::linear("time a key, over the last doubling's", Unit::Plain);
    Figure::new("rhik", "7", &[3], caption, Kind::Lines, along, values).with(RHIK, Source::Ours, &ours).with(
        RHIK,
        Source::Paper,
        &paper,
    )
}

/// Figure 8a: failures by size of keys, for each band of occupancy.
pub(super) fn failures_by_key_size(key_bytes: &[usize], bands: &[(String, Vec<f64>)]) -> Figure {
    let caption = "Insertions that fail by size of keys. The paper names no share: the sizes show alike.";
    let along = Along::names("key size", key_bytes.iter().map(|bytes| format!("{bytes} B")));
    let values = Values::linear("insertions that fail", Unit::Share);
    let figure = Figure::new("rhik", "8a", &[5], caption, Kind::Bars, along, values);
    bands.iter().fold(figure, |figure, (band, shares)| figure.ours(band, shares.iter().copied()))
}

/// Figure 8b: failures by how full tables are.
pub(super) fn failures_by_occupancy(bands: &[(String, f64)]) -> Figure {
    let caption =
        "Insertions that fail by how full a table is. The paper names no share: it finds many more above 80 %.";
    let along = Along::names("occupancy, up to", bands.iter().map(|(band, _)| band));
    let values = Values::linear("insertions that fail", Unit::Share);
    Figure::new("rhik", "8b", &[4], caption, Kind::Lines, along, values)
        .ours(RHIK, bands.iter().map(|(_, share)| *share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Paper;
    use crate::claims::experiment::assert_drawable;

    #[test]
    fn figures_can_be_drawn_and_are_of_claims() {
        let ratios = vec![[1.0, 2.0], [3.0, 1.0]];
        let bands = [("to 90 %".to_owned(), vec![0.1, 0.1])];
        let mut figures = vec![
            growing(&[10.0, 20.0], &[vec![5.0, 4.0], vec![3.0, 2.0]]),
            misses(&[0.1, 10.0], [vec![0.0, 0.4], vec![0.0, 0.5]]),
            flash_reads([[1.0, 0.9], [8.0, 3.8]]),
            failures_by_key_size(&[16, 32], &bands),
            failures_by_occupancy(&[("to 90 %".to_owned(), 0.1)]),
        ];
        figures.extend(throughput(&[64, 4096], [ratios.clone(), ratios]));
        assert_drawable(&figures, &Paper::Rhik.ids());
    }

    #[test]
    fn doublings_lie_between_those_of_the_paper_or_not() {
        let paper = ([11e6, 345e6], 1.02);
        let figure = doubling(&[1e6, 2e6, 12e6], &[1.0, 2.7, 1.1], paper);
        assert_drawable(std::slice::from_ref(&figure), &Paper::Rhik.ids());
        let [ours, theirs] = [0, 1].map(|series: usize| figure.series[series].values.clone());
        assert_eq!(ours, [Some(1.0), Some(2.7), None, Some(1.1), None]);
        assert_eq!(theirs, [None, None, Some(1.02), None, Some(1.02)]);
        assert_drawable(&[doubling(&[], &[], paper)], &Paper::Rhik.ids());
    }
}
