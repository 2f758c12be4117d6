//! A session on two connections of one controller that a string of bytes describes: whatever the string, it is answered in order, and
//! nothing panics. The fuzzer makes strings too.
//!
//! ```text
//!   digests | step | step | ...     a step: which queue, how the bytes are split, and
//!                                   raw bytes | a capsule of any 64 bytes | a command that is nearly right | data, for an R2T or not
//! ```

use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::extended;
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, Configuration, Connect, ConnectData, FabricsCommand, property};
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::pdu::{DataHeader, Decoded, Framing, IcRequest, Pdu, R2tHeader, Sender};
use kvssd_nvme_spec::{CompletionEntry, SubmissionEntry};
use kvssd_nvme_target::{Connection, Subsystem, SubsystemOptions};
use kvssd_types::Nanos;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

const NQN: &str = "nqn.2025-01.org.kvssd:any";
/// What a step may bring at the most, so that a short string makes no long session.
const STEP_BYTES_MAX: usize = 12_000;

/// A subsystem over a small new drive in `folder`.
pub fn subsystem(folder: &Path) -> Arc<Subsystem> {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let drive = Drive::create(folder.join("drive.kv"), &profile, &design, CreateDrive::default()).unwrap();
    let mut options = SubsystemOptions::new(NQN);
    options.data_digest = true;
    Arc::new(Subsystem::new(drive, options))
}

/// One end of a connection without a socket.
struct Wire {
    connection: Connection,
    framing: Framing,
    heard: Vec<u8>,
    now: Nanos,
    completion: Option<CompletionEntry>,
    /// R2Ts that were not answered.
    requests: VecDeque<R2tHeader>,
}

impl Wire {
    fn new(subsystem: &Arc<Subsystem>, now: Nanos) -> Self {
        let connection = Connection::new(Arc::clone(subsystem), "127.0.0.1:4420".parse().unwrap(), now);
        let framing = Framing { data_bytes_max: 1 << 20, ..Framing::INITIAL };
        Wire { connection, framing, heard: Vec::new(), now, completion: None, requests: VecDeque::new() }
    }

    fn send(&mut self, pdu: &Pdu<'_>, piece_bytes: usize) {
        let mut bytes = Vec::new();
        pdu.encode(&self.framing, &mut bytes);
        self.feed(&bytes, piece_bytes);
    }

    /// Brings bytes, and takes all answers.
    fn feed(&mut self, bytes: &[u8], piece_bytes: usize) {
        for piece in bytes.chunks(piece_bytes.max(1)) {
            let mut rest = piece;
            while !rest.is_empty() && self.connection.wants_input() {
                let spare = self.connection.input_buffer();
                let count = spare.len().min(rest.len());
                spare[..count].copy_from_slice(&rest[..count]);
                self.connection.received(count);
                rest = &rest[count..];
                self.work();
            }
        }
        self.work();
    }

    fn work(&mut self) {
        loop {
            self.connection.process_input(self.now);
            self.connection.produce_output(self.now);
            while !self.connection.output().is_empty() {
                let count = self.connection.output().len();
                self.heard.extend_from_slice(self.connection.output());
                self.connection.sent(count);
            }
            if !self.connection.has_work() {
                break;
            }
        }
        self.understand();
    }

    /// What a target sends is sound, whatever it was sent.
    fn understand(&mut self) {
        let mut at = 0;
        while let Decoded::Pdu { pdu, bytes, is_data_intact } =
            Pdu::decode(&self.heard[at..], Sender::Controller, &self.framing).expect("a target sends sound PDUs")
        {
            assert!(is_data_intact);
            match pdu {
                Pdu::Response(entry) => {
                    assert!(entry.status().is_ok(), "{entry:?}");
                    self.completion = Some(entry);
                }
                Pdu::IcResponse(response) => {
                    (self.framing.header_digest, self.framing.data_digest) = response.digests();
                }
                Pdu::ReadyToTransfer(header) => self.requests.push_back(header),
                Pdu::Data { is_success, .. } => assert!(!is_success),
                Pdu::Terminate { .. } => assert!(self.connection.has_ended()),
                other => panic!("a target does not send {other:?}"),
            }
            at += bytes;
        }
        self.heard.drain(..at);
    }

    fn connect(&mut self, header_digest: bool, data_digest: bool, queue_id: u16, controller: u16) -> u16 {
        self.send(&Pdu::IcRequest(IcRequest::new(header_digest, data_digest, 1)), usize::MAX);
        let connect = Connect { queue_id, queue_size: 31, ..Connect::default() };
        let data = ConnectData::new([1; 16], controller, NQN, "nqn.host");
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 1024 };
        let entry = SubmissionEntry::from(FabricsCommand::Connect(connect)).with_data(pointer);
        self.send(&Pdu::Command { entry, data: data.as_bytes() }, usize::MAX);
        self.completion.take().map_or(0, |entry| entry.result() as u16)
    }
}

/// The numbers of a string, and zeros behind its end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    fn word(&mut self) -> u16 {
        u16::from(self.byte()) | u16::from(self.byte()) << 8
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// Runs the session that `script` describes.
pub fn run(subsystem: &Arc<Subsystem>, script: &[u8]) {
    let mut script = Script(script);
    let digests = script.byte();
    let now = Nanos(1);
    let mut admin = Wire::new(subsystem, now);
    let mut io = Wire::new(subsystem, now);
    if digests & 4 == 0 {
        let controller = admin.connect(digests & 1 != 0, digests & 2 != 0, 0, CONTROLLER_ANY);
        let value = Configuration::KEY_VALUE.0.into();
        let set = FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value };
        admin.send(&Pdu::Command { entry: set.into(), data: &[] }, usize::MAX);
        io.connect(digests & 1 != 0, digests & 2 != 0, 1, controller);
    }
    while !script.0.is_empty() {
        let kind = script.byte();
        let wire = if kind & 0x80 != 0 { &mut admin } else { &mut io };
        let piece_bytes = if kind & 0x40 != 0 { 1 + usize::from(script.byte()) } else { usize::MAX };
        step(wire, kind, piece_bytes, &mut script);
        let later = Nanos(u64::from(kind & 0x3f) * 1_000);
        admin.now += later;
        io.now += later;
        admin.work();
    }
}

