//! `kvssd serve`: what was acknowledged is there whatever ends it, and what cannot be served is said.

use crate::desk::Desk;
use crate::rights::wait_for;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, Configuration, Connect, ConnectData, FabricsCommand, property};
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::pdu::{Decoded, Framing, IcRequest, Pdu, Sender};
use kvssd_nvme_spec::{CompletionEntry, Status, SubmissionEntry};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const NQN: &str = "nqn.2025-01.org.kvssd:drive";

/// A service that runs.
pub struct Service {
    child: Child,
    pub address: SocketAddr,
    pub message: String,
}

impl Service {
    pub fn start(desk: &Desk, arguments: &str) -> Self {
        Service::start_logging(desk, arguments, Stdio::piped())
    }

    /// With its standard error to `log`.
    pub fn start_logging(desk: &Desk, arguments: &str, log: Stdio) -> Self {
        Service::of(desk.command(&format!("serve drive.kv --listen 127.0.0.1:0 {arguments}")), log)
    }

    fn of(mut command: Command, log: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("the program starts");
        let mut message = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut message).unwrap();
        let address = message.split(" on ").nth(1).and_then(|rest| rest.split(' ').next());
        let address =
            address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{message:?} names no port"));
        Service { child, address, message }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a signal and gives the exit status.
    pub fn end(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            if begin.elapsed() > Duration::from_secs(120) {
                self.child.kill().unwrap();
                panic!("the service goes on after {signal}");
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Service {
    /// A test that fails leaves none behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One queue of a host that pipelines.
pub struct Queue {
    stream: TcpStream,
    framing: Framing,
    input: Vec<u8>,
}

impl Queue {
    fn open(address: SocketAddr, connect: Connect, controller: u16, host: &str) -> (Self, u16) {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let framing = Framing { data_bytes_max: 4 << 20, ..Framing::INITIAL };
        let mut queue = Queue { stream, framing, input: Vec::new() };
        queue.send(&Pdu::IcRequest(IcRequest::new(false, false, 1))).unwrap();
        queue.hear(|pdu| matches!(pdu, Pdu::IcResponse(_)).then_some(())).unwrap();
        let data = ConnectData::new([1; 16], controller, NQN, host);
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 1024 };
        let entry = SubmissionEntry::from(FabricsCommand::Connect(connect)).with_data(pointer);
        queue.send(&Pdu::Command { entry, data: zerocopy::IntoBytes::as_bytes(&data) }).unwrap();
        let got = queue.completion().unwrap();
        assert_eq!(got.status(), Ok(Status::Success));
        (queue, got.result() as u16)
    }

    /// An admin queue and an I/O queue.
    fn pair(address: SocketAddr) -> (Self, Self) {
        Queue::pair_of(address, "nqn.2025-01.org.kvssd:load")
    }

    /// The same of a host with that name.
    pub fn pair_of(address: SocketAddr, host: &str) -> (Self, Self) {
        let connect = Connect { queue_size: 31, ..Connect::default() };
        let (mut admin, controller) = Queue::open(address, connect, CONTROLLER_ANY, host);
        let value = Configuration::KEY_VALUE.0.into();
        let set = FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value };
        admin.send(&Pdu::Command { entry: set.into(), data: &[] }).unwrap();
        assert_eq!(admin.completion().unwrap().status(), Ok(Status::Success));
        let connect = Connect { queue_id: 1, queue_size: 63, ..Connect::default() };
        let (io, _) = Queue::open(address, connect, controller, host);
        (admin, io)
    }

    fn send(&mut self, pdu: &Pdu<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        pdu.encode(&self.framing, &mut bytes);
        self.stream.write_all(&bytes)
    }

    fn hear<T>(&mut self, take: impl FnOnce(Pdu<'_>) -> Option<T>) -> io::Result<T> {
        loop {
            if let Decoded::Pdu { pdu, bytes, .. } =
                Pdu::decode(&self.input, Sender::Controller, &self.framing).unwrap()
            {
                let taken = take(pdu).expect("the PDU that was waited for");
                self.input.drain(..bytes);
                return Ok(taken);
            }
            let mut piece = [0; 16384];
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.input.extend_from_slice(&piece[..count]),
            }
        }
    }

    pub fn completion(&mut self) -> io::Result<CompletionEntry> {
        self.hear(|pdu| if let Pdu::Response(entry) = pdu { Some(entry) } else { None })
    }

    pub fn store(&mut self, id: u16, key: &str, value: &[u8]) -> io::Result<()> {
        let length_bytes = value.len() as u32;
        let key = KvKey::new(key.as_bytes()).unwrap();
        let command = KvCommand::Store { key, value_bytes: length_bytes, options: StoreOptions::default() };
        let mut entry = command.entry(1).with_data(DataPointer::InCapsule { offset_bytes: 0, length_bytes });
        entry.command_id = id.into();
        self.send(&Pdu::Command { entry, data: value })
    }
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + number as usize % 900)
}

/// Stores with 32 outstanding until the service is gone; gives the last number that was acknowledged of each key.
fn load(mut queue: Queue, kill: impl FnOnce(&AtomicU32) + Send) -> HashMap<String, u32> {
    let (mut acknowledged, mut sent, keys) = (HashMap::new(), 0u32, AtomicU32::new(0));
    let name = |number: u32| format!("key {}", number % 700);
    std::thread::scope(|scope| {
        scope.spawn(|| kill(&keys));
        loop {
            let outstanding_max = sent + 16;
            while sent < outstanding_max {
                if queue.store(sent as u16, &name(sent), &value(sent)).is_err() {
                    return;
                }
                sent += 1;
            }
            // The first 16 stay outstanding behind those that are waited for.
            for _ in 0..if sent > 16 { 16 } else { 0 } {
                let Ok(entry) = queue.completion() else { return };
                assert_eq!(entry.status(), Ok(Status::Success));
                // The number whose lower bits those are.
                let number = sent - u32::from((sent as u16).wrapping_sub(entry.command_id.get()));
                acknowledged.insert(name(number), number);
            }
            keys.store(acknowledged.len() as u32, Ordering::Relaxed);
        }
    });
    acknowledged
}

#[test]
fn kill_9_under_load_loses_no_store_that_was_acknowledged() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 256MiB");
    for life in 0..3u64 {
        let mut service = Service::start(&desk, "--cache 1MiB");
        let (_admin, io) = Queue::pair(service.address);
        let child = &mut service.child;
        let acknowledged = load(io, move |acknowledged| {
            sleep(Duration::from_millis(700 + 300 * life));
            // On a busy machine few are by then.
            let begin = Instant::now();
            while acknowledged.load(Ordering::Relaxed) <= 100 && begin.elapsed() < Duration::from_secs(120) {
                sleep(Duration::from_millis(5));
            }
            child.kill().unwrap();
        });
        service.child.wait().unwrap();
        assert!(acknowledged.len() > 100, "only {} keys were acknowledged", acknowledged.len());
        let dump = desk.prints("dump drive.kv - --format json");
        let found: HashMap<String, String> = dump
            .lines()
            .map(|line| {
                let pair: serde_json::Value = serde_json::from_str(line).unwrap();
                (pair["key"].as_str().unwrap().to_owned(), pair["value"].as_str().unwrap().to_owned())
            })
            .collect();
        for (key, number) in acknowledged {
            let stored = found.get(&key).unwrap_or_else(|| panic!("{key} is lost"));
            let bytes = value_bytes(stored);
            let last = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            assert_eq!(bytes, value(last), "{key} has another value than any that was stored");
            assert!(last >= number, "{key} is as it was with {last}, and {number} was acknowledged");
        }
        desk.prints("check drive.kv");
    }
}

