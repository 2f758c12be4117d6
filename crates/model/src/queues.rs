//! Waiting: how long a command takes while others are under way, and how many are done in a second.
//!
//! ```text
//!   N clients = throughput x mean time of a command         (Little, 1961)
//!   wait at a die, a channel, a core = sum of rate x time^2 / 2 / (1 - load)      (Pollaczek and Khinchine: random arrivals)
//! ```

use crate::busy::{Busy, LOAD_MAX, Piece};
use crate::chain::collection_ns;
use crate::commands::Commands;
use crate::drive::Drive;
use crate::load::Load;
use crate::traffic::Traffic;

impl Busy {
    /// At that rate, with a collector that is as wide as it must be: what it does in one step comes all at once.
    pub(crate) fn at(drive: &Drive, traffic: &Traffic, commands: &Commands, rate: f64) -> Self {
        let with = |step_pages: f64| Busy::with(drive, traffic, commands, rate, step_pages);
        let (mut narrow, mut wide) = (1.0, drive.step_pages.max(1.0));
        if traffic.victim_reads + traffic.map_victim_reads == 0.0 {
            return with(narrow);
        }
        for _ in 0..8 {
            let middle = f64::sqrt(narrow * wide);
            if with(middle).collects(drive, traffic) { wide = middle } else { narrow = middle }
        }
        with(wide)
    }

    fn with(drive: &Drive, traffic: &Traffic, commands: &Commands, rate: f64, step_pages: f64) -> Self {
        drive.work.add(1);
        let (records, look_ups) = (commands.record_reads, traffic.look_up_reads);
        // Neighbouring pages of a victim are sensed at once.
        let read_pages = traffic.victim_reads + traffic.map_victim_reads + traffic.merge_reads;
        let neighbours = drive.neighbours(step_pages);
        let gathered_ns = drive.sense_ns + neighbours * drive.page_transfer_ns;
        let unit_transfer_ns = drive.unit_pages * drive.page_transfer_ns;
        let units = traffic.programs() / drive.unit_pages;
        // Who comes behind a part of a step waits for half of what the step asks of that die.
        let steps = (traffic.victim_reads / step_pages).max(1e-12);
        let together = |reads: f64, places: f64| 1.0 + reads / steps / places;
        let asked = traffic.ask_reads * together(traffic.ask_reads, drive.dies);
        let gathered = together(step_pages * steps / neighbours, drive.dies);
        let at_die = [
            (records, records, drive.read_ns),
            (look_ups, look_ups, drive.index_read_ns),
            (traffic.ask_reads, asked, drive.index_read_ns),
            (read_pages / neighbours, read_pages / neighbours * gathered, gathered_ns),
            (units, units, drive.program_ns + unit_transfer_ns),
            (traffic.erases, traffic.erases, drive.erase_ns),
        ];
        // And at a channel for what its dies have ready at once.
        let asked =
            traffic.ask_reads * together(traffic.ask_reads, drive.channels).min(1.0 + drive.dies / drive.channels);
        let on_channel = [
            (records, records, drive.transfer_ns),
            (look_ups, look_ups, drive.page_transfer_ns),
            (traffic.ask_reads, asked, drive.page_transfer_ns),
            (read_pages, read_pages * neighbours, drive.page_transfer_ns),
            (units, units, unit_transfer_ns),
            (0.0, 0.0, 0.0),
        ];
        let (on_die, on_channel) = (pieces(&at_die, rate / drive.dies), pieces(&on_channel, rate / drive.channels));
        let ((dies, die_wait_ns), (channels, channel_wait_ns)) = (queue(&on_die), queue(&on_channel));
        let flash_ns = records * drive.read_ns + (look_ups + traffic.ask_reads) * drive.index_read_ns;
        let waits_ns = if drive.core_waits { flash_ns } else { 0.0 };
        let cores = rate * (commands.core_ns + waits_ns) / drive.cores;
        let core_ns = (commands.core_ns + waits_ns) / (commands.retrieves + commands.stores).max(1.0);
        // Of several cores one is free as Sakasegawa has it (1977).
        let core_wait_ns = cores.powf(f64::sqrt(2.0 * (drive.cores + 1.0)) - 1.0) * core_ns
            / drive.cores
            / 2.0
            / (1.0 - cores.min(LOAD_MAX));
        let crowd_waits_ns = commands.crowd_waits_ns(drive, traffic, rate, steps);
        let link = rate * drive.times.link_ns * commands.retrieves.max(commands.stores);
        Busy {
            rate,
            dies,
            channels,
            cores,
            link,
            die_wait_ns,
            channel_wait_ns,
            crowd_waits_ns,
            on_die,
            on_channel,
            core_wait_ns,
            step_pages,
        }
    }

