//! Planted damage: each kind of it is reported by the check, or refused by the mount in words that the check passes on.

use crate::drive::{Medium, Mortal, Snapshot, each, has_sections, overlay_check, powered, tiny};
use kvssd_designs::{DESIGNS, PLUS};
use kvssd_flash::codec::{self, PageIdentity};
use kvssd_flash::{PageAddress, PowerLoss, Profile};
use kvssd_ftl::{CheckReport, Design, Entry, Harm, Kind, Oob, OobFormat};

/// A drive that was used, as bytes.
pub struct Victim {
    pub design: Design,
    pub power_loss: PowerLoss,
    pub before: Snapshot,
    pub profile: Profile,
    format: OobFormat,
}

impl Victim {
    pub fn new(design: &Design, power_loss: PowerLoss, seed: u64) -> Self {
        let mut drive = Mortal::new(design, power_loss, seed);
        for _ in 0..6 {
            drive.life(250_000_000, |_| {});
        }
        Victim::of(design, power_loss, &drive.medium)
    }

    /// What lies on `medium`.
    pub fn of(design: &Design, power_loss: PowerLoss, medium: &Medium) -> Self {
        let profile = tiny(design, power_loss);
        let format = design.oob_format(&profile.geometry);
        let before = Snapshot::of(design, medium);
        Victim { design: design.clone(), power_loss, before, profile, format }
    }

    pub fn check(&self, damaged: &Snapshot) -> CheckReport {
        overlay_check(&self.design, self.power_loss, &damaged.medium(&self.design))
    }

    pub fn oob(&self, snapshot: &Snapshot, page: usize) -> Option<Oob> {
        let bytes = snapshot.pages[page].as_ref()?;
        let unit = codec::decode(&self.profile.geometry, self.identity(snapshot, page), bytes).ok()?;
        self.format.decode(unit.page(0).oob)
    }

    fn identity(&self, snapshot: &Snapshot, page: usize) -> PageIdentity {
        let geometry = &self.profile.geometry;
        let page = PageAddress(page as u32);
        let block = geometry.block_of(geometry.unit_of(page)).0;
        PageIdentity { page, erases: snapshot.erases[geometry.block_index(block)] }
    }

    pub fn pages(&self, kind: Kind) -> Vec<usize> {
        let is_kind = |&page: &usize| self.oob(&self.before, page).is_some_and(|oob| oob.kind == kind);
        (0..self.before.pages.len()).filter(is_kind).collect()
    }

    /// Writes another out-of-band area, and the CRC that it wants.
    pub fn put_oob(&self, snapshot: &mut Snapshot, page: usize, oob: &Oob) {
        let mut bytes = Vec::new();
        self.format.encode(oob, &mut bytes);
        let area = self.area(snapshot, page);
        area[4..].fill(0);
        area[4..6].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
        area[6..6 + bytes.len()].copy_from_slice(&bytes);
        self.put_crc(snapshot, page);
    }