fn step(wire: &mut Wire, kind: u8, piece_bytes: usize, script: &mut Script<'_>) {
    match kind & 15 {
        0 => {
            let length = script.byte().into();
            wire.feed(script.bytes(length), piece_bytes);
        }
        1 | 2 => {
            let mut entry = [0; 64];
            let given = script.bytes(64);
            entry[..given.len()].copy_from_slice(given);
            let length = script.byte().into();
            let entry = SubmissionEntry::read_from_bytes(&entry).unwrap();
            wire.send(&Pdu::Command { entry, data: script.bytes(length) }, piece_bytes);
        }
        3 => {
            let length = usize::from(script.word()) % STEP_BYTES_MAX;
            let header =
                DataHeader::new(script.byte().into(), script.byte().into(), script.byte().into(), length as u32);
            send_data(wire, header, kind & 32 != 0, script.byte(), piece_bytes);
        }
        4..=6 => {
            if let Some(request) = wire.requests.pop_front() {
                let (id, tag) = (request.command_id.get(), request.transfer_tag.get());
                let header = DataHeader::new(id, tag, 0, request.length_bytes.get());
                send_data(wire, header, true, script.byte(), piece_bytes);
            }
        }
        _ => {
            let (entry, data) = match kind & 64 {
                0 => command(kind, script),
                _ => extended_command(kind, script),
            };
            wire.send(&Pdu::Command { entry, data: &data }, piece_bytes);
        }
    }
}

fn send_data(wire: &mut Wire, header: DataHeader, is_last: bool, byte: u8, piece_bytes: usize) {
    let data = vec![byte; header.length_bytes.get() as usize];
    wire.send(&Pdu::Data { sender: Sender::Host, header, is_last, is_success: false, data: &data }, piece_bytes);
}

/// A command of keys of any length, or of iterators, that is nearly right: its lengths are any, and its data lies in the
/// capsule, or is to come.
fn extended_command(kind: u8, script: &mut Script<'_>) -> (SubmissionEntry, Vec<u8>) {
    let opcode = extended::opcode::ALL[usize::from(script.byte()) % extended::opcode::ALL.len()];
    let mut entry = SubmissionEntry::new(opcode, 1 + u32::from(script.byte().is_multiple_of(8)));
    let bytes = usize::from(script.word()) % 1024;
    let lead = script.word();
    (entry.dword10, entry.dword11) = (u32::from(script.word()).into(), u32::from(lead).into());
    if opcode == extended::opcode::CREATE_ITERATOR {
        entry.dword10 = (u32::from(lead) & 0x0f_0f0f).into();
        entry.dword11 = u32::from(script.byte() % 9).into();
    }
    (entry.dword12, entry.dword13) = (u32::from(script.byte() % 8).into(), u32::from(script.byte() % 4).into());
    let length_bytes = bytes as u32;
    let is_inside = kind & 32 == 0;
    entry.data = match is_inside {
        true => DataPointer::InCapsule { offset_bytes: 0, length_bytes },
        false => DataPointer::Transport { length_bytes },
    }
    .into();
    entry.command_id = u16::from(script.byte() % 40).into();
    (entry, if is_inside { vec![script.byte() % 4; bytes] } else { Vec::new() })
}

/// A command of the Key Value command set that is nearly right.
fn command(kind: u8, script: &mut Script<'_>) -> (SubmissionEntry, Vec<u8>) {
    let name = [script.byte() % 8; 16];
    let key = KvKey::new(&name[..1 + usize::from(script.byte() % 16)]).unwrap();
    let length = usize::from(script.word()) % STEP_BYTES_MAX;
    let bytes = length as u32;
    let condition = script.byte();
    let options = StoreOptions {
        must_exist: condition & 7 == 1,
        must_not_exist: condition & 0x38 == 8,
        compression: condition & 0x40 != 0,
    };
    let command = match script.byte() % 8 {
        0..=2 => KvCommand::Store { key, value_bytes: bytes, options },
        3 => KvCommand::Retrieve { key, buffer_bytes: bytes },
        4 => KvCommand::List { from: Some(key), buffer_bytes: bytes },
        5 => KvCommand::Delete { key },
        6 => KvCommand::Exist { key },
        _ => KvCommand::Flush,
    };
    let is_store = matches!(command, KvCommand::Store { .. });
    let is_inside = is_store && length <= 8192 && kind & 32 == 0;
    let pointer = match (&command, is_inside) {
        (_, true) => DataPointer::InCapsule { offset_bytes: 0, length_bytes: bytes },
        (KvCommand::Store { .. } | KvCommand::Retrieve { .. } | KvCommand::List { .. }, false) => {
            DataPointer::Transport { length_bytes: bytes }
        }
        _ => DataPointer::NONE,
    };
    let mut entry = command.entry(1).with_data(pointer);
    entry.command_id = u16::from(script.byte() % 40).into();
    (entry, if is_inside { vec![7; length] } else { Vec::new() })
}
