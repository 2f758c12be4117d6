//! A program's own design beside those of the papers.

use kvssd_designs::{DESIGNS, PINK, RhikPlan, add, all, from_table, named};
use kvssd_flash::RopeBacking;
use kvssd_ftl::index::{Index, IndexPlan, Parameters, Room};
use kvssd_ftl::{Candidate, Design, DramUse, IndexChoice, NamespaceAttributes, VictimPolicy};
use kvssd_types::Nanos;

const RHIK: RhikPlan = RhikPlan { signature_bits: 64, directory_bits: 4, occupancy_percent: 80, incremental: true };

/// A `rhik` under another name, whose tags are as wide as the papers' are.
#[derive(Clone, Debug)]
struct Renamed(&'static str, RhikPlan);

impl IndexPlan for Renamed {
    fn name(&self) -> &'static str {
        self.0
    }

    fn parameters(&mut self) -> Parameters<'_> {
        IndexPlan::parameters(&mut self.1)
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        self.1.build(room)
    }

    fn tags(&self, room: &Room) -> u64 {
        self.1.tags(room)
    }

    fn has_tags_of_keys(&self) -> bool {
        self.1.has_tags_of_keys()
    }

    fn charge(&self, room: &Room, dram: &mut DramUse) {
        IndexPlan::charge(&self.1, room, dram);
    }
}

fn own() -> Design {
    let index = IndexChoice::of(&Renamed("renamed", RHIK));
    Design { name: "own", description: "a design of this test", index, ..named("rhik").unwrap() }
}

#[test]
fn what_was_added_is_found_and_changes_no_drive_of_another_design() {
    let spaces = |name: &str| Design { namespaces_max: 4, ..named(name).unwrap() };
    let formats = || {
        DESIGNS.map(|design| {
            let profile = design.tiny_profile(&[("geometry.oob_bytes", "1000")]).unwrap();
            spaces(design.name).oob_format(&profile.geometry)
        })
    };
    let other = NamespaceAttributes { index: Some("renamed".to_owned()), ..NamespaceAttributes::PLAIN };
    let create = || {
        let design = spaces("kaml");
        let profile = design.tiny_profile(&[("geometry.oob_bytes", "1000"), ("memory.dram_bytes", "4000000")]).unwrap();
        let mut engine = design.build(&profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
        engine.create_namespace(other.clone(), Nanos::ZERO).1.map(drop).map_err(|error| error.to_string())
    };
    let before = formats();
    assert!(named("own").unwrap_err().to_string().contains("own"));
    assert!(create().unwrap_err().contains("there is no index \"renamed\" (there are: dram-hash, hash-fixed"));

    add(own()).unwrap();
    assert_eq!(named("own"), Ok(own()));
    assert_eq!(formats(), before);
    assert_eq!(create(), Ok(()));

    // Once more is no mistake; another of that name is.
    add(own()).unwrap();
    let taken = Design { grain_bytes: 256, ..own() };
    assert!(add(taken).unwrap_err().to_string().contains("there is another design called \"own\" already"));
    assert_eq!(all().iter().filter(|design| design.name == "own").count(), 1);
}

/// A policy of this test, with one choice.
#[derive(Clone, Debug)]
struct Oldest {
    young_pages: u32,
}

impl VictimPolicy for Oldest {
    fn name(&self) -> &'static str {
        "oldest"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("young_pages", &mut self.young_pages)]
    }

    fn cost(&self, candidate: &Candidate) -> u64 {
        u64::MAX - candidate.age_pages.saturating_sub(self.young_pages.into())
    }
}

#[test]
fn a_policy_that_was_added_is_chosen_by_any_design() {
    let with_oldest = |name: &'static str| Design { name, ..named("rhik").unwrap() };
    let design = with_oldest("rhik-oldest").with_victims(&Oldest { young_pages: 5 });
    assert!(named("plus").unwrap().set("victims", "oldest").unwrap_err().to_string().contains("greedy, erase-counts"));
    add(design.clone()).unwrap();
    let mut plus = named("plus").unwrap();
    plus.set("victims", "oldest").unwrap();
    plus.set("young_pages", "7").unwrap();
    assert_eq!(from_table(plus.table()).unwrap(), plus);
    assert_eq!(from_table(design.table()).unwrap().victims, design.victims);
}

#[test]
fn what_a_command_line_or_an_image_could_not_tell_apart_is_not_added() {
    for name in ["", "all", "a b", "a=b"] {
        let refused = add(Design { name, ..own() }).unwrap_err().to_string();
        assert!(refused.contains("a design is called by letters"), "{name:?}: {refused}");
    }
    // Its index has a parameter of that name as well.
    #[derive(Clone, Debug)]
    struct Same(u32);
    impl VictimPolicy for Same {
        fn name(&self) -> &'static str {
            "same"
        }

        fn parameters(&mut self) -> Parameters<'_> {
            vec![("signature_bits", &mut self.0)]
        }

        fn cost(&self, candidate: &Candidate) -> u64 {
            candidate.kept_grains()
        }
    }
    let twice = Design { name: "twice", ..own() }.with_victims(&Same(1));
    assert!(add(twice.clone()).unwrap_err().to_string().contains("signature_bits: two parts of twice"));
    let profile = own().tiny_profile(&[]).unwrap();
    assert!(twice.build(&profile, Box::new(RopeBacking::new(profile.geometry))).is_err());
}

#[test]
fn an_index_or_a_policy_that_an_image_would_take_for_another_is_not_added() {
    #[derive(Clone, Debug)]
    struct Greedy;
    impl VictimPolicy for Greedy {
        fn name(&self) -> &'static str {
            "greedy"
        }

        fn cost(&self, candidate: &Candidate) -> u64 {
            candidate.age_pages
        }
    }
    let refused = |design: Design| add(design).unwrap_err().to_string();
    let design = Design { name: "other-greedy", ..own() }.with_victims(&Greedy);
    assert!(refused(design).contains("another policy of victims called \"greedy\" already"));
    let index = IndexChoice::of(&Renamed("rhik", RHIK));
    assert!(refused(Design { name: "other-rhik", index, ..own() }).contains("another index called \"rhik\" already"));
    // The presets share theirs.
    let of_presets = Design { name: "of-presets", index: PINK.index, ..own() };
    add(of_presets).unwrap();
}

#[test]
fn who_wants_an_order_gets_filters_and_who_names_a_papers_tree_gets_that() {
    let bits = |choice: &IndexChoice| {
        let parameters = choice.parameters();
        parameters.into_iter().find(|(key, _)| *key == "bloom_bits").map(|(_, bits)| bits)
    };
    let ordered = PINK.indexes.ordered().unwrap();
    let papers = PINK.indexes.all().into_iter().find(|choice| choice.plan().name() == ordered.plan().name()).unwrap();
    assert_eq!((bits(&ordered).as_deref(), bits(&papers).as_deref()), (Some("6"), Some("0")));
}