    fn area<'s>(&self, snapshot: &'s mut Snapshot, page: usize) -> &'s mut [u8] {
        &mut snapshot.pages[page].as_mut().unwrap()[self.profile.geometry.page_bytes as usize..]
    }

    /// Makes the CRC of a page that of its bytes.
    pub fn put_crc(&self, snapshot: &mut Snapshot, page: usize) {
        let PageIdentity { page: PageAddress(number), erases } = self.identity(snapshot, page);
        let bytes = snapshot.pages[page].as_mut().unwrap();
        let (data, area) = bytes.split_at_mut(self.profile.geometry.page_bytes as usize);
        let crc = [&number.to_le_bytes(), &erases.to_le_bytes(), &area[4..], data]
            .iter()
            .fold(0, |crc, bytes| crc32c::crc32c_append(crc, bytes));
        area[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Damages each page of a kind by itself; gives the reports that find something.
    fn each_page(&self, kind: Kind, mut damage: impl FnMut(&mut Snapshot, usize)) -> Vec<CheckReport> {
        let mut reports = Vec::new();
        let pages = self.pages(kind);
        // Many of a kind's pages are dead: enough of them, spread over the drive.
        for page in pages.iter().step_by(pages.len().div_ceil(30)) {
            let mut damaged = self.before.clone();
            damage(&mut damaged, *page);
            let report = self.check(&damaged);
            if !report.is_clean() {
                reports.push(report);
            }
        }
        reports
    }

    /// The same. A checkpoint or a journal may just have taken the place of the pages that are tried: then another drive's are damaged.
    fn found(&self, kind: Kind, damage: impl Fn(&Victim, &mut Snapshot, usize)) -> Vec<CheckReport> {
        let of = |victim: &Victim| victim.each_page(kind, |damaged, page| damage(victim, damaged, page));
        match of(self) {
            none if none.is_empty() => {
                let others = (6..12).map(|seed| Victim::new(&self.design, self.power_loss, seed));
                others.map(|other| of(&other)).find(|found| !found.is_empty()).unwrap_or_default()
            }
            found => found,
        }
    }

    fn fails(&self, what: &str, reports: &[CheckReport], says: &[&str], worst: Harm) {
        let context = format!("{what} on {} {:?}", self.design.name, self.power_loss);
        assert!(!reports.is_empty(), "{context}: nothing was found");
        for report in reports {
            let text = report.to_string();
            assert!(says.iter().any(|says| text.contains(says)), "{context}: {text}");
            assert!(report.worst() >= Some(worst), "{context}: {text}");
        }
        if std::env::var_os("SHOW").is_some() {
            println!("{context}: {} of them:\n  {}", reports.len(), reports[0].to_string().lines().next().unwrap());
        }
    }
}

fn each_victim(test: impl Fn(&Victim) + Sync) {
    each(|design, power_loss| {
        if has_sections(design) {
            test(&Victim::new(design, power_loss, 5));
        }
    });
}

fn flip(snapshot: &mut Snapshot, page: usize, byte: usize) {
    snapshot.pages[page].as_mut().unwrap()[byte] ^= 0x10;
}

#[test]
fn the_drive_to_be_damaged_is_whole() {
    each_victim(|victim| {
        let report = victim.check(&victim.before);
        assert!(report.is_clean() && report.pairs > 50, "{report}");
        let kinds = [Kind::Pair, Kind::Section, Kind::Journal, Kind::Checkpoint];
        assert!(kinds.iter().all(|&kind| !victim.pages(kind).is_empty()), "{report}");
    });
}

/// Damage 6: a page is gone.
#[test]
fn a_page_that_is_gone_is_missed() {
    each_victim(|victim| {
        let found = victim.each_page(Kind::Pair, |damaged, page| damaged.pages[page] = None);
        victim.fails(
            "a page that is gone",
            &found,
            &["never written", "ends too early", "cannot be read", "a superblock is erased"],
            Harm::DriveStops,
        );
    });
}

/// Damage 11: the key of a record, the CRC being right.
#[test]
fn a_key_that_was_changed_is_found() {
    each_victim(|victim| {
        let found = victim.each_page(Kind::Pair, |damaged, page| {
            let oob = victim.oob(damaged, page).unwrap();
            for entry in &oob.entries {
                let start = (entry.grain * victim.design.grain_bytes) as usize;
                damaged.pages[page].as_mut().unwrap()[start + 1] ^= 0x20;
            }
            victim.put_crc(damaged, page);
        });
        victim.fails("a key", &found, &["a search for the key ends", "no search for the key"], Harm::PairLost);
    });
}

/// Damage 13: pages of invalid mappings. Only one design has them, and only after many deaths.
#[test]
fn a_page_of_invalid_mappings_that_cannot_be_read_is_found() {
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        let design = &PLUS;
        let victim = Victim { before: spilled(design, power_loss), ..Victim::new(design, power_loss, 1) };
        let found = victim.each_page(Kind::InvalidMappings, |damaged, page| flip(damaged, page, 9));
        victim.fails("invalid mappings", &found, &["a page of invalid mappings of superblock"], Harm::DriveStops);
        let found = victim.each_page(Kind::InvalidMappings, |damaged, page| {
            let mut oob = victim.oob(damaged, page).unwrap();
            oob.entries[0].tag += 1;
            victim.put_oob(damaged, page, &oob);
        });
        victim.fails("invalid mappings of another", &found, &["has tag"], Harm::DriveStops);
    }
}

