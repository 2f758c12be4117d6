//! The paper's figures 5 to 10, of what was measured. Its text gives ratios, so that these show what is compared over its baseline.

use super::paper;
use crate::claims::size_name;
use kvssd_measure::figure::{Along, Kind, Source, Values};
use kvssd_measure::{Figure, Unit};

fn bars(number: &str, claims: &[u32], caption: &str, along: Along, values: &str) -> Figure {
    Figure::new("kaml", number, claims, caption, Kind::Bars, along, Values::linear(values, Unit::Plain))
}

fn sizes(record_bytes: &[u32]) -> Along {
    Along::names("record size", record_bytes.iter().map(|bytes| size_name(*bytes)))
}

/// A value for every size of records but the last, which is that of blocks.
fn small(value: f64, record_bytes: &[u32]) -> Vec<Option<f64>> {
    let mut values = vec![Some(value); record_bytes.len() - 1];
    values.push(None);
    values
}

/// Figure 5, Fetch: reads by load factor, for each size of records.
pub(super) fn load_factors(loads: &[f64; 3], record_bytes: &[u32; 2], ratios: &[[f64; 2]; 3]) -> Figure {
    let caption = "Get over block read, 8 threads, by load factor of the mapping table. The paper says: up to 1.2x at 0.1, the same at 0.4, and behind from 0.7 on.";
    let along = Along::names("load factor", loads.map(|load| format!("{load:.2}")));
    let figure = bars("5 Fetch", &[1], caption, along, "Get over read, throughput");
    let of_size = |figure: Figure, (number, bytes): (usize, &u32)| {
        figure.ours(&format!("Get, {}", size_name(*bytes)), ratios.map(|ratios| ratios[number]))
    };
    record_bytes
        .iter()
        .enumerate()
        .fold(figure, of_size)
        .with("Get", Source::PaperUpTo, &[Some(paper::READS), None, None])
        .with("Get", Source::Paper, &[None, Some(1.0), None])
}

/// Figure 5, Update and Insert: writes by size of records.
pub(super) fn bandwidths(record_bytes: &[u32], updates: Vec<f64>, inserts: Vec<f64>) -> [Figure; 2] {
    let caption = "Put over block write, 8 threads. The paper says 6.7x to 7.9x below 4 KB, and that write is a little ahead at 4 KB.";
    let update = bars("5 Update", &[2], caption, sizes(record_bytes), "Put over write, throughput");
    let caption = "Put over block write, 8 threads. The paper says up to 10 % ahead below 4 KB, and behind at 4 KB.";
    let insert = bars("5 Insert", &[10], caption, sizes(record_bytes), "Put over write, throughput");
    [
        update.ours("Put", updates).with("Put", Source::PaperAtLeast, &small(paper::UPDATES[0], record_bytes)).with(
            "Put",
            Source::PaperUpTo,
            &small(paper::UPDATES[1], record_bytes),
        ),
        insert.ours("Put", inserts).with("Put", Source::PaperUpTo, &small(paper::INSERTS[1], record_bytes)),
    ]
}

/// Figure 6: latencies of Fetch, Update and Insert.
pub(super) fn latencies(record_bytes: &[u32], [fetch, update, insert]: [Vec<f64>; 3]) -> [Figure; 3] {
    let same = vec![Some(1.0); record_bytes.len()];
    let mut largest = vec![None; record_bytes.len()];
    largest[record_bytes.len() - 1] = Some(paper::INSERT_LATENCY_4_KIB);
    let figure = |number: &str, claim: u32, says: &str, name: &str, values: &str, ours: Vec<f64>| {
        let caption = format!("One thread, load factor 0.4. The paper says: {says}.");
        bars(number, &[claim], &caption, sizes(record_bytes), values).ours(name, ours)
    };
    [
        figure("6 Fetch", 11, "the same", "Get", "Get over read, latency", fetch).with("Get", Source::Paper, &same),
        figure("6 Update", 3, "0.20x for small records", "Put", "Put over write, latency", update).with(
            "Put",
            Source::Paper,
            &small(paper::UPDATE_LATENCY, record_bytes),
        ),
        figure("6 Insert", 3, "0.63x to 0.75x below 4 KB, 2.9x at 4 KB", "Put", "Put over write, latency", insert)
            .with("Put", Source::PaperAtLeast, &small(paper::INSERT_LATENCY[0], record_bytes))
            .with("Put", Source::PaperUpTo, &small(paper::INSERT_LATENCY[1], record_bytes))
            .with("Put", Source::Paper, &largest),
    ]
}

/// Figure 7, Update: batches.
pub(super) fn batches(record_bytes: &[u32], ratios: Vec<f64>) -> Figure {
    let caption = "Batches of 4 over single Puts, 8 threads. The paper says 1.2x to 1.3x, and no size.";
    let all = |value: f64| vec![Some(value); record_bytes.len()];
    bars("7 Update", &[4], caption, sizes(record_bytes), "batches over single, throughput")
        .ours("batches of 4", ratios)
        .with("batches of 4", Source::PaperAtLeast, &all(paper::BATCHES[0]))
        .with("batches of 4", Source::PaperUpTo, &all(paper::BATCHES[1]))
}

