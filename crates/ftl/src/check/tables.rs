//! Checks what DRAM says about the whole drive: superblocks, streams, counters, and the journal that the next mount will read.

use crate::check::Harm;
use crate::check::walk::Walk;
use crate::io::Io;
use crate::layout::oob::Stream;
use crate::recovery::last_checkpoint;
use crate::space::superblock::State;
use crate::space::utilization::Utilization;
use kvssd_flash::{PageAddress, SuperblockId};
use kvssd_types::Nanos;

impl Walk<'_> {
    /// Checks that each superblock's state is possible.
    pub(super) fn superblocks(&mut self) {
        let mut listed: Vec<SuperblockId> = self.media.space.superblocks.list_of_free().collect();
        listed.sort_unstable();
        let is_twice = listed.windows(2).any(|pair| pair[0] == pair[1]);
        if is_twice {
            self.report.find(Harm::PairLost, "list of free superblocks", "one is listed twice");
        }
        let grains_max = self.media.space.packing.grains_per_superblock;
        for (number, superblock) in self.media.space.superblocks.all().iter().enumerate() {
            let id = SuperblockId(number as u32);
            let mut find = |harm, what: &str| self.report.find(harm, format!("superblock {number}"), what);
            let is_listed = listed.binary_search(&id).is_ok();
            let is_open = self.media.log.iter().any(|log| log.superblock == Some(id));
            if (superblock.state == State::System) != (number == 0) {
                find(Harm::DriveStops, "it is not the system's, or is and should not be");
            }
            let is_used = superblock.live_grains > 0 || is_open;
            if is_used && superblock.generation != self.media.flash.generation(id) {
                find(Harm::DriveStops, "its blocks are in another life than the one that it was opened in");
            }
            match (superblock.state == State::Free, is_listed) {
                (true, false) => {
                    find(Harm::SpaceLeaked, "it is free, and not in the list of those that will be opened");
                }
                (false, true) => find(Harm::PairLost, "it is not free, and will be erased and opened"),
                _ => {}
            }
            if (superblock.state == State::Open) != is_open {
                find(Harm::DriveStops, "it is open, and no stream writes to it, or the other way round");
            }
            if superblock.live_grains > superblock.appended_grains || superblock.appended_grains > grains_max {
                find(Harm::DriveStops, "its table says that more lives in it than was put there");
            }
            let is_void =
                matches!(superblock.state, State::Free | State::System) || superblock.stream == Stream::Journal;
            if is_void && superblock.live_grains > 0 {
                find(Harm::DriveStops, "nothing can live in it, and its table says so");
            }
            if superblock.state == State::Free && !self.media.space.validity.spills(id).is_empty() {
                find(Harm::SpaceLeaked, "it is free, and pages of invalid mappings speak of it");
            }
        }
        let sum: u64 = self.media.space.superblocks.all().iter().map(|superblock| superblock.live_grains).sum();
        let known = self.media.space.superblocks.live_grains();
        if sum != known {
            let what = format!("{sum} grains live, and {known} are counted");
            self.report.find(Harm::SpaceLeaked, "table of superblocks", what);
        }
    }

    /// Checks that each stream can continue at its position: all pages before it are programmed, and none behind it.
    pub(super) fn streams(&mut self) {
        let geometry = self.media.space.geometry;
        for open in self.media.log.iter() {
            let stream = open.oob.stream;
            let Some(superblock) = open.superblock else { continue };
            let state = self.media.space.superblocks.get(superblock);
            if state.stream != stream {
                let what = format!("stream {stream:?} writes to it, and its table says {:?}", state.stream);
                self.report.find(Harm::DriveStops, format!("superblock {}", superblock.0), what);
            }
            let (first, stands) = (geometry.first_page(superblock), geometry.unit_of(open.page));
            let units = geometry.unit_of(first).0..geometry.unit_of(first).0 + geometry.units_per_superblock();
            let wrong = units.clone().find(|&unit| {
                let page = PageAddress(unit * geometry.pages_per_program);
                self.media.flash.is_programmed(page) != (unit < stands.0)
            });
            if let Some(unit) = wrong {
                let stands = open.page.0;
                let what = format!(
                    "stream {stream:?} stands at page {stands}, and page {} {}",
                    unit * geometry.pages_per_program,
                    if unit < geometry.unit_of(open.page).0 { "was never written" } else { "is written already" }
                );
                self.report.find(Harm::DriveStops, format!("superblock {}", superblock.0), what);
            }
        }
    }

    /// Checks that the drive's counters equal the sums that the walk found.
    pub(super) fn utilization(&mut self, known: &Utilization) {
        let counts = [
            ("pairs", self.report.pairs, known.pairs),
            ("bytes of pairs", self.report.pair_bytes, known.pair_bytes),
            ("bytes of records", self.ledger.record_bytes, known.record_bytes),
        ];
        for (name, found, known) in counts.into_iter().filter(|(_, found, known)| found != known) {
            let harm = if found < known { Harm::PairLost } else { Harm::DriveStops };
            self.report.find(harm, "counters", format!("{found} {name} were found, and {known} are counted"));
        }
    }

    /// Whether the next mount will find a checkpoint and all of the journal behind it.
    pub(super) fn journal(&mut self) {
        if !self.media.durable.is_on() {
            return;
        }
        let end = self.media.durable.journal.number;
        let mut io = Io::new(self.media, Nanos::ZERO, true);
        let numbers = match last_checkpoint(&mut io, &self.numbered) {
            Ok((numbers, checkpoint)) => {
                let count = checkpoint.superblocks.len();
                if count != self.media.space.superblocks.all().len() {
                    let what = format!("it speaks of {count} superblocks");
                    self.report.find(Harm::DriveStops, "checkpoint", what);
                }
                numbers
            }
            Err(error) => return self.report.find(Harm::DriveStops, "journal", error.to_string()),
        };
        let missing: Vec<u64> = (numbers.start..end).filter(|number| !self.numbered.contains_key(number)).collect();
        if let [first, rest @ ..] = &missing[..] {
            let what = format!("cannot be read, and {} others: the next mount will not know what it says", rest.len());
            self.report.find(Harm::DriveStops, format!("page {first} of the journal"), what);
        }
    }
}
