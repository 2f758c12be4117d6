//! Namespaces of an image, as a script uses them.

use crate::desk::Desk;
use crate::store::{desk_with_image, done, message, run};

/// The cells of a line of `kvssd namespace list`, by the namespace's number.
fn listed(desk: &Desk, number: &str) -> Option<Vec<String>> {
    let list = desk.prints("namespace list drive.kv");
    let lines = list.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    lines.into_iter().find(|cells| cells[0] == number)
}

#[test]
fn namespaces_come_fill_and_go() {
    for design in ["plus", "original", "rhik", "iter", "kaml"] {
        let desk = desk_with_image(design);
        assert_eq!(desk.prints("namespace create drive.kv --name accounts --ordered"), "2\n");
        let set = "namespace create drive.kv --name log --index lsm --set pinned_levels=2 --quota 1MiB";
        assert_eq!(desk.prints(set), "3\n");
        for (namespace, value) in [("1", "one"), ("accounts", "two"), ("3", "three")] {
            done(&desk, &["put", "drive.kv", "alice", value, "--namespace", namespace], b"");
        }
        assert_eq!(desk.prints("get drive.kv alice"), "one");
        assert_eq!(desk.prints("get drive.kv alice --namespace 2"), "two");
        assert_eq!(desk.prints("get drive.kv alice --namespace log"), "three");

        let pairs: String = (0..2000).rev().map(|number| format!("key{number:04},value {number}\n")).collect();
        desk.put("pairs.csv", &pairs);
        done(&desk, &["load", "drive.kv", "pairs.csv", "--namespace", "accounts"], b"");
        let keys = desk.prints("list drive.kv --namespace accounts --from key --count 3");
        assert_eq!(keys, "key0000\nkey0001\nkey0002\n");
        assert_eq!(desk.prints("dump drive.kv --namespace accounts").lines().count(), 2001);
        assert_eq!(desk.prints("dump drive.kv"), "alice,one\n");
        let accounts = listed(&desk, "2").unwrap();
        assert_eq!(accounts[1..5], ["accounts", "lsm", "ordered", "2001"], "{design}");
        assert_eq!(listed(&desk, "3").unwrap()[1..6], ["log", "lsm", "pinned_levels=2", "ordered", "1"]);
        assert!(desk.prints("info drive.kv").contains("namespaces        3 of 16\n"));
        assert!(desk.prints("check drive.kv").contains("pairs: 2003,"));

        desk.prints("namespace delete drive.kv accounts");
        assert!(desk.prints("stat drive.kv").starts_with("pairs             2\n"));
        assert_eq!(listed(&desk, "2"), None);
        assert!(desk.prints("check drive.kv").contains("pairs: 2,"));
        assert_eq!(desk.prints("get drive.kv alice"), "one");
        done(&desk, &["delete", "drive.kv", "alice", "--namespace", "log"], b"");
        assert!(message(&desk, &["exist", "drive.kv", "alice", "--namespace", "log"], 1).contains("alice"));
    }
}

#[test]
fn what_a_namespace_cannot_be_is_said_in_one_line() {
    let desk = desk_with_image("plus");
    desk.prints("namespace create drive.kv --name accounts --quota 100kB");
    for (arguments, names) in [
        ("namespace create nowhere.kv", ["nowhere.kv", "no such file"]),
        ("namespace create drive.kv --name accounts", ["drive.kv", "namespace 2 has that name"]),
        ("namespace create drive.kv --name 7", ["drive.kv", "number"]),
        ("namespace create drive.kv --index b-tree", ["b-tree", "multilevel, lsm, dram-hash"]),
        ("namespace create drive.kv --index rhik", ["rhik", "out-of-band"]),
        ("namespace create drive.kv --index hash-compact --ordered", ["hash-compact", "no order"]),
        ("namespace create drive.kv --index lsm --set nonsense=1", ["nonsense", "pinned_levels"]),
        ("namespace create drive.kv --index lsm --set table_pages=many", ["drive.kv", "number"]),
        ("namespace create drive.kv --quota lots", ["--quota", "4GiB"]),
        ("namespace delete drive.kv savings", ["drive.kv", "no namespace savings"]),
        ("namespace delete drive.kv 1", ["drive.kv", "namespace 1 stays"]),
        ("namespace list nowhere.kv", ["nowhere.kv", "no such file"]),
        ("put drive.kv a 1 --namespace savings", ["drive.kv", "no namespace savings"]),
        ("put nowhere.kv a 1 --namespace savings", ["nowhere.kv", "no such file"]),
        ("get drive.kv a --namespace 3", ["drive.kv", "no namespace 3"]),
        ("dump drive.kv --namespace 3", ["drive.kv", "no namespace 3"]),
    ] {
        desk.refuses(arguments, &names);
    }
    let value = "v".repeat(90_000);
    done(&desk, &["put", "drive.kv", "a", &value, "--namespace", "accounts"], b"");
    let full = message(&desk, &["put", "drive.kv", "b", &value, "--namespace", "accounts"], 3);
    assert!(full.contains("drive.kv") && full.contains("full"), "{full}");
    done(&desk, &["put", "drive.kv", "b", &value], b"");
    for _ in 2..16 {
        desk.prints("namespace create drive.kv");
    }
    desk.refuses("namespace create drive.kv", &["drive.kv", "16 namespaces"]);
}

