//! A drive on the wire for tests, small enough to be looked through, which can also do what no drive should.

mod connection;

use connection::Connection;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::pdu::IC_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub const NQN: &str = "nqn.2024-01.org.example:peer";
pub const VALUE_BYTES_MAX: u32 = 2 << 20;
const CAPSULE_DATA_BYTES: u32 = 4096;
const NAMESPACES: u32 = 2;

/// What is done with a command of the I/O queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Answer,
    /// The connection ends, and the command was not executed.
    EndBefore,
    /// The connection ends when the command was executed.
    EndAfter,
    /// As before, and in between another host has stored "newer" under the key.
    EndBehindNewer,
    /// Executed, and no answer.
    Silence,
    /// The answer comes after that time.
    Late(Duration),
    /// It is not executed, and that is its status.
    Status(Status),
    /// A response to a command that nobody gave.
    OtherCommand,
    /// More data than was asked for.
    DataTooLong,
    /// Data that does not begin where the last ended.
    DataOutOfOrder,
    /// Data whose digest is another one's.
    WrongDigest,
    /// Less data than the value has, and a response that says it is all there.
    ShortData,
    /// Bytes that are no PDU.
    Garbage,
    /// The PDU breaks off in the middle of a value, and the connection ends.
    HalfOfTheData,
    /// No response, but a flag at the data.
    SuccessFlag,
    /// An R2T for what is behind the value.
    R2tOutOfRange,
}

/// How a peer sends, and what it knows.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Bytes of a write, so that PDUs come in pieces; none for all that is there.
    pub split_bytes: Option<usize>,
    /// Bytes of an R2T.
    pub r2t_bytes: u32,
    /// Bytes of a C2HData.
    pub data_bytes: usize,
    /// Subsystems that discovery knows.
    pub subsystems: &'static [&'static str],
    /// A delete of a key that is not there can be made an error.
    pub tells_of_deletes: bool,
    /// What it knows of numbered changes.
    pub numbers: Numbers,
    /// Its firmware has panicked: whatever it is asked of namespaces is an internal error.
    pub has_failed: bool,
    /// The last of the namespaces that it lists is deleted before it can be asked for.
    pub loses_namespaces: bool,
    /// So many connections are reset before they are answered.
    pub resets: usize,
    /// So many connections are ended when their ICReq is there.
    pub turned_away: usize,
    /// From this connection on nothing is answered.
    pub silent_from: usize,
}

/// What a drive knows of the changes that it has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// It is of another make.
    None,
    /// It knows them all.
    Known,
    /// It forgets a client when it comes again.
    Forgotten,
    /// It would know them, and its flash has failed.
    Failed,
}

pub const PLAIN: Behaviour = Behaviour {
    split_bytes: None,
    r2t_bytes: 1 << 20,
    data_bytes: 1 << 20,
    subsystems: &[NQN],
    tells_of_deletes: true,
    numbers: Numbers::None,
    has_failed: false,
    loses_namespaces: false,
    resets: 0,
    turned_away: 0,
    silent_from: usize::MAX,
};

/// One that knows changes again.
pub const NUMBERED: Behaviour = Behaviour { numbers: Numbers::Known, ..PLAIN };

type Pairs = BTreeMap<(u32, Vec<u8>), Vec<u8>>;
type Decide = dyn Fn(&KvCommand, u64) -> Act + Send + Sync;

/// A drive on the wire, until it is dropped.
pub struct Peer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    behaviour: Behaviour,
    decide: Box<Decide>,
    pairs: Mutex<Pairs>,
    /// The changes that were made, by host and number.
    made: Mutex<BTreeSet<([u8; 16], u64)>>,
    /// How often a host has begun to number its changes.
    begins: AtomicU64,
    /// I/O commands that came.
    commands: AtomicU64,
    keep_alives: AtomicU64,
    shutdowns: AtomicU64,
    io_queues: AtomicU64,
    is_ended: AtomicBool,
    address: SocketAddr,
}

impl Peer {
    /// One that does what it should.
    pub fn plain() -> Peer {
        Peer::new(PLAIN, |_, _| Act::Answer)
    }

    /// A peer of that behaviour. `decide` is told the number of each I/O command, from 0.
    pub fn new(behaviour: Behaviour, decide: impl Fn(&KvCommand, u64) -> Act + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behaviour,
            decide: Box::new(decide),
            pairs: Mutex::default(),
            made: Mutex::default(),
            begins: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            keep_alives: AtomicU64::new(0),
            shutdowns: AtomicU64::new(0),
            io_queues: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
            address,
        });
        let serving = shared.clone();
        thread::spawn(move || {
            let mut silent = Vec::new();
            for (number, socket) in listener.incoming().enumerate() {
                if serving.is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let (shared, mut socket) = (serving.clone(), socket.unwrap());
                if number >= shared.behaviour.silent_from {
                    silent.push(socket);
                    continue;
                }
                if number < shared.behaviour.resets {
                    // What is left of the request makes the end a reset.
                    socket.read_exact(&mut [0]).unwrap();
                    continue;
                }
                if number < shared.behaviour.turned_away {
                    socket.read_exact(&mut [0; IC_BYTES]).unwrap();
                    continue;
                }
                thread::spawn(move || Connection::new(shared, socket).serve());
            }
        });
        Peer { address, shared }
    }

    pub fn url(&self, query: &str) -> String {
        format!("nvme+tcp://{}/{NQN}?{query}", self.address)
    }

    pub fn commands(&self) -> u64 {
        self.shared.commands.load(Ordering::SeqCst)
    }

    pub fn keep_alives(&self) -> u64 {
        self.shared.keep_alives.load(Ordering::SeqCst)
    }

    pub fn shutdowns(&self) -> u64 {
        self.shared.shutdowns.load(Ordering::SeqCst)
    }

    /// How often one was connected.
    pub fn io_queues(&self) -> u64 {
        self.shared.io_queues.load(Ordering::SeqCst)
    }

    pub fn value(&self, namespace: u32, key: &[u8]) -> Option<Vec<u8>> {
        self.shared.pairs.lock().unwrap().get(&(namespace, key.to_vec())).cloned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}
