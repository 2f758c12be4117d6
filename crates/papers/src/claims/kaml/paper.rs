//! What the paper's text gives, for claims and figures alike: of KAML over the block drive, unless something else is said (section VI).

/// Throughput of reads with an empty table: up to so much.
pub(super) const READS: f64 = 1.2;
/// Throughput of updates below 4 KB, from the least to the largest.
pub(super) const UPDATES: [f64; 2] = [6.7, 7.9];
/// Throughput of inserts below 4 KB, from the least to the largest.
pub(super) const INSERTS: [f64; 2] = [1.0, 1.1];
/// Latency of updates of small records.
pub(super) const UPDATE_LATENCY: f64 = 0.2;
/// Latency of inserts below 4 KB, from the least to the largest; of 4 KB.
pub(super) const INSERT_LATENCY: [f64; 2] = [0.63, 0.75];
pub(super) const INSERT_LATENCY_4_KIB: f64 = 2.9;
/// Throughput in batches of 4 over single Puts, from the least to the largest.
pub(super) const BATCHES: [f64; 2] = [1.2, 1.3];
/// Time to fill a namespace in batches, over that with single Puts.
pub(super) const FILLING: f64 = 0.6;
/// Throughput with 64 logs over 16.
pub(super) const LOGS: f64 = 5.8;
/// YCSB over the page-based engine: the least, the largest, the mean.
pub(super) const YCSB: [f64; 3] = [1.1, 3.0, 2.3];
