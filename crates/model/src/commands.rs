//! Commands: what they take by themselves, and what they read.

use crate::collection::Traffic;
use crate::drive::Drive;
use crate::load::Load;
use crate::queues::Busy;
use kvssd_ftl::index::Visit;

/// The load of a crowded die at the most: behind more, what is wanted is under way already. An estimate, set by looking at `iter` in the
/// matrix.
const CROWD_MAX: f64 = 0.55;

/// A command's own time, and what it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// Without waiting and without flash.
    pub(crate) fixed_ns: f64,
    /// Reads one behind the other: of the index, and of records.
    pub(crate) index_reads: f64,
    pub(crate) record_reads: f64,
}

impl Command {
    /// All its reads, and what one takes on average.
    pub(crate) fn reads(&self) -> f64 {
        self.index_reads + self.record_reads
    }

    pub(crate) fn read_ns(&self, drive: &Drive) -> f64 {
        let all_ns = self.index_reads * drive.index_read_ns + self.record_reads * drive.read_ns;
        all_ns / self.reads().max(1e-12)
    }

    /// So many as one batch: looked up one behind the other, over the link and through the pipeline once.
    pub(crate) fn times(&self, pairs: u32, drive: &Drive) -> Command {
        let pairs = f64::from(pairs);
        let each_ns = self.fixed_ns - drive.times.store_ns - drive.times.command_ns;
        Command {
            fixed_ns: drive.times.store_ns + drive.times.command_ns + pairs * each_ns,
            index_reads: pairs * self.index_reads,
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

/// Pieces of the index that all look-ups want, on few dies.
struct Crowd {
    /// The share of look-ups that read one, and that have a read of their own.
    reads: f64,
    alone: f64,
    dies: f64,
}

impl Crowd {
    /// What a look-up waits there, if there are so many in a nanosecond.
    fn wait_ns(&self, drive: &Drive, rate: f64) -> f64 {
        if self.dies >= drive.dies {
            return 0.0;
        }
        let load = (rate * self.reads * self.alone * drive.index_read_ns / self.dies).min(CROWD_MAX);
        self.reads * drive.index_read_ns * load / 2.0 / (1.0 - load)
    }
}

impl Commands {
    pub(crate) fn new(drive: &Drive, load: &Load, traffic: &Traffic, hits: &[f64]) -> Self {
        let (retrieves, stores) = load.points();
        // Who finds a read of another under way waits for it as for its own.
        let index_reads: f64 =
            drive.forecast.visits.iter().zip(hits).map(|(visit, hit)| visit.reached * (1.0 - hit)).sum();
        let (times, record) = (&drive.times, &drive.record);
        let strangers = drive.forecast.strangers;
        // The read that verifies the key brings the first bytes of the value; pages behind it are read side by side.
        let others = (record.reads - 1.0).max(0.0);
        let side_by_side = others.min(1.0) + (others - 1.0).max(0.0) * drive.transfer_ns / drive.read_ns;
        let retrieve_reads = record.reads + strangers;
        let verifies = if drive.forecast.knows_keys { 0.0 } else { 1.0 + strangers };
        let store_reads = verifies + record.store_reads;
        let retrieve = Command {
            fixed_ns: times.retrieve_ns + times.retrieve_core_ns + times.link_ns,
            index_reads,
            record_reads: record.reads.min(1.0) + side_by_side + strangers,
        };
        let alone_ns = times.store_ns + times.store_core_ns + times.link_ns;
        let store = if drive.stores_behind {
            Command {
                fixed_ns: times.store_ns + times.append_core_ns + times.link_ns,
                index_reads: 0.0,
                record_reads: 0.0,
            }
        } else {
            Command { fixed_ns: alone_ns, index_reads, record_reads: store_reads }
        };
        let gc_core_ns = traffic.asked * times.ask_core_ns + traffic.moved * (times.move_core_ns + times.ask_core_ns);
        Commands {
            retrieve,
            store,
            retrieves,
            stores,
            record_reads: retrieves * retrieve_reads + stores * store_reads,
            core_ns: retrieves * times.retrieve_core_ns + stores * times.store_core_ns + gc_core_ns,
            crowds: crowds(drive, load, hits),
        }
    }

    fn look_ups(&self) -> f64 {
        self.retrieves + self.stores
    }

    /// What a look-up waits where look-ups come together, at that rate of operations.
    pub(crate) fn crowd_wait_ns(&self, drive: &Drive, rate: f64) -> f64 {
        self.crowds.iter().map(|crowd| crowd.wait_ns(drive, rate * self.look_ups())).sum()
    }

    /// The mean time of an operation at that load.
    pub(crate) fn mean_ns(&self, drive: &Drive, load: &Load, busy: &Busy) -> f64 {
        let of = |command: &Command| {
            let crowd_ns = if command.index_reads > 0.0 { busy.crowd_wait_ns } else { 0.0 };
            command.fixed_ns
                + busy.core_wait_ns
                + crowd_ns
                + command.reads() * (command.read_ns(drive) + busy.read_wait_ns())
        };
        let batch_ns = of(&self.store.times(load.batch_pairs, drive));
        self.retrieves * of(&self.retrieve) + self.stores * batch_ns / f64::from(load.batch_pairs)
    }
}

/// Pages of a unit lie on one die.
fn crowds(drive: &Drive, load: &Load, hits: &[f64]) -> Vec<Crowd> {
    let of = |(visit, hit): (&Visit, &f64)| Crowd {
        reads: visit.reached * (1.0 - hit),
        alone: drive.alone(visit, load.clients),
        dies: (visit.pieces * drive.piece_pages() / drive.unit_pages).max(1.0),
    };
    drive.forecast.visits.iter().zip(hits).map(of).collect()
}
