//! Commands that are under way together.

use crate::host::{Got, Heard, Queue};
use kvssd_nvme_spec::SubmissionEntry;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::pdu::Pdu;
use std::collections::BTreeMap;

/// Sends all commands with their data, in the capsule or by R2T as each pointer says, and takes what they give in whatever order it comes.
pub fn ask_together(queue: &mut Queue, commands: Vec<(SubmissionEntry, &[u8])>) -> Vec<Got> {
    let mut under_way = BTreeMap::new();
    let mut answers: Vec<Option<Got>> = commands.iter().map(|_| None).collect();
    for (number, (mut entry, data)) in commands.into_iter().enumerate() {
        let id = queue.id();
        entry.command_id = id.into();
        let is_inside = matches!(DataPointer::from(entry.data), DataPointer::InCapsule { .. });
        queue.send(&Pdu::Command { entry, data: if is_inside { data } else { &[] } });
        under_way.insert(id, (number, data, Vec::new()));
    }
    while !under_way.is_empty() {
        match queue.hear() {
            Heard::R2t(id, tag, offset, length) => {
                let (_, data, _) = &under_way[&id];
                assert_eq!((offset, length as usize), (0, data.len()));
                queue.send_data(id, tag, data);
            }
            Heard::Data(header, _, _, part) => {
                let (_, _, got) = under_way.get_mut(&header.command_id.get()).unwrap();
                assert_eq!(header.offset_bytes.get() as usize, got.len());
                got.extend_from_slice(&part);
            }
            Heard::Response(entry) => {
                let (number, _, data) = under_way.remove(&entry.command_id.get()).unwrap();
                answers[number] = Some(Got { entry, data });
            }
            other => panic!("{other:?} answers no command"),
        }
    }
    answers.into_iter().map(Option::unwrap).collect()
}
