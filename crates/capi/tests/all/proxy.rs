//! A proxy between a host and a drive, which looks at the commands that pass.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Where a command PDU has its opcode, and how long its header is.
pub const OPCODE_AT: usize = 8;
const COMMAND: u8 = 4;

/// A proxy that ends a connection at a command of an opcode, before or after it was passed on, and holds others.
pub struct Cutter {
    pub address: String,
    opcode: AtomicU8,
    is_passed_on: AtomicU8,
    pub cuts: AtomicUsize,
    holds: Mutex<Vec<Arc<Hold>>>,
}

/// Commands that do not go on until they are let.
pub struct Hold {
    is_it: fn(&[u8]) -> bool,
    /// Whether one has come, and whether they may go on.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Hold {
    /// Waits for one to come, or until nobody `may_send` it any more. Returns whether one did.
    pub fn came(&self, may_send: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock().unwrap();
        while !state.0 && may_send() {
            state = self.changed.wait_timeout(state, Duration::from_millis(5)).unwrap().0;
        }
        state.0
    }

    pub fn let_go(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn hold(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.1).unwrap());
    }
}

impl Cutter {
    pub fn new(target: &str) -> Arc<Cutter> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (opcode, is_passed_on, cuts) = (AtomicU8::new(0), AtomicU8::new(0), AtomicUsize::new(0));
        let cutter = Arc::new(Cutter { address, opcode, is_passed_on, cuts, holds: Mutex::default() });
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
    pub fn arm(&self, opcode: u8, is_passed_on: bool) {
        self.is_passed_on.store(is_passed_on.into(), Ordering::SeqCst);
        self.opcode.store(opcode, Ordering::SeqCst);
    }

    /// Holds the commands of which that is true, as their PDU has them.
    pub fn hold(&self, is_it: fn(&[u8]) -> bool) -> Arc<Hold> {
        let hold = Arc::new(Hold { is_it, state: Mutex::default(), changed: Condvar::new() });
        self.holds.lock().unwrap().push(Arc::clone(&hold));
        hold
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
            let hold =
                self.holds.lock().unwrap().iter().find(|hold| header[0] == COMMAND && (hold.is_it)(&pdu)).cloned();
            if let Some(hold) = hold {
                hold.hold();
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
