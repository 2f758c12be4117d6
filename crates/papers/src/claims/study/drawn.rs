//! The paper's figures 2 to 8, of what was measured. Its text gives ratios of the best and the worst cells.

use crate::claims::size_name;
use kvssd_measure::figure::{Along, Kind, Source, Values};
use kvssd_measure::{Figure, Unit};

const KEYS: &str = "key drive";
const BLOCKS: &str = "block drive";
const LSM: &str = "LSM store";
const HASH: &str = "hash store";

/// Figure 2, orders: mean latencies of reads and of updates on both drives, by order.
pub(super) fn orders(keys: &[[f64; 2]; 3], blocks: &[[f64; 2]; 3]) -> Figure {
    let caption = "Mean latency by order of the commands, values of 4 KB. The paper names no latency: the key drive takes every order alike.";
    let along = Along::names("order", ["sequential", "uniform", "zipfian"]);
    let values = Values::linear("mean latency", Unit::Time);
    let sides = [(KEYS, keys), (BLOCKS, blocks)];
    let all = sides
        .into_iter()
        .flat_map(|(name, side)| [("read", 0), ("update", 1)].map(|(kind, at)| (name, side, kind, at)));
    all.fold(
        Figure::new("study", "2 orders", &[2], caption, Kind::Bars, along, values),
        |figure, (name, side, kind, at)| figure.ours(&format!("{name}, {kind}"), side.map(|latencies| latencies[at])),
    )
}

/// Figure 2, stores: mean latencies over the key drive's; of inserts, updates and reads.
pub(super) fn stores(lsm: [f64; 3], hash: [f64; 3]) -> Figure {
    let caption = "Mean latency of stores on the host over that of the key drive, values of 4 KB. The paper says up to 23.08x for inserts and 3.64x for updates, and not of which store.";
    let along = Along::names("operation", ["insert", "update", "read"]);
    let values = Values::linear("latency over the key drive's", Unit::Plain);
    Figure::new("study", "2 stores", &[10], caption, Kind::Bars, along, values).ours(LSM, lsm).ours(HASH, hash).with(
        "either store",
        Source::PaperUpTo,
        &[Some(23.08), Some(3.64), None],
    )
}

/// Figure 3: latencies with many pairs over those with few; of reads and inserts.
pub(super) fn overflow(keys: [f64; 2], blocks: [f64; 2]) -> Figure {
    let caption = "Mean latency on a drive with as many pairs as it takes over that with few, values of 512 B. Of the block drive the paper says that it stays about the same.";
    let along = Along::names("operation", ["read", "insert"]);
    let values = Values::linear("latency, many pairs over few", Unit::Plain);
    Figure::new("study", "3", &[3], caption, Kind::Bars, along, values)
        .ours(KEYS, keys)
        .with(KEYS, Source::PaperUpTo, &[Some(2.0), Some(16.4)])
        .ours(BLOCKS, blocks)
        .with(BLOCKS, Source::Paper, &[Some(1.0), Some(1.0)])
}

/// Latencies of the key drive over the block drive's, by size of values, with one command and with many under way.
pub(super) struct ByDepth {
    pub(super) alone: Vec<f64>,
    pub(super) deep: Vec<f64>,
}

/// Figure 4: reads and writes by size of values; up to `whole_bytes` a value lies in one page.
pub(super) fn latencies(value_bytes: &[u32], whole_bytes: u32, reads: ByDepth, writes: ByDepth) -> [Figure; 2] {
    let of = |value: f64, is_meant: &dyn Fn(u32) -> bool| {
        value_bytes.iter().map(|bytes| is_meant(*bytes).then_some(value)).collect::<Vec<_>>()
    };
    let figure = |number: &str, says: &str, what: &str, ByDepth { alone, deep }: ByDepth| {
        let caption =
            format!("Mean latency of {what} by value size, key drive over block drive. The paper says: {says}.");
        let along = Along::names("value size", value_bytes.iter().map(|bytes| size_name(*bytes)));
        let values = Values::linear("latency over the block drive's", Unit::Plain);
        Figure::new("study", number, &[1, 4], &caption, Kind::Bars, along, values)
            .ours("QD 1", alone)
            .ours("QD 64", deep)
    };
    let small = of(0.37, &|bytes| bytes < whole_bytes);
    // Its text names these sizes.
    let named = of(0.86, &|bytes| [512, 2048, 8192].contains(&bytes));
    let split = of(5.4, &|bytes| bytes > whole_bytes);
    [
        figure("4 reads", "as little as 0.37x below 24 KB at QD 64", "reads", reads).with(
            "QD 64",
            Source::PaperAtLeast,
            &small,
        ),
        figure(
            "4 writes",
            "as little as 0.86x for small values at QD 64, up to 5.4x for values that are split",
            "writes",
            writes,
        )
        .with("QD 1", Source::PaperUpTo, &split)
        .with("QD 64", Source::PaperAtLeast, &named),
    ]
}