/// The bytes of a value of a dump.
fn value_bytes(text: &str) -> Vec<u8> {
    let Some(digits) = text.strip_prefix("hex:") else { return text.as_bytes().to_vec() };
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn sigterm_closes_the_image_and_a_restart_finds_what_was_stored() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    for life in 0..2 {
        let service = Service::start(&desk, "");
        let (_admin, mut io) = Queue::pair(service.address);
        io.store(1, &format!("life {life}"), b"a value").unwrap();
        assert_eq!(io.completion().unwrap().status(), Ok(Status::Success));
        assert_eq!(service.end(if life == 0 { "-TERM" } else { "-INT" }), Some(0));
        assert!(desk.prints("info drive.kv").contains("it was closed"));
    }
    assert_eq!(desk.prints("list drive.kv").lines().count(), 2);
}

#[test]
fn an_image_that_is_removed_while_it_is_served_is_missed_and_can_be_had() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    desk.prints("namespace create drive.kv --name log");
    for life in ["copied", "gone"] {
        let log = File::create(desk.path("log")).unwrap();
        let service = Service::start_logging(&desk, "", log.into());
        let url = format!("nvme+tcp://{}", service.address);
        desk.prints(&format!("put {url} city/oslo {life}"));
        desk.prints(&format!("put {url} day {life} --namespace log"));
        fs::rename(desk.path("drive.kv"), desk.path("other.kv")).unwrap();
        fs::remove_file(desk.path("other.kv")).unwrap();
        let warning = wait_for(&desk, &["drive.kv was removed while it is served"]);
        if life == "gone" {
            assert_eq!(service.end("-TERM"), Some(3));
            assert!(desk.read("log").contains("what it held is gone"));
            continue;
        }
        let remedy = warning.split("to have it: ").nth(1).unwrap().replace("NEW", "drive.kv");
        assert!(Command::new("sh").arg("-c").arg(remedy).current_dir(desk.path(".")).status().unwrap().success());
        assert_eq!(service.end("-CONT"), None);
        assert_eq!(desk.prints("get drive.kv city/oslo"), life);
        assert_eq!(desk.prints("get drive.kv day --namespace log"), life);
    }
}

