//! Which placement handle a pair is written by: one for each stream.

use kvssd_types::PlacementHandle;
use std::collections::BTreeMap;

/// The handles that streams have.
///
/// ```text
///   a drive with 3 handles    who comes first    0 is nobody's: who comes later has it
///     stream 77 -> 1          stream 5 -> 2      streams 9, 12, ... -> 0
/// ```
#[derive(Debug)]
pub(super) struct Handles {
    count: u32,
    streams: BTreeMap<u64, u8>,
}

impl Handles {
    /// Of a drive with so many.
    pub(super) fn new(count: u32) -> Self {
        Handles { count, streams: BTreeMap::new() }
    }

    /// That of a pair of so many blocks: of the stream that the trace says, or else of the pairs of its size, a power of two.
    pub(super) fn of(&mut self, stream: Option<u64>, blocks: u64) -> PlacementHandle {
        let stream = stream.unwrap_or_else(|| (blocks.max(1) - 1).checked_ilog2().map_or(0, |log| u64::from(log) + 1));
        let next = self.streams.len() as u32 + 1;
        match self.streams.get(&stream) {
            Some(&handle) => PlacementHandle(handle),
            None if next < self.count => {
                self.streams.insert(stream, next as u8);
                PlacementHandle(next as u8)
            }
            None => PlacementHandle::DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_keeps_its_handle_and_who_comes_too_late_has_the_default() {
        let mut handles = Handles::new(3);
        let streams = [77, 5, 77, 9, 5, 12, 77];
        assert_eq!(streams.map(|stream| handles.of(Some(stream), 1).0), [1, 2, 1, 0, 2, 0, 1]);
        assert_eq!(handles.streams.len(), 2, "it remembers no more than there are");
        let mut one = Handles::new(1);
        assert!((0..9).all(|stream| one.of(Some(stream), 1) == PlacementHandle::DEFAULT));
    }

    #[test]
    fn without_a_stream_pairs_of_a_size_are_together() {
        let mut handles = Handles::new(9);
        let sizes = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17];
        assert_eq!(sizes.map(|blocks| handles.of(None, blocks).0), [1, 1, 2, 3, 3, 4, 4, 5, 5, 6]);
    }
}
