//! A worker of LMCache on its part of the drive.
//!
//! ```text
//!   a request asks for a shared object, or for one of its own     shared: a zipfian law over a fifth of the slots
//!     it is there -> it is read, and is the youngest
//!     it is not   -> it is stored into a slot                     the slot that was freed last, else the next one
//!                      80 % of the slots are taken -> the oldest fifth of the objects is evicted
//! ```
//!
//! Slots of one size, free ones taken last in, first out, eviction of 20 % of the least recently used from 80 % on: LMCache 0.5.6, its raw block
//! core and the defaults of its second level.

use super::drives::{Drive, Placed};
use kvssd_sim::SimError;
use kvssd_sim::workload::Zipfian;
use kvssd_types::{Pattern, PlacementHandle, Random};
use std::collections::{BTreeMap, HashMap};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The drive that the spans are of.
const DRIVE_BYTES: u64 = 960 * GIB;
/// The share of the slots from which on objects are evicted, and the share of them that is.
const WATERMARK: f64 = 0.8;
const EVICTED: f64 = 0.2;
/// The shared objects, in slots. An estimate.
const SHARED: f64 = 0.2;

/// Workers of one kind.
#[derive(Debug)]
pub(super) struct Class {
    workers: u32,
    object_bytes: u64,
    span_bytes: u64,
    /// The share of requests that ask for shared objects. An estimate, after what the classes are called.
    reuse: f64,
}

/// Chat, long context, RAG with shared prefixes, random prompts with low reuse, and much metadata.
pub(super) const CLASSES: [Class; 5] = [
    Class { workers: 2, object_bytes: 4 * MIB, span_bytes: 90 * GIB, reuse: 0.5 },
    Class { workers: 1, object_bytes: 32 * MIB, span_bytes: 180 * GIB, reuse: 0.5 },
    Class { workers: 2, object_bytes: 16 * MIB, span_bytes: 90 * GIB, reuse: 0.9 },
    Class { workers: 3, object_bytes: 2 * MIB, span_bytes: 90 * GIB, reuse: 0.05 },
    Class { workers: 1, object_bytes: MIB, span_bytes: 45 * GIB, reuse: 0.5 },
];

#[derive(Debug)]
pub(super) struct Worker {
    number: u64,
    handle: PlacementHandle,
    reuse: f64,
    shared: Zipfian,
    shared_objects: u64,
    object_bytes: u32,
    offset_bytes: u64,
    slots: u64,
    /// Slots that were never taken begin here.
    next_slot: u64,
    free_slots: Vec<u64>,
    objects: HashMap<u64, Object>,
    /// Objects by when they were wanted last.
    by_age: BTreeMap<u64, u64>,
    requests: u64,
    stored: u64,
}

#[derive(Debug)]
struct Object {
    slot: u64,
    content: Pattern,
    wanted: u64,
}

impl Worker {
    /// All workers on a drive of so many bytes, with objects of a `scale` of theirs, side by side.
    pub(super) fn all(capacity_bytes: u64, scale: f64) -> Vec<Worker> {
        let mut workers: Vec<Worker> = Vec::new();
        for (class, kind) in CLASSES.iter().enumerate() {
            for _ in 0..kind.workers {
                let end =
                    workers.last().map_or(0, |last| last.offset_bytes + last.slots * u64::from(last.object_bytes));
                let object_bytes = (kind.object_bytes as f64 * scale) as u64;
                let slots = (capacity_bytes as f64 * kind.span_bytes as f64 / DRIVE_BYTES as f64) as u64 / object_bytes;
                let shared_objects = ((slots as f64 * SHARED) as u64).max(1);
                workers.push(Worker {
                    number: workers.len() as u64,
                    handle: PlacementHandle(class as u8 + 1),
                    reuse: kind.reuse,
                    shared: Zipfian::new(shared_objects),
                    shared_objects,
                    object_bytes: object_bytes as u32,
                    offset_bytes: end,
                    slots,
                    next_slot: 0,
                    free_slots: Vec::new(),
                    objects: HashMap::new(),
                    by_age: BTreeMap::new(),
                    requests: 0,
                    stored: 0,
                });
            }
        }
        workers
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.stored * u64::from(self.object_bytes)
    }

    /// Handles requests until one stores an object; gives its bytes.
    pub(super) fn store_next(&mut self, drive: &mut dyn Drive, random: &mut Random) -> Result<u64, SimError> {
        loop {
            self.requests += 1;
            let is_shared = random.unit() < self.reuse;
            // Objects of one request alone have the numbers behind those that are shared.
            let object = if is_shared { self.shared.draw(random) } else { self.shared_objects + self.requests };
            if !self.load(object, drive)? {
                self.store(object, drive)?;
                return Ok(self.object_bytes.into());
            }
        }
    }