#[test]
fn what_hosts_do_not_see_is_not_counted_as_a_namespace() {
    let desk = Desk::new();
    for partitions in ["1", "2"] {
        let image = format!("drive{partitions}.kv");
        desk.prints(&format!("create {image} --size 256MiB --value-bytes-max 8MiB --partitions {partitions}"));
        for name in 2..9 {
            desk.prints(&format!("namespace create {image} --name of{name}"));
        }
        desk.refuses(&format!("namespace create {image} --name nine"), &["there are 8 namespaces", "takes no more"]);
        assert!(desk.prints(&format!("info {image}")).contains("namespaces        8 of 8\n"));
    }
}

#[test]
fn an_image_of_an_older_format_is_refused_and_left_as_it_was() {
    let desk = desk_with_image("plus");
    let mut older = std::fs::read(desk.path("drive.kv")).unwrap();
    let version = older.iter_mut().skip(8).find(|byte| **byte != 0).unwrap();
    assert_eq!(*version, 3);
    *version = 2;
    std::fs::write(desk.path("older.kv"), &older).unwrap();
    for command in ["get older.kv a", "namespace list older.kv", "check older.kv"] {
        desk.refuses(command, &["older.kv", "version 2"]);
    }
    assert!(older == std::fs::read(desk.path("older.kv")).unwrap());
}

#[test]
fn a_name_of_two_lines_is_told_in_one() {
    let desk = desk_with_image("plus");
    let output = desk.command("namespace delete drive.kv").arg("a\nb\u{1b}[31m").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told, "kvssd: image drive.kv: there is no namespace a\\nb\\u{1b}[31m\n");
}

/// What the help says of indexes by design is what images take.
#[test]
fn the_indexes_of_the_help_are_those_that_images_take() {
    let desk = Desk::new();
    let help = String::from_utf8(done(&desk, &["namespace", "create", "--help"], b"")).unwrap();
    let table = help.split("(docs/FORMAT.md):").nth(1).expect("the help has a table");
    let indexes = ["hash-compact", "hash-fixed", "lsm", "tessera", "rhik", "multilevel", "dram-hash"];
    let mut seen = 0;
    for line in table.lines().filter(|line| line.starts_with("  ")) {
        let (designs, taken) = line.trim().split_once("   ").expect("designs, and indexes");
        let taken = taken.trim();
        let is_taken = |index: &&str| match taken.strip_prefix("all but ") {
            Some(but) => *index != but,
            None => taken == "any" || taken.split(", ").any(|name| name == *index),
        };
        for design in designs.split(", ") {
            seen += 1;
            done(&desk, &["create", design, "--size", "64MiB", "--design", design], b"");
            for index in indexes {
                let create = ["namespace", "create", design, "--name", index, "--index", index];
                let succeeds = run(&desk, &create, b"").status.success();
                assert_eq!(succeeds, is_taken(&index), "{design} and {index}");
            }
        }
    }
    assert_eq!(seen, 8, "{table}");
}

/// All that asks an index for its keys on its own account does without a list.
#[test]
fn an_index_without_a_list_keeps_large_values_and_caches_and_can_go() {
    let desk = Desk::new();
    let design = ["--design", "multilevel", "--set", "design.iterators=false", "--value-bytes-max", "2MiB"];
    done(&desk, &[&["create", "drive.kv", "--size", "64MiB"][..], &design].concat(), b"");
    let large = vec![7; 1_500_000];
    done(&desk, &["put", "drive.kv", "large", "-"], &large);
    for (name, cache) in [("cache", &["--cache", "lru", "--budget", "1MiB"][..]), ("plain", &[])] {
        done(&desk, &[&["namespace", "create", "drive.kv", "--name", name], cache].concat(), b"");
        done(&desk, &["put", "drive.kv", "key", "value", "--namespace", name], b"");
        done(&desk, &["check", "drive.kv"], b"");
        assert_eq!(done(&desk, &["get", "drive.kv", "key", "--namespace", name], b""), b"value");
        done(&desk, &["namespace", "delete", "drive.kv", name], b"");
    }
    assert_eq!(done(&desk, &["get", "drive.kv", "large"], b""), large);
    assert!(message(&desk, &["list", "drive.kv"], 2).contains("built without iterators"));
}

#[test]
fn who_is_told_that_it_is_full_finds_what_is() {
    let desk = desk_with_image("kaml");
    let pairs: String = (0..20_000).map(|number| format!("key{number:05},value\n")).collect();
    desk.put("pairs.csv", &pairs);
    let said = message(&desk, &["load", "drive.kv", "pairs.csv"], 3);
    assert!(said.contains("its index") && said.contains("kvssd namespace list show what is taken"), "{said}");
    let first = listed(&desk, "1").unwrap();
    assert_eq!(first[4], first[5], "the table has no slot left");
    assert_eq!(listed(&desk_with_image("plus"), "1").unwrap()[5], "-");
}
