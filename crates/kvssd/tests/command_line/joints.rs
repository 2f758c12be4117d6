//! Everything at once: hosts by TLS, connections that are cut, quotas that fill, rights that are read anew, and namespaces that
//! another host replaces.

use crate::rights::{served_on, wait_for};
use crate::tls::desk;
use kvssd_host::{Error, Missing, NamespaceAttributes, Options, Store};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const PAIRS_MAX: [u64; 2] = [300, 500];
const THREADS: u64 = 4;

/// The connections of a relay.
type Streams = Arc<Mutex<Vec<TcpStream>>>;

/// A relay to an address, and its connections, to be cut.
fn relay(to: SocketAddr) -> (SocketAddr, Streams) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, streams) = (listener.local_addr().unwrap(), Streams::default());
    let kept = Arc::clone(&streams);
    thread::spawn(move || {
        for host in listener.incoming() {
            let Some((host, drive)) = host.ok().zip(TcpStream::connect(to).ok()) else { continue };
            for (mut from, mut into) in
                [(&host, &drive), (&drive, &host)].map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()))
            {
                thread::spawn(move || {
                    let mut bytes = [0; 16384];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        if into.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), into.shutdown(Shutdown::Both));
                });
            }
            kept.lock().unwrap().extend([host, drive]);
        }
    });
    (address, streams)
}

fn cut(streams: &Streams) {
    for stream in streams.lock().unwrap().drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// The file of rights: `a` with a quota in namespace 1 and what is called "shared", and `b`, who makes and deletes.
fn rights(pairs_max: u64, shared: &str) -> String {
    format!(
        "[hosts.\"nqn.a\"]\nread_write = [1, {shared}]\npairs_max = {pairs_max}\ntls_key_file = \"a.key\"\n\
         [hosts.\"nqn.b\"]\nread_write = \"all\"\nmanage = true\ntls_key_file = \"b.key\"\n"
    )
}

fn named(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

#[test]
fn what_was_answered_is_there_and_nothing_else_anywhere_whatever_happens_at_once() {
    let (desk, service) = served_on(desk(), &rights(PAIRS_MAX[0], "\"log\""));
    let (address, streams) = relay(service.address);
    let open = |address: SocketAddr, letter: char| {
        let key = desk.path(&format!("{letter}.key"));
        let url = format!(
            "nvme+tcp://{address}/nqn.2025-01.org.kvssd:drive?timeout=10&host=nqn.{letter}&tls-key-file={}",
            key.display()
        );
        kvssd_host::open(&url, Options { missing: Missing::Fail, ..Options::default() }).unwrap()
    };
    let (store, maker): (Store, Store) = (open(address, 'a'), open(service.address, 'b'));
    let log = store.namespace("log").unwrap();
    let (stop, full, lost) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let answered = Mutex::new(Vec::new());
    let strange = thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, log, stop, full, lost, answered) = (&store, &log, &stop, &full, &lost, &answered);
            scope.spawn(move || {
                for count in 0u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = [&[b'k', thread as u8][..], &count.to_be_bytes()].concat();
                    // By the handle of what will be replaced, too: it may go there while that is there, and nowhere later.
                    if count < 20 || count.is_multiple_of(10) {
                        let _ = log.store(&key, b"stale");
                    }
                    match store.store(&key, &key) {
                        Ok(()) => answered.lock().unwrap().push(key),
                        Err(Error::QuotaFull) => {
                            full.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(1));
                        }
                        Err(Error::InDoubt { .. } | Error::Unreachable { .. }) => {
                            lost.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
        let began = Instant::now();
        let number = log.id();
        let (mut name, mut strange) = ("log".to_owned(), None);
        for round in 0.. {
            thread::sleep(Duration::from_millis(40));
            cut(&streams);
            // Its number comes again, and with it the right of `a`, since the file says so by the number.
            maker.delete_namespace(&name).unwrap();
            name = format!("log {round}");
            let made = maker.create_namespace(named(&name)).unwrap().id();
            desk.put("target.toml", &rights(PAIRS_MAX[round % 2], &made.0.to_string()));
            service.signal("-HUP");
            let _ = store.namespaces();
            let pairs = maker.namespace(&name).unwrap().count().unwrap();
            strange = (pairs > 0)
                .then(|| format!("round {round}: {pairs} pairs came to {made}, and were meant for {number}"));
            // Long enough to have come to the quota, too.
            let is_enough = began.elapsed() > Duration::from_secs(4) && full.load(Ordering::Relaxed) > 0;
            if strange.is_some() || is_enough || began.elapsed() > Duration::from_secs(90) {
                break;
            }
        }
        // The threads end before anybody panics.
        stop.store(true, Ordering::Relaxed);
        strange
    });
    assert_eq!(strange, None);
    wait_for(&desk, &["target.toml", "as it says now"]);
    let answered = answered.into_inner().unwrap();
    for key in &answered {
        assert_eq!(maker.retrieve(key).unwrap().as_ref(), Some(key));
    }
    let (pairs, full, lost) = (maker.namespaces().unwrap()[0].utilization.pairs, full.into_inner(), lost.into_inner());
    assert!(
        answered.len() as u64 <= pairs && pairs <= answered.len() as u64 + lost,
        "{} of {pairs}, {lost}",
        answered.len()
    );
    assert!(pairs <= PAIRS_MAX[1] && full > 0, "{pairs} pairs, {full} refused");
    drop((store, maker));
    assert_eq!(service.end("-TERM"), Some(0));
}
