//! Blobs: bytes that memory keeps once, however many pages and caches hold them.

use std::ops::{Deref, Range};
use std::sync::Arc;

const CACHE_LINE_BYTES: usize = 64;
/// Of a blob so much is read ahead: most sections that grow are smaller, and of larger ones a look-up wants a line or two.
const TOUCHED_BYTES: usize = 1024;

/// Bytes that several owners share, with room to grow behind them.
#[derive(Clone, Debug, Default)]
pub struct Blob {
    memory: Arc<[u8]>,
    /// Bytes of the memory before the blob's, and behind them: of the memory of a value of any length, none.
    before: u32,
    behind: u32,
}

impl Blob {
    /// These bytes, in memory of a multiple of `step` bytes. Where many blobs grow little by little, a step of several times
    /// that little keeps their memory from falling to pieces of every size.
    #[must_use]
    pub fn with_steps(bytes: &[u8], step: usize) -> Self {
        let mut memory = Vec::with_capacity(bytes.len().next_multiple_of(step));
        memory.extend_from_slice(bytes);
        memory.resize(memory.capacity(), 0);
        let behind = (memory.len() - bytes.len()) as u32;
        Blob { memory: memory.into(), before: 0, behind }
    }

    /// Reads the first bytes, for the processor to have them at hand.
    #[must_use]
    pub fn touch(&self) -> u8 {
        touch(&self[..self.len().min(TOUCHED_BYTES)])
    }

    /// A part of the bytes, which keeps the memory of all of them.
    ///
    /// # Panics
    /// When there are not so many, or 4 GiB before or behind the part.
    #[must_use]
    pub fn part(&self, part: Range<usize>) -> Blob {
        assert!(part.start <= part.end && part.end <= self.len());
        let (before, behind) = (self.before as usize + part.start, self.behind as usize + self.len() - part.end);
        let bytes = |count: usize| u32::try_from(count).expect("parts are of less than 4 GiB");
        Blob { memory: Arc::clone(&self.memory), before: bytes(before), behind: bytes(behind) }
    }

    fn range(&self) -> Range<usize> {
        self.before as usize..self.memory.len() - self.behind as usize
    }

    /// The bytes to change: copied first if there is another owner.
    #[inline]
    pub fn make_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        &mut Arc::make_mut(&mut self.memory)[range]
    }
}

impl Deref for Blob {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.range()]
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Blob { before: 0, behind: 0, memory: bytes.into() }
    }
}

impl From<Arc<[u8]>> for Blob {
    fn from(memory: Arc<[u8]>) -> Self {
        Blob { before: 0, behind: 0, memory }
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Arc::<[u8]>::from(bytes).into()
    }
}

impl<const N: usize> From<[u8; N]> for Blob {
    fn from(bytes: [u8; N]) -> Self {
        Blob::from(&bytes[..])
    }
}

/// As any bytes are.
impl<B: AsRef<[u8]> + ?Sized> PartialEq<B> for Blob {
    fn eq(&self, other: &B) -> bool {
        **self == *other.as_ref()
    }
}

impl PartialEq<Blob> for Vec<u8> {
    fn eq(&self, other: &Blob) -> bool {
        **self == **other
    }
}

impl Eq for Blob {}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Reads a byte of each cache line.
#[must_use]
pub fn touch(bytes: &[u8]) -> u8 {
    bytes.iter().step_by(CACHE_LINE_BYTES).fold(0, |touched, byte| touched ^ byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn room_behind_the_bytes_is_not_part_of_them() {
        let mut blob = Blob::with_steps(&[1, 2, 3], 8);
        assert_eq!((&*blob, blob.memory.len()), (&[1, 2, 3][..], 8));
        let shared = blob.clone();
        blob.make_mut()[0] = 9;
        assert_eq!((&*blob, &*shared), (&[9, 2, 3][..], &[1, 2, 3][..]));
        let mut part = shared.part(1..3).part(1..2);
        part.make_mut()[0] = 7;
        assert_eq!((&*part, &*shared, &*shared.part(1..3)), (&[7][..], &[1, 2, 3][..], &[2, 3][..]));
    }

    #[test]
    fn a_part_of_a_value_keeps_nothing_of_the_rest() {
        let Value::Bytes(part) = Value::from(&[7; 1000][..]).slice(10..20) else { unreachable!() };
        assert_eq!((&*part, part.memory.len()), (&[7; 10][..], 10));
    }
}
