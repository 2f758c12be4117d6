//! A little host, which says on a socket exactly what a test wants it to say.

use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_nvme_spec::admin::{AdminCommand, Identify};
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{
    CONTROLLER_ANY, Configuration, Connect, ConnectData, ControllerStatus, FabricsCommand, property,
};
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::pdu::{DataHeader, Decoded, Fault, Framing, IcRequest, Pdu, Sender};
use kvssd_nvme_spec::{CompletionEntry, Status, SubmissionEntry};
use kvssd_nvme_target::{Server, Subsystem, SubsystemOptions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use zerocopy::IntoBytes;

pub const NQN: &str = "nqn.2025-01.org.kvssd:test";
pub const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
pub const HOST_ID: [u8; 16] = [7; 16];
/// Nothing of a target takes that long, however busy the machine is: what does not come until then never comes.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A target on a drive of its own.
pub struct Target {
    pub address: SocketAddr,
    pub subsystem: Arc<Subsystem>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub folder: tempfile::TempDir,
}

impl Target {
    pub fn new() -> Self {
        Target::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut SubsystemOptions)) -> Self {
        Target::over(256 << 20, change, |_| {})
    }

    /// Over a drive of so many bytes, which is made ready first.
    pub fn over(bytes: u64, change: impl FnOnce(&mut SubsystemOptions), ready: impl FnOnce(&mut Drive)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.kv");
        let (profile, design) = (image_profile(bytes).unwrap(), image_design("plus").unwrap());
        let mut drive = Drive::create(&path, &profile, &design, CreateDrive::default()).unwrap();
        ready(&mut drive);
        let mut options = SubsystemOptions::new(NQN);
        change(&mut options);
        Target::serving(drive, options, folder)
    }

    pub fn serving(drive: Drive, options: SubsystemOptions, folder: tempfile::TempDir) -> Self {
        Target::serving_all(vec![drive], options, folder)
    }

    /// A drive in partitions.
    pub fn serving_all(drives: Vec<Drive>, options: SubsystemOptions, folder: tempfile::TempDir) -> Self {
        let subsystem = Arc::new(Subsystem::over(drives, options));
        let server = Server::bind(Arc::clone(&subsystem), "127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.serve(&until)));
        Target { address, subsystem, stop, thread, folder }
    }

    /// Ends the service in order.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        self.subsystem.close().unwrap();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a command gave.
#[derive(Debug)]
pub struct Got {
    pub entry: CompletionEntry,
    pub data: Vec<u8>,
}

impl Got {
    pub fn status(&self) -> Status {
        self.entry.status().unwrap()
    }
}

/// How bytes are put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A PDU a write.
    Whole,
    /// A byte a write.
    Bytewise,
}

/// One queue's end of a connection.
pub struct Queue {
    pub stream: TcpStream,
    pub framing: Framing,
    pub pace: Pace,
    /// What the target takes in a data PDU.
    pub data_bytes_max: u32,
    input: Vec<u8>,
    next_id: u16,
}

/// A PDU of the target's, with its data copied.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Response(CompletionEntry),
    Data(DataHeader, bool, bool, Vec<u8>),
    R2t(u16, u16, u32, u32),
    Terminate(Fault),
    Closed,
    Greeting(bool, bool, u32),
}

impl Queue {
    /// A connection on which nothing was said.
    pub fn raw(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let framing = Framing { data_bytes_max: 8 << 20, ..Framing::INITIAL };
        Queue { stream, framing, pace: Pace::Whole, data_bytes_max: 0, input: Vec::new(), next_id: 0 }
    }

    /// A connection that has agreed on digests.
    pub fn greeted(address: SocketAddr, header_digest: bool, data_digest: bool) -> Self {
        let mut queue = Queue::raw(address);
        queue.send(&Pdu::IcRequest(IcRequest::new(header_digest, data_digest, 1)));
        match queue.hear() {
            Heard::Greeting(header, data, bytes) => {
                queue.framing.header_digest = header;
                queue.framing.data_digest = data;
                queue.data_bytes_max = bytes;
            }
            other => panic!("{other:?} is no greeting"),
        }
        queue
    }

    pub fn bytes(&self, pdu: &Pdu<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        pdu.encode(&self.framing, &mut bytes);
        bytes
    }

