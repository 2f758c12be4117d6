//! I/O commands of a peer.

use super::{Connection, End};
use crate::peer::{Act, Numbers, Pairs, VALUE_BYTES_MAX};
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::list::ListWriter;
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_spec::{CompletionEntry, Status, SubmissionEntry, numbered};
use std::sync::atomic::Ordering;
use std::thread;

impl Connection {
    /// Whether a change was made before. It is the next time.
    fn is_made(&self, entry: &SubmissionEntry, command: &KvCommand) -> bool {
        let is_change = matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. });
        let serial = numbered::serial(entry).filter(|_| is_change);
        assert!(serial.is_none() || self.shared.behaviour.numbers != Numbers::None, "nobody has asked for numbers");
        serial.is_some_and(|serial| self.shared.made.lock().unwrap().contains(&(self.host, serial)))
    }

    pub(super) fn io(&mut self, entry: SubmissionEntry, value: &[u8]) -> Result<(), End> {
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
        let needs_key = self.shared.behaviour.tells_of_deletes;
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
        // It is a drive of another make.
        other => panic!("{other:?} is none of the command set"),
    }
}