    /// The same as retrieves and as stores see it. A command reserves all of its reads when it comes: so those of a long batch, one behind
    /// the other, have their turns before those of retrieves that come later and read earlier; and these wait for that.
    pub(crate) fn as_seen(&self, drive: &Drive, load: &Load, traffic: &Traffic, commands: &Commands) -> (Busy, Busy) {
        let batch = commands.store.times(load.batch_pairs, drive);
        let reads_of_batch = commands.stores * commands.store.reads();
        let share = reads_of_batch / (reads_of_batch + commands.retrieves * commands.retrieve.reads()).max(1e-12);
        let seen = commands.retrieve.mean_ns(drive, self) / batch.mean_ns(drive, self);
        if load.batch_pairs == 1 || share <= 0.0 || seen >= 1.0 || self.read_wait_ns() <= 0.0 {
            return (self.clone(), self.clone());
        }
        let seen = share + (1.0 - share) * seen;
        let mut of_batch = self.clone();
        for pieces in [&mut of_batch.on_die, &mut of_batch.on_channel] {
            pieces[..2].iter_mut().for_each(|(chance, _)| *chance *= seen);
        }
        (of_batch.die_wait_ns, of_batch.channel_wait_ns) = (queue(&of_batch.on_die).1, queue(&of_batch.on_channel).1);
        of_batch.crowd_waits_ns = commands.crowd_waits_ns(drive, traffic, self.rate * seen, 0.0);
        let mut of_others = self.clone();
        let more = (1.0 - share * of_batch.read_wait_ns() / self.read_wait_ns()) / (1.0 - share).max(1e-9);
        for pieces in [&mut of_others.on_die, &mut of_others.on_channel] {
            pieces.iter_mut().for_each(|(_, piece_ns)| *piece_ns *= more);
        }
        (of_others.die_wait_ns, of_others.channel_wait_ns) = (more * self.die_wait_ns, more * self.channel_wait_ns);
        (of_others, of_batch)
    }

    /// Whether collection keeps up.
    pub(crate) fn collects(&self, drive: &Drive, traffic: &Traffic) -> bool {
        self.rate * collection_ns(drive, traffic, self) <= 1.0
    }

    fn is_possible(&self) -> bool {
        [self.dies, self.channels, self.cores, self.link].iter().all(|load| *load < LOAD_MAX)
    }
}

/// What a resource works on that is asked for times at rates. Work is how often it comes, how often that counts for those who wait since
/// it comes together, and its time.
fn pieces(work: &[(f64, f64, f64); 6], rate: f64) -> [Piece; 6] {
    work.map(|(count, counts_as, time_ns)| (rate * count * time_ns, time_ns * counts_as / count.max(1e-300)))
}

/// The load of a resource, and the mean wait.
fn queue(pieces: &[Piece]) -> (f64, f64) {
    let load: f64 = pieces.iter().map(|(chance, _)| chance).sum();
    let residual: f64 = pieces.iter().map(|(chance, piece_ns)| chance * piece_ns / 2.0).sum();
    (load, residual / (1.0 - load.min(LOAD_MAX)))
}

/// How fast collection is beside commands is reckoned so often from how much they wait for each other.
const PACE_STEPS: usize = 4;
/// So little that nobody waits for it.
const NO_RATE: f64 = 1e-3;

/// A drive that clients keep busy.
pub(crate) struct Loop {
    /// Operations a nanosecond.
    pub(crate) rate: f64,
    /// The drive while it does them.
    pub(crate) busy: Busy,
    /// What a store waits for room on average, while the drive does none.
    pub(crate) store_wait_ns: f64,
    /// What a retrieve and a batch of stores wait for the part that works all the time, beyond what it makes them wait at [`LOAD_MAX`].
    pub(crate) turn_wait_ns: TurnWait,
}

/// A wait of retrieves, and one of stores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnWait {
    pub(crate) retrieve_ns: f64,
    pub(crate) store_ns: f64,
}

