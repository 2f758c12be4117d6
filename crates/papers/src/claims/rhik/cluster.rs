//! Traces of object stores, made up: in IBM's format, with as many objects as a cluster is to have.
//!
//! ```text
//!   PUT 0   GET 0   PUT 1   HEAD 0   GET 1   ...      a new object every few requests, until all are there;
//!                                                     the others are about those that were, by YCSB's zipfian law
//! ```

use kvssd_sim::workload::{Chooser, Distribution};
use kvssd_types::{Random, mix64};
use std::io::{self, Read, Write};

/// Requests about each object, the one that puts it among them. An estimate.
const REQUESTS_AN_OBJECT: u64 = 4;
/// Requests that even a small cluster has. An estimate.
const REQUESTS_MIN: u64 = 100_000;
/// What of a hundred requests about objects that were put before is each operation: object stores are read far more than written.
/// An estimate.
const OPERATIONS: [(u64, &str); 4] = [(75, "GET"), (90, "HEAD"), (98, "PUT"), (100, "DELETE")];
/// Sizes of objects, which the index does not see: small ones, so that all of the largest cluster fit the drive.
const OBJECT_BYTES: [u64; 2] = [64, 960];
/// Milliseconds between requests, for the format only: the replay goes as fast as the drive.
const INTERVAL_MS: u64 = 10;

/// A trace, written as it is read.
pub(super) struct ClusterTrace {
    objects: u64,
    requests: u64,
    put: u64,
    done: u64,
    chooser: Chooser,
    random: Random,
    seed: u64,
    line: Vec<u8>,
    read: usize,
}

impl ClusterTrace {
    /// Of a cluster of so many objects, one at the least.
    pub(super) fn new(objects: u64, seed: u64) -> Self {
        let objects = objects.max(1);
        ClusterTrace {
            objects,
            requests: (objects * REQUESTS_AN_OBJECT).max(REQUESTS_MIN),
            put: 0,
            done: 0,
            chooser: Chooser::new(Distribution::Zipfian, objects),
            random: Random::new(seed),
            seed,
            line: Vec::new(),
            read: 0,
        }
    }

    /// Writes the next line into the room of the last.
    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.read = 0;
        if self.done == self.requests {
            return Ok(());
        }
        // Evenly, so that the last request but a few puts the last object.
        let is_new =
            u128::from(self.put) * u128::from(self.requests) <= u128::from(self.done) * u128::from(self.objects);
        let (operation, object) = if is_new {
            self.put += 1;
            ("PUT", self.put - 1)
        } else {
            let draw = self.random.below(100);
            let operation = OPERATIONS.iter().find(|(share, _)| draw < *share).map_or("GET", |(_, name)| name);
            (operation, self.chooser.next(self.put, &mut self.random))
        };
        let (name, [least, most]) = (mix64(object ^ self.seed << 32), OBJECT_BYTES);
        let bytes = least + mix64(name) % (most - least);
        let at_ms = self.done * INTERVAL_MS;
        self.done += 1;
        writeln!(self.line, "{at_ms} REST.{operation}.OBJECT {name:016x} {bytes}")
    }
}

impl Read for ClusterTrace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            self.next_line()?;
        }
        let count = (self.line.len() - self.read).min(buffer.len());
        buffer[..count].copy_from_slice(&self.line[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_measure::Quiet;
    use kvssd_sim::replay::TraceSummary;
    use kvssd_sim::trace::{BadLines, InputBytes, TraceName, TraceReader};
    use std::collections::BTreeMap;

    #[test]
    fn it_is_a_trace_of_ibm_with_the_mix_that_it_says() {
        let mut input = ClusterTrace::new(40_000, 1);
        let reader = TraceReader::new(&mut input, b"", TraceName::Ibm.format(0), BadLines::Stop);
        let summary = TraceSummary::of(reader, "ibm", &InputBytes::default(), &mut Quiet).unwrap();
        assert_eq!((summary.requests, summary.bad_lines), (160_000, 0));
        let of = |action: &str| summary.actions[action];
        // 120 000 requests are about objects that were put before; a GET of one fetches it when it is not there.
        assert!((88_000..92_000).contains(&of("fetch")), "{:?}", summary.actions);
        assert!((48_500..50_700).contains(&of("set")) && (2_000..2_800).contains(&of("delete")));
        assert!(summary.value_bytes_max < 960);
    }

    #[test]
    fn every_object_is_put_once_before_anything_else_and_few_get_most() {
        let mut text = String::new();
        ClusterTrace::new(40_000, 1).read_to_string(&mut text).unwrap();
        let mut requests: BTreeMap<&str, u64> = BTreeMap::new();
        for line in text.lines() {
            let mut fields = line.split(' ').skip(1);
            let (operation, object) = (fields.next().unwrap(), fields.next().unwrap());
            assert!(operation == "REST.PUT.OBJECT" || requests.contains_key(object), "{line}");
            *requests.entry(object).or_default() += 1;
        }
        assert_eq!(requests.len(), 40_000);
        let mut counts: Vec<u64> = requests.into_values().collect();
        counts.sort_unstable();
        let most: u64 = counts[36_000..].iter().sum();
        assert!(most > 60_000, "a tenth has {most} of 160 000 requests");
    }
}