#[test]
fn a_load_into_an_image_that_is_removed_meanwhile_fails() {
    let desk = Desk::new();
    let mut load = desk.command("load drive.kv -").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pairs = load.stdin.take().unwrap();
    pairs.write_all(b"city/oslo,59.91N\n").unwrap();
    let begin = Instant::now();
    while fs::remove_file(desk.path("drive.kv")).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(20));
    }
    drop(pairs);
    let output = load.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.contains("it was removed meanwhile")), (Some(3), true), "{said}");
}

#[test]
fn metrics_are_given_to_who_asks() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    let service = Service::start(&desk, "--metrics 127.0.0.1:0 --timed pm983");
    let (_admin, mut io) = Queue::pair(service.address);
    io.store(1, "k", b"a value").unwrap();
    assert_eq!(io.completion().unwrap().status(), Ok(Status::Success));
    let url = service.message.split("http://").nth(1).expect("an address of the metrics").trim();
    let (host, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    for wanted in [
        "kvssd_commands_total{opcode=\"store\",status=\"success\"} 1",
        "kvssd_written_bytes_total 7",
        "kvssd_latency_seconds_bucket",
        "kvssd_pairs 1",
        "kvssd_capacity_bytes",
        "kvssd_write_amplification",
        "kvssd_wear_percent 0",
        "kvssd_connections 2",
    ] {
        assert!(page.contains(wanted), "no {wanted} in {page}");
    }
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn what_cannot_be_served_is_said_in_a_line() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    let service = Service::start(&desk, "");
    let taken = format!("serve other.kv --listen {}", service.address);
    desk.prints("create other.kv --size 64MiB");
    for (arguments, names) in [
        ("serve nothing.kv", &["nothing.kv", "no such file"][..]),
        (taken.as_str(), &["cannot listen on", "127.0.0.1"]),
        ("serve other.kv --listen nowhere", &["--listen"]),
        ("serve other.kv --nqn drive", &["--nqn", "nqn."]),
        ("serve other.kv --timed nothing", &["profile nothing"]),
        ("serve other.kv --log =x=", &["--log"]),
        ("serve drive.kv --nqn nqn.2014-08.org.nvmexpress.discovery", &["--nqn", "discovery"]),
        ("serve other.kv --log !!", &["--log !!", "no module of this program"]),
        ("serve other.kv --log info,wran", &["--log info,wran", "\"wran\" is no level"]),
        ("serve other.kv --config nothing.toml", &["nothing.toml", "cannot be read"]),
        ("serve other.kv --config nothing.toml --allow-host nqn.a", &["--config", "--allow-host"]),
    ] {
        assert_eq!(desk.wrong_with_refusal(arguments, names), None, "kvssd {arguments}");
    }
    let second = desk.run("serve drive.kv --listen 127.0.0.1:0");
    let message = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(4), "{message}");
    assert!(message.contains("drive.kv") && message.contains("in use"), "{message}");
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn large_values_go_over_the_wire_and_outlive_kill_9() {
    let desk = Desk::new();
    desk.refuses("create drive.kv --value-bytes-max 257MiB", &["--value-bytes-max", "256 MiB"]);
    desk.prints("create drive.kv --size 256MiB --value-bytes-max 64MiB");
    let bytes: Vec<u8> = (0..40u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(desk.path("large.bin"), &bytes).unwrap();
    let service = Service::start(&desk, "");
    let url = format!("nvme+tcp://{}", service.address);
    desk.prints(&format!("put {url} model --file large.bin"));
    desk.prints(&format!("put {url} small 1"));
    desk.prints(&format!("get {url} model --file there.bin"));
    assert!(std::fs::read(desk.path("there.bin")).unwrap() == bytes);
    let stat = desk.prints(&format!("stat {url}"));
    assert!(stat.contains("67108864"), "{stat}");
    let listed = desk.prints(&format!("namespace list {url}"));
    // The one that holds the parts of large values is nobody's business.
    let fields: Vec<_> = listed.lines().skip(1).flat_map(str::split_whitespace).collect();
    assert_eq!((fields.len(), fields[4]), (10, "2"), "{listed}");
    service.end("-KILL");
    desk.prints("get drive.kv model --file here.bin");
    assert!(std::fs::read(desk.path("here.bin")).unwrap() == bytes);
    assert_eq!(desk.prints("list drive.kv").lines().count(), 2);
    assert_eq!(desk.prints("namespace list drive.kv").lines().filter(|line| line.contains("segments")).count(), 0);
    desk.prints("check drive.kv");
}

/// A limit on the size of files stands for a disk that is full.
#[test]
fn a_service_whose_disk_is_full_says_so_and_loses_nothing() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    desk.put("pairs.csv", &(0..30_000).map(|number| format!("key{number},{}\n", "v".repeat(600))).collect::<String>());
    let mut command = Command::new("sh");
    let script = "ulimit -f 110000; trap '' XFSZ; exec \"$0\" serve drive.kv --listen 127.0.0.1:0";
    command.args(["-c", script, env!("CARGO_BIN_EXE_kvssd")]).current_dir(desk.path("."));
    let service = Service::of(command, std::fs::File::create(desk.path("log")).unwrap().into());
    let url = format!("nvme+tcp://{}", service.address);
    desk.prints(&format!("put {url} first 1"));
    assert!(desk.prints(&format!("stat --json {url}")).contains("\"has_failed\":false"));
    let load = desk.command(&format!("load {url} pairs.csv")).output().unwrap();
    let message = String::from_utf8(load.stderr).unwrap();
    assert!(load.status.code() == Some(3) && message.contains("its service says why"), "{message}");
    assert!(desk.prints(&format!("stat --json {url}")).contains("\"has_failed\":true"));
    assert!(desk.prints(&format!("stat {url}")).contains("it has failed"));
    // Once, however many commands come behind the one that found it.
    let put = desk.command(&format!("put {url} second 2")).output().unwrap();
    assert!(String::from_utf8_lossy(&put.stderr).contains("has to be started again"), "{put:?}");
    let told: Vec<String> =
        desk.read("log").lines().filter(|line| line.contains("cannot write")).map(str::to_owned).collect();
    assert!(told.len() == 1 && told[0].contains("the drive has failed"), "{told:?}");
    assert_eq!(service.end("-TERM"), Some(3));
    assert_eq!(desk.prints("get drive.kv first"), "1");
    let kept = desk.prints("dump drive.kv").lines().count();
    assert!((1000..30_000).contains(&kept), "{kept} pairs");
}