impl TurnWait {
    /// All clients are somewhere (Little): those that the mean time of an operation does not account for stand in line at the busiest part.
    fn new(drive: &Drive, load: &Load, commands: &Commands, busy: &Busy) -> Self {
        let left_ns = f64::from(load.clients) / busy.rate - commands.mean_ns(drive, load, busy);
        let batches = commands.stores / f64::from(load.batch_pairs);
        let busiest = [busy.dies.max(busy.channels), busy.cores, busy.link];
        let most = busiest.iter().copied().fold(0.0, f64::max);
        // How often a command stands in that line.
        let (of_retrieve, of_store) = if most == busy.link {
            // Each direction has a line of its own.
            let is_busy = |ours: f64, others: f64| if ours >= 0.99 * others { 1.0 } else { 0.0 };
            (is_busy(commands.retrieves, commands.stores), is_busy(commands.stores, commands.retrieves))
        } else if most == busy.cores {
            (1.0, 1.0)
        } else {
            let of_retrieve = commands.retrieve.reads();
            let of_store = commands.store.times(load.batch_pairs, drive).reads();
            // Where nobody reads, stores wait for programs, which make room in the write buffer.
            let is_read = commands.retrieves * of_retrieve + batches * of_store > 0.0;
            (of_retrieve, if is_read { of_store } else { 1.0 })
        };
        let turns = commands.retrieves * of_retrieve + batches * of_store;
        if most < 0.99 * LOAD_MAX || left_ns <= 0.0 || turns <= 0.0 {
            return TurnWait::default();
        }
        TurnWait { retrieve_ns: left_ns * of_retrieve / turns, store_ns: left_ns * of_store / turns }
    }
}

/// The throughput of a closed loop.
pub(crate) fn closed_loop(drive: &Drive, load: &Load, traffic: &Traffic, commands: &Commands) -> Loop {
    let clients = f64::from(load.clients);
    let least_ns = commands.mean_ns(drive, load, &Busy::at(drive, traffic, commands, 0.0));
    let low = highest(0.0, clients / least_ns, |rate| {
        let busy = Busy::at(drive, traffic, commands, rate);
        busy.is_possible() && rate * commands.mean_ns(drive, load, &busy) <= clients
    });
    let alone = Busy::at(drive, traffic, commands, low);
    if alone.collects(drive, traffic) || commands.stores == 0.0 {
        let turn_wait_ns = TurnWait::new(drive, load, commands, &alone);
        return Loop { rate: low, busy: alone, store_wait_ns: 0.0, turn_wait_ns };
    }
    // Stores wait for room: there are times at which clients have what collection gives, and times at which it goes on alone.
    let beside = |rate: f64| {
        let with =
            |pace: f64| Busy::with(drive, &traffic.paced(pace / rate), commands, rate, drive.step_pages.max(1.0));
        let mut pace = alone.rate;
        for _ in 0..PACE_STEPS {
            pace = f64::sqrt(pace / collection_ns(drive, traffic, &with(pace)));
        }
        (with(pace), pace)
    };
    let (_, pace_alone) = beside(alone.rate * NO_RATE);
    let rate_active = highest(0.0, clients / least_ns, |rate| {
        let (busy, pace) = beside(rate);
        busy.is_possible() && (pace >= rate || rate * commands.mean_ns(drive, load, &busy) <= clients)
    });
    let (busy, pace) = beside(rate_active);
    let active = (pace_alone / (rate_active - pace + pace_alone)).min(1.0);
    let rate = active * rate_active;
    let store_wait_ns = clients * (1.0 - active) / (rate * commands.stores);
    Loop { rate, busy, store_wait_ns, turn_wait_ns: TurnWait::default() }
}

