//! Writes a trace that looks as Twitter's do, to measure how fast traces are read and replayed.
//!
//! ```sh
//! cargo run --release -p kvssd-sim --example twitter_trace -- 10000000 1000000 230 > trace.csv
//! ```
//!
//! The arguments are the number of lines, of keys, and the mean size of a value in bytes. Keys are asked for by the zipfian law; of a
//! hundred requests 70 are gets, 28 sets, and the rest a delete and a memcached command that is seldom; 100 000 lines a second. The
//! defaults are the shares and sizes of a common cluster (Yang et al., OSDI 2020: 90 % of the clusters read more than they write; the
//! median object has 230 bytes).

use kvssd_sim::workload::{Chooser, Distribution};
use kvssd_types::Random;
use std::io::{self, BufWriter, Write};

const LINES_PER_SECOND: u64 = 100_000;
const RARE: [&str; 8] = ["gets", "add", "replace", "cas", "append", "prepend", "incr", "decr"];

fn main() -> io::Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (lines, keys, value_bytes) = (number(0, 1_000_000), number(1, 100_000), number(2, 230));
    let mut random = Random::new(1);
    let mut chooser = Chooser::new(Distribution::Zipfian, keys);
    let mut out = BufWriter::new(io::stdout().lock());
    for line in 0..lines {
        let key = chooser.next(keys, &mut random);
        let size = value_bytes / 2 + Random::new(key).below(value_bytes + 1);
        let (operation, ttl) = match random.below(100) {
            0..70 => ("get", 0),
            70..98 => ("set", 86_400),
            98 => ("delete", 0),
            _ => (RARE[random.below(RARE.len() as u64) as usize], 0),
        };
        let size = if operation == "append" || operation == "prepend" { size.min(8) } else { size };
        let client = random.below(500);
        writeln!(out, "{},u:p:{key:016x},20,{size},{client},{operation},{ttl}", line / LINES_PER_SECOND)?;
    }
    out.flush()
}
