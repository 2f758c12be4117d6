//! Commands: what they take by themselves, and what they read.

use crate::busy::Busy;
use crate::drive::Drive;
use crate::load::Load;
use crate::traffic::Traffic;
use kvssd_ftl::index::Visit;

/// A command's own time, and what it reads.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// Without waiting and without flash.
    pub(crate) fixed_ns: f64,
    /// Reads one behind the other: of the index, visit by visit, and of records.
    pub(crate) index: Vec<f64>,
    pub(crate) record_reads: f64,
}

impl Command {
    /// All its reads, and what one takes on average.
    pub(crate) fn reads(&self) -> f64 {
        self.index_reads() + self.record_reads
    }

    pub(crate) fn index_reads(&self) -> f64 {
        self.index.iter().sum()
    }

    /// What it waits where all look-ups come together.
    pub(crate) fn crowd_wait_ns(&self, busy: &Busy) -> f64 {
        self.index.iter().zip(&busy.crowd_waits_ns).map(|(reads, wait_ns)| reads * wait_ns).sum()
    }

    /// Its mean time.
    pub(crate) fn mean_ns(&self, drive: &Drive, busy: &Busy) -> f64 {
        self.fixed_ns
            + busy.core_wait_ns
            + self.crowd_wait_ns(busy)
            + self.reads() * (self.read_ns(drive) + busy.read_wait_ns())
    }

    pub(crate) fn read_ns(&self, drive: &Drive) -> f64 {
        let all_ns = self.index_reads() * drive.index_read_ns + self.record_reads * drive.read_ns;
        all_ns / self.reads().max(1e-12)
    }

    /// So many as one batch: looked up one behind the other, over the link and through the pipeline once.
    pub(crate) fn times(&self, pairs: u32, drive: &Drive) -> Command {
        let pairs = f64::from(pairs);
        let each_ns = self.fixed_ns - drive.times.store_ns - drive.times.command_ns;
        Command {
            fixed_ns: drive.times.store_ns + drive.times.command_ns + pairs * each_ns,
            index: self.index.iter().map(|reads| pairs * reads).collect(),
            record_reads: pairs * self.record_reads,
        }
    }
}

/// The commands of an operation, how often each is sent, and what it reads.
pub(crate) struct Commands {
    pub(crate) retrieve: Command,
    pub(crate) store: Command,
    pub(crate) retrieves: f64,
    pub(crate) stores: f64,
    /// Flash reads of records for an operation.
    pub(crate) record_reads: f64,
    /// Work of the cores for an operation.
    pub(crate) core_ns: f64,
    /// Where look-ups come together.
    crowds: Vec<Crowd>,
}

/// Pieces of the index that all look-ups want, on few dies: who wants a page whose read is under way waits for that one.
struct Crowd {
    /// The share of look-ups that read one, while they are there.
    reads: f64,
    /// Pages, and how many lie on a die.
    pages: f64,
    pages_a_die: f64,
    is_crowd: bool,
}

impl Crowd {
    /// What a look-up waits there beside its read, if there are so many in a nanosecond, and so many steps of collection, each of which asks
    /// about pairs. A die with so many pages, each of which is wanted again at random after it was read, is a repairman with so many machines
    /// (Schweitzer's mean values of a closed queue, 1979).
    fn wait_ns(&self, read_ns: f64, rate: f64, steps: f64, pairs: f64) -> f64 {
        let by_a_step = 1.0 - (-pairs * self.reads / self.pages).exp();
        let wanted = rate * self.reads / self.pages + steps * by_a_step;
        if !self.is_crowd || wanted <= 0.0 {
            return 0.0;
        }
        let others = (self.pages_a_die - 1.0).max(0.0);
        // From when it is wanted to when it is there: done = read (1 + others * done / (done + 1 / wanted)).
        let idle_ns = 1.0 / wanted;
        let half = (read_ns * (1.0 + others) - idle_ns) / 2.0;
        let done_ns = half + (half * half + read_ns * idle_ns).sqrt();
        // The first waits for all of that, and who joins for half of it.
        let joins = wanted * done_ns;
        let mean_ns = done_ns * (1.0 + joins / 2.0) / (1.0 + joins);
        (mean_ns - read_ns).max(0.0)
    }
}

