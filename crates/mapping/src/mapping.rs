//! A region of a file, of which a part is ready to be written.

use crate::memory::Memory;
use crate::place;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::ops::Range;

/// So much is held at a time. Of the memory that an ordinary process may lock (8 MiB in today's systems) it is little.
const HELD_BYTES: usize = 256 << 10;
/// Longer writes are left to the system: its call costs less than to have as many pages ready.
const WRITE_BYTES_MAX: usize = 8 << 10;
/// What is held begins at a multiple of this.
const STEP_BYTES: usize = 4096;

/// A region that is mapped.
#[derive(Debug)]
pub struct Mapping {
    memory: Memory,
    /// Where it begins in the file.
    begin: u64,
    held: Range<usize>,
    /// Whether the last write was a short one.
    was_short: bool,
}

impl Mapping {
    /// The bytes of `file` from `begin` on, of which those that come first are held.
    ///
    /// # Errors
    /// Why they are better written by calls of the system: the file system is none of those on which a copy cannot fail, the disk is full or
    /// fails, the process may not lock memory, or the system cannot map so.
    pub fn of(file: &File, begin: u64, bytes: u64) -> io::Result<Mapping> {
        place::check(file)?;
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut mapping = Mapping { memory: Memory::of(file, begin, bytes)?, begin, held: 0..0, was_short: true };
        mapping.hold(file, 0)?;
        Ok(mapping)
    }

    /// Writes `bytes` to the file from `at` on; gives whether it did. Left to the system is what is long, or reaches beyond the region, and the first
    /// that is short behind one that is long and has left what is held: who writes so will write on so, and would have made ready what a long one
    /// passes by. `file` is that of the region. The bytes outlive the process from then on; a process that is killed meanwhile has written any of
    /// them.
    ///
    /// # Errors
    /// When the part of the file that `at` lies in cannot be made ready. Nothing is written then, and the mapping is of no use any more.
    pub fn write(&mut self, file: &File, at: u64, bytes: &[u8]) -> io::Result<bool> {
        let Some(at) = at.checked_sub(self.begin).and_then(|at| usize::try_from(at).ok()) else { return Ok(false) };
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= self.memory.bytes());
        let is_short = bytes.len() <= WRITE_BYTES_MAX;
        let goes_on = std::mem::replace(&mut self.was_short, is_short) && is_short;
        if !fits || !is_short {
            return Ok(false);
        }
        if at < self.held.start || at + bytes.len() > self.held.end {
            if !goes_on {
                return Ok(false);
            }
            self.hold(file, at)?;
        }
        self.memory.copy_in(at, bytes);
        Ok(true)
    }

    /// Makes the part ready that byte `at` lies in, and what comes behind it.
    fn hold(&mut self, file: &File, at: usize) -> io::Result<()> {
        self.memory.let_go(&self.held);
        let begin = at / STEP_BYTES * STEP_BYTES;
        let part = begin..self.memory.bytes().min(begin + HELD_BYTES);
        fallocate(file, FallocateFlags::KEEP_SIZE, self.begin + part.start as u64, part.len() as u64)?;
        self.memory.hold(&part)?;
        self.held = part;
        Ok(())
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    const REGION_BYTES: u64 = 1 << 20;
    const BEGIN: u64 = 8192;

    /// A file with a hole for the region, and bytes behind it. None where the tests' folder lies on a file system that is not for it.
    fn file() -> Option<(File, Mapping)> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BEGIN + REGION_BYTES + 4096).unwrap();
        match Mapping::of(&file, BEGIN, REGION_BYTES) {
            Ok(mapping) => Some((file, mapping)),
            Err(why) => {
                assert_eq!(why.kind(), io::ErrorKind::Unsupported, "{why}");
                None
            }
        }
    }

    fn read(file: &File, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_in_the_file_and_so_is_what_the_system_writes_in_between() {
        let Some((file, mut mapping)) = file() else { return };
        let (mut at, mut expected) = (BEGIN, Vec::new());
        for number in 0..5000usize {
            let bytes = vec![number as u8; 1 + number * 7919 % 401];
            if number % 7 == 3 {
                file.write_all_at(&bytes, at).unwrap();
            } else {
                assert!(mapping.write(&file, at, &bytes).unwrap());
            }
            at += bytes.len() as u64;
            expected.extend(bytes);
        }
        assert!(expected.len() > 3 * HELD_BYTES, "the part that is held has moved");
        assert!(read(&file, BEGIN, expected.len()) == expected);
        // And back to the beginning.
        assert!(mapping.write(&file, BEGIN + 100, b"again").unwrap());
        assert_eq!(read(&file, BEGIN + 100, 5), b"again");
        drop(mapping);
        assert_eq!(read(&file, BEGIN + 100, 5), b"again");
    }

    #[test]
    fn blocks_are_taken_before_they_are_written() {
        let Some((file, mut mapping)) = file() else { return };
        let taken = |file: &File| file.metadata().unwrap().blocks() * 512;
        assert!(taken(&file) >= HELD_BYTES as u64, "{} bytes are taken", taken(&file));
        let length = file.metadata().unwrap().len();
        assert!(mapping.write(&file, BEGIN + REGION_BYTES - 1, b"e").unwrap());
        assert_eq!(file.metadata().unwrap().len(), length);
    }

    #[test]
    fn what_is_long_or_lies_elsewhere_is_left_to_the_system() {
        let Some((file, mut mapping)) = file() else { return };
        let long = vec![1; WRITE_BYTES_MAX + 1];
        for (at, bytes) in [(BEGIN, &long[..]), (BEGIN - 1, b"a"), (BEGIN + REGION_BYTES - 1, b"ab"), (u64::MAX, b"a")]
        {
            assert!(!mapping.write(&file, at, bytes).unwrap(), "{} bytes at {at}", bytes.len());
        }
        assert!(read(&file, 0, (BEGIN + REGION_BYTES) as usize).iter().all(|byte| *byte == 0));
        assert!(mapping.write(&file, BEGIN + 4095, &long[1..]).unwrap(), "in what is held");
        let beyond = BEGIN + 2 * HELD_BYTES as u64;
        assert!(!mapping.write(&file, beyond - 9000, &long).unwrap());
        let short: Vec<bool> = (0..3).map(|number| mapping.write(&file, beyond + number, b"s").unwrap()).collect();
        assert_eq!(short, [false, true, true], "nothing is made ready for one that is short between long ones");
    }

    /// What lies behind the end of a file cannot be held, which is an error and no signal.
    #[test]
    fn a_part_that_is_not_there_is_an_error() {
        let Some((file, mut mapping)) = file() else { return };
        file.set_len(BEGIN + HELD_BYTES as u64).unwrap();
        assert!(mapping.write(&file, BEGIN, b"held").unwrap());
        mapping.write(&file, BEGIN + 2 * HELD_BYTES as u64, b"gone").unwrap_err();
        assert_eq!(file.metadata().unwrap().len(), BEGIN + HELD_BYTES as u64);
    }

    #[test]
    fn a_file_that_is_only_read_is_not_mapped() {
        let path = tempfile::NamedTempFile::new().unwrap();
        path.as_file().set_len(BEGIN + REGION_BYTES).unwrap();
        Mapping::of(&File::open(path.path()).unwrap(), BEGIN, REGION_BYTES).unwrap_err();
    }
}
