//! Sections, read from end to end without a change: none comes into the cache or leaves it.

use crate::index::sections::{SectionForm, Sections, Ticket};
use crate::index::{IndexContents, IndexFault, OwnRecord};
use crate::io::Io;
use crate::layout::address::Grain;
use kvssd_flash::Blob;

impl<F: SectionForm> Sections<F> {
    /// As [`Index::own_records`](crate::index::Index::own_records).
    pub(crate) fn own_records(&self) -> impl Iterator<Item = OwnRecord> {
        let entries = (self.first_number..).zip(&self.directory).filter(|(_, entry)| entry.place != Grain(0));
        entries.map(|(number, entry)| OwnRecord { number, place: entry.place, bytes: entry.bytes })
    }

    /// Lists what is wrong with any section; `see` lists what is in those that can be read.
    pub(crate) fn contents(
        &self,
        io: &mut Io<'_>,
        contents: &mut IndexContents,
        mut see: impl FnMut(u64, &[u8], &mut IndexContents),
    ) {
        let mut footprint_bytes = 0;
        for (number, entry) in (0..).zip(&self.directory) {
            let (place, known) = (entry.place, self.first_number + number);
            let mut fault =
                |why: String, loses_pairs| contents.faults.push(IndexFault { number: known, place, why, loses_pairs });
            let bytes = match self.bytes_of(io, number) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(why) => {
                    fault(why, true);
                    continue;
                }
            };
            if let Some(why) = self.form.fault(&bytes) {
                fault(why.to_owned(), true);
                if !self.form.has_form(&bytes) {
                    continue;
                }
            }
            footprint_bytes += self.share_of_page(bytes.len());
            see(number, &bytes, contents);
        }
        if contents.faults.is_empty() && footprint_bytes != self.footprint_bytes {
            let why = format!("its sections take {footprint_bytes} bytes, and it counts {}", self.footprint_bytes);
            contents.faults.push(IndexFault { number: self.first_number, place: Grain(0), why, loses_pairs: false });
        }
    }

    /// The bytes of a section as the index has them now; none when it has no entries yet.
    fn bytes_of(&self, io: &mut Io<'_>, number: u64) -> Result<Option<Blob>, String> {
        let entry = self.directory[number as usize];
        if entry.cached != Ticket::NONE {
            return Ok(Some(self.cache.get(entry.cached).bytes.clone()));
        }
        if entry.place == Grain(0) {
            return Ok(None);
        }
        if let Some(unwritten) = self.unwritten.get(&number) {
            return Ok(Some(unwritten.clone()));
        }
        let bytes = io.blob_at(entry.place, entry.bytes).map_err(|error| error.to_string())?;
        bytes.map(Some).ok_or_else(|| "it runs over the end of its page".to_owned())
    }
}
