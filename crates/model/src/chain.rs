//! The chain of garbage collection: one step behind the other, each as long as the slowest of what it asks for at once.
//!
//! ```text
//!   step = the units of a victim, which lie on one die after the other: sensed side by side, over their channels in turn
//!        + the longest of what they wait for their dies
//!        + pieces of the index, which lie anywhere, and some of their dies have several of them
//! ```

use crate::busy::{Busy, LOAD_MAX, Piece};
use crate::drive::Drive;
use crate::traffic::Traffic;
use kvssd_ftl::index::Changes;

/// How long the chain of collection takes for an operation.
pub(crate) fn collection_ns(drive: &Drive, traffic: &Traffic, busy: &Busy) -> f64 {
    let neighbours = drive.neighbours(busy.step_pages);
    // The last step of a victim is a part of one.
    let map_victims = (traffic.erases / drive.dies - traffic.victims).max(0.0);
    let victim_steps = traffic.victim_reads / busy.step_pages + traffic.victims / 2.0;
    let map_steps = traffic.map_victim_reads / busy.step_pages + map_victims / 2.0;
    let units = busy.step_pages / neighbours;
    let unit_transfer_ns = neighbours * drive.page_transfer_ns;
    let victim_ns = drive.sense_ns
        + (units / drive.dies).max(1.0) * busy.channel_wait_ns
        + (units / drive.channels).max(1.0) * unit_transfer_ns
        + longest_wait_ns(busy, units.min(drive.dies));
    // So many batches, each of so many pieces of the index.
    let batches_ns = |batches: f64, pieces: f64| {
        let mean = pieces / drive.dies;
        let most = (mean + f64::sqrt(2.0 * mean * drive.dies.ln())).max(1.0);
        let batch_ns =
            most * (drive.index_read_ns + busy.channel_wait_ns) + longest_wait_ns(busy, pieces.clamp(1.0, drive.dies));
        batches * (1.0 - (-pieces).exp()) * batch_ns
    };
    let of_step = 1.0 / victim_steps.max(1e-12);
    let first = (traffic.ask_reads - traffic.again_reads) * of_step;
    let ask_ns = match drive.forecast.changes {
        // As many pairs together as have room in half of the cache, and then the others.
        Changes::InPlace => {
            let cached: f64 = drive.forecast.visits.iter().map(|visit| visit.in_dram * visit.pieces).sum();
            let full = (traffic.asked.max(traffic.moved) * of_step / (cached / 2.0).max(1.0)).max(1e-12);
            let in_full = first / full.max(1.0);
            batches_ns(full.floor(), in_full) + batches_ns(1.0, first - full.floor() * in_full)
        }
        // Level by level.
        Changes::Merged { .. } => {
            let on_flash = drive.forecast.visits.iter().filter(|visit| visit.in_dram < 1.0);
            let levels = on_flash.map(|visit| visit.at_times.map_or(1.0, |at_times| at_times.share)).sum::<f64>();
            batches_ns(levels.max(1.0), first / levels.max(1.0))
        }
    };
    let again_ns = batches_ns(1.0, traffic.again_reads * of_step);
    let times = &drive.times;
    let core_ns = traffic.asked * times.ask_core_ns + traffic.moved * times.move_core_ns;
    (victim_steps + map_steps) * victim_ns
        + victim_steps * (ask_ns + again_ns)
        + core_ns
        + traffic.victims * drive.erase_ns
}

/// The longest of so many waits for dies, each of which works on one of its pieces or on none: a rest is any part of it.
fn longest_wait_ns(busy: &Busy, waits: f64) -> f64 {
    let mut pieces: [Piece; 6] = busy.on_die;
    pieces.sort_unstable_by(|left, right| left.1.total_cmp(&right.1));
    let works: f64 = pieces.iter().map(|(chance, _)| chance).sum();
    let none_longer = |time_ns: f64| {
        let longer: f64 =
            pieces.iter().map(|(chance, piece_ns)| chance * (1.0 - time_ns / piece_ns.max(1e-9)).max(0.0)).sum();
        (waits * (1.0 - longer.min(1.0)).max(1e-12).ln()).exp()
    };
    // Two points between two lengths are near enough.
    let (mut from, mut sum) = (0.0, 0.0);
    for (_, to) in pieces.into_iter().filter(|(chance, _)| *chance > 0.0) {
        for part in [0.25, 0.75] {
            sum += (to - from) / 2.0 * (1.0 - none_longer(from + part * (to - from)));
        }
        from = to;
    }
    // What had come before has its turn first.
    sum / (1.0 - works.min(LOAD_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Commands;
    use crate::load::Load;
    use kvssd_designs::TESSERA;
    use kvssd_flash::Profile;

    fn busy() -> (Drive, Busy) {
        let load = Load::half_and_half(80_000);
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 1024.0).unwrap();
        let drive = Drive::new(&profile, &TESSERA, &load).unwrap();
        let traffic = Traffic::default();
        let commands = Commands::new(&drive, &load, &traffic, &[1.0]);
        let busy = Busy { step_pages: 64.0, ..Busy::at(&drive, &traffic, &commands, 0.0) };
        (drive, busy)
    }

    #[test]
    fn of_many_waits_one_is_nearly_as_long_as_the_longest_piece_and_of_one_it_is_the_mean() {
        let (_, mut busy) = busy();
        busy.on_die = [(0.0, 0.0); 6];
        assert_eq!(longest_wait_ns(&busy, 64.0), 0.0, "nobody works");
        busy.on_die[0] = (0.1, 1000.0);
        let [one, some, many] = [1.0, 8.0, 1e4].map(|waits| 0.9 * longest_wait_ns(&busy, waits));
        assert!(
            (one - 50.0).abs() < 5.0 && one < some && some < many && 950.0 < many && many <= 1000.0,
            "{one} {some} {many}"
        );
    }

    /// A victim whose pages are read in so many steps and a part of one takes as long as one more; what finds its pieces in DRAM reads none.
    #[test]
    fn a_victim_takes_its_steps_and_what_they_ask() {
        let (drive, busy) = busy();
        let of = |victim_reads: f64, ask_reads: f64| {
            let traffic = Traffic { victim_reads, ask_reads, victims: 1.0, ..Traffic::default() };
            collection_ns(&drive, &traffic, &busy) - drive.erase_ns
        };
        let step_ns = of(96.0, 0.0) / 2.0;
        assert!((of(224.0, 0.0) / 4.0 / step_ns - 1.0).abs() < 1e-9 && step_ns > drive.sense_ns);
        assert!(of(96.0, 40.0) > 2.0 * (step_ns + drive.index_read_ns) && of(96.0, 0.2) < 2.4 * step_ns);
    }
}
