//! Waiting: how long a command takes while others are under way, and how many are done in a second.
//!
//! ```text
//!   N clients = throughput x mean time of a command         (Little, 1961)
//!   wait at a die, a channel, a core = sum of rate x time^2 / 2 / (1 - load)      (Pollaczek and Khinchine: random arrivals)
//! ```

use crate::chain::collection_ns;
use crate::collection::Traffic;
use crate::commands::Commands;
use crate::drive::Drive;
use crate::load::Load;

/// No resource is loaded more.
pub(crate) const LOAD_MAX: f64 = 0.97;

/// A drive at one throughput.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    /// Operations a nanosecond.
    pub(crate) rate: f64,
    /// Load of the dies, of their channels, of the cores, and of the link's busier direction.
    pub(crate) dies: f64,
    pub(crate) channels: f64,
    pub(crate) cores: f64,
    pub(crate) link: f64,
    /// What a read waits for its die, and for its channel.
    pub(crate) die_wait_ns: f64,
    pub(crate) channel_wait_ns: f64,
    /// What a look-up that reads all of its pieces waits for dies that have few of them, which all look-ups want.
    pub(crate) crowd_wait_ns: f64,
    /// What a command waits for a core, each time.
    pub(crate) core_wait_ns: f64,
    /// Pages that a step of collection reads: so many that it keeps up, if it can.
    pub(crate) step_pages: f64,
}

impl Busy {
    /// What a read waits.
    pub(crate) fn read_wait_ns(&self) -> f64 {
        self.die_wait_ns + self.channel_wait_ns
    }

    /// At that rate, with a collector that is as wide as it must be: what it does in one step comes all at once.
    pub(crate) fn at(drive: &Drive, traffic: &Traffic, commands: &Commands, rate: f64) -> Self {
        let with = |step_pages: f64| Busy::with(drive, traffic, commands, rate, step_pages);
        let (mut narrow, mut wide) = (1.0, drive.step_pages.max(1.0));
        for _ in 0..8 {
            let middle = f64::sqrt(narrow * wide);
            if with(middle).collects(drive, traffic) { wide = middle } else { narrow = middle }
        }
        with(wide)
    }

    fn with(drive: &Drive, traffic: &Traffic, commands: &Commands, rate: f64, step_pages: f64) -> Self {
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
        let asked = traffic.ask_reads * together(traffic.ask_reads, drive.channels);
        let on_channel = [
            (records, records, drive.transfer_ns),
            (look_ups, look_ups, drive.page_transfer_ns),
            (traffic.ask_reads, asked, drive.page_transfer_ns),
            (read_pages, read_pages * neighbours, drive.page_transfer_ns),
            (units, units, unit_transfer_ns),
        ];
        let (dies, die_wait_ns) = queue(&at_die, rate / drive.dies);
        let (channels, channel_wait_ns) = queue(&on_channel, rate / drive.channels);
        let flash_ns = records * drive.read_ns + (look_ups + traffic.ask_reads) * drive.index_read_ns;
        let waits_ns = if drive.core_waits { flash_ns } else { 0.0 };
        let cores = rate * (commands.core_ns + waits_ns) / drive.cores;
        let core_ns = (commands.core_ns + waits_ns) / (commands.retrieves + commands.stores).max(1.0);
        // Of several cores one is free as Sakasegawa has it (1977).
        let core_wait_ns = cores.powf(f64::sqrt(2.0 * (drive.cores + 1.0)) - 1.0) * core_ns
            / drive.cores
            / 2.0
            / (1.0 - cores.min(LOAD_MAX));
        let crowd_wait_ns = commands.crowd_wait_ns(drive, rate);
        let link = rate * drive.times.link_ns * commands.retrieves.max(commands.stores);
        Busy {
            rate,
            dies,
            channels,
            cores,
            link,
            die_wait_ns,
            channel_wait_ns,
            crowd_wait_ns,
            core_wait_ns,
            step_pages,
        }
    }

    fn collects(&self, drive: &Drive, traffic: &Traffic) -> bool {
        self.rate * collection_ns(drive, traffic, self) <= 1.0
    }

    fn is_possible(&self) -> bool {
        [self.dies, self.channels, self.cores, self.link].iter().all(|load| *load < LOAD_MAX)
    }
}

/// The load of a resource that is asked for times at rates, and the mean wait. Work is how often it comes, how often that counts for
/// those who wait since it comes together, and its time.
fn queue(work: &[(f64, f64, f64)], rate: f64) -> (f64, f64) {
    let load: f64 = work.iter().map(|(count, _, time_ns)| rate * count * time_ns).sum();
    let residual: f64 = work.iter().map(|(_, count, time_ns)| rate * count * time_ns * time_ns / 2.0).sum();
    (load, residual / (1.0 - load.min(LOAD_MAX)))
}

/// The throughput of a closed loop: the drive at it, and whether stores wait for garbage collection.
pub(crate) fn closed_loop(drive: &Drive, load: &Load, traffic: &Traffic, commands: &Commands) -> (Busy, bool) {
    let clients = f64::from(load.clients);
    let least_ns = commands.mean_ns(drive, load, &Busy::at(drive, traffic, commands, 0.0));
    let (mut low, mut high) = (0.0, clients / least_ns);
    for _ in 0..60 {
        let rate = (low + high) / 2.0;
        let busy = Busy::at(drive, traffic, commands, rate);
        let keeps_up = busy.is_possible() && rate * commands.mean_ns(drive, load, &busy) <= clients;
        if keeps_up { low = rate } else { high = rate }
    }
    let alone = Busy::at(drive, traffic, commands, low);
    if alone.collects(drive, traffic) || commands.stores == 0.0 {
        return (alone, false);
    }
    let (mut low, mut high) = (0.0, alone.rate);
    for _ in 0..60 {
        let rate = (low + high) / 2.0;
        let busy = Busy::at(drive, traffic, commands, rate);
        if busy.collects(drive, traffic) { low = rate } else { high = rate }
    }
    (Busy::at(drive, traffic, commands, low), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_load_of_equal_work_waits_for_half_of_one() {
        let (load, wait_ns) = queue(&[(1.0, 1.0, 100.0)], 0.005);
        assert!((load - 0.5).abs() < 1e-12 && (wait_ns - 50.0).abs() < 1e-9, "{load} {wait_ns}");
    }
}