/// A size of values, and the bandwidths of inserts into the key drive and into the block drive.
pub(super) type Bandwidths = (u32, [f64; 2]);

/// Figure 5: bandwidth of inserts by size of values, in kilobytes.
pub(super) fn dips(steps: &[Bandwidths]) -> Figure {
    let caption = "Bandwidth of inserts at QD 64. The paper names no rate: on the key drive it drops at 25 KB and at 49 KB, where a pair outgrows its pages.";
    let along = Along::numbers("value size, KB", Unit::Plain, steps.iter().map(|step| f64::from(step.0)));
    let of = |side: usize| steps.iter().map(move |step| step.1[side]);
    let values = Values::linear("bandwidth of inserts", Unit::BytesPerSecond);
    Figure::new("study", "5", &[5], caption, Kind::Lines, along, values).ours(KEYS, of(0)).ours(BLOCKS, of(1))
}

/// Figure 6: bytes a second over a run of updates, in parts of equally many: of the key drive at QD 64 and at QD 1, and of the LSM store.
pub(super) fn updates([deep, alone, lsm]: [&[f64]; 3]) -> Figure {
    let caption = "Updates of a drive that is 80 % full. The paper names no rate: the key drive's collapses, that of RocksDB does not.";
    let parts = deep.len();
    let along = Along::numbers("updates done", Unit::Share, (1..=parts).map(|part| part as f64 / parts as f64));
    let values = Values::linear("bandwidth of updates", Unit::BytesPerSecond);
    Figure::new("study", "6", &[6], caption, Kind::Lines, along, values)
        .ours(&format!("{KEYS}, QD 64"), deep.iter().copied())
        .ours(&format!("{KEYS}, QD 1"), alone.iter().copied())
        .ours(LSM, lsm.iter().copied())
}

/// Figure 7: flash that pairs take over their bytes, of 50 B, 1 KB, 2 KB and 4 KB.
pub(super) fn space(small: f64, large: [f64; 3]) -> Figure {
    let caption =
        "Space that pairs take over their bytes. The paper says 17x with 50 B, and close to 1 from 1 KB to 4 KB.";
    let along = Along::names("value size", [50, 1024, 2048, 4096].map(size_name));
    let values = Values::linear("space amplification", Unit::Plain);
    Figure::new("study", "7", &[7], caption, Kind::Bars, along, values)
        .ours(KEYS, [small, large[0], large[1], large[2]])
        .with(KEYS, Source::Paper, &[Some(17.0), Some(1.0), Some(1.0), Some(1.0)])
}

/// Figure 8: bandwidth with keys of 17 B over that with 16 B, of each mode and command.
pub(super) fn long_keys(ratios: &[(String, f64)]) -> Figure {
    let caption =
        "Bandwidth with keys of 17 B, which take a second command, over that with 16 B. The paper says 0.53x at worst.";
    let along = Along::names("commands", ratios.iter().map(|(name, _)| name));
    let values = Values::linear("bandwidth, 17 B over 16 B keys", Unit::Plain);
    Figure::new("study", "8", &[8], caption, Kind::Bars, along, values)
        .ours(KEYS, ratios.iter().map(|(_, ratio)| *ratio))
        .with(KEYS, Source::PaperAtLeast, &vec![Some(0.53); ratios.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Paper;
    use crate::claims::experiment::assert_drawable;

    #[test]
    fn figures_can_be_drawn_and_are_of_claims() {
        let by_depth = || ByDepth { alone: vec![1.0; 3], deep: vec![0.9; 3] };
        let rates = [9.0, 5.0, 2.0];
        let mut figures = vec![
            orders(&[[1.0, 2.0]; 3], &[[1.0, 2.0]; 3]),
            stores([3.0, 1.2, 1.0], [0.9, 1.1, 0.9]),
            overflow([5.5, 18.9], [1.0, 1.0]),
            dips(&[(24, [5.0, 4.0]), (25, [3.0, 4.0])]),
            updates([&rates, &rates, &rates]),
            space(15.8, [1.1, 1.0, 1.0]),
            long_keys(&[("sync insert".to_owned(), 0.52)]),
        ];
        let [reads, writes] = latencies(&[512, 4096, 65_536], 24 << 10, by_depth(), by_depth());
        assert_eq!(reads.series[2].values, [Some(0.37), Some(0.37), None]);
        assert_eq!(writes.series[2].values, [None, None, Some(5.4)]);
        figures.extend([reads, writes]);
        assert_drawable(&figures, &Paper::Study.ids());
    }
}
