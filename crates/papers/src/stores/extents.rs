//! The space of a drive that files take: runs of whole pages.

use super::costs::PAGE_BYTES;
use std::collections::BTreeMap;

/// A run of bytes of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// What is free, by where it begins. Runs that touch are one.
#[derive(Clone, Debug)]
pub(super) struct Space {
    free: BTreeMap<u64, u64>,
    free_bytes: u64,
    bytes: u64,
}

impl Space {
    pub(super) fn new(bytes: u64) -> Self {
        let bytes = bytes / PAGE_BYTES * PAGE_BYTES;
        Space { free: BTreeMap::from([(0, bytes)]), free_bytes: bytes, bytes }
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.bytes - self.free_bytes
    }

    /// Takes the first run that is long enough or, where there is none, runs from the beginning on.
    pub(super) fn take(&mut self, bytes: u64) -> Option<Vec<Extent>> {
        let mut missing = bytes.next_multiple_of(PAGE_BYTES);
        if missing > self.free_bytes {
            return None;
        }
        let mut extents = Vec::new();
        while missing > 0 {
            let long = self.free.iter().find(|(_, free)| **free >= missing);
            let (&start, &free) = long.or_else(|| self.free.first_key_value()).expect("so much is free");
            let taken = free.min(missing);
            self.free.remove(&start);
            if free > taken {
                self.free.insert(start + taken, free - taken);
            }
            extents.push(Extent { start, bytes: taken });
            (missing, self.free_bytes) = (missing - taken, self.free_bytes - taken);
        }
        Some(extents)
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&mut self, extents: &[Extent]) {
        for &Extent { start, bytes } in extents {
            self.free_bytes += bytes;
            let (mut start, mut end) = (start, start + bytes);
            if let Some((&before, &free)) = self.free.range(..start).next_back() {
                assert!(before + free <= start, "space is given back twice");
                if before + free == start {
                    start = before;
                }
            }
            if let Some((&after, &free)) = self.free.range(start + 1..).next() {
                assert!(end <= after, "space is given back twice");
                if after == end {
                    end += free;
                    self.free.remove(&after);
                }
            }
            self.free.insert(start, end - start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_become_one_again() {
        let mut space = Space::new(10 * PAGE_BYTES);
        let files: Vec<_> = (0..5).map(|_| space.take(2 * PAGE_BYTES - 1).unwrap()).collect();
        assert!(space.take(1).is_none());
        space.give_back(&files[1]);
        space.give_back(&files[3]);
        let scattered = space.take(4 * PAGE_BYTES).unwrap();
        assert_eq!(scattered, [files[1][0], files[3][0]]);
        for file in [&files[4], &scattered, &files[0], &files[2]] {
            space.give_back(file);
        }
        assert_eq!(space.take(10 * PAGE_BYTES).unwrap(), [Extent { start: 0, bytes: 10 * PAGE_BYTES }]);
    }
}
