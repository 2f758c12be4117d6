//! The paper's figures, of what was measured. Its text gives ratios and no rates, so that these show plus over original.

use super::paper;
use kvssd_measure::figure::{Along, Kind, Source, Values};
use kvssd_measure::{Figure, Unit};

/// Figure 2: throughput by workload, in the order in which they are compared.
pub(super) fn throughput(over_original: [f64; 5]) -> Figure {
    let workloads = ["YCSB-A uniform", "YCSB-A zipfian", "YCSB-B uniform", "YCSB-C uniform", "YCSB-C zipfian"];
    let caption = "Throughput of plus over original, which is 1. The text gives its 2.1x and 1.25x for write-heavy tests, which is A here. Of the paper's reads without locality the text says up to 1.4x, for B and C together.";
    let values = Values::linear("throughput over original", Unit::Plain);
    Figure::new("plus", "2", &[1, 2, 3, 4], caption, Kind::Bars, Along::names("workload", workloads), values)
        .ours("plus", over_original)
        .with(
            "plus",
            Source::PaperUpTo,
            &[
                Some(paper::A_UNIFORM),
                Some(paper::A_ZIPFIAN),
                Some(paper::READS_UNIFORM),
                Some(paper::READS_UNIFORM),
                None,
            ],
        )
        .with("plus", Source::Paper, &[None, None, None, None, Some(paper::C_ZIPFIAN)])
}

/// What plus reads and writes over what original does.
pub(super) struct Traffic {
    pub(super) pairs_read: f64,
    pub(super) pairs_written: f64,
    pub(super) table_pages: f64,
    pub(super) table_bytes: f64,
}

/// Figure 3, left and middle: data read and written.
pub(super) fn traffic(over_original: &Traffic) -> Figure {
    let Traffic { pairs_read, pairs_written, table_pages, table_bytes } = over_original;
    let along = ["pairs read for requests", "pairs written for requests", "table pages in GC", "table bytes in GC"];
    let caption = "YCSB-A uniform: what plus moves of what original moves. The paper counts whole pages of the hash table; bytes are those of its sections.";
    let values = Values::linear("data moved, of original's", Unit::Share);
    Figure::new("plus", "3 left and middle", &[5, 6], caption, Kind::Bars, Along::names("data", along), values)
        .ours("plus", [*pairs_read, *pairs_written, *table_pages, *table_bytes])
        .with("plus", Source::Paper, &[Some(paper::PAIRS_READ), None, Some(paper::TABLE_PAGES), None])
}

/// Figure 3, right: the throughput that is left with small values, by workload.
pub(super) fn small_values(left: &[(String, f64)]) -> Figure {
    let caption = "Throughput with values of 50 B over that with 1000 B at equal occupancy. The paper says that half is left in the worst case.";
    let along = Along::names("workload", left.iter().map(|(workload, _)| workload));
    let values = Values::linear("throughput with 50 B over 1000 B", Unit::Share);
    Figure::new("plus", "3 right", &[8], caption, Kind::Bars, along, values)
        .ours("plus", left.iter().map(|(_, left)| *left))
        .with("plus", Source::PaperAtLeast, &vec![Some(paper::SMALL_VALUES); left.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Paper;
    use crate::claims::experiment::assert_drawable;

    #[test]
    fn figures_can_be_drawn_and_are_of_claims() {
        let moved = Traffic { pairs_read: 0.8, pairs_written: 1.0, table_pages: 0.8, table_bytes: 0.2 };
        let left = [("ycsb-a uniform".to_owned(), 0.2)];
        let figures = [throughput([1.2, 1.2, 1.1, 1.0, 1.1]), traffic(&moved), small_values(&left)];
        assert_drawable(&figures, &Paper::Plus.ids());
    }
}
