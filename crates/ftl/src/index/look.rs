//! Reads records in place, from a page that is gathered or a medium that shows its pages ([`Backing::look`]): no flash operation is
//! reserved, and no virtual time passes.
//!
//! [`Backing::look`]: kvssd_flash::Backing::look

use crate::index::search::Sight;
use crate::io::media::Media;
use crate::io::value::{ValuePart, each_part};
use crate::layout::address::Grain;
use crate::layout::oob::OobFormat;
use crate::layout::record::RecordHead;
use crate::space::Space;
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{PageAddress, PageView};
use kvssd_types::{Key, Value, ValueBuilder};

/// The most pages of a value beside its first that a glance reads, one by one. A command reads more of them side by side.
pub(crate) const REST_PAGES_MAX: usize = 1;

/// A record whose first page was seen: the wanted part of its value that lies there, and where the rest lies.
pub(crate) struct Seen {
    pub(crate) place: Grain,
    pub(crate) head: RecordHead,
    value: ValueBuilder,
    pub(crate) rest: Vec<ValuePart>,
}

impl Seen {
    /// The record at a place on its first page, if it is the key's, and what is wanted of its value, if anything.
    fn on(space: &Space, data: RopeRef<'_>, place: Grain, key: Key<'_>, wanted: Option<(u32, u32)>) -> Option<Self> {
        let packing = space.packing;
        let (page, start) = packing.start_of(place);
        let head = RecordHead::matching(data, start, packing.page_bytes() as usize, key)?;
        let wanted = wanted.map_or(0..0, |wanted| head.value_range(wanted));
        let mut value = ValueBuilder::with_length(wanted.len());
        let mut parts = each_part(space, place, &head, wanted).peekable();
        let here = parts.next_if(|(first, _)| *first == page);
        let rest: Vec<ValuePart> = parts.collect();
        // Nothing is copied of a value that is left to the command.
        if let Some((_, range)) = here.filter(|_| rest.len() <= REST_PAGES_MAX) {
            data.push_to(range, &mut value);
        }
        Some(Seen { place, head, value, rest })
    }
}

impl Media {
    /// The record at a place, `Some(None)` if it is another key's. `None` if it cannot be seen.
    pub(crate) fn record_at(&self, place: Grain, key: Key<'_>, wanted: Option<(u32, u32)>) -> Option<Option<Seen>> {
        let packing = self.space.packing;
        let (page, mut seen) = (packing.page_of(place), None);
        self.look(page, None, &mut |data| seen = Seen::on(&self.space, data, place, key, wanted)).then_some(seen)
    }

    /// Makes the medium read a record's two pages together, if it has two and they have to be read. `None` for a record of more pages, which a
    /// command reads side by side.
    pub(crate) fn bring(&self, place: Grain, head: &RecordHead) -> Option<()> {
        let packing = self.space.packing;
        let (page, page_bytes) = (packing.page_of(place), packing.page_bytes() as usize);
        let rest_bytes = (packing.byte_in_page(place) + head.record_bytes()).saturating_sub(page_bytes);
        if rest_bytes > REST_PAGES_MAX * page_bytes {
            return None;
        }
        if rest_bytes > 0 {
            self.flash.bring(page, 1 + REST_PAGES_MAX as u32);
        }
        Some(())
    }

    /// The records at these places will be looked at soon, one after the other: memory may begin to bring them closer. A hint.
    pub(crate) fn warm(&self, places: &[Grain]) {
        let places: Vec<_> = places.iter().map(|&place| self.space.packing.start_of(place)).collect();
        self.flash.warm(&places);
    }

    /// The value of a record whose first page was seen.
    pub(crate) fn value_of(&self, seen: Seen) -> Option<Value> {
        let Seen { place, mut value, rest, .. } = seen;
        for (page, range) in rest {
            self.look(page, Some(place), &mut |data| data.push_to(range.clone(), &mut value)).then_some(())?;
        }
        Some(value.build())
    }

    /// Shows a gathered or flash page to `see`; with `continued`, only if the record at that place continues in it. Returns whether it did.
    pub(crate) fn look(&self, page: PageAddress, continued: Option<Grain>, see: &mut dyn FnMut(RopeRef<'_>)) -> bool {
        let geometry = self.flash.geometry();
        if let Some(data) = self.log.open_page(geometry, page) {
            let is_it = continued.is_none() || self.log.continued(geometry, page) == continued;
            return is_it.then(|| see(data)).is_some();
        }
        let mut is_it = false;
        let mut see_view = |PageView { oob, data }: PageView<'_>| {
            is_it = continued.is_none() || OobFormat::continued(oob) == continued;
            if is_it {
                see(data);
            }
        };
        self.flash.look(page, &mut see_view) && is_it
    }
}

/// Shows pages without a key to look for.
impl Sight for Media {
    fn verify(&mut self, _place: Grain) -> Option<bool> {
        None
    }

    fn look(&self, place: Grain, see: &mut dyn FnMut(RopeRef<'_>)) -> bool {
        Media::look(self, self.space.packing.page_of(place), None, see)
    }
}