    pub fn send(&mut self, pdu: &Pdu<'_>) {
        let bytes = self.bytes(pdu);
        self.write(&bytes);
    }

    pub fn write(&mut self, bytes: &[u8]) {
        match self.pace {
            Pace::Whole => self.stream.write_all(bytes).unwrap(),
            Pace::Bytewise => bytes.chunks(1).for_each(|byte| self.stream.write_all(byte).unwrap()),
        }
    }

    pub fn hear(&mut self) -> Heard {
        loop {
            match Pdu::decode(&self.input, Sender::Controller, &self.framing).expect("the target sends sound PDUs") {
                Decoded::Pdu { pdu, bytes, is_data_intact } => {
                    assert!(is_data_intact);
                    let heard = match pdu {
                        Pdu::Response(entry) => Heard::Response(entry),
                        Pdu::Data { header, is_last, is_success, data, .. } => {
                            Heard::Data(header, is_last, is_success, data.to_vec())
                        }
                        Pdu::ReadyToTransfer(header) => Heard::R2t(
                            header.command_id.get(),
                            header.transfer_tag.get(),
                            header.offset_bytes.get(),
                            header.length_bytes.get(),
                        ),
                        Pdu::Terminate { fault, .. } => Heard::Terminate(fault),
                        Pdu::IcResponse(response) => {
                            let (header, data) = response.digests();
                            Heard::Greeting(header, data, response.data_bytes_max.get())
                        }
                        other => panic!("a target does not send {other:?}"),
                    };
                    self.input.drain(..bytes);
                    return heard;
                }
                Decoded::Needs(_) => {
                    let mut piece = [0; 65536];
                    match self.stream.read(&mut piece) {
                        Ok(0) => return Heard::Closed,
                        Ok(count) => self.input.extend_from_slice(&piece[..count]),
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Heard::Closed,
                        Err(error) => panic!("nothing comes: {error}"),
                    }
                }
            }
        }
    }

    pub fn id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// Sends a command, with its data in the capsule or by R2T as its pointer says, and takes what it gives.
    pub fn ask(&mut self, mut entry: SubmissionEntry, data: &[u8]) -> Got {
        let id = self.id();
        entry.command_id = id.into();
        let is_inside = matches!(DataPointer::from(entry.data), DataPointer::InCapsule { .. });
        self.send(&Pdu::Command { entry, data: if is_inside { data } else { &[] } });
        self.take(id, data)
    }

    /// Takes what a command gives, and gives what it asks for.
    pub fn take(&mut self, id: u16, data: &[u8]) -> Got {
        let mut got = Vec::new();
        loop {
            match self.hear() {
                Heard::Response(entry) => {
                    assert_eq!(entry.command_id.get(), id);
                    return Got { entry, data: got };
                }
                Heard::Data(header, is_last, is_success, part) => {
                    assert_eq!((header.command_id.get(), header.offset_bytes.get() as usize), (id, got.len()));
                    assert!(!is_success, "a host would not see the value's size");
                    got.extend_from_slice(&part);
                    assert!(!(is_last && part.is_empty()));
                }
                Heard::R2t(command, tag, offset, length) => {
                    assert_eq!((command, offset, length as usize), (id, 0, data.len()));
                    self.send_data(id, tag, data);
                }
                other => panic!("{other:?} answers no command"),
            }
        }
    }

    /// Sends the data that an R2T asked for.
    pub fn send_data(&mut self, id: u16, tag: u16, data: &[u8]) {
        let mut offset = 0;
        for part in data.chunks(self.data_bytes_max as usize) {
            let header = DataHeader::new(id, tag, offset as u32, part.len() as u32);
            offset += part.len();
            let is_last = offset == data.len();
            self.send(&Pdu::Data { sender: Sender::Host, header, is_last, is_success: false, data: part });
        }
    }

