//! A connection of a peer: PDUs, and the data of commands.

mod admin;
mod io;

use super::{Act, Shared};
use kvssd_nvme_spec::fabrics::{Configuration, FABRICS_OPCODE};
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::pdu::{DataHeader, Decoded, Framing, IcResponse, Pdu, R2tHeader, Sender};
use kvssd_nvme_spec::{CompletionEntry, DataPointer, Status, SubmissionEntry};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) struct Connection {
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
pub(super) struct End;

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, socket: TcpStream) -> Self {
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

    pub(super) fn serve(mut self) {
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
        let step = self.shared.behaviour.split_bytes.unwrap_or(self.out.len()).max(1);
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
                let asked = self.shared.behaviour.r2t_bytes as usize;
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
        let bytes = (length - begin).min(self.shared.behaviour.r2t_bytes as usize);
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
        let pieces = data.chunks(self.shared.behaviour.data_bytes).count();
        for (index, piece) in data.chunks(self.shared.behaviour.data_bytes).enumerate() {
            let begin = offset + index * self.shared.behaviour.data_bytes;
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
}
