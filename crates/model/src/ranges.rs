//! Ranges, from where a Seek ends on.

use crate::busy::LOAD_MAX;
use crate::drive::Drive;
use crate::load::{Load, Mix};

/// Ranges at their throughput.
pub(crate) struct Ranges {
    /// Ranges a nanosecond.
    pub(crate) rate: f64,
    /// The time of a Seek.
    pub(crate) seek_ns: f64,
    /// Flash reads of a range.
    pub(crate) reads: f64,
    /// Load of the dies, of their channels, of the cores, and of the link.
    pub(crate) loads: [f64; 4],
}

/// None where the load has no ranges. Each Next is a command; what is read ahead takes no time of its own.
pub(crate) fn ranges(drive: &Drive, load: &Load) -> Option<Ranges> {
    let Mix::Ranges { nexts, in_order } = load.mix else { return None };
    let nexts = f64::from(nexts);
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
    let range_ns = seek_ns + nexts * each_ns;
    let (index_reads, record_reads) = (index_reads * pieces, nexts * pages_a_next);
    let reads = index_reads + record_reads;
    let waits_ns = if drive.core_waits { range_ns - (nexts + 1.0) * next_ns } else { 0.0 };
    // What a range takes of each part.
    let parts_ns = [
        reads * drive.read_ns / drive.dies,
        (index_reads * drive.page_transfer_ns + record_reads * drive.transfer_ns) / drive.channels,
        ((nexts + 1.0) * times.retrieve_core_ns + waits_ns) / drive.cores,
        nexts.max(1.0) * times.link_ns,
    ];
    let most_ns = parts_ns.iter().copied().fold(0.0, f64::max);
    let rate = (f64::from(load.clients) / range_ns).min(LOAD_MAX / most_ns);
    Some(Ranges { rate, seek_ns, reads, loads: parts_ns.map(|part_ns| rate * part_ns) })
}

#[cfg(test)]
mod tests {
    use crate::{Estimate, HeldBackBy, Load, Mix, estimate};
    use kvssd_designs::named;
    use kvssd_flash::Profile;

    const NEXTS: u32 = 128;

    fn profile(keys: &[(&str, &str)]) -> Profile {
        let keys: Vec<_> = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Profile::load("kvvirt", &keys).unwrap().scaled(1.0 / 256.0).unwrap()
    }

    /// Ranges of a drive that was filled once, in the order of the keys or in none.
    fn of(profile: &Profile, design: &str, in_order: bool, value_bytes: u32, clients: u32) -> Estimate {
        let mix = Mix::Ranges { nexts: NEXTS, in_order };
        let load = Load { mix, value_bytes, clients, overwrites: 0, ..Load::half_and_half(20_000) };
        estimate(profile, &named(design).unwrap(), &load).unwrap()
    }

    /// The throughput is what this part can do, nearly, and the part is named.
    fn is_bound_by(estimate: &Estimate, part: HeldBackBy, most_ops_s: f64) {
        let share = estimate.throughput_ops_s / most_ops_s;
        assert!((0.9..=1.0).contains(&share) && estimate.held_back_by == part, "{part:?}, {most_ops_s}: {estimate:?}");
    }

    #[test]
    fn cores_bound_ranges() {
        let one = [("core_costs.cores", "1"), ("core_costs.command_ns", "20000")];
        // A Seek and its Nexts are 2.58 ms of the core.
        is_bound_by(&of(&profile(&one), "iter", false, 1000, 20), HeldBackBy::Cores, 1e9 / (129.0 * 20_000.0));
        let two = [("core_costs.cores", "2"), one[1]];
        is_bound_by(&of(&profile(&two), "iter", false, 1000, 20), HeldBackBy::Cores, 2e9 / (129.0 * 20_000.0));
        assert_eq!(of(&profile(&two), "iter", false, 1000, 1).held_back_by, HeldBackBy::Clients);
    }

    /// Without values that are read ahead each Next is a read, for which its core waits.
    #[test]
    fn cores_that_wait_for_flash_bound_ranges_by_its_time() {
        let keys = [
            ("core_costs.cores", "2"),
            ("core_costs.waits_for_flash", "true"),
            ("nand.read_small_ns", "[1000000]"),
            ("nand.read_large_ns", "[1000000]"),
        ];
        is_bound_by(&of(&profile(&keys), "pink", false, 1000, 20), HeldBackBy::Cores, 2e9 / (129.0 * 1e6));
    }

    #[test]
    fn channels_bound_ranges() {
        let profile = profile(&[("nand.channel_bytes_per_s", "1000000")]);
        // Of values that lie anywhere each is a sector of 4 KiB at the least.
        let most = f64::from(profile.geometry.channels) * 1e6 / (128.0 * 4096.0);
        is_bound_by(&of(&profile, "iter", false, 100, 256), HeldBackBy::Channels, most);
    }

    #[test]
    fn the_link_bounds_ranges() {
        let profile = profile(&[]);
        let most = 1e9 / (128.0 * profile.link_time(4000).0 as f64);
        is_bound_by(&of(&profile, "iter", true, 4000, 256), HeldBackBy::Link, most);
    }
}
