//! The walk: reads every page once, in order, and compares it with what must lie in it.

use crate::check::origins::name_origin;
use crate::check::walk::{Living, PairSeen, Walk, page_name, page_now, place};
use crate::check::{CheckReport, Harm};
use crate::gc::tags;
use crate::io::media::Media;
use crate::io::{Io, written};
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, Oob, Stream};
use crate::layout::packing::Packing;
use crate::space::superblock::State;
use crate::space::utilization::Utilization;
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{Blob, MediaError, PageAddress, SuperblockId};
use kvssd_types::{Key, KvError, NamespaceId, Nanos};

/// The dead pairs of a superblock, sorted; none where the validity lists none.
type Dead = Option<Vec<Grain>>;

impl Walk<'_> {
    pub(super) fn all(&mut self) {
        for namespace in self.namespaces.iter() {
            let mut io = Io::new(self.media, Nanos::ZERO, true).of(namespace.id);
            self.indexes.insert(namespace.id, namespace.index.contents(&mut io));
        }
        self.collect();
        for (id, contents) in std::mem::take(&mut self.indexes) {
            let namespace = self.namespaces.get(id).expect("its index was read");
            self.audits.insert(id, namespace.index.audit(contents));
        }
        for number in 1..self.media.space.geometry.superblocks() {
            let superblock = SuperblockId(number);
            let pages = self.media.space.geometry.superblock_pages(superblock);
            if self.media.space.superblocks.get(superblock).state == State::Free {
                pages.for_each(|page| self.miss(page, "lies in a superblock that is free"));
                continue;
            }
            let dead = self.dead(superblock);
            pages.for_each(|page| self.page(page, &dead));
        }
        let outside = self.living.iter().filter(|living| !self.is_inside(living.place)).copied();
        for living in outside.collect::<Vec<_>>() {
            self.lose(living, "lies where the drive has no pages for it");
        }
    }

    /// Counts the pages that can be read: all that can be said about a drive that could not be mounted.
    pub(super) fn count(&mut self, report: &mut CheckReport) {
        let Media { flash, log, space, .. } = &mut *self.media;
        let geometry = space.geometry;
        let mut failure = None;
        for page in (0..geometry.pages() as u32).map(PageAddress).filter(|&page| geometry.superblock_of(page).0 > 0) {
            if !flash.is_programmed(page) {
                continue;
            }
            match written(flash, page).map(|view| log.format.decode(view.oob)) {
                Ok(Some(oob)) => report.pages[oob.kind as usize] += 1,
                unreadable => {
                    if let Err(KvError::Failed(why)) = unreadable {
                        failure.get_or_insert(why);
                    }
                    report.pages_unreadable += 1;
                    name_origin(flash, &geometry, page, report);
                }
            }
        }
        if report.pages_unreadable > 0 {
            let readable: u64 = report.pages.iter().sum();
            let why = failure.map_or_else(String::new, |why| format!(": {why}"));
            let what = format!("{} pages cannot be read, {readable} can{why}", report.pages_unreadable);
            report.find(Harm::NotMounted, "flash", what);
        }
    }

    fn collect(&mut self) {
        let Walk { media, namespaces, indexes, living, report, ledger, .. } = self;
        let page_bytes = media.space.packing.page_bytes();
        for namespace in namespaces.iter() {
            let id = namespace.id;
            let contents = &indexes[&id];
            let pairs = contents.entries.iter().filter(|entry| entry.place != Grain(0));
            let lives = |kind, tag, place, bytes| Living { place, kind, namespace: id, tag, bytes };
            living.extend(pairs.map(|entry| lives(Kind::Pair, entry.tag, entry.place, 0)));
            let own = namespace.index.own_records().into_iter();
            living.extend(own.map(|own| lives(Kind::Section, own.number, own.place, own.bytes)));
            for fault in &contents.faults {
                let harm = if fault.loses_pairs { Harm::PairLost } else { Harm::SpaceLeaked };
                let at =
                    if fault.place == Grain(0) { String::new() } else { format!(", {}", place(media, fault.place)) };
                report.find(harm, format!("section {} of the index{at}", fault.number), fault.why.clone());
            }
        }
        for number in 0..media.space.geometry.superblocks() {
            let spills = media.space.validity.spills(SuperblockId(number));
            let kind = Kind::InvalidMappings;
            let spilled =
                |&place| Living { place, kind, namespace: NamespaceId::FIRST, tag: number.into(), bytes: page_bytes };
            living.extend(spills.iter().map(spilled));
        }
        living.sort_unstable_by_key(|living| (living.place, living.tag));
        // Records kept for iterators are no key's pair any more, but still take space.
        let kept: Vec<(Grain, u32)> = media.held.look().dead().map(|dead| (dead.place, dead.grains)).collect();
        for (place, grains) in kept {
            let runs = media.space.runs_of(place, grains).unwrap_or_default();
            ledger.runs.extend(runs.into_iter().map(|(_, first, grains)| (first, grains, place)));
        }
    }

    fn is_inside(&self, place: Grain) -> bool {
        let grains = self.media.space.packing.grains_per_superblock;
        (grains..grains * u64::from(self.media.space.geometry.superblocks())).contains(&place.0)
    }

    /// The dead pairs of a superblock, from its buffer and its spilled pages.
    fn dead(&mut self, superblock: SuperblockId) -> Dead {
        let spills = self.media.space.validity.spills(superblock).iter().filter(|&&spill| self.is_inside(spill));
        let spills: Vec<PageAddress> = spills.map(|&spill| self.media.space.packing.page_of(spill)).collect();
        let page_bytes = self.media.space.packing.page_bytes() as usize;
        let mut pages: Vec<Blob> = Vec::new();
        for page in spills {
            // A spill that cannot be read is reported when the walk comes to its page.
            if let Ok(Some((_, data))) = page_now(self.media, page) {
                pages.extend(data.whole_blob(0..page_bytes));
            }
        }
        let mut dead = self.media.space.validity.dead_places(superblock, &pages)?;
        dead.sort_unstable();
        Some(dead)
    }

    /// The range of `living` that begins in a page.
    fn starts_in(&self, page: PageAddress) -> std::ops::Range<usize> {
        let first = self.media.space.packing.grain(page, 0).0;
        let end = first + u64::from(self.media.space.packing.grains_per_page);
        let before = |end: u64| self.living.partition_point(|living| living.place.0 < end);
        before(first)..before(end)
    }

    /// Reports everything that must lie in a page from which nothing can be read.
    fn miss(&mut self, page: PageAddress, why: &str) {
        for index in self.starts_in(page) {
            self.lose(self.living[index], why);
        }
    }

    fn lose(&mut self, living: Living, why: &str) {
        let harm = match living.kind {
            Kind::Pair => Harm::PairLost,
            // Its entries may be in DRAM; if they are not, its contents say so.
            _ => Harm::DriveStops,
        };
        self.report.find(harm, place(self.media, living.place), format!("{} {why}", living.name()));
    }

    fn page(&mut self, page: PageAddress, dead: &Dead) {
        let starts = self.starts_in(page);
        let (packing, format) = (self.media.space.packing, self.media.log.format);
        let (oob, seen) = match page_now(self.media, page) {
            Ok(None) => return self.miss(page, "lies on a page that was never written"),
            Err(why) => {
                self.report.pages_unreadable += 1;
                if let MediaError::Failed(cause) = &why {
                    let what = format!("the disk cannot read it, at least now: {cause}");
                    self.report.find(Harm::DriveStops, page_name(self.media, page), what);
                }
                let Media { flash, space, .. } = &mut *self.media;
                name_origin(flash, &space.geometry, page, &mut self.report);
                return self.miss(page, &format!("cannot be read: {why}"));
            }
            Ok(Some((None, _))) => {
                let what = "its out-of-band area says nothing: garbage collection will stop at it";
                self.report.find(Harm::DriveStops, page_name(self.media, page), what);
                return self.miss(page, "has no out-of-band area");
            }
            Ok(Some((Some(mut oob), data))) => {
                tags::complete(&mut oob, data, self.namespaces, format, &packing);
                let pairs = self.living[starts.clone()].iter().filter(|living| living.kind == Kind::Pair);
                let seen: Vec<_> = pairs
                    .map(|&living| {
                        let start = packing.byte_in_page(living.place);
                        (living, read_pair(&packing, data, start, living.tag))
                    })
                    .collect();
                (oob, seen)
            }
        };
        self.continues[page.0 as usize] = Some(oob.continues.unwrap_or_default());
        self.judge(page, &oob);
        self.orphans(page, &oob, dead);
        for index in starts {
            self.entry(self.living[index], &oob, dead);
        }
        for (living, pair) in seen {
            match pair {
                Some(pair) => self.pair(living, &pair),
                None => self.lose(living, "is not there: its place holds no record"),
            }
        }
    }

    /// Whether a page fits the superblock that it lies in.
    fn judge(&mut self, page: PageAddress, oob: &Oob) {
        self.report.pages[oob.kind as usize] += 1;
        let superblock = self.media.space.superblocks.get(self.media.space.geometry.superblock_of(page));
        let fits = match oob.stream {
            Stream::User | Stream::Gc => matches!(oob.kind, Kind::Pair | Kind::InvalidMappings | Kind::Padding),
            Stream::Map => matches!(oob.kind, Kind::Section | Kind::Padding),
            Stream::Journal => matches!(oob.kind, Kind::Journal | Kind::Checkpoint | Kind::Padding),
        };
        // A superblock in which nothing lives is erased without a look at its pages. A volatile drive may have erased it
        // already, and lost the note about that in a power cut.
        if superblock.live_grains > 0 && (oob.stream != superblock.stream || !fits) {
            let (kind, stream, other) = (oob.kind.name(), oob.stream, superblock.stream);
            let what = format!("a page of {kind} of stream {stream:?} in a superblock of stream {other:?}");
            self.report.find(Harm::DriveStops, page_name(self.media, page), what);
        }
        let grains_per_page = self.media.space.packing.grains_per_page;
        let is_sorted = oob.entries.is_sorted_by(|left, right| left.grain < right.grain);
        if !is_sorted || oob.entries.iter().any(|entry| entry.grain >= grains_per_page) {
            let what = "the entries of its out-of-band area are out of order";
            self.report.find(Harm::DriveStops, page_name(self.media, page), what);
        }
        if let (Kind::Journal | Kind::Checkpoint, Some(entry)) = (oob.kind, oob.entries.first()) {
            self.numbered.insert(entry.tag, (page, oob.kind));
        }
    }

    /// Counts the pairs of a page that no key is bound to, although garbage collection would treat them as live.
    fn orphans(&mut self, page: PageAddress, oob: &Oob, dead: &Dead) {
        let Some(dead) = dead.as_ref().filter(|_| oob.kind == Kind::Pair) else { return };
        if self.media.space.validity.live_grains_of(page) == 0 {
            return;
        }
        let has_strays = self.media.space.superblocks.get(self.media.space.geometry.superblock_of(page)).has_strays;
        for entry in &oob.entries {
            let place = self.media.space.packing.grain(page, entry.grain);
            // Records kept only for iterators belong to no key, and garbage collection knows that.
            let lives = self.media.held.look().has(place)
                || self.living.binary_search_by_key(&place, |living| living.place).is_ok();
            if !lives && dead.binary_search(&place).is_err() {
                self.report.orphans += 1;
                if !has_strays {
                    let what =
                        format!("no key has the pair of slot {}, and garbage collection will not know", entry.tag);
                    self.report.find(Harm::DriveStops, page_name(self.media, page), what);
                }
            }
        }
    }

    /// Checks that the page's out-of-band area names the record `living`, and that no list of dead pairs does.
    fn entry(&mut self, living: Living, oob: &Oob, dead: &Dead) {
        let grain = self.media.space.packing.index_in_page(living.place);
        let entry = oob.entries.iter().find(|entry| entry.grain == grain);
        let what = match entry {
            _ if oob.kind != living.kind => format!("lies in a page of {}", oob.kind.name()),
            None => "is not in the out-of-band area of its page".to_owned(),
            Some(entry) if entry.tag != living.tag => format!("has tag {} in the out-of-band area", entry.tag),
            Some(entry) if living.kind != Kind::InvalidMappings && entry.namespace != living.namespace => {
                format!("is of namespace {} in the out-of-band area", entry.namespace)
            }
            Some(_) => String::new(),
        };
        let at = place(self.media, living.place);
        if !what.is_empty() {
            self.report.find(Harm::DriveStops, at.clone(), format!("{} {what}", living.name()));
        }
        if living.kind == Kind::Pair && dead.as_ref().is_some_and(|dead| dead.binary_search(&living.place).is_ok()) {
            let what = format!("{} is listed as dead: garbage collection will drop it", living.name());
            self.report.find(Harm::PairLost, at, what);
        }
        if living.kind != Kind::Pair {
            let grains = self.media.space.packing.grains_of(living.bytes as usize);
            self.ledger.runs.push((living.place, grains, living.place));
        }
    }

    /// Checks that a pair whose head was read is found by its key, and notes the grains that it takes.
    fn pair(&mut self, living: Living, pair: &PairSeen) {
        let Ok(key) = Key::new(&pair.key) else { return };
        let at = || format!("{}, key \"{}\"", place(self.media, living.place), pair.key.escape_ascii());
        let Some(audit) = self.audits.get_mut(&living.namespace) else { return };
        if let Some(why) = audit.pair(key, living.tag) {
            self.report.find(Harm::PairLost, at(), why);
        }
        let grains = self.media.space.packing.grains_of_record(&pair.head);
        let Some(runs) = self.media.space.runs_of(living.place, grains) else {
            let what = "the record runs into a superblock that the drive has not";
            return self.report.find(Harm::PairLost, at(), what);
        };
        self.report.pairs += 1;
        self.report.pair_bytes += u64::from(pair.head.key_bytes) + u64::from(pair.head.value_bytes);
        self.ledger.add(living.namespace, living.place, key, self.media.space.packing.bytes_charged(&pair.head));
        self.ledger.runs.extend(runs.into_iter().map(|(_, first, grains)| (first, grains, living.place)));
    }

    /// The checks that need all pages, and the report.
    pub(super) fn settle(mut self, utilization: &Utilization) -> CheckReport {
        self.records();
        self.grains();
        self.searches();
        self.superblocks();
        self.streams();
        self.utilization(utilization);
        self.journal();
        self.report
    }
}

/// Reads the head and the key of a pair. A block has no key in its record: its number, which is its tag, stands for it.
fn read_pair(packing: &Packing, data: RopeRef<'_>, start: usize, tag: u64) -> Option<PairSeen> {
    let head = packing.head(data, start).ok()?;
    let key = match head.key_bytes {
        0 => tag.to_be_bytes().to_vec(),
        _ => head.key(data, start, &mut [0; 255]).to_vec(),
    };
    Some(PairSeen { head, key })
}
