//! The plainest drive that can stand on this crate: 4 KiB logical pages, a map, a log, no garbage collection.
//!
//! ```text
//!   write   firmware -> a slot of the buffer -> link -> done; a full unit is programmed, then its slot is free
//!   read    firmware -> die, channel -> link, each run of pages as soon as it is there
//! ```

use kvssd_flash::rope::Rope;
use kvssd_flash::timing::Calendar;
use kvssd_flash::{Cause, Flash, PageAddress, Profile, RopeBacking, UnitBuilder};
use kvssd_types::Nanos;

const CAPACITY_BYTES: u64 = 1 << 30;

/// A drive of 1 GiB with the timing of a profile.
pub(crate) struct BlockDevice {
    pub(crate) profile: Profile,
    pub(crate) flash: Flash,
    from_host: Calendar,
    to_host: Calendar,
    /// Where each logical page lies.
    map: Vec<PageAddress>,
    log_next: PageAddress,
    gathered: UnitBuilder,
    /// Since when the gathered unit has its slot of the buffer.
    slot_since: Nanos,
}

impl BlockDevice {
    pub(crate) fn new(profile_name: &str) -> Self {
        let whole = Profile::load(profile_name, &[]).unwrap();
        let profile = whole.scaled(CAPACITY_BYTES as f64 / whole.geometry.raw_bytes() as f64).unwrap();
        BlockDevice {
            flash: Flash::new(&profile, Box::new(RopeBacking::new(profile.geometry))),
            from_host: Calendar::default(),
            to_host: Calendar::default(),
            map: vec![PageAddress(u32::MAX); profile.geometry.pages() as usize],
            log_next: PageAddress(0),
            gathered: UnitBuilder::new(profile.geometry.pages_per_program as usize),
            slot_since: Nanos::ZERO,
            profile,
        }
    }

    pub(crate) fn pages(&self) -> u32 {
        self.profile.geometry.pages() as u32
    }

    /// How many pages of the log are written or gathered.
    pub(crate) fn pages_consumed(&self) -> u32 {
        self.log_next.0
    }

    /// Writes every logical page in order; gives the moment when all is in flash.
    pub(crate) fn fill(&mut self) -> Nanos {
        let stripe = self.profile.geometry.pages_per_superblock();
        let mut clock = Nanos::ZERO;
        for first in (0..self.pages()).step_by(stripe as usize) {
            clock = self.write(first, stripe, clock);
        }
        self.flash.buffer.drained()
    }

    /// Writes `pages` logical pages from `first` on; gives the moment of early completion.
    pub(crate) fn write(&mut self, first: u32, pages: u32, at: Nanos) -> Nanos {
        self.advance(at);
        let firmware = &self.profile.firmware;
        let crossing = self.profile.link_time(self.profile.geometry.page_bytes.into());
        let mut clock = at + Nanos(firmware.write_ns + firmware.write_4k_ns * u64::from(pages));
        for logical in first..first + pages {
            if self.gathered.pages() == 0 {
                self.slot_since = self.flash.buffer.take(clock);
            }
            clock = self.from_host.take(clock.max(self.slot_since), crossing) + crossing;
            self.append(logical, clock);
        }
        clock
    }

    fn append(&mut self, logical: u32, clock: Nanos) {
        let geometry = self.profile.geometry;
        self.map[logical as usize] = self.log_next;
        self.gathered.push(&logical.to_le_bytes(), &mut Rope::default());
        if self.gathered.pages() == geometry.pages_per_program as usize {
            let causes = vec![Cause::User; self.gathered.pages()];
            let unit = geometry.unit_of(self.log_next);
            self.flash.program(unit, self.gathered.finish(), &causes, clock).unwrap();
        }
        self.log_next.0 += 1;
    }

    /// Reads `pages` logical pages from `first` on; gives the moment when the last of them is at the host.
    pub(crate) fn read(&mut self, first: u32, pages: u32, at: Nanos) -> Nanos {
        self.advance(at);
        let geometry = self.profile.geometry;
        let firmware = &self.profile.firmware;
        let small = pages * geometry.page_bytes <= 4096;
        let clock = at + Nanos(if small { firmware.read_small_ns } else { firmware.read_large_ns });
        let places = self.map[first as usize..][..pages as usize].to_vec();
        let mut done = clock;
        for run in places.chunk_by(|&left, &right| geometry.unit_of(left) == geometry.unit_of(right)) {
            let there = self.flash.read(run, Cause::User, clock);
            let crossing = self.profile.link_time(run.len() as u64 * u64::from(geometry.page_bytes));
            done = done.max(self.to_host.take(there, crossing) + crossing);
        }
        for (logical, &place) in (first..).zip(&places) {
            assert_eq!(self.flash.page(place).unwrap().oob, logical.to_le_bytes(), "a page is where the map says");
        }
        done
    }

    fn advance(&mut self, now: Nanos) {
        self.flash.advance(now);
        self.from_host.advance(now);
        self.to_host.advance(now);
    }
}
