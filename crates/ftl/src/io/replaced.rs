//! Pairs that were replaced by stores that compared no keys: the index finds and removes them later.
//!
//! ```text
//!   store -> Bound, as of a new key ............ index compares the keys -> Unbound, of the pair before -> it dies
//!            both count as pairs                                                                         one counts
//! ```

use super::Io;
use crate::journal::{Change, PairPlace};
use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use crate::space::utilization::Utilization;
use kvssd_flash::{Cause, PageAddress};
use kvssd_types::{KEY_BYTES_MAX, KvError};

impl Io<'_> {
    /// Reads the heads of the records at these places side by side. [`Io::key_at`] looks at them.
    pub fn read_heads(&mut self, places: &[Grain]) {
        if self.media.controller.emulator.signatures_trusted {
            return;
        }
        let packing = self.packing();
        let page_bytes = packing.page_bytes() as usize;
        let mut parts: Vec<(PageAddress, std::ops::Range<usize>)> = Vec::with_capacity(places.len());
        let mut sorted = places.to_vec();
        sorted.sort_unstable();
        for place in sorted {
            let (page, start) = packing.start_of(place);
            let end = page_bytes.min(start + RecordHead::bytes_for(KEY_BYTES_MAX));
            match parts.last_mut() {
                Some((last, range)) if *last == page => range.end = end,
                _ => parts.push((page, start..end)),
            }
        }
        self.read_parts(&parts, if self.background { Cause::Gc } else { Cause::User });
    }

    /// The index has just found that a later pair of its key replaced the pair with `tag`: the old pair dies. The index removes it right
    /// after this call, and writes nothing in between. `note` is what the index gets when a mount redoes the removal.
    ///
    /// # Errors
    /// As [`Io::pair_died`].
    pub fn pair_replaced(&mut self, tag: u64, note: u32, old: PairPlace) -> Result<(), KvError> {
        let head = old.head();
        self.note(Change::Unbound { tag, note, old });
        self.pair_died(tag, old.place, self.packing().grains_of_record(&head))?;
        self.replaced.push(head);
        Ok(())
    }

    /// Takes the pairs that were found to be replaced out of the counts.
    pub(crate) fn count_replaced(&mut self, utilization: &mut Utilization) {
        let packing = self.packing();
        for head in self.replaced.drain(..) {
            utilization.remove(&head, &packing).expect("what is replaced was counted");
        }
    }
}
