//! A drive on the wire for tests, small enough to be looked through, which can also do what no drive should.

use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::fabrics::{
    Capabilities, Configuration, ControllerStatus, DISCOVERY_NQN, FABRICS_OPCODE, FabricsCommand, property,
};
use kvssd_nvme_spec::features::feature::{KEY_VALUE_CONFIGURATION, NUMBERED_CHANGES};
use kvssd_nvme_spec::identify::{IDENTIFY_BYTES, IdentifyController, IdentifyKvNamespace, cns, namespace_list};
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::list::ListWriter;
use kvssd_nvme_spec::log_page::{Discovered, discovery_page, page};
use kvssd_nvme_spec::numbered::{self, Opened};
use kvssd_nvme_spec::pdu::{DataHeader, Decoded, Framing, IcResponse, Pdu, R2tHeader, Sender};
use kvssd_nvme_spec::{CompletionEntry, DataPointer, Status, SubmissionEntry, read_text};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use zerocopy::IntoBytes;

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

/// How it talks.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
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
}

pub const PLAIN: Manner = Manner {
    split_bytes: None,
    r2t_bytes: 1 << 20,
    data_bytes: 1 << 20,
    subsystems: &[NQN],
    tells_of_deletes: true,
    numbers: Numbers::None,
    has_failed: false,
};

/// One that knows changes again.
pub const NUMBERED: Manner = Manner { numbers: Numbers::Known, ..PLAIN };

type Pairs = BTreeMap<(u32, Vec<u8>), Vec<u8>>;
type Decide = dyn Fn(&KvCommand, u64) -> Act + Send + Sync;