    pub fn connect(&mut self, connect: Connect, controller: u16, nqn: &str, host: &str) -> Got {
        let data = ConnectData::new(HOST_ID, controller, nqn, host);
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 1024 };
        self.ask(SubmissionEntry::from(FabricsCommand::Connect(connect)).with_data(pointer), data.as_bytes())
    }

    pub fn property(&mut self, offset: u32, is_wide: bool) -> u64 {
        let got = self.ask(FabricsCommand::PropertyGet { offset, is_wide }.into(), &[]);
        assert_eq!(got.status(), Status::Success);
        got.entry.result()
    }

    pub fn set_configuration(&mut self, configuration: Configuration) {
        let value = configuration.0.into();
        let offset = property::CONFIGURATION;
        let got = self.ask(FabricsCommand::PropertySet { offset, is_wide: false, value }.into(), &[]);
        assert_eq!(got.status(), Status::Success);
    }

    pub fn admin(&mut self, command: AdminCommand, namespace: u32, room_bytes: u32) -> Got {
        let pointer = DataPointer::Transport { length_bytes: room_bytes };
        self.ask(command.entry(namespace).with_data(pointer), &[])
    }

    pub fn identify(&mut self, cns: u8, command_set: u8, namespace: u32) -> Got {
        let wanted = Identify { cns, command_set, ..Identify::default() };
        self.admin(AdminCommand::Identify(wanted), namespace, 4096)
    }
}

/// An admin queue and an I/O queue, ready for commands.
pub struct Host {
    pub admin: Queue,
    pub io: Queue,
    pub controller: u16,
}

pub fn admin_connect(keep_alive_ms: u32) -> Connect {
    Connect { queue_size: 31, keep_alive_ms, ..Connect::default() }
}

pub fn io_connect(queue_id: u16) -> Connect {
    Connect { queue_id, queue_size: 127, ..Connect::default() }
}

impl Host {
    pub fn new(target: &Target) -> Self {
        Host::with_digests(target.address, false, false)
    }

    pub fn with_digests(address: SocketAddr, header: bool, data: bool) -> Self {
        Host::greeted(address, header, data, HOST_NQN)
    }

    pub fn named(address: SocketAddr, nqn: &str) -> Self {
        Host::greeted(address, false, false, nqn)
    }

    fn greeted(address: SocketAddr, header: bool, data: bool, nqn: &str) -> Self {
        let mut admin = Queue::greeted(address, header, data);
        let got = admin.connect(admin_connect(0), CONTROLLER_ANY, NQN, nqn);
        assert_eq!(got.status(), Status::Success);
        let controller = got.entry.result() as u16;
        admin.set_configuration(Configuration::KEY_VALUE);
        let status = admin.property(property::STATUS, false) as u32;
        assert!(ControllerStatus(status).is_ready());
        let mut io = Queue::greeted(address, header, data);
        assert_eq!(io.connect(io_connect(1), controller, NQN, nqn).status(), Status::Success);
        Host { admin, io, controller }
    }

    pub fn store_if(&mut self, key: &[u8], value: &[u8], options: StoreOptions) -> Status {
        let command = KvCommand::Store { key: KvKey::new(key).unwrap(), value_bytes: value.len() as u32, options };
        self.io.ask(command.entry(1).with_data(pointer_to(value)), value).status()
    }

    pub fn store(&mut self, key: &[u8], value: &[u8]) -> Status {
        self.store_if(key, value, StoreOptions::default())
    }

    pub fn retrieve(&mut self, key: &[u8], buffer_bytes: u32) -> Result<(Vec<u8>, u32), Status> {
        let command = KvCommand::Retrieve { key: KvKey::new(key).unwrap(), buffer_bytes };
        let pointer = DataPointer::Transport { length_bytes: buffer_bytes };
        let got = self.io.ask(command.entry(1).with_data(pointer), &[]);
        if got.status().is_success() { Ok((got.data, got.entry.dword0.get())) } else { Err(got.status()) }
    }

    /// Delete or Exist.
    pub fn plain(&mut self, command: &KvCommand) -> Status {
        self.io.ask(command.entry(1).with_data(DataPointer::NONE), &[]).status()
    }
}

/// Of data that comes in the capsule.
pub fn inside(data: &[u8]) -> DataPointer {
    DataPointer::InCapsule { offset_bytes: 0, length_bytes: data.len() as u32 }
}

/// Of a value, which comes in the capsule if it is small enough.
pub fn pointer_to(value: &[u8]) -> DataPointer {
    if value.len() <= 8192 { inside(value) } else { DataPointer::Transport { length_bytes: value.len() as u32 } }
}

pub fn key(bytes: &[u8]) -> KvKey {
    KvKey::new(bytes).unwrap()
}

/// Bytes that tell where they belong.
pub fn value(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251 + seed * 7) as u8).collect()
}