/// The highest rate between the two that is possible, as near as a ten-thousandth.
fn highest(mut low: f64, mut high: f64, is_possible: impl Fn(f64) -> bool) -> f64 {
    while high - low > 1e-4 * high {
        let rate = (low + high) / 2.0;
        if is_possible(rate) { low = rate } else { high = rate }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mix;
    use kvssd_designs::{KAML, ORIGINAL};
    use kvssd_flash::Profile;

    #[test]
    fn half_a_load_of_equal_work_waits_for_half_of_one() {
        let (load, wait_ns) = queue(&[(0.5, 100.0)]);
        assert!((load - 0.5).abs() < 1e-12 && (wait_ns - 50.0).abs() < 1e-9, "{load} {wait_ns}");
    }

    fn load(batch_pairs: u32) -> Load {
        Load { batch_pairs, ..Load::half_and_half(80_000) }
    }

    /// Little's law holds with the waiting for room, and beside a collector that never rests commands are as fast as the drive lets them.
    #[test]
    fn a_drive_whose_collection_is_slower_works_and_waits_in_turn() {
        let (profile, load) = (Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 1024.0).unwrap(), load(1));
        let drive = Drive::new(&profile, &KAML, &load).unwrap();
        let look_ups = vec![0.0; drive.forecast.visits.len()];
        let with = |victims: f64| {
            let pages = victims * drive.superblock_pages;
            let (victim_reads, moved_pages, erases) = (pages, 0.9 * pages, victims * drive.dies);
            Traffic {
                victim_reads,
                moved_pages,
                moved: 3.0 * pages,
                erases,
                victims,
                user_pages: 0.125,
                ..Traffic::default()
            }
        };
        let at_work = |traffic: &Traffic| {
            let commands = Commands::new(&drive, &load, traffic, &look_ups);
            let at_work = closed_loop(&drive, &load, traffic, &commands);
            let mean_ns = commands.mean_ns(&drive, &load, &at_work.busy) + commands.stores * at_work.store_wait_ns;
            (at_work, mean_ns)
        };
        let (rests, _) = at_work(&with(0.0001));
        let (never, mean_ns) = at_work(&with(0.01));
        assert!(rests.store_wait_ns == 0.0 && never.store_wait_ns > 0.0);
        assert!(
            never.busy.rate > 1.2 * never.rate && never.rate < 0.8 * rests.rate,
            "{} {}",
            never.busy.rate,
            never.rate
        );
        assert!((never.rate * mean_ns / 20.0 - 1.0).abs() < 0.01, "{}", never.rate * mean_ns);
    }

    /// More clients than the busiest part can serve stand in line there, whichever it is, and nobody is lost.
    #[test]
    fn littles_law_holds_however_many_wait_for_the_busiest_part() {
        let half = load(1).mix;
        let stores = Mix::Points { retrieves: 0.0, stores: 1.0, modifies: false };
        let cases = [
            (0, "link.bytes_per_s", "20000000", &ORIGINAL, half),
            (1, "nand.read_small_ns", "[9000000]", &ORIGINAL, half),
            (1, "nand.program_ns", "900000000", &KAML, stores),
            (2, "core_costs.comparison_ns", "90000", &ORIGINAL, half),
        ];
        for (part, key, value, design, mix) in cases {
            let profile = Profile::load("kvvirt", &[(key.to_owned(), value.to_owned())]).unwrap();
            let profile = profile.scaled(1.0 / 1024.0).unwrap();
            let load = Load { clients: 5000, mix, ..load(1) };
            let drive = Drive::new(&profile, design, &load).unwrap();
            let traffic = Traffic { look_up_reads: 0.5, user_pages: 0.125, index_pages: 0.5, ..Traffic::default() };
            let commands = Commands::new(&drive, &load, &traffic, &[0.5]);
            let Loop { rate, busy, turn_wait_ns: wait, .. } = closed_loop(&drive, &load, &traffic, &commands);
            assert!([busy.link, busy.dies, busy.cores][part] > 0.96, "{key}: {busy:?}");
            let waits_ns = commands.retrieves * wait.retrieve_ns + commands.stores * wait.store_ns;
            let mean_ns = commands.mean_ns(&drive, &load, &busy) + waits_ns;
            assert!((rate * mean_ns / 5000.0 - 1.0).abs() < 0.01 && waits_ns > 0.0, "{key}: {}", rate * mean_ns);
            if key == "nand.read_small_ns" {
                let of_reads = commands.retrieve.reads() / commands.store.reads();
                assert!((wait.retrieve_ns / wait.store_ns / of_reads - 1.0).abs() < 1e-9, "each read waits as long");
            }
        }
    }

    #[test]
    fn a_long_batch_waits_less_than_retrieves_do_and_all_together_wait_as_before() {
        let (profile, load) = (Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 1024.0).unwrap(), load(8));
        let drive = Drive::new(&profile, &ORIGINAL, &load).unwrap();
        let hits = [0.5];
        let traffic = Traffic { look_up_reads: 0.5, user_pages: 0.125, index_pages: 0.5, ..Traffic::default() };
        let commands = Commands::new(&drive, &load, &traffic, &hits);
        let busy = closed_loop(&drive, &load, &traffic, &commands).busy;
        let (of_retrieve, of_batch) = busy.as_seen(&drive, &load, &traffic, &commands);
        let (long, short) = (of_batch.read_wait_ns(), of_retrieve.read_wait_ns());
        assert!(long < 0.95 * busy.read_wait_ns() && short > 1.02 * busy.read_wait_ns(), "{long} {short}");
        let (of_batches, of_retrieves) = (commands.stores * commands.store.reads(), 0.5 * commands.retrieve.reads());
        let mean_ns = (of_batches * long + of_retrieves * short) / (of_batches + of_retrieves);
        assert!((mean_ns / busy.read_wait_ns() - 1.0).abs() < 1e-6);
        let alone = busy.as_seen(&drive, &Load { batch_pairs: 1, ..load }, &traffic, &commands);
        assert!(alone.0.read_wait_ns() == busy.read_wait_ns() && alone.1.read_wait_ns() == busy.read_wait_ns());
    }
}
