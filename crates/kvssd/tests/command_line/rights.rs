//! `kvssd serve --config`: who may do what with a drive that is served.

use crate::desk::Desk;
use crate::serve::{Queue, Service};
use kvssd_nvme_spec::Status;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const RIGHTS: &str = "[hosts.\"nqn.writer\"]\nread_write = \"all\"\n\
                      [hosts.\"nqn.guest\"]\nread_write = [1]\nread_only = [\"log\"]\nbytes_max = 1000\n";

/// A desk with a drive of three namespaces, and a service of it that writes what it says to `log`.
fn served(rights: &str) -> (Desk, Service) {
    served_on(Desk::new(), rights)
}

/// The same on a desk where something lies already.
pub fn served_on(desk: Desk, rights: &str) -> (Desk, Service) {
    desk.prints("create drive.kv --size 64MiB");
    for name in ["log", "secret"] {
        desk.prints(&format!("namespace create drive.kv --name {name}"));
    }
    desk.put("target.toml", rights);
    let log = Stdio::from(std::fs::File::create(desk.path("log")).unwrap());
    let service = Service::start_logging(&desk, "--config target.toml --log info", log);
    (desk, service)
}

/// The URL of the service for a host; its calls give up soon.
fn url(service: &Service, host: &str, namespace: u32) -> String {
    format!("nvme+tcp://{}?timeout=3&host={host}&ns={namespace}", service.address)
}

