//! A drive that is served, and the client: from the command line, and as a program embeds it.

use crate::desk::{Desk, number, runs};
use crate::store::{desk_with_image, done, message};
use kvssd_host::{Batch, Error, NamespaceId, StoreCondition, connect};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

/// `kvssd serve drive.kv`, until it is dropped.
pub struct Service {
    child: Child,
    address: String,
}

impl Service {
    pub fn start(desk: &Desk, listen: &str) -> Service {
        let mut command = desk.command(&format!("serve drive.kv --data-digest --listen {listen}"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("the output is a pipe")).read_line(&mut line).unwrap();
        let address = line.split_whitespace().nth(3).unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Service { child, address }
    }

    pub fn url(&self, query: &str) -> String {
        format!("nvme+tcp://{}/?{query}", self.address)
    }

    /// As `kill -9` does.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn served(design: &str) -> (Desk, Service) {
    let desk = desk_with_image(design);
    let service = Service::start(&desk, "127.0.0.1:0");
    (desk, service)
}

fn value(seed: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u64).wrapping_mul(31).wrapping_add(seed * 7 + at as u64 / 251) as u8).collect()
}

#[test]
fn a_url_stands_wherever_an_image_does() {
    let (desk, service) = served("plus");
    let url = service.url("");
    done(&desk, &["put", &url, "city/oslo", "59.91N"], b"");
    done(&desk, &["put", &url, "hex:00ff", "-"], b"\0two\nlines");
    let long = "a key that is longer than the command of NVMe has room for";
    done(&desk, &["put", &url, long, "long"], b"");
    assert_eq!(done(&desk, &["get", &url, long], b""), b"long");
    assert!(String::from_utf8(done(&desk, &["list", &url], b"")).unwrap().contains(long));
    done(&desk, &["delete", &url, long], b"");
    done(&desk, &["put", &url, "gone", "1"], b"");
    assert_eq!(done(&desk, &["get", &url, "city/oslo"], b""), b"59.91N");
    assert_eq!(done(&desk, &["get", &url, "hex:00ff"], b""), b"\0two\nlines");
    done(&desk, &["delete", &url, "gone"], b"");
    for command in ["get", "delete", "exist"] {
        let message = message(&desk, &[command, &url, "gone"], 1);
        assert!(message.contains(&service.address) && message.contains("no key gone"), "{message}");
    }
    let lines: String = (0..3000).map(|number| format!("key {number},\"value, {number}\"\n")).collect();
    done(&desk, &["load", &url, "-"], lines.as_bytes());
    assert_eq!(done(&desk, &["list", &url], b"").split(|byte| *byte == b'\n').count(), 3003);
    let dumped = String::from_utf8(done(&desk, &["dump", &url], b"")).unwrap();
    let mut dumped: Vec<_> = dumped.lines().filter(|line| line.starts_with("key ")).collect();
    let mut loaded: Vec<_> = lines.lines().collect();
    dumped.sort_unstable();
    loaded.sort_unstable();
    assert_eq!(dumped, loaded);
    let stat = String::from_utf8(done(&desk, &["stat", &url], b"")).unwrap();
    assert!(stat.starts_with("pairs             3002\n") && stat.contains("3006 changes"), "{stat}");
    let listed = String::from_utf8(done(&desk, &["namespace", "list", &url], b"")).unwrap();
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn what_only_an_image_can_is_refused_of_a_url() {
    let (desk, service) = served("plus");
    let url = service.url("");
    for (arguments, named) in [
        (&["put", &url, "a", "1", "--sync"][..], "where it is served"),
        (&["put", &url, &"k".repeat(256), "1"], "256 bytes, and a key has 1 to 255"),
        (&["get", &url, "a", "--namespace", "7"], "no namespace 7"),
        (&["get", &service.url("ns=9"), "a"], "no namespace 9"),
        (&["create", &url], "kvssd stat"),
        (&["info", &url], "kvssd stat"),
        (&["check", &url], "kvssd stat"),
        (&["serve", &url], "kvssd stat"),
        (&["namespace", "create", &url], "needs a name"),
        (&["namespace", "create", &url, "--name", "a", "--set", "bloom_bits=10"], "chosen where the drive is"),
        (&["namespace", "create", &url, "--name", "17"], "taken for a number"),
        (&["namespace", "create", &url, "--name", "a", "--index", "none"], "index"),
        (&["namespace", "delete", &url, "1"], "namespace 1 stays"),
        (&["namespace", "delete", &url, "none"], "no namespace none"),
        (&["get", "nvme+tcp://127.0.0.1:port", "a"], "port=port"),
    ] {
        let message = message(&desk, arguments, 2);
        assert!(message.contains(named), "{message}");
    }
    drop(service);
    assert!(message(&desk, &["get", &url, "a"], 3).contains("refused"));
}

#[test]
fn namespaces_are_reached_by_their_names_and_numbers() {
    let desk = desk_with_image("plus");
    desk.prints("namespace create drive.kv --name accounts --ordered");
    let service = Service::start(&desk, "127.0.0.1:0");
    done(&desk, &["put", &service.url(""), "key", "first"], b"");
    done(&desk, &["put", &service.url("ns=2"), "key", "second"], b"");
    assert_eq!(done(&desk, &["get", &service.url(""), "key", "--namespace", "2"], b""), b"second");
    assert_eq!(done(&desk, &["get", &service.url("ns=2"), "key", "--namespace", "1"], b""), b"first");
    assert_eq!(done(&desk, &["get", &service.url(""), "key", "--namespace", "accounts"], b""), b"second");
}

#[test]
fn namespaces_are_made_listed_and_deleted_over_the_wire() {
    let (desk, mut service) = served("plus");
    let url = service.url("");
    let create = ["namespace", "create", &url, "--name", "events", "--ordered", "--quota", "1MiB"];
    assert_eq!(done(&desk, &create, b""), b"2\n");
    assert!(message(&desk, &create, 2).contains("another namespace has that name"));
    done(&desk, &["put", &url, "key", "value", "--namespace", "events"], b"");
    let listed = |drive: &str| String::from_utf8(done(&desk, &["namespace", "list", drive], b"")).unwrap();
    let over_the_wire = listed(&url);
    assert!(over_the_wire.contains(" events ") && over_the_wire.contains("ordered"), "{over_the_wire}");
    // What was said to be made is there behind a kill -9.
    service.kill();
    assert_eq!(listed("drive.kv"), over_the_wire);
    assert_eq!(done(&desk, &["get", "drive.kv", "key", "--namespace", "events"], b""), b"value");
    let service = Service::start(&desk, "127.0.0.1:0");
    done(&desk, &["namespace", "delete", &service.url(""), "events"], b"");
    assert!(!listed(&service.url("")).contains("events"));
}

/// As the wire has it, wherever the drive is.
#[test]
fn a_quota_of_no_bytes_is_none_on_an_image_and_at_a_url() {
    let (desk, service) = served("plus");
    let create = |drive: &str, name: &str| {
        done(&desk, &["namespace", "create", drive, "--name", name, "--quota", "0"], b"");
        done(&desk, &["put", drive, "key", "value", "--namespace", name], b"");
        let listed = String::from_utf8(done(&desk, &["namespace", "list", drive], b"")).unwrap();
        let line = listed.lines().find(|line| line.contains(name)).unwrap().to_owned();
        line.split_whitespace().rev().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let over_the_wire = create(&service.url(""), "wire");
    drop(service);
    assert_eq!((create("drive.kv", "image"), over_the_wire), (vec!["-".to_owned(); 2], vec!["-".to_owned(); 2]));
}

#[test]
fn stat_looks_again_and_again() {
    let (desk, service) = served("plus");
    let store = connect(&service.url("")).unwrap();
    let mut command = desk.command("");
    let mut child = command
        .args(["stat", &service.url(""), "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
    let mut look = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert!(look()["since_last_look"].is_null());
    for number in 0..500u32 {
        store.store(&number.to_be_bytes(), &[7; 1000]).unwrap();
    }
    let rates =
        (0..3).map(|_| look()).find(|look| number(look, "/since_last_look/changes") > 0.0).expect("it was seen");
    assert!(
        number(&rates, "/firmware/pairs") > 0.0 && number(&rates, "/since_last_look/stored_bytes") > 0.0,
        "{rates}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let image = desk_with_image("plus");
    image.prints("put drive.kv a 1");
    let stat: serde_json::Value = serde_json::from_str(&image.prints("stat drive.kv --json")).unwrap();
    assert!(number(&stat, "/firmware/pairs") == 1.0 && stat["traffic"].is_null(), "{stat}");
}

#[test]
fn threads_on_one_connection_agree_with_a_map() {
    for (design, query) in [("plus", ""), ("original", "digest=header,data"), ("pink", "depth=3")] {
        let (_desk, service) = served(design);
        let store = connect(&service.url(query)).unwrap();
        let largest = store.stats().unwrap().value_bytes_max.min(2 << 20) as usize;
        scope(|scope| {
            for thread in 0..8u64 {
                let store = &store;
                scope.spawn(move || exercise(store, thread, largest));
            }
        });
        store.close().unwrap();
    }
}

/// What one of several threads does, with keys of its own.
fn exercise(store: &kvssd_host::Store, thread: u64, largest: usize) {
    let sizes = [0, 1, 100, 4095, 4096, 4097, 20_000, largest];
    let mut model = BTreeMap::new();
    for step in 0..250u64 {
        let key = format!("{thread}/{}", step * 7 % 23);
        // Few are large: the drive is small.
        let size = if step % 50 == 49 { sizes[7] } else { sizes[(step % 7) as usize] };
        match step % 6 {
            0 | 1 => {
                store.store(key.as_bytes(), &value(step, size)).unwrap();
                model.insert(key, value(step, size));
            }
            2 => assert_eq!(store.delete(key.as_bytes()).unwrap(), model.remove(&key).is_some()),
            3 => {
                let stored = store.store_if(key.as_bytes(), &value(step, size), StoreCondition::IfAbsent);
                assert_eq!(stored, if model.contains_key(&key) { Err(Error::KeyExists) } else { Ok(()) });
                model.entry(key).or_insert_with(|| value(step, size));
            }
            4 => {
                assert_eq!(store.exist(key.as_bytes()).unwrap(), model.contains_key(&key));
                let part = store.retrieve_part(key.as_bytes(), 50, 100).unwrap();
                let expected = model.get(&key).map(|value| value.get(50..).unwrap_or_default());
                assert!(part.as_deref() == expected.map(|rest| &rest[..rest.len().min(100)]));
            }
            _ => assert!(store.retrieve(key.as_bytes()).unwrap() == model.get(&key).cloned(), "{key}"),
        }
    }
    let mut batch = Batch::new();
    for (key, value) in &mut model {
        value.truncate(500);
        batch.store(key.as_bytes(), value);
    }
    store.bulk(&batch).unwrap();
    let keys: Vec<&[u8]> = model.keys().map(|key| key.as_bytes()).collect();
    assert!(store.retrieve_many(&keys).unwrap().into_iter().flatten().eq(model.values().cloned()));
    let prefix = format!("{thread}/");
    let listed = store.keys(None).map(Result::unwrap).filter(|key| key.starts_with(prefix.as_bytes())).count();
    assert_eq!(listed, model.len());
}

#[test]
fn a_service_that_is_killed_and_started_again_loses_nothing_that_was_answered() {
    let (desk, mut service) = served("plus");
    let store = connect(&service.url("timeout=20")).unwrap();
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let answered = scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|thread| {
                let (store, is_over, done) = (&store, &is_over, &done);
                scope.spawn(move || {
                    let mut version = 0u64;
                    while !is_over.load(Ordering::SeqCst) {
                        version += 1;
                        for slot in 0..5u64 {
                            let bytes = value(version, 200 + slot as usize * 3000);
                            store.store(format!("{thread}/{slot}").as_bytes(), &bytes).unwrap();
                        }
                        let found = store.retrieve(format!("{thread}/4").as_bytes()).unwrap();
                        assert!(found == Some(value(version, 12_200)), "thread {thread}, version {version}");
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                    version
                })
            })
            .collect();
        for _ in 0..4 {
            sleep(Duration::from_millis(150));
            service.kill();
            let listen = service.address.clone();
            service = Service::start(&desk, &listen);
            let before = done.load(Ordering::SeqCst);
            while done.load(Ordering::SeqCst) < before + 8 {
                sleep(Duration::from_millis(5));
            }
        }
        is_over.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    for (thread, version) in answered.into_iter().enumerate() {
        for slot in 0..5 {
            let found = store.retrieve(format!("{thread}/{slot}").as_bytes()).unwrap();
            assert!(found == Some(value(version, 200 + slot * 3000)), "thread {thread}, slot {slot}");
        }
    }
    service.kill();
    desk.prints("check drive.kv");
}

#[test]
fn a_drive_on_the_wire_is_measured_by_depth_and_left_as_it_was() {
    let (desk, service) = served("plus");
    done(&desk, &["put", &service.url(""), "mine", "1"], b"");
    let arguments = "--depths 1,16 --records 300 --operations 700 --threads 2 --json runs.json";
    let table = desk.prints(&format!("bench --store {} {arguments}", service.url("")));
    assert!(table.contains("300 records of 16 + 4096 bytes") && table.contains("2 threads"), "{table}");
    let runs = runs(&desk.read("runs.json"));
    let names: Vec<_> =
        runs.iter().map(|run| (run["workload"].as_str().unwrap(), number(run, "/queue_depth"))).collect();
    assert_eq!(names, [("readrandom", 1.0), ("overwrite", 1.0), ("readrandom", 16.0), ("overwrite", 16.0)]);
    for run in &runs {
        assert_eq!((number(run, "/operations"), number(run, "/latency_ns/count")), (700.0, 700.0), "{run}");
        assert!(number(run, "/client_processor_ns") > 0.0 && number(run, "/service_processor_ns") > 0.0, "{run}");
    }
    assert_eq!(desk.prints(&format!("list {}", service.url(""))), "mine\n");
    desk.refuses(
        &format!("bench --store {} --depths 1,1000 --records 2000", service.url("")),
        &["--depths 1000", "255"],
    );
    // A drive that is full is named, and has what it had.
    let full = format!("bench -q --store {} --records 500 --value-bytes 512KiB", service.url(""));
    let output = desk.command(&full).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(3), 1), "{said}");
    assert!(said.starts_with(&format!("kvssd: {}: it is full: ", service.url(""))), "{said}");
    assert_eq!(desk.prints(&format!("list {}", service.url(""))), "mine\n");
}

/// By the law of Little: no command waits for a call to end, however large its value is.
#[test]
fn as_many_commands_are_under_way_as_are_said() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 512MiB");
    let service = Service::start(&desk, "127.0.0.1:0");
    let sizes = "--depths 32 --value-bytes 1MiB --records 40 --operations 600 --json runs.json";
    desk.prints(&format!("bench --store {} {sizes}", service.url("")));
    let run = &runs(&desk.read("runs.json"))[0];
    let under_way = number(run, "/throughput_ops_s") * number(run, "/latency_ns/mean") / 1e9;
    assert!((28.5..=32.5).contains(&under_way), "{under_way} under way: {run}");
}

#[test]
fn a_namespace_is_a_cache_on_an_image_and_on_a_url_and_refuses_no_host() {
    let desk = desk_with_image("plus");
    desk.prints("namespace create drive.kv --name prompts --cache lru --budget 1MiB --admit at-most=200000 --ttl 3600");
    let text = "lru budget=1048576 at-most=200000 ttl-ms=3600000";
    assert!(desk.prints("namespace list drive.kv").contains(text));
    desk.refuses("namespace create drive.kv --name x --cache mru --budget 1MiB", &["mru", "s3-fifo"]);
    desk.refuses("namespace create drive.kv --name x --cache lru", &["--budget"]);
    let mut service = Service::start(&desk, "127.0.0.1:0");
    let url = service.url("");
    desk.prints(&format!("namespace create {url} --name blocks --cache fifo --budget 500kB"));
    let store = connect(&url).unwrap();
    let most = store.stats().unwrap().value_bytes_max;
    let too_large = store.namespace("blocks").unwrap().store(b"large", &value(1, most as usize)).unwrap_err();
    assert!(too_large.to_string().contains(&format!("takes {}", most - 8)), "{too_large}");
    assert!(desk.prints(&format!("namespace list {url}")).contains(text));
    scope(|scope| {
        for host in 0..2u64 {
            let url = url.clone();
            scope.spawn(move || {
                let store = connect(&url).unwrap();
                for (name, number) in ["prompts", "blocks"].into_iter().flat_map(|name| (0..60).map(move |n| (name, n)))
                {
                    let namespace = store.namespace(name).unwrap();
                    let key = format!("{host} {number}");
                    namespace.store(key.as_bytes(), &value(number, 50_000)).unwrap();
                    let found = namespace.retrieve(key.as_bytes()).unwrap();
                    assert!(found.is_none_or(|found| found == value(number, 50_000)), "it may have left");
                }
            });
        }
    });
    let store = connect(&url).unwrap();
    let blocks = store.namespace("blocks").unwrap();
    let info = blocks.cache().unwrap().unwrap();
    assert!(info.counts.evicted > 80 && info.held_bytes <= 500_000 && info.held_bytes > 400_000, "{info:?}");
    let first = store.namespace_at(NamespaceId::FIRST).cache().unwrap();
    assert_eq!((first, info.attributes.to_string()), (None, "fifo budget=500000".to_owned()));
    // The service is killed; the same handle goes on, and the pairs of before leave in their order.
    let before = blocks.count().unwrap();
    service.kill();
    service = Service::start(&desk, &service.address.clone());
    blocks.store(b"behind the kill", &value(1, 50_000)).unwrap();
    assert_eq!(blocks.count().unwrap(), before);
    desk.refuses(&format!("namespace cache {url} blocks"), &["cache"]);
    desk.prints(&format!("namespace cache {url} blocks --cache s3-fifo --budget 200kB"));
    assert_eq!(blocks.info().unwrap().attributes.cache.unwrap().to_string(), "s3-fifo budget=200000");
    assert_eq!(blocks.retrieve(b"behind the kill").unwrap(), Some(value(1, 50_000)));
    assert_eq!(blocks.count().unwrap(), 3);
    drop(service);
}

#[test]
fn a_bench_whose_drive_goes_away_says_what_it_leaves() {
    let (desk, mut service) = served("plus");
    let url = service.url("timeout=1");
    let arguments = format!("bench --store {url} --records 500 --operations 1e8 --value-bytes 100 --depths 8");
    let bench = desk.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    while !desk.prints(&format!("stat {url}")).contains("pairs             500\n") {
        sleep(Duration::from_millis(10));
    }
    service.kill();
    let output = bench.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    let last = message.lines().last().unwrap_or_default();
    assert!(
        output.status.code() == Some(3) && last.contains("up to 500 pairs") && last.matches("tcp://").count() == 1,
        "{message}"
    );
}