/// Figure 7, filling: the time that a namespace takes in batches.
pub(super) fn filling(over_single: f64) -> Figure {
    let caption = "Time to fill a namespace to load factor 0.7, over that with single Puts. The paper says 40 % less.";
    let along = Along::names("pairs a batch", ["1", "4"]);
    bars("7 filling", &[5], caption, along, "time to fill, over single Puts").ours("time", [1.0, over_single]).with(
        "time",
        Source::Paper,
        &[None, Some(paper::FILLING)],
    )
}

/// Figure 8: rates by the number of logs, for each size of records and number of threads.
pub(super) fn logs(logs: &[u32; 3], threads: [u32; 2], rates: &[(u32, [[f64; 3]; 2])]) -> Figure {
    let caption =
        "Update: Put throughput by logs, over that with 16. The paper says 5.8x with 64, and no size of records.";
    let along = Along::numbers("logs", Unit::Count, logs.map(f64::from));
    let values = Values::linear("throughput over 16 logs", Unit::Plain);
    let figure = Figure::new("kaml", "8", &[6], caption, Kind::Lines, along, values);
    let all = rates
        .iter()
        .flat_map(|(bytes, rates)| threads.iter().zip(rates).map(move |(threads, rates)| (bytes, threads, rates)));
    all.fold(figure, |figure, (bytes, threads, rates)| {
        figure.ours(&format!("{}, {threads} threads", size_name(*bytes)), rates.map(|rate| rate / rates[0]))
    })
    .with("Put", Source::Paper, &[Some(1.0), None, Some(paper::LOGS)])
}

/// A transaction in figure 9.
pub(super) struct Oltp {
    pub(super) transaction: &'static str,
    /// The paper's factor with a record a lock.
    pub(super) paper: f64,
    /// Rates over that of the engine with record locks: on the key drive with a record and with 16 a lock and with the smaller cache,
    /// of the engine with locks of records and of pages.
    pub(super) over_record_locks: [f64; 5],
}

/// Figure 9: transactions.
pub(super) fn transactions(all: &[Oltp]) -> Figure {
    const NAMES: [&str; 5] = [
        "kaml, 1 record a lock",
        "kaml, 16 records a lock",
        "kaml, hit ratio 0.8",
        "pages, record locks",
        "pages, page locks",
    ];
    let caption = "Transactions a second over the page-based engine with record locks. The paper says as well: up to 47 % less with 16 records a lock, up to 80 % less with page locks.";
    let along = Along::names("transaction", all.iter().map(|one| one.transaction));
    let figure = bars("9", &[7, 8], caption, along, "rate over record-locked pages");
    let paper: Vec<Option<f64>> = all.iter().map(|one| Some(one.paper)).collect();
    NAMES.iter().enumerate().fold(figure, |figure, (number, name)| {
        let figure = figure.ours(name, all.iter().map(|one| one.over_record_locks[number]));
        if number == 0 { figure.with(name, Source::Paper, &paper) } else { figure }
    })
}

/// Figure 10: YCSB by workload, and the least, the largest and the mean of all.
pub(super) fn ycsb(workloads: impl Iterator<Item = (String, f64)>, [least, largest, mean]: [f64; 3]) -> Figure {
    let caption = "Throughput over the page-based engine. The paper says 1.1x to 3.0x and 2.3x on average, and not which is which.";
    let (mut names, mut ratios): (Vec<String>, Vec<f64>) = workloads.unzip();
    let mut paper = vec![None; names.len()];
    names.extend(["the least", "the largest", "the mean"].map(str::to_owned));
    ratios.extend([least, largest, mean]);
    paper.extend(paper::YCSB.map(Some));
    bars("10", &[9], caption, Along::names("workload", names), "throughput over pages").ours("kaml", ratios).with(
        "kaml",
        Source::Paper,
        &paper,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Paper;
    use crate::claims::experiment::assert_drawable;

    #[test]
    fn figures_can_be_drawn_and_are_of_claims() {
        let ratios = || vec![12.0, 14.0, 16.0, 1.0];
        let sizes = [512, 1024, 2048, 4096];
        let oltp = Oltp { transaction: "Payment", paper: 2.0, over_record_locks: [2.0, 0.5, 0.4, 1.0, 0.2] };
        let mut figures = vec![
            load_factors(&[0.1, 0.4, 0.74], &[512, 4096], &[[1.0; 2]; 3]),
            batches(&sizes, ratios()),
            filling(0.4),
            logs(&[16, 32, 64], [8, 32], &[(512, [[1.0, 2.0, 4.0]; 2])]),
            transactions(&[oltp]),
            ycsb(["a", "b"].map(str::to_owned).into_iter().zip([1.4, 3.5]), [1.4, 3.5, 2.1]),
        ];
        figures.extend(bandwidths(&sizes, ratios(), ratios()));
        figures.extend(latencies(&sizes, [ratios(), ratios(), ratios()]));
        assert_drawable(&figures, &Paper::Kaml.ids());
    }
}
