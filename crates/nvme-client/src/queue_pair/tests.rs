//! The queue pair against bytes, however they come.

use super::*;
use kvssd_nvme_spec::kv::{KvCommand, KvKey};
use proptest::prelude::*;

const DEPTH: u16 = 4;

fn queue_pair(header_digest: bool, data_digest: bool) -> QueuePair {
    let limits = QueueLimits { depth: DEPTH, capsule_data_bytes_max: 100, data_bytes_max: 1 << 20 };
    QueuePair::new(&IcResponse::new(header_digest, data_digest, 4096), limits).unwrap()
}

fn retrieve(queue: &mut QueuePair, buffer_bytes: u32) -> CommandId {
    let command = KvCommand::Retrieve { key: KvKey::new(b"key").unwrap(), buffer_bytes };
    queue.submit(&command.entry(1), &Payload::In(buffer_bytes)).unwrap()
}

fn data(framing: &Framing, id: u16, offset: usize, data: &[u8], out: &mut Vec<u8>) {
    let header = DataHeader::new(id, 0, offset as u32, data.len() as u32);
    let sender = Sender::Controller;
    Pdu::Data { sender, header, is_last: false, is_success: false, data }.encode(framing, out);
}

proptest! {
    #[test]
    fn completions_do_not_depend_on_how_bytes_are_cut(
        header_digest: bool,
        data_digest: bool,
        lengths in prop::collection::vec(1usize..3000, DEPTH as usize),
        cuts in prop::collection::vec(1usize..700, 1..40),
    ) {
        let mut queue = queue_pair(header_digest, data_digest);
        let framing = queue.framing;
        let ids: Vec<_> = lengths.iter().map(|_| retrieve(&mut queue, 3000)).collect();
        prop_assert!(queue.is_full());
        let mut bytes = Vec::new();
        for (id, length) in ids.iter().zip(&lengths).rev() {
            let value = vec![id.0 as u8; *length];
            data(&framing, id.0, 0, &value[..length / 2], &mut bytes);
            data(&framing, id.0, length / 2, &value[length / 2..], &mut bytes);
            let response = CompletionEntry::new(id.0, Status::Success).with_result(*length as u64);
            Pdu::Response(response).encode(&framing, &mut bytes);
        }
        let (mut rest, mut cuts, mut completed) = (&bytes[..], cuts.iter().cycle(), Vec::new());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            queue.receive(piece, |id| completed.push(id)).unwrap();
            rest = behind;
        }
        prop_assert!(completed.iter().eq(ids.iter().rev()));
        for (id, length) in ids.into_iter().zip(lengths) {
            let completion = queue.take(id).unwrap();
            prop_assert_eq!(completion.data, vec![id.0 as u8; length]);
            prop_assert!(queue.take(id).is_none());
        }
        prop_assert!(queue.is_idle());
    }

    #[test]
    fn no_bytes_make_it_panic_or_keep_more_than_was_asked_for(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kind in prop::sample::select(vec![1u8, 3, 5, 7, 9]),
        id in 0u8..6,
    ) {
        let mut queue = queue_pair(false, false);
        let first = retrieve(&mut queue, 64);
        queue.submit(&KvCommand::Flush.entry(1), &Payload::Out(vec![1; 500].into())).unwrap();
        let mut head = vec![kind, 0, 24, if kind == 7 { 24 } else { 0 }];
        head.extend((if kind == 7 { 24 + 16 } else { 24u32 }).to_le_bytes());
        head.extend([id, 0]);
        head.extend(bytes);
        let _ = queue.receive(&head, |_| {});
        prop_assert!(queue.take(first).is_none_or(|completion| completion.data.len() <= 64));
    }
}

#[test]
fn a_large_value_goes_as_the_controller_asks_for_it_and_only_so() {
    let mut queue = queue_pair(false, false);
    let value: Blob = (0..10_000u32).map(|at| at as u8).collect::<Vec<u8>>().into();
    let command = KvCommand::Store { key: KvKey::new(b"k").unwrap(), value_bytes: 10_000, options: Default::default() };
    let id = queue.submit(&command.entry(1), &Payload::Out(value.clone())).unwrap();
    assert_eq!(queue.outgoing().len(), 72, "the value is not in the capsule");
    queue.outgoing().clear();
    let ready = |begin: u32, bytes: u32| {
        let mut out = Vec::new();
        Pdu::ReadyToTransfer(R2tHeader::new(id.0, 5, begin, bytes)).encode(&Framing::INITIAL, &mut out);
        out
    };
    queue.receive(&ready(0, 6000), |_| {}).unwrap();
    // In PDUs of what the controller takes.
    assert_eq!(queue.outgoing().len(), 24 + 4096 + 24 + 1904);
    assert!(queue.receive(&ready(0, 1), |_| {}).is_err(), "what was sent is not sent again");
    assert!(queue.receive(&ready(6000, 4001), |_| {}).is_err(), "and nothing behind the end");
    queue.receive(&ready(6000, 4000), |_| {}).unwrap();
    assert!(queue.outgoing().ends_with(&value[6000..]));
}
