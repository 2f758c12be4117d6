//! What the paper's text gives, for claims and figures alike: of plus over original (section V).

/// Throughput of write-heavy loads without locality, and with it: up to so much.
pub(super) const A_UNIFORM: f64 = 2.1;
pub(super) const A_ZIPFIAN: f64 = 1.25;
/// Throughput of reads without locality: up to so much.
pub(super) const READS_UNIFORM: f64 = 1.4;
/// Throughput of reads alone with locality.
pub(super) const C_ZIPFIAN: f64 = 0.97;
/// Bytes of pairs that are read for requests.
pub(super) const PAIRS_READ: f64 = 0.75;
/// Pages of the hash table that collection reads and writes.
pub(super) const TABLE_PAGES: f64 = 0.1;
/// The throughput that small values leave, at least, of that with large ones.
pub(super) const SMALL_VALUES: f64 = 0.5;