impl Commands {
    pub(crate) fn new(drive: &Drive, load: &Load, traffic: &Traffic, hits: &[f64]) -> Self {
        let (retrieves, stores) = load.points();
        // Who finds a read of another under way waits for it as for its own.
        let index: Vec<f64> =
            drive.forecast.visits.iter().zip(hits).map(|(visit, hit)| visit.reached * (1.0 - hit)).collect();
        let (times, record) = (&drive.times, &drive.record);
        let strangers = drive.forecast.strangers;
        // The read that verifies the key brings the first bytes of the value; pages behind it are read side by side.
        let others = (record.reads - 1.0).max(0.0);
        let behind = if record.is_read_at_once { 0.0 } else { others.min(1.0) };
        let side_by_side = behind + (others - behind) * drive.transfer_ns / drive.read_ns;
        let retrieve_reads = record.reads + strangers;
        let verifies = if drive.forecast.knows_keys { 0.0 } else { 1.0 + strangers };
        let store_reads = verifies + record.store_reads;
        let retrieve = Command {
            fixed_ns: times.retrieve_ns + times.retrieve_core_ns + times.link_ns,
            index: index.clone(),
            record_reads: record.reads.min(1.0) + side_by_side + strangers,
        };
        let again = if stores > 0.0 { load.look_up_stores(drive) / stores } else { 1.0 };
        let index_of_store = index.iter().map(|reads| reads * again).collect();
        let alone_ns = times.store_ns + times.store_core_ns + times.link_ns;
        let store = if drive.stores_behind {
            Command {
                fixed_ns: times.store_ns + times.append_core_ns + times.link_ns,
                index: Vec::new(),
                record_reads: 0.0,
            }
        } else {
            Command { fixed_ns: alone_ns, index: index_of_store, record_reads: store_reads }
        };
        let gc_core_ns = traffic.asked * times.ask_core_ns + traffic.moved * times.move_core_ns;
        Commands {
            retrieve,
            store,
            retrieves,
            stores,
            record_reads: retrieves * retrieve_reads + stores * store_reads,
            core_ns: retrieves * times.retrieve_core_ns + stores * times.store_core_ns + gc_core_ns,
            crowds: crowds(drive, hits),
        }
    }

    fn look_ups(&self) -> f64 {
        self.retrieves + self.stores
    }

    /// What a look-up waits where look-ups come together, visit by visit, at that rate of operations, each of which has so many steps of
    /// collection.
    pub(crate) fn crowd_waits_ns(&self, drive: &Drive, traffic: &Traffic, rate: f64, steps: f64) -> Vec<f64> {
        let pairs = traffic.asked / steps.max(1e-12);
        let waits = |crowd: &Crowd| crowd.wait_ns(drive.index_read_ns, rate * self.look_ups(), rate * steps, pairs);
        self.crowds.iter().map(waits).collect()
    }

    /// The mean time of an operation at that load.
    pub(crate) fn mean_ns(&self, drive: &Drive, load: &Load, busy: &Busy) -> f64 {
        let of = |command: &Command| command.mean_ns(drive, busy);
        let batch_ns = of(&self.store.times(load.batch_pairs, drive));
        self.retrieves * of(&self.retrieve) + self.stores * batch_ns / f64::from(load.batch_pairs)
    }
}

/// Pages of a unit lie on one die.
fn crowds(drive: &Drive, hits: &[f64]) -> Vec<Crowd> {
    let of = |(visit, hit): (&Visit, &f64)| {
        let pages = (visit.pieces * drive.piece_pages()).max(1.0);
        let there = visit.at_times.map_or(1.0, |at_times| at_times.share.max(1e-9));
        Crowd {
            reads: visit.reached * (1.0 - hit) / there,
            pages,
            pages_a_die: visit.at_times.map_or(pages, |at_times| at_times.together).min(drive.unit_pages),
            is_crowd: pages < drive.unit_pages * drive.dies,
        }
    };
    drive.forecast.visits.iter().zip(hits).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_a_page_that_all_want_waits_for_the_others_of_its_die_and_joins_a_read_under_way() {
        let crowd = |pages: f64| Crowd { reads: 1.0, pages, pages_a_die: pages, is_crowd: true };
        assert!(crowd(8.0).wait_ns(100.0, 1e-6, 0.0, 0.0) < 1.0, "nobody is there");
        // Each of eight pages is wanted again at once: one turn of all takes 800 ns, of which one waits for half.
        let wait_ns = crowd(8.0).wait_ns(100.0, 10.0, 0.0, 0.0);
        assert!((wait_ns - 300.0).abs() < 5.0, "{wait_ns}");
        assert_eq!(crowd(1.0).wait_ns(100.0, 10.0, 0.0, 0.0), 0.0, "who joins comes sooner");
        let asked_ns = crowd(8.0).wait_ns(100.0, 0.01, 0.005, 1e3);
        assert!(asked_ns > crowd(8.0).wait_ns(100.0, 0.01, 0.0, 0.0) + 10.0, "collection wants them as well");
        let spread = Crowd { is_crowd: false, ..crowd(8.0) };
        assert_eq!(spread.wait_ns(100.0, 10.0, 0.0, 0.0), 0.0);
    }
}
