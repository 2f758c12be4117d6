//! Images with pages that cannot be read: `dump` and `list` give what can be, once, and say how much is lost.

use crate::desk::Desk;
use crate::store::{done, message, run};
use crate::wire::Service;
use kvssd_designs::DESIGNS;
use kvssd_device::{CreateDrive, Drive, image_design};
use kvssd_flash::{Backing, ImageBacking, OpenOptions, PageAddress};
use kvssd_ftl::Kind;
use kvssd_host::{Error, Options, Store};
use kvssd_types::{Command, Key, StoreCondition, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Output;

/// Few enough for a small drive of any design.
const KEYS: u64 = 800;
/// Stores: some keys are stored again.
const STEPS: u64 = 1000;
/// One of four keys is deleted, so many stores behind its own: of a tree that is in another table.
const DELETED_BEHIND: u64 = 200;
/// Of so many keys one has a large value, in segments.
const LARGE_EVERY: u64 = 300;
/// Where the firmware's bytes begin in an out-of-band area.
const FIRMWARE_AT: usize = 6;

type Pairs = BTreeMap<String, String>;

/// An image, closed in order.
struct Image {
    desk: Desk,
    design: &'static str,
    pairs: Pairs,
    /// Bytes of a page in the file, and those of them that are data.
    page_bytes: [usize; 2],
    pages_offset: u64,
    /// The bytes of all pages.
    bytes: Vec<u8>,
    /// The pages that are programmed.
    pages: Vec<usize>,
}

/// Makes a drive with so little memory that much of its index is on flash, and uses it; gives the pairs that it has.
fn used(path: &Path, design: &str) -> Pairs {
    let dram_bytes = if design == "plus" { "250000" } else { "105000" };
    let keys = [("geometry.oob_bytes", "512"), ("memory.dram_bytes", dram_bytes), ("memory.power_loss", "protected")];
    let mut design = image_design(design).unwrap();
    for (name, value) in [("table_pages", "1"), ("flash_bytes_per_slot", "1024")] {
        if design.parameters().iter().any(|(parameter, _)| *parameter == name) {
            design.set(name, value).unwrap();
        }
    }
    let options = CreateDrive { value_bytes_max: Some(2 << 20), ..CreateDrive::default() };
    let mut drive = Drive::create(path, &design.tiny_profile(&keys).unwrap(), &design, options).unwrap();
    let mut pairs = Pairs::new();
    let key_of = |step: u64| format!("key {}", step * 7 % KEYS);
    for step in 0..STEPS {
        let (key, condition) = (key_of(step), StoreCondition::Always);
        let words = if (step * 7 % KEYS).is_multiple_of(LARGE_EVERY) { 13_000 } else { 2 };
        let value: String = (0..words).map(|word| format!("{step}.{word}; ")).collect();
        let (name, bytes) = (Key::new(key.as_bytes()).unwrap(), Value::from(value.as_bytes()));
        let stored = drive.execute(Command::Store { key: name, value: bytes, condition });
        stored.unwrap_or_else(|error| panic!("{}, {key}: {error}", design.name));
        pairs.insert(key, value);
        let before = key_of(step.saturating_sub(DELETED_BEHIND));
        if step % 4 == 3 && pairs.contains_key(&before) {
            drive.execute(Command::Delete { key: Key::new(before.as_bytes()).unwrap() }).unwrap();
            pairs.remove(&before);
        }
    }
    drive.close().unwrap();
    pairs
}

impl Image {
    fn new(design: &'static str) -> Image {
        let desk = Desk::in_memory();
        let pairs = used(&desk.path("drive.kv"), design);
        let options = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };
        let image = ImageBacking::open(desk.path("drive.kv"), options).unwrap().0;
        let geometry = *image.geometry();
        let pages_offset = image.offset_of(PageAddress(0));
        let page_bytes = (image.offset_of(PageAddress(1)) - pages_offset) as usize;
        let mut bytes = vec![0; page_bytes * geometry.pages() as usize];
        File::open(desk.path("drive.kv")).unwrap().read_exact_at(&mut bytes, pages_offset).unwrap();
        let is_programmed = |page: &usize| {
            let (block, row) = geometry.block_of(geometry.unit_of(PageAddress(*page as u32)));
            row < image.block(block).units_programmed
        };
        let pages = (0..geometry.pages() as usize).filter(is_programmed).collect();
        Image {
            desk,
            design,
            pairs,
            page_bytes: [page_bytes, geometry.page_bytes as usize],
            pages_offset,
            bytes,
            pages,
        }
    }

    fn kind(&self, page: usize) -> Kind {
        let [page_bytes, data_bytes] = self.page_bytes;
        Kind::ALL[usize::from(self.bytes[page * page_bytes + data_bytes + FIRMWARE_AT] & 0xf)]
    }

    fn pages_of(&self, kind: Kind) -> impl Iterator<Item = usize> {
        self.pages.iter().copied().filter(move |&page| self.kind(page) == kind)
    }

    /// The last page with these bytes.
    fn page_with(&self, bytes: &[u8]) -> usize {
        let has = |page: usize| {
            let begin = page * self.page_bytes[0];
            self.bytes[begin..begin + self.page_bytes[1]].windows(bytes.len()).any(|found| found == bytes)
        };
        self.pages.iter().copied().rfind(|&page| has(page)).expect("the bytes are on a page")
    }

    fn page_with_key(&self, key: &str) -> usize {
        self.page_with(&[&[key.len() as u8], key.as_bytes()].concat())
    }

    /// Changes a byte of each of these pages; all others are as they were.
    fn damage(&self, pages: &[usize]) {
        let file = File::options().write(true).open(self.desk.path("drive.kv")).unwrap();
        file.write_all_at(&self.bytes, self.pages_offset).unwrap();
        for page in pages {
            let at = page * self.page_bytes[0] + 100;
            file.write_all_at(&[self.bytes[at] ^ 0x40], self.pages_offset + at as u64).unwrap();
        }
    }

    /// The pairs that a store gives; they are right. None of an image that cannot be opened.
    fn readable(&self) -> Option<Pairs> {
        let options = Options { read_only: true, ..Options::default() };
        let store = match Store::open(self.desk.path("drive.kv"), options) {
            Err(Error::Damaged { .. }) => return None,
            store => store.unwrap(),
        };
        let mut readable = self.pairs.clone();
        readable.retain(|key, value| match store.retrieve(key.as_bytes()) {
            Err(Error::Damaged { .. }) => false,
            found => {
                assert!(found.as_ref().unwrap().as_deref() == Some(value.as_bytes()), "{}: {key}", self.design);
                true
            }
        });
        Some(readable)
    }

    /// Damages pages and sees that a dump and a list give what a store does, and say how much that lacks; gives how much the dump
    /// lacks, and what it says.
    fn salvage(&self, pages: &[usize]) -> (usize, String) {
        self.damage(pages);
        let Some(readable) = self.readable() else {
            message(&self.desk, &["-q", "dump", "drive.kv"], 2);
            return (self.pairs.len(), String::new());
        };
        let dumped = run(&self.desk, &["-q", "dump", "drive.kv"], b"");
        assert!(pairs_of(&dumped.stdout) == readable, "{}: {pages:?}", self.design);
        let message = self.told(&dumped, readable.len());

        let listed = run(&self.desk, &["-q", "list", "drive.kv"], b"");
        let keys: BTreeSet<&str> = text(&listed.stdout).lines().collect();
        // A key is there though its value cannot be read.
        let are_right =
            readable.keys().all(|key| keys.contains(&**key)) && keys.iter().all(|key| self.pairs.contains_key(*key));
        assert!(are_right && text(&listed.stdout).lines().count() == keys.len(), "{}: {pages:?}", self.design);
        self.told(&listed, keys.len());
        (self.pairs.len() - readable.len(), message)
    }

    /// Sees that the program has said in one line how much is lost, if something is, when so much came out; gives the line.
    fn told(&self, output: &Output, given: usize) -> String {
        let (message, lost) = (text(&output.stderr), self.pairs.len() - given);
        let lie = if lost == 1 { "1 pair lies".to_owned() } else { format!("{lost} pairs lie") };
        let wanted = format!("kvssd: image drive.kv: {lie} on pages that cannot be read, and not in the output");
        let is_told =
            if lost == 0 { message.is_empty() } else { message.starts_with(&wanted) && message.lines().count() == 1 };
        assert!(is_told, "{}: {lost} are lost: {message}", self.design);
        assert_eq!(output.status.code(), Some(i32::from(lost > 0)), "{}: {message}", self.design);
        message.to_owned()
    }
}

