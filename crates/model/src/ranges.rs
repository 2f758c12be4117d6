//! Ranges, from where a Seek ends on.

use crate::busy::LOAD_MAX;
use crate::drive::Drive;
use crate::load::{Load, Mix};

/// Ranges a nanosecond, the time of a Seek, and the flash reads of a range; none where the load has no ranges. Each Next is a
/// command; what is read ahead takes no time of its own.
pub(crate) fn ranges(drive: &Drive, load: &Load) -> Option<(f64, f64, f64)> {
    let Mix::Ranges { nexts, in_order } = load.mix else { return None };
    let times = &drive.times;
    let next_ns = times.retrieve_ns + times.retrieve_core_ns + times.link_ns;
    let pages_a_next = if in_order { drive.record.pages.min(1.0) } else { drive.record.reads };
    let index_reads: f64 =
        drive.forecast.visits.iter().map(|visit| visit.reached.max(1.0) * (1.0 - visit.in_dram)).sum();
    let pieces = drive.forecast.range_pieces;
    // Tables are searched side by side.
    let search_ns = drive.sense_ns + pieces * drive.piece_pages() * drive.page_transfer_ns;
    let seek_ns = next_ns + if index_reads > 0.0 { search_ns } else { 0.0 } + drive.read_ns;
    let each_ns = next_ns + if drive.prefetches { 0.0 } else { pages_a_next * drive.read_ns };
    let range_ns = seek_ns + f64::from(nexts) * each_ns;
    let reads = index_reads * pieces + f64::from(nexts) * pages_a_next;
    let rate_max = LOAD_MAX
        * (drive.dies / (reads * drive.read_ns)).min(1.0 / (f64::from(nexts).max(1.0) * times.link_ns.max(1.0)));
    Some(((f64::from(load.clients) / range_ns).min(rate_max), seek_ns, reads))
}
