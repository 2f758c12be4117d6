//! How far an input was read.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// How many bytes of an input were read so far, as they lie in its file.
#[derive(Clone, Debug, Default)]
pub struct InputBytes(Rc<Cell<u64>>);

impl InputBytes {
    /// The number of bytes.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.get()
    }
}

/// Counts the bytes that go by.
#[derive(Debug)]
pub struct Counted<R> {
    inner: R,
    bytes: InputBytes,
}

impl<R: Read> Counted<R> {
    /// What is read of `inner` is added to `bytes`.
    pub fn new(inner: R, bytes: &InputBytes) -> Self {
        Counted { inner, bytes: bytes.clone() }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes.0.set(self.bytes.0.get() + count as u64);
        Ok(count)
    }
}
