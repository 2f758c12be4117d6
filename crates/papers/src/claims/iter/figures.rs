//! What the figures of the sweep look like (iter.11 to .14).

use super::EQUAL;
use super::sweep::{DEGREES, Row, SweepCell};
use crate::claims::Verdict;

/// Values of 128 B and of 4 KB, which NVMe moves alike.
const MOVED_ALIKE: [u32; 2] = [128, 4096];
/// Those that saturate the flash.
const LARGE_BYTES: u32 = 128 << 10;

/// The pairs of rows that differ in one thing only, in the order of that.
fn neighbours<'r, 'c, K: PartialEq>(
    rows: &'r [Row<'c>],
    same: impl Fn(&SweepCell) -> K,
    order: impl Fn(&SweepCell) -> u32,
) -> Vec<[&'r Row<'c>; 2]> {
    let mut pairs = Vec::new();
    for left in rows {
        let key = (same(left.cells[0]), order(left.cells[0]));
        let behind = rows.iter().filter(|row| same(row.cells[0]) == key.0 && order(row.cells[0]) > key.1);
        if let Some(next) = behind.min_by_key(|row| order(row.cells[0])) {
            pairs.push([left, next]);
        }
    }
    pairs
}

/// The rate of the second over that of the first, by fixed degree.
fn rates(left: &Row<'_>, right: &Row<'_>) -> Vec<f64> {
    left.fixed().zip(right.fixed()).map(|(left, right)| right.bytes_s / left.bytes_s).collect()
}

fn least(of: impl IntoIterator<Item = f64>) -> f64 {
    of.into_iter().fold(f64::INFINITY, f64::min)
}

/// How long ranges of the two sizes take (iter.11).
pub(super) fn small_values(rows: &[Row<'_>]) -> (String, Verdict) {
    let of = |bytes: u32| rows.iter().filter(move |row| row.cells[0].value_bytes == bytes);
    let [small, large] = MOVED_ALIKE.map(of);
    // Bytes a second over bytes are values a second.
    let ratios = small.zip(large).flat_map(|(small, large)| rates(large, small));
    let times = f64::from(MOVED_ALIKE[1]) / f64::from(MOVED_ALIKE[0]);
    let ratios: Vec<f64> = ratios.map(|ratio| ratio * times).collect();
    let (low, high) = (least(ratios.iter().copied()), ratios.iter().copied().fold(0.0, f64::max));
    (format!("{low:.2}x to {high:.2}x"), Verdict::if_true((0.8..=1.2).contains(&low) && (0.8..=1.2).contains(&high)))
}

/// By scan length and by size of values (iter.12).
pub(super) fn rises(rows: &[Row<'_>]) -> (String, Verdict) {
    let by_length = neighbours(rows, |cell| cell.value_bytes, |cell| cell.scan_length);
    let by_size = neighbours(rows, |cell| cell.scan_length, |cell| cell.value_bytes);
    let worst = |pairs: &[[&Row<'_>; 2]]| least(pairs.iter().flat_map(|[left, right]| rates(left, right)));
    let gain_of = |is_large: bool| {
        let wanted = rows.iter().filter(|row| (row.cells[0].value_bytes == LARGE_BYTES) == is_large);
        wanted.map(Row::gain).fold(0.0, f64::max)
    };
    let (length, size, flat) = (worst(&by_length), worst(&by_size), gain_of(true) / gain_of(false));
    let holds = length >= 1.0 - EQUAL && size > 1.0 && flat < 0.8;
    (format!("{length:.2}x; {size:.2}x; {flat:.2}x"), Verdict::if_true(holds))
}

/// Seek against Next, and ranges by degree (iter.13).
pub(super) fn seeks(rows: &[Row<'_>]) -> (String, Verdict) {
    let small = || rows.iter().filter(|row| row.cells[0].value_bytes == MOVED_ALIKE[0]);
    let over_next = least(small().flat_map(|row| row.fixed().map(|cell| cell.seek.mean / cell.next.mean)));
    let [first, last] = [DEGREES[0], DEGREES[DEGREES.len() - 1]].map(|degree| degree.to_string());
    let falls = |row: &Row<'_>| {
        let rate = |degree: &str| row.degree(degree).map_or(f64::NAN, |cell| cell.bytes_s);
        rate(&first) / rate(&last)
    };
    let most = rows.iter().map(falls).fold(0.0, f64::max);
    (format!("{over_next:.1}x; {most:.2}x"), Verdict::if_true(over_next > 1.0 && most < 1.0))
}

/// After fillseq over after fillrandom (iter.14): "the overall throughput" is higher (section 5.3.2), and nowhere lower.
pub(super) fn orders(scattered: &[Row<'_>], ordered: &[Row<'_>]) -> (String, Verdict) {
    let ratios: Vec<f64> =
        scattered.iter().zip(ordered).flat_map(|(scattered, ordered)| rates(scattered, ordered)).collect();
    let overall = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let worst = least(ratios);
    (format!("{overall:.2}x; {worst:.2}x"), Verdict::if_true(overall > 1.0 + EQUAL && worst >= 1.0 - EQUAL))
}