    /// Whether it is there.
    fn load(&mut self, object: u64, drive: &mut dyn Drive) -> Result<bool, SimError> {
        let Some(known) = self.objects.get_mut(&object) else { return Ok(false) };
        self.by_age.remove(&known.wanted);
        known.wanted = self.requests;
        self.by_age.insert(self.requests, object);
        let (slot, content) = (known.slot, known.content);
        drive.load(self.placed(slot, content)).map(|()| true)
    }

    fn store(&mut self, object: u64, drive: &mut dyn Drive) -> Result<(), SimError> {
        if self.objects.len() as f64 >= self.slots as f64 * WATERMARK {
            self.evict(drive)?;
        }
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.next_slot += 1;
            self.next_slot - 1
        });
        self.stored += 1;
        let content = Pattern { seed: self.number << 48 | self.stored, offset: 0, length: self.object_bytes };
        self.objects.insert(object, Object { slot, content, wanted: self.requests });
        self.by_age.insert(self.requests, object);
        drive.store(self.placed(slot, content))
    }

    fn evict(&mut self, drive: &mut dyn Drive) -> Result<(), SimError> {
        for _ in 0..((self.objects.len() as f64 * EVICTED) as u64).max(1) {
            let Some((_, object)) = self.by_age.pop_first() else { return Ok(()) };
            let Object { slot, content, .. } = self.objects.remove(&object).expect("what has an age is there");
            drive.evict(self.placed(slot, content))?;
            self.free_slots.push(slot);
        }
        Ok(())
    }

    fn placed(&self, slot: u64, content: Pattern) -> Placed {
        let offset_bytes = self.offset_bytes + slot * u64::from(self.object_bytes);
        Placed { handle: self.handle, offset_bytes, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a cache keeps, by where it lies.
    #[derive(Default)]
    struct Slots {
        taken: BTreeMap<u64, Pattern>,
        evicted: u64,
        loads: u64,
        /// Where the last eviction's objects lay, the youngest last.
        freed: Vec<u64>,
        /// Stores that took another slot than the one freed last.
        elsewhere: u64,
    }

    impl Drive for Slots {
        fn fill(&mut self) -> Result<(), SimError> {
            Ok(())
        }

        fn store(&mut self, placed: Placed) -> Result<(), SimError> {
            self.elsewhere += u64::from(self.freed.pop().is_some_and(|freed| freed != placed.offset_bytes));
            assert_eq!(self.taken.insert(placed.offset_bytes, placed.content), None, "a slot has one object");
            Ok(())
        }

        fn load(&mut self, placed: Placed) -> Result<(), SimError> {
            self.loads += 1;
            assert_eq!(self.taken.get(&placed.offset_bytes), Some(&placed.content));
            Ok(())
        }

        fn evict(&mut self, placed: Placed) -> Result<(), SimError> {
            self.evicted += 1;
            self.freed.push(placed.offset_bytes);
            assert_eq!(self.taken.remove(&placed.offset_bytes), Some(placed.content));
            Ok(())
        }

        fn programmed_bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_worker_keeps_to_its_span_evicts_at_the_watermark_and_takes_the_slot_freed_last() {
        let (capacity_bytes, scale) = (DRIVE_BYTES >> 12, 1.0 / 4096.0);
        let mut ends = 0;
        for mut worker in Worker::all(capacity_bytes, scale) {
            assert_eq!(worker.offset_bytes, ends, "they lie side by side");
            ends += worker.slots * u64::from(worker.object_bytes);
            let (mut slots, mut random) = (Slots::default(), Random::new(7));
            for _ in 0..3 * worker.slots {
                worker.store_next(&mut slots, &mut random).unwrap();
            }
            assert!(slots.taken.keys().all(|&at| at >= worker.offset_bytes && at < ends));
            let most = (worker.slots as f64 * WATERMARK).ceil() as usize;
            assert!(slots.taken.len() <= most && slots.taken.len() as f64 >= most as f64 * (1.0 - EVICTED) - 1.0);
            assert_eq!((slots.evicted > worker.slots, slots.elsewhere), (true, 0));
            let share = slots.loads as f64 / worker.requests as f64;
            assert!(share <= worker.reuse + 0.02 && share >= worker.reuse * 0.6, "{share} of {}", worker.reuse);
        }
        assert!(ends <= capacity_bytes * 855 / 960);
    }
}