/// A drive of small pairs, of which so many died that their superblocks have pages of invalid mappings.
fn spilled(design: &Design, power_loss: PowerLoss) -> Snapshot {
    use kvssd_types::{Command, Key, Nanos, StoreCondition, Value};
    let profile = tiny(design, power_loss);
    let medium = Medium::new(kvssd_flash::ByteBacking::new(profile.geometry).into());
    let mut engine = design.build(&profile, Box::new(powered(profile.geometry, &medium))).unwrap();
    let mut clock = Nanos::ZERO;
    for number in 0..6000u32 {
        // Every third stays.
        let key = if number % 3 == 0 { number } else { number % 7 }.to_be_bytes();
        let (key, condition) = (Key::new(&key).unwrap(), StoreCondition::Always);
        engine.advance(clock).unwrap();
        let command = Command::Store { key, value: Value::from(&number.to_le_bytes()[..]), condition };
        let (done, reply) = engine.execute(command, clock);
        reply.unwrap();
        clock = done;
    }
    engine.close().unwrap();
    Snapshot::of(design, &medium)
}

/// Damages 16 and 17: not this drive at all.
#[test]
fn another_design_geometry_or_no_drive_is_refused() {
    each_victim(|victim| {
        let other = DESIGNS.into_iter().find(|other| other.name != victim.design.name).unwrap();
        let medium = victim.before.medium(&victim.design);
        let report = overlay_check(&other, victim.power_loss, &medium);
        victim.fails(
            "another design",
            &[report],
            &["another design or geometry", "drive cannot be mounted"],
            Harm::NotMounted,
        );

        let mut profile = victim.profile.clone();
        (profile.geometry.blocks_per_die, profile.geometry.pages_per_block) = (24, 16);
        let backing = powered(profile.geometry, &medium);
        let report = victim.design.check(&profile, Box::new(backing));
        victim.fails("another geometry", &[report], &["drive cannot be mounted"], Harm::NotMounted);

        let mut empty = victim.before.clone();
        empty.pages.iter_mut().for_each(|page| *page = None);
        empty.staged.clear();
        victim.fails("an empty drive", &[victim.check(&empty)], &["it was never formatted"], Harm::NotMounted);
        let mut rubbish = victim.before.clone();
        rubbish.pages.iter_mut().flatten().for_each(|bytes| bytes.fill(0xa5));
        rubbish.staged.fill(0xa5);
        let report = victim.check(&rubbish);
        assert!(report.pages_unreadable > 100, "{report}");
        victim.fails("rubbish", &[report], &["it was never formatted"], Harm::NotMounted);
    });
}

mod campaigns {
    use super::*;

