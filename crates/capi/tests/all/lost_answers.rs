//! Namespaces that are made and deleted over a connection that loses answers: nothing is made twice, and what is not
//! known is said.

use crate::programs::served;
use kvssd_host::{Error, Missing, NamespaceAttributes, Options, Store};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The opcodes of the commands that make and delete a namespace.
const CREATE: u8 = 0xc1;
const DELETE: u8 = 0xc5;
/// Where a command PDU has its opcode, and how long its header is.
const OPCODE_AT: usize = 8;
const COMMAND: u8 = 4;

/// A proxy that ends a connection at a command of an opcode, before or after it was passed on.
struct Cutter {
    address: String,
    opcode: AtomicU8,
    is_passed_on: AtomicU8,
    cuts: AtomicUsize,
}

impl Cutter {
    fn new(target: &str) -> Arc<Cutter> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (opcode, is_passed_on, cuts) = (AtomicU8::new(0), AtomicU8::new(0), AtomicUsize::new(0));
        let cutter = Arc::new(Cutter { address, opcode, is_passed_on, cuts });
        let (of, target) = (Arc::clone(&cutter), target.to_owned());
        thread::spawn(move || {
            for host in listener.incoming() {
                let (host, drive) = (host.unwrap(), TcpStream::connect(&target).unwrap());
                let of = Arc::clone(&of);
                let (mut from, mut to) = (drive.try_clone().unwrap(), host.try_clone().unwrap());
                let is_mute = Arc::new(AtomicBool::new(false));
                let mute = Arc::clone(&is_mute);
                thread::spawn(move || {
                    let mut bytes = [0; 65536];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        if mute.load(Ordering::SeqCst) || to.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
                thread::spawn(move || of.pass_on(host, drive, &is_mute));
            }
        });
        cutter
    }

    /// The next command of that opcode is the last of its connection.
    fn arm(&self, opcode: u8, is_passed_on: bool) {
        self.is_passed_on.store(is_passed_on.into(), Ordering::SeqCst);
        self.opcode.store(opcode, Ordering::SeqCst);
    }

    fn pass_on(&self, mut host: TcpStream, mut drive: TcpStream, is_mute: &AtomicBool) {
        let mut header = [0; 8];
        while host.read_exact(&mut header).is_ok() {
            let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
            let mut pdu = header.to_vec();
            pdu.resize(length, 0);
            if host.read_exact(&mut pdu[8..]).is_err() {
                break;
            }
            let is_it =
                header[0] == COMMAND && pdu[OPCODE_AT] == self.opcode.load(Ordering::SeqCst) && pdu[OPCODE_AT] > 0;
            if is_it {
                self.opcode.store(0, Ordering::SeqCst);
                self.cuts.fetch_add(1, Ordering::SeqCst);
                is_mute.store(true, Ordering::SeqCst);
                if self.is_passed_on.load(Ordering::SeqCst) == 1 {
                    let _ = drive.write_all(&pdu);
                    thread::sleep(Duration::from_millis(100));
                }
                let _ = host.shutdown(Shutdown::Both);
                break;
            }
            if drive.write_all(&pdu).is_err() {
                break;
            }
        }
        let _ = drive.shutdown(Shutdown::Both);
    }
}

fn open(url: &str) -> Store {
    kvssd_host::open(url, Options { missing: Missing::Fail, ..Options::default() }).unwrap()
}

fn named(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

#[test]
fn a_namespace_whose_answer_is_lost_is_made_once_or_in_doubt() {
    let desk = tempfile::tempdir().unwrap();
    served(&desk, |url| {
        let cutter = Cutter::new(url.trim_start_matches("nvme+tcp://"));
        // With its name: discovery would tell the drive's own address.
        let (store, other) = (open(&format!("nvme+tcp://{}/nqn.2025-01.org.kvssd:test", cutter.address)), open(url));
        let names = || -> Vec<Option<String>> {
            other.namespaces().unwrap().into_iter().map(|info| info.attributes.name).collect()
        };
        // It never came to the drive: it is sent again.
        cutter.arm(CREATE, false);
        assert!(store.create_namespace(named("first")).is_ok());
        assert_eq!(names(), [None, Some("first".to_owned())]);
        // It was made, or another host has made it: nobody can tell.
        cutter.arm(CREATE, true);
        let error = store.create_namespace(named("second")).err().unwrap();
        assert!(matches!(&error, Error::InDoubt { why } if why.contains("creation")), "{error}");
        assert_eq!(names().len(), 3);
        assert!(store.namespace("second").unwrap().store(b"key", b"value").is_ok());
        // It is gone: that is what was asked for.
        cutter.arm(DELETE, true);
        assert_eq!(store.delete_namespace("second"), Ok(()));
        // It is there: it may be another one by now.
        cutter.arm(DELETE, false);
        let error = store.delete_namespace("first").unwrap_err();
        assert!(matches!(&error, Error::InDoubt { why } if why.contains("deletion")), "{error}");
        assert_eq!(names(), [None, Some("first".to_owned())]);
        assert_eq!(cutter.cuts.load(Ordering::SeqCst), 4);
        assert_eq!(store.delete_namespace("first"), Ok(()));
    });
}

/// Makes namespaces in the place of that one until its number comes again.
fn replace(store: &Store, number: u32, name: &str) -> String {
    let mut name = name.to_owned();
    for round in 0..100 {
        store.delete_namespace(&name).unwrap();
        name = format!("{} {round}", name.split(' ').next().unwrap());
        if store.create_namespace(named(&name)).unwrap().id().0 == number {
            return name;
        }
    }
    panic!("number {number} does not come again");
}

/// A handle is a number. It changes nothing in another namespace that got it, on the old connection or on a new one.
#[test]
fn a_handle_means_its_own_namespace_whatever_has_its_number_now() {
    let desk = tempfile::tempdir().unwrap();
    served(&desk, |url| {
        let cutter = Cutter::new(url.trim_start_matches("nvme+tcp://"));
        let proxied = format!("nvme+tcp://{}/nqn.2025-01.org.kvssd:test", cutter.address);
        let (store, maker) = (open(&proxied), open(url));
        for is_cut in [false, true] {
            let number = maker.create_namespace(named("mine")).unwrap().id().0;
            let (store, unused) = if is_cut { (open(&proxied), open(&proxied)) } else { (open(url), open(url)) };
            let (mine, not_used) = (store.namespace("mine").unwrap(), unused.namespace("mine").unwrap());
            mine.store(b"key", b"mine").unwrap();
            let name = replace(&maker, number, "mine");
            let other = maker.namespace(&name).unwrap();
            other.store(b"key", b"other").unwrap();
            const STORE: u8 = 0x01;
            for stale in [&mine, &not_used] {
                if is_cut {
                    cutter.arm(STORE, false);
                }
                assert!(stale.store(b"key", b"stale").is_err());
                assert!(stale.store_each([(&b"key"[..], &b"stale"[..])], |_| {}).is_err());
            }
            assert!(mine.store(b"a key of more than 16 bytes", b"stale").is_err());
            // To look what there is changes nothing in what the handle means.
            assert!(store.namespaces().unwrap().iter().any(|info| info.attributes.name.as_deref() == Some(&name)));
            let error = mine.store(b"key", b"stale").unwrap_err();
            assert!(error.to_string().contains("open the drive again"), "{error}");
            assert_eq!((other.count().unwrap(), other.retrieve(b"key").unwrap()), (1, Some(b"other".to_vec())));
            assert!(open(url).namespace(&name).unwrap().store(b"key 2", b"new").is_ok());
            maker.delete_namespace(&name).unwrap();
        }
        assert_eq!(cutter.cuts.load(Ordering::SeqCst), 2);
        // Who was there before, and never saw a namespace, uses the one that has its number now.
        let number = maker.create_namespace(named("first")).unwrap().id().0;
        let late = open(url);
        let name = replace(&maker, number, "first");
        late.namespace(&name).unwrap().store(b"key", b"value").unwrap();
        // And who replaces its own goes on.
        maker.delete_namespace(&name).unwrap();
        maker.create_namespace(named("own")).unwrap();
        let number = maker.namespace("own").unwrap().id().0;
        let name = replace(&maker, number, "own");
        maker.namespace(&name).unwrap().store(b"key", b"value").unwrap();
        drop(store);
    });
}