/// A drive on the wire, until it is dropped.
pub struct Peer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    manner: Manner,
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

    /// One that talks and acts like that; the number of an I/O command counts from 0.
    pub fn new(manner: Manner, decide: impl Fn(&KvCommand, u64) -> Act + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            manner,
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
            for socket in listener.incoming() {
                if serving.is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let (shared, socket) = (serving.clone(), socket.unwrap());
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

struct Connection {
    shared: Arc<Shared>,
    socket: TcpStream,
    framing: Framing,
    is_discovery: bool,
    is_io: bool,
    configuration: Configuration,
    host: [u8; 16],
    /// Values that come by R2T.
    arriving: BTreeMap<u16, (SubmissionEntry, Vec<u8>, usize)>,
    out: Vec<u8>,
}

/// The connection ends here.
struct End;

impl Connection {
    fn new(shared: Arc<Shared>, socket: TcpStream) -> Self {
        socket.set_nodelay(true).unwrap();
        let framing = Framing { capsule_data_bytes_max: 8192, data_bytes_max: 8192, ..Framing::INITIAL };
        Connection {
            shared,
            socket,
            framing,
            is_discovery: false,
            is_io: false,
            configuration: Configuration::default(),
            host: [0; 16],
            arriving: BTreeMap::new(),
            out: Vec::new(),
        }
    }

    fn serve(mut self) {
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            }
            let mut begin = 0;
            let mut end = false;
            while let Ok(Decoded::Pdu { pdu, bytes: length, is_data_intact }) =
                Pdu::decode(&bytes[begin..], Sender::Host, &self.framing)
            {
                assert!(is_data_intact, "the host's digests are right");
                end = self.accept(pdu).is_err();
                begin += length;
                if end {
                    break;
                }
            }
            bytes.drain(..begin);
            self.flush();
            if end || self.shared.is_ended.load(Ordering::SeqCst) {
                let _ = self.socket.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    fn flush(&mut self) {
        let step = self.shared.manner.split_bytes.unwrap_or(self.out.len()).max(1);
        for piece in self.out.chunks(step) {
            let _ = self.socket.write_all(piece);
        }
        self.out.clear();
    }

    fn send(&mut self, pdu: &Pdu<'_>) {
        pdu.encode(&self.framing, &mut self.out);
    }

    fn accept(&mut self, pdu: Pdu<'_>) -> Result<(), End> {
        match pdu {
            Pdu::IcRequest(request) => {
                let (header_digest, data_digest) = request.digests();
                self.send(&Pdu::IcResponse(IcResponse::new(header_digest, data_digest, 8192)));
                (self.framing.header_digest, self.framing.data_digest) = (header_digest, data_digest);
                Ok(())
            }
            Pdu::Command { entry, data } => self.command(entry, data),
            Pdu::Data { header, data, .. } => {
                let id = header.command_id.get();
                let (entry, mut value, length) = self.arriving.remove(&id).expect("data that was asked for");
                assert_eq!(header.offset_bytes.get() as usize, value.len(), "data is in order");
                value.extend_from_slice(data);
                if value.len() == length {
                    return self.io(entry, &value);
                }
                let asked = self.shared.manner.r2t_bytes as usize;
                if value.len() % asked == 0 {
                    self.ready(id, value.len(), length);
                }
                self.arriving.insert(id, (entry, value, length));
                Ok(())
            }
            other => panic!("{other:?} from a host"),
        }
    }

    fn ready(&mut self, id: u16, begin: usize, length: usize) {
        let bytes = (length - begin).min(self.shared.manner.r2t_bytes as usize);
        self.send(&Pdu::ReadyToTransfer(R2tHeader::new(id, 9, begin as u32, bytes as u32)));
    }

    fn command(&mut self, entry: SubmissionEntry, data: &[u8]) -> Result<(), End> {
        if entry.opcode == FABRICS_OPCODE {
            return self.fabrics(&entry, data);
        }
        if !self.is_io {
            return self.admin(&entry);
        }
        match DataPointer::from(entry.data) {
            DataPointer::Transport { length_bytes }
                if entry.opcode == kvssd_nvme_spec::kv::opcode::STORE && length_bytes > 0 =>
            {
                let id = entry.command_id.get();
                let command = KvCommand::from_entry(&entry).unwrap();
                let number = self.shared.commands.load(Ordering::SeqCst);
                if (self.shared.decide)(&command, number) == Act::R2tOutOfRange {
                    self.send(&Pdu::ReadyToTransfer(R2tHeader::new(id, 9, 0, length_bytes + 1)));
                    return Ok(());
                }
                self.arriving.insert(id, (entry, Vec::new(), length_bytes as usize));
                self.ready(id, 0, length_bytes as usize);
                Ok(())
            }
            _ => self.io(entry, data),
        }
    }

    fn answer(&mut self, entry: &SubmissionEntry, result: Result<u64, Status>) {
        let id = entry.command_id.get();
        let response = match result {
            Ok(result) => CompletionEntry::new(id, Status::Success).with_result(result),
            Err(status) => CompletionEntry::new(id, status),
        };
        self.send(&Pdu::Response(response));
    }

    fn data(&mut self, id: u16, offset: usize, data: &[u8], is_success: bool) {
        let pieces = data.chunks(self.shared.manner.data_bytes).count();
        for (index, piece) in data.chunks(self.shared.manner.data_bytes).enumerate() {
            let begin = offset + index * self.shared.manner.data_bytes;
            let is_last = index + 1 == pieces;
            self.send(&Pdu::Data {
                sender: Sender::Controller,
                header: DataHeader::new(id, 0, begin as u32, piece.len() as u32),
                is_last,
                is_success: is_success && is_last,
                data: piece,
            });
        }
    }

    fn fabrics(&mut self, entry: &SubmissionEntry, data: &[u8]) -> Result<(), End> {
        let result = match FabricsCommand::from(entry) {
            FabricsCommand::Connect(connect) => {
                let nqn = read_text(&data[256..512]).unwrap();
                self.host.copy_from_slice(&data[..16]);
                self.is_discovery = nqn == DISCOVERY_NQN;
                self.is_io = connect.queue_id > 0;
                if self.is_io {
                    self.shared.io_queues.fetch_add(1, Ordering::SeqCst);
                    self.framing.data_bytes_max = VALUE_BYTES_MAX;
                }
                if nqn == NQN || self.is_discovery { Ok(7) } else { Err(Status::ConnectInvalidParameters) }
            }
            FabricsCommand::PropertyGet { offset: property::CAPABILITIES, .. } => Ok(Capabilities::new(128, 500).0),
            FabricsCommand::PropertyGet { offset: property::STATUS, .. } => {
                let is_shut_down = self.configuration.shutdown() != 0;
                self.shared.shutdowns.fetch_add(u64::from(is_shut_down), Ordering::SeqCst);
                Ok(ControllerStatus::new(self.configuration.is_enabled(), false, is_shut_down).0.into())
            }
            FabricsCommand::PropertySet { offset: property::CONFIGURATION, value, .. } => {
                self.configuration = Configuration(value as u32);
                Ok(0)
            }
            _ => Err(Status::InvalidField),
        };
        self.answer(entry, result);
        Ok(())
    }

    fn admin(&mut self, entry: &SubmissionEntry) -> Result<(), End> {
        let id = entry.command_id.get();
        let namespace = entry.namespace.get();
        let data = match AdminCommand::from(entry) {
            AdminCommand::KeepAlive => {
                self.shared.keep_alives.fetch_add(1, Ordering::SeqCst);
                Vec::new()
            }
            AdminCommand::SetFeatures { feature: KEY_VALUE_CONFIGURATION, .. }
                if !self.shared.manner.tells_of_deletes =>
            {
                self.answer(entry, Err(Status::InvalidField));
                return Ok(());
            }
            AdminCommand::GetFeatures { feature: NUMBERED_CHANGES, .. }
            | AdminCommand::SetFeatures { feature: NUMBERED_CHANGES, .. } => {
                let result = self.numbered(matches!(AdminCommand::from(entry), AdminCommand::SetFeatures { .. }));
                self.answer(entry, result);
                return Ok(());
            }
            AdminCommand::SetFeatures { .. } => Vec::new(),
            AdminCommand::Identify(identify) => match identify.cns {
                cns::CONTROLLER => controller(),
                _ if self.shared.manner.has_failed => {
                    self.answer(entry, Err(Status::InternalError));
                    return Ok(());
                }
                cns::COMMAND_SET_NAMESPACE if (1..=NAMESPACES).contains(&namespace) => self.kv_namespace(),
                cns::COMMAND_SET_NAMESPACE_LIST => namespace_list(1..=NAMESPACES, namespace).to_vec(),
                _ => {
                    self.answer(entry, Err(Status::InvalidNamespace));
                    return Ok(());
                }
            },
            AdminCommand::GetLogPage(get) if get.page == page::DISCOVERY => {
                let (address, service) = (self.shared.address.ip().to_string(), self.shared.address.port().to_string());
                let found = self.shared.manner.subsystems.iter().map(|&subsystem_nqn| Discovered {
                    subsystem_nqn,
                    address: &address,
                    service: &service,
                });
                let found: Vec<_> = found.collect();
                let mut log = discovery_page(&found, 32, false);
                log.truncate(get.length_bytes as usize);
                log
            }
            _ => {
                self.answer(entry, Err(Status::InvalidOpcode));
                return Ok(());
            }
        };
        self.data(id, 0, &data, false);
        self.answer(entry, Ok(0));
        Ok(())
    }

    /// The result of Get Features C0h, or Set Features.
    fn numbered(&self, begins: bool) -> Result<u64, Status> {
        match self.shared.manner.numbers {
            // One that takes whatever it is told, and means something else by it.
            Numbers::None => Ok(0),
            _ if !begins => Ok(numbered::SIGNATURE.into()),
            Numbers::Known => Ok(Opened { since: 1, window: 1024 }.result()),
            Numbers::Forgotten => {
                self.shared.made.lock().unwrap().clear();
                let since = self.shared.begins.fetch_add(1, Ordering::SeqCst);
                Ok(Opened { since, window: 1024 }.result())
            }
        }
    }

    /// Whether a change was made before. It is the next time.
    fn is_made(&self, entry: &SubmissionEntry, command: &KvCommand) -> bool {
        let is_change = matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. });
        let serial = numbered::serial(entry).filter(|_| is_change);
        assert!(serial.is_none() || self.shared.manner.numbers != Numbers::None, "nobody has asked for numbers");
        serial.is_some_and(|serial| self.shared.made.lock().unwrap().contains(&(self.host, serial)))
    }

    fn kv_namespace(&self) -> Vec<u8> {
        let mut said = IdentifyKvNamespace::zeroed();
        said.size_bytes = (1 << 30).into();
        said.utilization_bytes = (self.shared.pairs.lock().unwrap().len() as u64 * 4096).into();
        said.kv_formats[0].key_bytes_max = 16.into();
        said.kv_formats[0].value_bytes_max = VALUE_BYTES_MAX.into();
        said.as_bytes().to_vec()
    }

    fn io(&mut self, entry: SubmissionEntry, value: &[u8]) -> Result<(), End> {
        let command = KvCommand::from_entry(&entry).expect("a command of keys and values");
        let number = self.shared.commands.fetch_add(1, Ordering::SeqCst);
        let act = (self.shared.decide)(&command, number);
        if act == Act::EndBefore {
            return Err(End);
        }
        if let Act::Status(status) = act {
            self.answer(&entry, Err(status));
            return Ok(());
        }
        // Set on the admin queue, another connection.
        let needs_key = self.shared.manner.tells_of_deletes;
        let (data, result) = if self.is_made(&entry, &command) {
            (Vec::new(), Ok(0))
        } else {
            execute(&mut self.shared.pairs.lock().unwrap(), entry.namespace.get(), &command, value, needs_key)
        };
        if let Some(serial) = numbered::serial(&entry).filter(|_| result.is_ok()) {
            self.shared.made.lock().unwrap().insert((self.host, serial));
        }
        match act {
            Act::EndAfter => Err(End),
            Act::EndBehindNewer => {
                let name = (entry.namespace.get(), command.key().unwrap().bytes().to_vec());
                self.shared.pairs.lock().unwrap().insert(name, b"newer".to_vec());
                Err(End)
            }
            Act::Silence => Ok(()),
            other => self.reply(&entry, &data, result, other),
        }
    }

    fn reply(
        &mut self,
        entry: &SubmissionEntry,
        data: &[u8],
        result: Result<u64, Status>,
        act: Act,
    ) -> Result<(), End> {
        let id = entry.command_id.get();
        match act {
            Act::Late(wait) => {
                thread::sleep(wait);
                self.data(id, 0, data, false);
                self.answer(entry, result);
            }
            Act::OtherCommand => self.send(&Pdu::Response(CompletionEntry::new(id + 1, Status::Success))),
            Act::DataTooLong => self.data(id, 0, &vec![7; VALUE_BYTES_MAX as usize + 4], false),
            Act::DataOutOfOrder => self.data(id, 4, data, false),
            Act::ShortData => {
                self.data(id, 0, &data[..data.len() - 4], false);
                self.answer(entry, result);
            }
            Act::Garbage => self.out.extend_from_slice(&[0x55; 100]),
            Act::SuccessFlag => self.data(id, 0, data, true),
            Act::WrongDigest | Act::HalfOfTheData => {
                self.data(id, 0, data, false);
                if act == Act::HalfOfTheData {
                    self.out.truncate(self.out.len() / 2);
                    return Err(End);
                }
                *self.out.last_mut().unwrap() ^= 1;
                self.answer(entry, result);
            }
            _ => {
                self.data(id, 0, data, false);
                self.answer(entry, result);
            }
        }
        Ok(())
    }
}

fn controller() -> Vec<u8> {
    let mut said = IdentifyController::zeroed();
    kvssd_nvme_spec::write_padded(&mut said.model, "a peer for tests");
    said.transfer_pages_log2 = 9;
    said.command_capsule_16b = ((64 + CAPSULE_DATA_BYTES) / 16).into();
    said.namespaces_max = NAMESPACES.into();
    let bytes = said.as_bytes().to_vec();
    assert_eq!(bytes.len(), IDENTIFY_BYTES);
    bytes
}

/// What a command gives: data, and dwords 0 and 1 or a status.
fn execute(
    pairs: &mut Pairs,
    namespace: u32,
    command: &KvCommand,
    value: &[u8],
    needs_key: bool,
) -> (Vec<u8>, Result<u64, Status>) {
    let name = |key: &kvssd_nvme_spec::kv::KvKey| (namespace, key.bytes().to_vec());
    let absent = (Vec::new(), Err(Status::KeyDoesNotExist));
    match command {
        KvCommand::Flush => (Vec::new(), Ok(0)),
        KvCommand::Store { key, value_bytes, options } => {
            assert_eq!(*value_bytes as usize, value.len());
            let is_there = pairs.contains_key(&name(key));
            match (options.must_exist, options.must_not_exist, is_there) {
                (true, _, false) => return absent,
                (_, true, true) => return (Vec::new(), Err(Status::KeyExists)),
                _ => {}
            }
            pairs.insert(name(key), value.to_vec());
            (Vec::new(), Ok(0))
        }
        KvCommand::Retrieve { key, buffer_bytes } => match pairs.get(&name(key)) {
            Some(value) => (value[..value.len().min(*buffer_bytes as usize)].to_vec(), Ok(value.len() as u64)),
            None => absent,
        },
        KvCommand::Exist { key } if pairs.contains_key(&name(key)) => (Vec::new(), Ok(0)),
        KvCommand::Exist { .. } => absent,
        KvCommand::Delete { key } if pairs.remove(&name(key)).is_some() || !needs_key => (Vec::new(), Ok(0)),
        KvCommand::Delete { .. } => absent,
        KvCommand::List { from, buffer_bytes } => {
            let mut list = ListWriter::new(*buffer_bytes as usize);
            let begin = (namespace, from.map_or(Vec::new(), |key| key.bytes().to_vec()));
            for ((_, key), _) in pairs.range(begin..).take_while(|((of, _), _)| *of == namespace) {
                if !list.push(key) {
                    break;
                }
            }
            (list.finish(), Ok(0))
        }
    }
}