    /// Damage 12: entries of a section, the CRC being right.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn a_section_that_was_changed_is_found() {
        each_victim(|victim| {
            for byte in [0, 1, 2, 5, 259, 261] {
                let found = victim.each_page(Kind::Section, |damaged, page| {
                    damaged.pages[page].as_mut().unwrap()[byte] ^= 3;
                    victim.put_crc(damaged, page);
                });
                // Bytes behind the last entry of a section may say anything.
                if !found.is_empty() || byte < 3 && victim.design.name == "plus" {
                    victim.fails("a section", &found, &[""], Harm::Harmless);
                }
            }
        });
    }

    /// Damages 9 and 10: an out-of-band area without entries, and one with another tag, the CRC being right.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn an_out_of_band_area_that_lies_is_found() {
        each_victim(|victim| {
            let empty = victim.each_page(Kind::Pair, |damaged, page| {
                victim.area(damaged, page)[4..].fill(0);
                victim.put_crc(damaged, page);
            });
            victim.fails("an out-of-band area of zeros", &empty, &["out-of-band area says nothing"], Harm::DriveStops);
            for kind in [Kind::Pair, Kind::Section] {
                let other = victim.found(kind, |victim, damaged, page| {
                    let mut oob = victim.oob(damaged, page).unwrap();
                    for Entry { namespace, tag, .. } in &mut oob.entries {
                        // Of pairs in a bitmap, the namespace is all that there is.
                        (namespace.0, *tag) = (namespace.0 ^ 2, *tag ^ 1);
                    }
                    victim.put_oob(damaged, page, &oob);
                });
                victim.fails("tags that lie", &other, &["has tag", "no key has"], Harm::DriveStops);
            }
            let stream = victim.each_page(Kind::Section, |damaged, page| {
                let mut oob = victim.oob(damaged, page).unwrap();
                oob.kind = Kind::Pair;
                victim.put_oob(damaged, page, &oob);
            });
            victim.fails("a kind that does not fit", &stream, &["a page of pairs of stream Map"], Harm::DriveStops);
        });
    }

    /// Damages 1 to 5: flipped bits in a page of each kind.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn flipped_bits_are_found_in_every_kind_of_page() {
        each_victim(|victim| {
            let found = |kind| victim.found(kind, |_, damaged, page| flip(damaged, page, 77));
            let pairs = ["the checksum does not match", "on which the value goes on, cannot be read"];
            victim.fails("bits of a page of pairs", &found(Kind::Pair), &pairs, Harm::PairLost);
            let sections = found(Kind::Section);
            victim.fails("bits of a page of sections", &sections, &["the checksum does not match"], Harm::DriveStops);
            let lost = ["of the journal", "no checkpoint", "the checksum does not match"];
            victim.fails("bits of a checkpoint", &found(Kind::Checkpoint), &lost, Harm::DriveStops);
            if victim.power_loss == PowerLoss::Volatile {
                // What lies behind a hole at the end of the journal was never promised.
                return;
            }
            victim.fails("bits of a page of the journal", &found(Kind::Journal), &lost, Harm::DriveStops);
        });
    }

    /// Damages 7 and 8: two pages have changed places, and a page has what it once had.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn pages_that_are_not_where_they_were_are_found() {
        each_victim(|victim| {
            let pages = victim.pages(Kind::Pair);
            let other = |page: usize| pages[(pages.iter().position(|&other| other == page).unwrap() + 3) % pages.len()];
            let swapped = victim.each_page(Kind::Pair, |damaged, page| damaged.pages.swap(page, other(page)));
            let says = ["what lies there was written to page"];
            victim.fails("pages that changed places", &swapped, &says, Harm::Harmless);

            let mut older = Mortal::new(&victim.design, victim.power_loss, 5);
            for _ in 0..2 {
                older.life(250_000_000, |_| {});
            }
            let older = Snapshot::of(&victim.design, &older.medium);
            let replayed = victim.each_page(Kind::Pair, |damaged, page| {
                if older.pages[page].is_some() {
                    damaged.pages[page].clone_from(&older.pages[page]);
                }
            });
            let says = ["it is of an earlier life of its block"];
            victim.fails("an old page", &replayed, &says, Harm::Harmless);
        });
    }

    /// Damages 14 and 15: the write buffer's memory is cut short, or garbled.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn staged_bytes_that_are_not_whole_are_found() {
        for design in &DESIGNS {
            let victim = Victim::new(design, PowerLoss::Protected, 5);
            let length = victim.before.staged.len();
            let mut none = victim.before.clone();
            none.staged.clear();
            victim.fails("no staged bytes", &[victim.check(&none)], &["the write buffer's memory"], Harm::NotMounted);
            // Cut or garbled anywhere, it is refused or gives a drive that is whole, of a moment before.
            let mut refused = 0;
            for at in (0..length).step_by((length / 40).max(1)) {
                let (mut short, mut garbled) = (victim.before.clone(), victim.before.clone());
                short.staged.truncate(at);
                garbled.staged[at] ^= 0x40;
                for (what, damaged) in [("cut", short), ("garbled", garbled)] {
                    let report = victim.check(&damaged);
                    let is_refused = report.worst() == Some(Harm::NotMounted);
                    assert!(is_refused || report.is_clean(), "{} {what} at {at} of {length}: {report}", design.name);
                    refused += u32::from(is_refused);
                }
            }
            assert!(refused > 0, "{}: none of 80 was refused", design.name);
        }
    }
}