/// The pairs of a dump, in which each key is once.
fn pairs_of(csv: &[u8]) -> Pairs {
    let mut pairs = Pairs::new();
    for (key, value) in text(csv).lines().map(|line| line.split_once(',').expect("a key and a value")) {
        assert!(pairs.insert(key.to_owned(), value.to_owned()).is_none(), "{key} is there twice");
    }
    pairs
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_can_be_read_comes_out_and_what_is_lost_is_told() {
    for design in DESIGNS.map(|design| design.name) {
        let image = Image::new(design);
        let part = &image.pairs["key 300"].as_bytes()[100_000..100_050];
        let [small, large, ledger] =
            [image.page_with_key("key 11"), image.page_with(part), image.page_with_key("ledger")];
        let (lost, said) = image.salvage(&[small, large, ledger]);
        assert!((2..200).contains(&lost) && said.contains("keys that cannot be read: key "), "{design}: {said}");
        let of_index: Vec<usize> = image.pages_of(Kind::Section).collect();
        // Of a tree older entries are left then, also of keys that were deleted.
        image.salvage(&of_index[of_index.len() / 2..]);
        let (lost, _) = image.salvage(&of_index);
        // What `multilevel` has there is for lists alone, and memory has all of `tessera`.
        let loses = !["multilevel", "tessera"].contains(&design);
        assert_eq!(loses, lost > 0, "{design}: {lost} of {}", image.pairs.len());
    }
}

#[test]
fn a_dump_of_what_can_be_read_loads_and_a_check_names_what_cannot() {
    let image = Image::new("plus");
    image.damage(&[image.page_with_key("key 11"), image.page_with_key("ledger")]);
    let (desk, readable) = (&image.desk, image.readable().unwrap());
    let message = message(desk, &["-q", "dump", "drive.kv", "pairs.csv"], 1);
    assert!(message.contains("pairs lie on pages that cannot be read"), "{message}");
    done(desk, &["create", "new.kv", "--size", "64MiB", "--value-bytes-max", "2MiB"], b"");
    done(desk, &["load", "new.kv", "pairs.csv"], b"");
    assert!(pairs_of(&done(desk, &["dump", "new.kv"], b"")) == readable);
    // What is wanted in an order ends where that ends.
    for part in [&["--count", "700"][..], &["--from", "key 12"]] {
        let listed = run(desk, &[&["list", "drive.kv"], part].concat(), b"");
        assert_eq!(listed.status.code(), Some(2), "{listed:?}");
    }
    let checked = run(desk, &["check", "drive.kv"], b"");
    let (report, ledger) = (text(&checked.stdout), "the drive cannot be mounted: large values of namespace 1, ledger");
    assert!(report.contains("pair lost") && report.contains(ledger), "{report}");
}

/// Over the wire a List leaves no key out: it fails. Where keys can be listed, a dump goes on behind values that cannot be read.
#[test]
fn a_dump_over_the_wire_goes_on_where_keys_can_be_listed() {
    for (design, status) in [("plus", 2), ("iter", 1)] {
        let image = Image::new(design);
        image.damage(&[image.page_with_key("key 11")]);
        let (desk, readable) = (&image.desk, image.readable().unwrap());
        let service = Service::start(desk, "127.0.0.1:0 --log off");
        let url = service.url("");
        let dumped = run(desk, &["-q", "dump", &url, "pairs.csv"], b"");
        let said = text(&dumped.stderr);
        assert_eq!((dumped.status.code(), said.lines().count()), (Some(status), 1), "{design}: {said}");
        match status {
            1 => assert!(pairs_of(desk.read("pairs.csv").as_bytes()) == readable && said.contains("key 11"), "{said}"),
            _ => assert!(
                !desk.path("pairs.csv").exists() && said.contains("cannot read") && said.contains("ask its image"),
                "{said}"
            ),
        }
        assert_eq!(run(desk, &["list", &url], b"").status.code(), Some(if status == 1 { 0 } else { 2 }), "{design}");
    }
}

/// What was listed before the list ended, and not asked for yet, is asked for all the same.
#[test]
fn a_dump_over_the_wire_has_all_that_was_listed_before_the_list_ended() {
    let desk = Desk::in_memory();
    done(&desk, &["create", "-q", "drive.kv", "--size", "64MiB", "--design", "pink", "--value-bytes-max", "3MiB"], b"");
    // More than come in one answer.
    let pairs: Pairs = (0..40_000).map(|number| (format!("key {number}"), format!("value {number}"))).collect();
    let lines: String = pairs.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
    done(&desk, &["load", "-q", "drive.kv", "-"], lines.as_bytes());
    let bytes = std::fs::read(desk.path("drive.kv")).unwrap();
    let file = File::options().write(true).open(desk.path("drive.kv")).unwrap();
    let key = b"key 35000";
    for (at, _) in bytes.windows(key.len()).enumerate().filter(|(_, found)| found == key) {
        file.write_all_at(b"K", at as u64).unwrap();
    }
    let service = Service::start(&desk, "127.0.0.1:0 --log off");
    let url = service.url("");
    let [listed, dumped] = ["list", "dump"].map(|command| run(&desk, &["-q", command, &url], b""));
    assert_eq!((dumped.status.code(), &dumped.stderr), (Some(2), &listed.stderr), "the error is that of the list");
    let (keys, dumped) = (text(&listed.stdout), pairs_of(&dumped.stdout));
    assert!(keys.lines().count() > 0, "some keys come before the list ends");
    for key in keys.lines().filter(|key| !dumped.contains_key(*key)) {
        assert!(!run(&desk, &["-q", "get", &url, key], b"").status.success(), "{key} can be read");
    }
}

/// Each page of each image.
#[test]
#[ignore = "it takes minutes"]
fn whichever_page_is_lost_the_rest_comes_out() {
    for design in DESIGNS.map(|design| design.name) {
        let image = Image::new(design);
        let mut losses = BTreeMap::new();
        for &page in &image.pages {
            let (lost, said) = image.salvage(&[page]);
            let (pages, pairs) = losses.entry((image.kind(page).name(), lost > 0, said.is_empty())).or_insert((0, 0));
            (*pages, *pairs) = (*pages + 1, *pairs + lost);
        }
        println!("{design}: kind, whether pairs are lost, whether nothing is said of that: pages, pairs: {losses:?}");
    }
}
