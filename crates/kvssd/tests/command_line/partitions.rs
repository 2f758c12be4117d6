//! A drive in partitions, from the command line: every command takes it as one drive, and what it cannot be is said.

use crate::desk::Desk;
use crate::serve::Service;
use crate::store::{done, message};

#[test]
fn a_drive_in_partitions_is_one_drive() {
    for design in ["plus", "tessera", "iter"] {
        let desk = Desk::new();
        desk.prints(&format!("create drive.kv --size 192MiB --design {design} --partitions 3"));
        let pairs: String = (0..600).map(|number| format!("key{number:04},value {number}\n")).collect();
        desk.put("pairs.csv", &pairs);
        done(&desk, &["load", "drive.kv", "pairs.csv"], b"");
        done(&desk, &["put", "drive.kv", "alice", "one"], b"");
        done(&desk, &["delete", "drive.kv", "key0599"], b"");
        assert_eq!(desk.prints("namespace create drive.kv --name accounts --ordered"), "2\n");
        done(&desk, &["load", "drive.kv", "pairs.csv", "--namespace", "accounts"], b"");

        assert_eq!(desk.prints("get drive.kv alice"), "one");
        assert_eq!(desk.prints("list drive.kv").lines().count(), 600);
        let keys = desk.prints("list drive.kv --namespace accounts --from key0100 --count 3");
        assert_eq!(keys, "key0100\nkey0101\nkey0102\n");
        let info = desk.prints("info drive.kv");
        assert!(info.contains("partitions        3\n") && info.contains("pairs             1200\n"), "{info}");
        assert!(desk.prints("stat drive.kv").starts_with("pairs             1200\n"));
        let check = desk.prints("check drive.kv");
        assert!(check.contains("1200"), "{check}");
    }
}

#[test]
fn a_service_shares_a_drive_in_partitions() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 128MiB --partitions 2");
    done(&desk, &["put", "drive.kv", "alice", "one"], b"");
    let service = Service::start(&desk, "");
    let url = format!("nvme+tcp://{}", service.address);
    assert_eq!(desk.prints(&format!("get {url} alice")), "one");
    done(&desk, &["put", &url, "bob", "two"], b"");
    assert_eq!(service.end("-TERM"), Some(0));
    assert_eq!(desk.prints("get drive.kv bob"), "two");
}

#[test]
fn what_a_drive_in_partitions_cannot_be_is_said_in_one_line() {
    let desk = Desk::new();
    for (arguments, names) in [
        ("create drive.kv --size 64MiB --partitions 0", ["--partitions", "1..=64"]),
        ("create drive.kv --size 64GiB --partitions 65", ["--partitions", "1..=64"]),
        ("create drive.kv --size 128MiB --partitions 3", ["drive.kv", "each partition has 64 MiB"]),
    ] {
        let message = message(&desk, &arguments.split(' ').collect::<Vec<_>>(), 2);
        assert!(names.iter().all(|name| message.contains(name)), "{arguments}: {message}");
        assert!(!desk.path("drive.kv").exists(), "{arguments}");
    }
    desk.prints("create drive.kv --size 128MiB --partitions 2");
    let message = message(&desk, &["serve", "drive.kv", "--listen", "127.0.0.1:0", "--timed", "kvvirt"], 2);
    assert!(["2 partitions", "times of a profile"].iter().all(|words| message.contains(words)), "{message}");
}
