//! A hash index, read from end to end without a change: no section comes into the cache or leaves it.

use crate::address::Grain;
use crate::index::cache::Ticket;
use crate::index::hash::HashIndex;
use crate::index::probe::PROBES_MAX;
use crate::index::section::SectionLayout;
use crate::index::{IndexFault, OwnRecord, Seen, Survey};
use crate::io::Io;
use kvssd_flash::Blob;
use kvssd_types::Key;
use xxhash_rust::xxh3::xxh3_64;

impl<L: SectionLayout> HashIndex<L> {
    pub(super) fn surveyed(&self, io: &mut Io<'_>) -> Survey {
        let mut survey = Survey { passes_max: self.layout.passes_max(), ..Survey::default() };
        let mut footprint_bytes = 0;
        for (number, directory) in (0..).zip(&self.directory) {
            let place = directory.place;
            if place != Grain(0) {
                survey.own.push(OwnRecord { number, place, bytes: directory.bytes });
            }
            let mut fault =
                |why: String, loses_pairs| survey.faults.push(IndexFault { number, place, why, loses_pairs });
            let bytes = match self.bytes_of(io, number) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(why) => {
                    fault(why, true);
                    continue;
                }
            };
            if let Some(why) = self.layout.fault(&bytes) {
                fault(why.to_owned(), true);
                if !self.layout.has_form(&bytes) {
                    continue;
                }
            }
            footprint_bytes += self.share_of_page(bytes.len());
            self.see(number, &bytes, &mut survey);
        }
        if survey.faults.is_empty() && footprint_bytes != self.footprint_bytes {
            let why = format!("its sections take {footprint_bytes} bytes, and it counts {}", self.footprint_bytes);
            survey.faults.push(IndexFault { number: 0, place: Grain(0), why, loses_pairs: false });
        }
        survey
    }

    /// The bytes of a section as the index has them now; none when it has no entries yet.
    fn bytes_of(&self, io: &mut Io<'_>, number: u64) -> Result<Option<Blob>, String> {
        let directory = self.directory[number as usize];
        if directory.cached != Ticket::NONE {
            return Ok(Some(self.cache.get(directory.cached).bytes.clone()));
        }
        if directory.place == Grain(0) {
            return Ok(None);
        }
        let packing = io.packing();
        let start = packing.byte_in_page(directory.place);
        let data = io.data(packing.page_of(directory.place)).map_err(|error| error.to_string())?;
        let bytes = data.whole_blob(start..start + directory.bytes as usize);
        bytes.map(Some).ok_or_else(|| "it runs over the end of its page".to_owned())
    }

    fn see(&self, number: u64, bytes: &[u8], survey: &mut Survey) {
        for within in 0..self.layout.slots() {
            let tag = number * self.layout.slots() + within;
            let (entry, _) = self.layout.get(bytes, within as u32);
            if entry.is_end() {
                continue;
            }
            if tag < self.slots {
                survey.seen.push(Seen { tag, place: entry.place, passes: entry.passes });
            } else {
                let why = format!("it has an entry of slot {tag}, which the table has not");
                survey.faults.push(IndexFault { number, place: Grain(0), why, loses_pairs: true });
            }
        }
    }

    /// The slots that a search for `key` looks at before it comes to `tag`; false when it never comes there.
    pub(super) fn searched(&self, key: Key<'_>, tag: u64, way: &mut Vec<u64>) -> bool {
        let hash = xxh3_64(key.bytes());
        for count in 0..PROBES_MAX {
            let slot = self.probe.slot(hash, count);
            if slot == tag {
                return true;
            }
            way.push(slot);
        }
        false
    }
}
