//! The submission queue: which commands are outstanding, and SQHD.

const WORD_BITS: usize = 64;
const WORDS: usize = (u16::MAX as usize + 1) / WORD_BITS;

/// A bit for each command identifier, and the head.
#[derive(Debug)]
pub(super) struct SubmissionQueue {
    outstanding_bits: Box<[u64; WORDS]>,
    outstanding: usize,
    entries: u16,
    head: u16,
}

impl SubmissionQueue {
    /// A queue of that many entries.
    pub(super) fn new(entries: u16) -> Self {
        SubmissionQueue { outstanding_bits: Box::new([0; WORDS]), outstanding: 0, entries, head: 0 }
    }

    /// Sets the number of entries.
    pub(super) fn resize(&mut self, entries: u16) {
        self.entries = entries;
    }

    /// Whether as many commands are outstanding as the queue has entries.
    pub(super) fn is_full(&self) -> bool {
        self.outstanding >= usize::from(self.entries)
    }

    /// Notes that an entry was fetched.
    pub(super) fn fetch(&mut self) {
        self.head = (self.head + 1) % self.entries.max(1);
    }

    /// SQHD.
    pub(super) fn head(&self) -> u16 {
        self.head
    }

    /// Notes that a command is outstanding; false if its identifier is in use.
    pub(super) fn begin(&mut self, id: u16) -> bool {
        let (word, bit) = place(id);
        if self.outstanding_bits[word] & bit != 0 {
            return false;
        }
        self.outstanding_bits[word] |= bit;
        self.outstanding += 1;
        true
    }

    /// Notes that a command is completed.
    pub(super) fn complete(&mut self, id: u16) {
        let (word, bit) = place(id);
        if self.outstanding_bits[word] & bit != 0 {
            self.outstanding_bits[word] &= !bit;
            self.outstanding -= 1;
        }
    }
}

fn place(id: u16) -> (usize, u64) {
    (usize::from(id) / WORD_BITS, 1 << (usize::from(id) % WORD_BITS))
}