/// What the program says when it cannot do something.
pub fn complaint(desk: &Desk, arguments: &str) -> String {
    let output = desk.command(arguments).output().unwrap();
    assert!(!output.status.success(), "kvssd {arguments}: {output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// Waits until the service has said that.
pub fn wait_for(desk: &Desk, words: &[&str]) -> String {
    let begin = Instant::now();
    loop {
        let log = desk.read("log");
        if let Some(line) = log.lines().find(|line| words.iter().all(|word| line.contains(word))) {
            return line.to_owned();
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "no line with {words:?} in {log}");
        sleep(Duration::from_millis(20));
    }
}

/// A URL without a namespace means the first. Who may not see that one has the others by their names.
#[test]
fn a_host_that_may_not_see_the_first_namespace_names_those_that_it_may() {
    let (desk, service) = served("[hosts.\"nqn.logger\"]\nread_write = [\"log\"]\n");
    let url = format!("nvme+tcp://{}?timeout=3&host=nqn.logger", service.address);
    desk.prints(&format!("put {url} key value --namespace log"));
    assert_eq!(desk.prints(&format!("get {url} key --namespace log")), "value");
    assert_eq!(desk.prints(&format!("list {url} --namespace log")), "key\n");
    // What is not told is not shown as nothing.
    let stat = desk.prints(&format!("stat {url}"));
    assert!(stat.starts_with("pairs             1\n") && !stat.contains("served") && !stat.contains("wear"), "{stat}");
    assert!(desk.prints(&format!("stat {url} --json")).contains("\"traffic\":null"));
    let listed = desk.prints(&format!("namespace list {url}"));
    assert!(listed.lines().count() == 2 && listed.contains("log"), "{listed}");
    for (arguments, namespace) in [(format!("get {url} key"), 1), (format!("get {url}&ns=3 key"), 3)] {
        assert!(complaint(&desk, &arguments).contains(&format!("no namespace {namespace}")));
    }
    assert!(complaint(&desk, &format!("put {url} key other --namespace secret")).contains("no namespace secret"));
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn each_host_does_what_it_may_and_the_log_says_who_came() {
    let (desk, service) = served(RIGHTS);
    let (writer, guest) = (|ns| url(&service, "nqn.writer", ns), |ns| url(&service, "nqn.guest", ns));
    for namespace in 1..=3 {
        desk.prints(&format!("put {} key value", writer(namespace)));
    }
    desk.prints(&format!("put {} mine 1", guest(1)));
    assert_eq!(desk.prints(&format!("get {} key", guest(2))), "value");
    assert!(complaint(&desk, &format!("put {} key other", guest(2))).contains("not change it"));
    assert!(complaint(&desk, &format!("get {} key", guest(3))).contains("no namespace 3"));
    let listed = desk.prints(&format!("namespace list {}", guest(1)));
    assert_eq!(listed.lines().skip(1).count(), 2, "{listed}");
    let large = "v".repeat(1000);
    let said = complaint(&desk, &format!("put {} large {large}", guest(1)));
    assert!(said.contains("this host's quota is full") && !said.contains("too little is left of the drive"), "{said}");
    assert!(complaint(&desk, &format!("get {} key", url(&service, "nqn.stranger", 1))).contains("nqn.stranger"));
    wait_for(
        &desk,
        &["INFO", "peer=127.0.0.1", "a host has connected", "nqn.guest", "reads and writes {1}, reads {2}"],
    );
    wait_for(&desk, &["WARN", "peer=127.0.0.1", "a host was refused", "nqn.stranger", "no rights"]);
    assert!(!desk.read("log").contains("secret"));
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn sighup_reads_the_rights_anew_and_a_bad_file_changes_nothing() {
    let (desk, service) = served(RIGHTS);
    let (_admin, mut io) = Queue::pair_of(service.address, "nqn.guest");
    io.store(1, "k", b"v").unwrap();
    assert_eq!(io.completion().unwrap().status(), Ok(Status::Success));
    for (text, why) in [
        ("[hosts.\"nqn.guest\"]\nread_only = [\"nothing\"]", "\"nothing\""),
        ("connections_max = 77\n[others]\nread_only = \"all\"", "connections_max"),
        ("[others]\nread_write = \"all\"\npairs_max = 0", "pairs_max = 0"),
    ] {
        desk.put("target.toml", text);
        service.signal("-HUP");
        wait_for(&desk, &["kvssd: target.toml:", why, "all rights stay as they were"]);
        io.store(2, "k", b"v").unwrap();
        assert_eq!(io.completion().unwrap().status(), Ok(Status::Success));
    }
    desk.put(
        "target.toml",
        &RIGHTS.replace("read_write = [1]", "read_write = []\nread_only = [1]").replace("read_only = [\"log\"]\n", ""),
    );
    service.signal("-HUP");
    wait_for(&desk, &["target.toml", "as it says now"]);
    io.store(3, "k", b"v").unwrap();
    assert_eq!(io.completion().unwrap().status(), Ok(Status::NamespaceWriteProtected));
    desk.put("target.toml", "[hosts.\"nqn.writer\"]\nread_write = \"all\"\n");
    service.signal("-HUP");
    wait_for(&desk, &["WARN", "nqn.guest", "was disconnected"]);
    assert!(io.completion().is_err());
    assert!(
        complaint(&desk, &format!("get {} k", url(&service, "nqn.guest", 1))).contains("does not let nqn.guest in")
    );
    assert_eq!(desk.prints(&format!("get {} k", url(&service, "nqn.writer", 1))), "v");
    assert_eq!(service.end("-TERM"), Some(0));
}

/// Who opens a pipe waits for somebody that writes to it: the service would take no signal any more.
#[test]
fn a_pipe_is_no_file_of_rights() {
    let (desk, service) = served(RIGHTS);
    let pipe = |file: &str| assert!(Command::new("mkfifo").arg(desk.path(file)).status().unwrap().success());
    std::fs::remove_file(desk.path("target.toml")).unwrap();
    pipe("target.toml");
    service.signal("-HUP");
    wait_for(&desk, &["target.toml", "no regular file", "all rights stay as they were"]);
    std::fs::remove_file(desk.path("target.toml")).unwrap();
    desk.put("target.toml", RIGHTS);
    service.signal("-HUP");
    wait_for(&desk, &["target.toml", "as it says now"]);
    assert_eq!(service.end("-TERM"), Some(0));
    pipe("pipe");
    for arguments in ["--config pipe", "--timed ./pipe", "--config ."] {
        let said = complaint(&desk, &format!("serve drive.kv --listen 127.0.0.1:0 {arguments}"));
        assert!(said.contains("no regular file"), "{said}");
    }
    let said = complaint(&desk, "serve pipe --listen 127.0.0.1:0");
    assert!(said.contains("pipe"), "{said}");
}

/// A host without rights sees no namespace, no name and no size: nor does who is none.
#[test]
fn other_machines_are_told_nothing_by_metrics_unless_that_is_wanted() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    desk.put("target.toml", RIGHTS);
    for (arguments, names) in [
        ("--metrics 0.0.0.0:0", &["--metrics 0.0.0.0:0", "names and sizes", "127.0.0.1", "--insecure"][..]),
        ("--metrics [::]:0 --config target.toml", &["--metrics [::]:0", "--insecure"]),
        ("--metrics 0.0.0.0:0 --timed pm983", &["--metrics 0.0.0.0:0"]),
    ] {
        desk.refuses(&format!("serve drive.kv --listen 127.0.0.1:0 {arguments}"), names);
    }
    let service = Service::start(&desk, "--metrics 0.0.0.0:0 --insecure");
    assert!(service.message.contains("metrics on http://0.0.0.0:"), "{}", service.message);
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn a_thousand_hosts_at_once_are_served_within_their_bounds() {
    const HOSTS: usize = 1000;
    const THREADS: usize = 20;
    let rights = "connections_max = 2400\n[others]\nread_write = [1]\nconnections_max = 2\npairs_max = 2000";
    let (desk, service) = served(rights);
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if files.maximum.is_some_and(|maximum| maximum < 3000) {
        return;
    }
    let raised = rustix::process::Rlimit { current: Some(3000), maximum: files.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let begin = Instant::now();
    let address = service.address;
    let all = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let all = &all;
            scope.spawn(move || {
                let names = (thread..HOSTS).step_by(THREADS).map(|host| format!("nqn.host:{host}"));
                let mut queues: Vec<_> = names.map(|name| (Queue::pair_of(address, &name), name)).collect();
                all.wait();
                for ((_, io), name) in &mut queues {
                    io.store(1, name, name.as_bytes()).unwrap();
                }
                for ((_, io), name) in &mut queues {
                    assert_eq!(io.completion().unwrap().status(), Ok(Status::Success), "{name}");
                }
                all.wait();
            });
        }
    });
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(600), "{took:?}");
    let listed = desk.prints(&format!("list nvme+tcp://{address}?host=nqn.late"));
    assert_eq!(listed.lines().count(), HOSTS);
    assert_eq!(service.end("-TERM"), Some(0));
}
