//! Which commands of a queue are outstanding.

const WORD_BITS: usize = 64;
const WORDS: usize = (u16::MAX as usize + 1) / WORD_BITS;

/// A bit for each identifier, and how far the queue was taken.
#[derive(Debug)]
pub(super) struct CommandIds {
    bits: Box<[u64; WORDS]>,
    outstanding: usize,
    entries: u16,
    head: u16,
}

impl CommandIds {
    /// Of a queue of so many entries.
    pub(super) fn new(entries: u16) -> Self {
        CommandIds { bits: Box::new([0; WORDS]), outstanding: 0, entries, head: 0 }
    }

    /// The queue has so many entries.
    pub(super) fn resize(&mut self, entries: u16) {
        self.entries = entries;
    }

    /// Whether more commands are outstanding than the queue has entries for.
    pub(super) fn is_full(&self) -> bool {
        self.outstanding >= usize::from(self.entries)
    }

    /// A command was taken from the queue.
    pub(super) fn advance(&mut self) {
        self.head = (self.head + 1) % self.entries.max(1);
    }

    /// SQHD.
    pub(super) fn head(&self) -> u16 {
        self.head
    }

    /// A command is outstanding. Gives false when one of that identifier is already.
    pub(super) fn insert(&mut self, id: u16) -> bool {
        let (word, bit) = place(id);
        if self.bits[word] & bit != 0 {
            return false;
        }
        self.bits[word] |= bit;
        self.outstanding += 1;
        true
    }

    /// It is over.
    pub(super) fn remove(&mut self, id: u16) {
        let (word, bit) = place(id);
        if self.bits[word] & bit != 0 {
            self.bits[word] &= !bit;
            self.outstanding -= 1;
        }
    }
}

fn place(id: u16) -> (usize, u64) {
    (usize::from(id) / WORD_BITS, 1 << (usize::from(id) % WORD_BITS))
}
