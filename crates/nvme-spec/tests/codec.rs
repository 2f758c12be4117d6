//! Whatever is written is read back, from bytes that come in pieces of any size; and no bytes at all stop the reader.

use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage, Identify};
use kvssd_nvme_spec::attachment::{ATTACH, DETACH, controller_list, read_controller_list};
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::extended::{self, IteratorRange, PairsReader, PairsWriter};
use kvssd_nvme_spec::fabrics::{Connect, ConnectData, FabricsCommand};
use kvssd_nvme_spec::identify::{self, namespace_descriptors, namespace_list, read_namespace_list};
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::list::{ListReader, ListWriter};
use kvssd_nvme_spec::log_page::{Discovered, discovery_page, read_discovery_page};
use kvssd_nvme_spec::pdu::{
    DataHeader, Decoded, Fault, FaultStatus, Framing, IcRequest, IcResponse, Pdu, R2tHeader, Sender,
};
use kvssd_nvme_spec::{CompletionEntry, Status, SubmissionEntry, named};
use proptest::collection::vec;
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

fn framings() -> impl Strategy<Value = Framing> {
    (any::<bool>(), any::<bool>(), 0u32..32).prop_map(|(header_digest, data_digest, alignment)| Framing {
        header_digest,
        data_digest,
        data_alignment_bytes: (alignment + 1) * 4,
        capsule_data_bytes_max: 8192,
        data_bytes_max: 8192,
    })
}

fn entries() -> impl Strategy<Value = SubmissionEntry> {
    any::<[u8; 64]>().prop_map(|bytes| SubmissionEntry::read_from_bytes(&bytes).unwrap())
}

/// What a PDU is made of.
type Parts = (u8, SubmissionEntry, [u8; 16], (u16, u16, u32), (bool, bool));

fn parts() -> impl Strategy<Value = Parts> {
    (0u8..9, entries(), any::<[u8; 16]>(), any::<(u16, u16, u32)>(), any::<(bool, bool)>())
}

/// The PDU of those parts with that data, and who sends it.
fn pdu(parts: Parts, data: &[u8]) -> (Pdu<'_>, Sender) {
    let (kind, entry, answer, (one, two, offset), bits) = parts;
    let length = data.len() as u32;
    let header = DataHeader::new(one, two, offset, length);
    let fault = Fault { status: FaultStatus::from_code(one), information: offset };
    let begin = &data[..data.len().min(128)];
    let (host, controller) = (Sender::Host, Sender::Controller);
    match kind {
        0 => (Pdu::IcRequest(IcRequest::new(bits.0, bits.1, offset.max(1))), host),
        1 => (Pdu::IcResponse(IcResponse::new(bits.0, bits.1, offset)), controller),
        2 => (Pdu::Terminate { sender: host, fault, header: begin }, host),
        3 => (Pdu::Terminate { sender: controller, fault, header: begin }, controller),
        4 => (Pdu::Command { entry, data }, host),
        5 => (Pdu::Response(CompletionEntry::read_from_bytes(&answer).unwrap()), controller),
        6 => (Pdu::Data { sender: host, header, is_last: bits.0, is_success: bits.1, data }, host),
        7 => (Pdu::Data { sender: controller, header, is_last: bits.0, is_success: bits.1, data }, controller),
        _ => (Pdu::ReadyToTransfer(R2tHeader::new(one, two, offset, length)), controller),
    }
}

proptest! {
    #[test]
    fn a_pdu_is_read_as_it_was_written_wherever_it_is_split(
        framing in framings(), parts in parts(), data in vec(any::<u8>(), 0..300), cut: prop::sample::Index,
    ) {
        let (pdu, sender) = pdu(parts, &data);
        let mut bytes = Vec::new();
        pdu.encode(&framing, &mut bytes);
        let length = bytes.len();
        bytes.extend_from_slice(b"the next one");
        let whole = Decoded::Pdu { pdu, bytes: length, is_data_intact: true };
        prop_assert_eq!(Pdu::decode(&bytes, sender, &framing), Ok(whole));
        let cut = cut.index(length);
        match Pdu::decode(&bytes[..cut], sender, &framing) {
            Ok(Decoded::Needs(needs)) => prop_assert!(needs > cut && needs <= length),
            other => prop_assert!(false, "{other:?}"),
        }
        let other = if sender == Sender::Host { Sender::Controller } else { Sender::Host };
        prop_assert_eq!(Pdu::decode(&bytes, other, &framing), Err(Fault::header(0)));
    }

    #[test]
    fn no_bytes_stop_the_reader_or_make_it_wait_for_more_than_was_agreed_on(
        framing in framings(), kind in 0u8..12, mut bytes in vec(any::<u8>(), 0..400), small: bool,
    ) {
        if let Some(first) = bytes.first_mut() { *first = kind; }
        if small && let Some(high) = bytes.get_mut(6..8) { high.fill(0); }
        for sender in [Sender::Host, Sender::Controller] {
            match Pdu::decode(&bytes, sender, &framing) {
                Ok(Decoded::Needs(needs)) => prop_assert!(needs > bytes.len() && needs <= 8192 + 256 + 4),
                Ok(Decoded::Pdu { bytes: length, .. }) => prop_assert!(length <= bytes.len() && length >= 24),
                Err(_) => {}
            }
        }
    }

    #[test]
    fn a_digest_tells_what_was_changed(data in vec(any::<u8>(), 1..300), at: prop::sample::Index, flip in 1u8..=255) {
        let framing = Framing {
            header_digest: true, data_digest: true, capsule_data_bytes_max: 8192, ..Framing::INITIAL
        };
        let pdu = Pdu::Command { entry: SubmissionEntry::new(1, 1), data: &data };
        let mut bytes = Vec::new();
        pdu.encode(&framing, &mut bytes);
        let changed = at.index(bytes.len());
        bytes[changed] ^= flip;
        match Pdu::decode(&bytes, Sender::Host, &framing) {
            Ok(Decoded::Pdu { is_data_intact, .. }) => prop_assert!(!is_data_intact && changed >= 76),
            Ok(Decoded::Needs(_)) => prop_assert!(changed < 8),
            Err(fault) => prop_assert!(changed < 76 && (changed < 8 || fault.status == FaultStatus::HeaderDigest)),
        }
    }

    #[test]
    fn key_value_commands_are_read_as_they_were_written(
        kind in 0..6, key in vec(any::<u8>(), 1..=16), bytes: u32, bits in 0u8..8, namespace: u32, from: bool,
    ) {
        let key = KvKey::new(&key).unwrap();
        let options = StoreOptions { must_exist: bits & 1 != 0, must_not_exist: bits & 2 != 0, compression: bits & 4 != 0 };
        let command = match kind {
            0 => KvCommand::Flush,
            1 => KvCommand::Store { key, value_bytes: bytes, options },
            2 => KvCommand::Retrieve { key, buffer_bytes: bytes },
            3 => KvCommand::List { from: from.then_some(key), buffer_bytes: bytes },
            4 => KvCommand::Delete { key },
            _ => KvCommand::Exist { key },
        };
        let entry = command.entry(namespace);
        prop_assert_eq!(KvCommand::from_entry(&entry), Ok(command.clone()));
        prop_assert_eq!((entry.namespace.get(), entry.opcode), (namespace, command.opcode()));
    }

    #[test]
    fn admin_and_fabrics_commands_are_read_as_they_were_written(
        bytes: [u8; 4], words: [u16; 4], wide in 0u64..1 << 32, value: u64, bit: bool, kind in 0..12,
    ) {
        let [page, specific, command_set, attributes] = bytes;
        let admin = match kind {
            0 => AdminCommand::GetLogPage(GetLogPage {
                page, specific: specific & 0x7f, retain_event: bit, length_bytes: (wide + 1) * 4, offset_bytes: value, command_set,
            }),
            1 => AdminCommand::Identify(Identify { cns: page, controller: words[0], specific: words[1], command_set }),
            2 => AdminCommand::Abort { queue_id: words[0], command_id: words[1] },
            3 => AdminCommand::SetFeatures { feature: page, save: bit, value: value as u32 },
            4 => AdminCommand::GetFeatures { feature: page, select: specific & 7, value: value as u32 },
            5 => AdminCommand::AsynchronousEventRequest,
            _ => AdminCommand::KeepAlive,
        };
        prop_assert_eq!(AdminCommand::from(&admin.entry(1)), admin);
        let offset = wide as u32;
        let fabrics = match kind {
            0..4 => FabricsCommand::Connect(Connect {
                format: words[0], queue_id: words[1], queue_size: words[2], attributes, keep_alive_ms: offset,
            }),
            4..7 => FabricsCommand::PropertyGet { offset, is_wide: bit },
            7..9 => FabricsCommand::PropertySet { offset, is_wide: bit, value },
            _ => FabricsCommand::Disconnect { format: words[3] },
        };
        prop_assert_eq!(FabricsCommand::from(&SubmissionEntry::from(fabrics)), fabrics);
    }

    #[test]
    fn any_entry_is_some_command_or_a_status(entry in entries()) {
        let _ = AdminCommand::from(&entry);
        let _ = FabricsCommand::from(&entry);
        let _ = DataPointer::from(entry.data);
        if let Err(status) = KvCommand::from_entry(&entry) {
            prop_assert!(matches!(status, Status::InvalidOpcode | Status::InvalidField | Status::InvalidKeySize));
        }
    }

    #[test]
    fn a_list_gives_the_keys_that_there_was_room_for(keys in vec(vec(any::<u8>(), 0..300), 0..20), bytes_max in 0usize..2000) {
        let mut writer = ListWriter::new(bytes_max);
        let taken = keys.iter().take_while(|key| writer.push(key)).count();
        let data = writer.finish();
        prop_assert!(data.len() <= bytes_max && data.len().is_multiple_of(4));
        if bytes_max >= 4 {
            let read: Vec<_> = ListReader::new(&data).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(read, keys.iter().take(taken).map(Vec::as_slice).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_bytes_stop_the_reader_of_lists(data in vec(any::<u8>(), 0..200)) {
        if let Ok(reader) = ListReader::new(&data) {
            prop_assert!(reader.take_while(Result::is_ok).count() <= data.len());
        }
        let _ = identify::descriptor_command_set(&data);
        prop_assert!(read_namespace_list(&data).count() <= data.len() / 4);
        let _ = read_discovery_page(&data).count();
    }

    #[test]
    fn namespaces_are_listed_from_a_number_on(numbers in prop::collection::btree_set(1u32.., 0..40), after: u32) {
        let list = namespace_list(numbers.iter().copied(), after);
        prop_assert!(read_namespace_list(&list).eq(numbers.into_iter().filter(|&number| number > after)));
    }
}

#[test]
fn a_data_pointer_is_read_as_it_was_written() {
    for pointer in [
        DataPointer::NONE,
        DataPointer::InCapsule { offset_bytes: 5, length_bytes: 4096 },
        DataPointer::Transport { length_bytes: 2 << 20 },
        DataPointer::Other { identifier: 0x40 },
    ] {
        assert_eq!(DataPointer::from(SubmissionEntry::new(1, 1).with_data(pointer).data), pointer);
    }
    assert_eq!(DataPointer::from(SubmissionEntry::default().data), DataPointer::NONE);
}

proptest! {
    #[test]
    fn commands_of_long_keys_and_iterators_are_read_as_they_were_written(
        kind in 0..8u8,
        key in vec(any::<u8>(), 17..=255),
        (first, end) in (vec(any::<u8>(), 0..=255), proptest::option::of(vec(any::<u8>(), 0..=255))),
        (bytes, iterator, pairs_max, flags) in any::<(u32, u32, u32, u8)>(),
    ) {
        let options = StoreOptions { must_exist: flags & 1 != 0, must_not_exist: flags & 2 != 0, compression: flags & 4 != 0 };
        let some = (flags & 8 != 0).then(|| KvKey::long(&key).unwrap());
        let (descending, keys_only) = (flags & 1 != 0, flags & 2 != 0);
        let long = KvKey::long(&key).unwrap();
        let command = match kind {
            0 => KvCommand::Store { key: long, value_bytes: bytes, options },
            1 => KvCommand::Retrieve { key: long, buffer_bytes: bytes },
            2 => KvCommand::ListLong { from: some, buffer_bytes: bytes },
            3 => KvCommand::Delete { key: long },
            4 => KvCommand::Exist { key: long },
            5 => KvCommand::CreateIterator(Box::new(IteratorRange { prefix: key, first, end, descending, keys_only })),
            6 => KvCommand::Iterate { iterator, seek: (flags & 16 != 0).then_some(some), pairs_max, buffer_bytes: bytes },
            _ => KvCommand::DestroyIterator { iterator },
        };
        // A long key is nobody's whose commands are those of NVMe.
        prop_assert!(KvCommand::from_entry(&command.entry(1)).is_err());
        let (entry, lead) = (command.entry(7), command.lead());
        prop_assert_eq!((extended::is(entry.opcode), extended::lead_bytes(&entry)), (true, lead.len()));
        let data = [&lead[..], b"value"].concat();
        prop_assert_eq!(KvCommand::decode(&entry, &data), Ok(command));
        for cut in 0..lead.len() {
            prop_assert_eq!(KvCommand::decode(&entry, &lead[..cut]), Err(Status::SglLengthInvalid));
        }
    }

    #[test]
    fn pairs_are_read_as_they_were_written_and_no_bytes_stop_their_reader(
        pairs in vec((vec(any::<u8>(), 1..=255), vec(any::<u8>(), 0..300)), 0..20),
        bytes_max in 8..4000usize,
        junk in vec(any::<u8>(), 0..200),
    ) {
        let mut writer = PairsWriter::new(bytes_max).unwrap();
        let fit = pairs.iter().take_while(|(key, value)| writer.push(key, value)).count();
        let data = writer.finish();
        prop_assert!(data.len() <= bytes_max);
        let reader = PairsReader::new(&data).unwrap();
        prop_assert_eq!(reader.next_bytes > 0, fit < pairs.len());
        let read: Vec<_> = reader.map(Result::unwrap).collect();
        prop_assert!(read.iter().copied().eq(pairs[..fit].iter().map(|(key, value)| (&key[..], &value[..]))));
        for data in [&junk[..], &data[..data.len().min(junk.len())]] {
            if let Ok(reader) = PairsReader::new(data) {
                prop_assert!(reader.count() <= data.len() + 1);
            }
        }
        prop_assert!(named::read_namespaces(&junk).is_none_or(|entries| entries.len() * 128 <= junk.len()));
    }
}

/// Bytes from the specification's figures, so that both directions are not wrong alike.
#[test]
fn a_store_lies_where_the_specification_puts_it() {
    let key = KvKey::new(b"0123456789abcdef").unwrap();
    let options = StoreOptions { must_not_exist: true, ..StoreOptions::default() };
    let entry = KvCommand::Store { key, value_bytes: 0x1234, options }
        .entry(7)
        .with_data(DataPointer::InCapsule { offset_bytes: 0, length_bytes: 0x1234 });
    let bytes = entry.as_bytes();
    assert_eq!((bytes[0], bytes[1], &bytes[4..8]), (0x01, 0x40, &[7, 0, 0, 0][..]));
    assert_eq!((&bytes[8..16], &bytes[56..64]), (&b"01234567"[..], &b"89abcdef"[..]));
    assert_eq!((&bytes[32..36], bytes[39]), (&[0x34, 0x12, 0, 0][..], 0x01));
    assert_eq!((&bytes[40..44], &bytes[44..48]), (&[0x34, 0x12, 0, 0][..], &[16, 2, 0, 0][..]));
}

#[test]
fn a_key_has_one_to_sixteen_bytes() {
    assert_eq!(KvKey::new(b""), Err(Status::InvalidKeySize));
    assert_eq!(KvKey::new(&[0; 17]), Err(Status::InvalidField));
    let mut entry = KvCommand::Exist { key: KvKey::new(b"a").unwrap() }.entry(1);
    for (length, status) in [(0, Status::InvalidKeySize), (17, Status::InvalidField), (255, Status::InvalidField)] {
        entry.dword11 = length.into();
        assert_eq!(KvCommand::from_entry(&entry), Err(status));
    }
}

#[test]
fn a_connect_lies_where_the_specification_puts_it() {
    let connect = Connect { queue_id: 3, queue_size: 127, keep_alive_ms: 10_000, ..Connect::default() };
    let entry = SubmissionEntry::from(FabricsCommand::Connect(connect));
    let bytes = entry.as_bytes();
    assert_eq!(
        (bytes[0], bytes[4], &bytes[42..46], &bytes[48..52]),
        (0x7f, 0x01, &[3, 0, 127, 0][..], &10_000u32.to_le_bytes()[..])
    );
    let data = ConnectData::new([9; 16], 0xffff, "nqn.subsystem", "nqn.host");
    let bytes = data.as_bytes();
    assert_eq!(
        (&bytes[..18], &bytes[256..270], &bytes[512..521]),
        (
            &[9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0xff, 0xff][..],
            &b"nqn.subsystem\0"[..],
            &b"nqn.host\0"[..]
        )
    );
    assert_eq!(ConnectData::from_data(bytes), Some(&data));
    assert_eq!(ConnectData::from_data(&bytes[1..]), None);
}

#[test]
fn a_discovery_log_names_what_was_put_in() {
    let found = [
        Discovered { subsystem_nqn: "nqn.one", address: "127.0.0.1", service: "4420", is_secured: false },
        Discovered { subsystem_nqn: "nqn.two", address: "::1", service: "9", is_secured: true },
    ];
    let page = discovery_page(&found, 7, 32, false);
    assert_eq!(page.len(), 3 * 1024);
    assert_eq!((&page[..8], &page[8..16]), (&[7, 0, 0, 0, 0, 0, 0, 0][..], &[2, 0, 0, 0, 0, 0, 0, 0][..]));
    assert_eq!(read_discovery_page(&page).collect::<Vec<_>>(), found);
}

#[test]
fn a_list_of_controllers_is_read_back_and_nothing_else_is() {
    for controllers in [vec![], vec![1], vec![2, 3, 0xffef], (1..=2047).collect()] {
        let list = controller_list(controllers.iter().copied());
        assert_eq!(list[..2], (controllers.len() as u16).to_le_bytes());
        assert_eq!(read_controller_list(&list), Some(controllers.clone()));
        let used = 2 + 2 * controllers.len();
        assert_eq!(read_controller_list(&list[..used]), Some(controllers));
        assert!((0..used).all(|end| read_controller_list(&list[..end]).is_none()));
    }
    assert_eq!(read_controller_list(&controller_list(0..u16::MAX)), Some((0..2047).collect()));
    assert_eq!(read_controller_list(&[0xff; 4096]), None);
    assert_eq!(read_controller_list(&[[0, 8].as_slice(), &[0; 8000]].concat()), None, "2048 are too many");
    for select in [ATTACH, DETACH] {
        let entry = AdminCommand::NamespaceAttachment { select }.entry(7);
        assert_eq!((entry.opcode, entry.namespace.get(), entry.dword10.get()), (0x15, 7, select.into()));
        assert_eq!(AdminCommand::from(&entry), AdminCommand::NamespaceAttachment { select });
    }
}

#[test]
fn descriptors_say_which_command_set_a_namespace_has() {
    let descriptors = namespace_descriptors([1; 16], [2; 16], identify::COMMAND_SET_KEY_VALUE);
    assert_eq!(identify::descriptor_command_set(&descriptors), Some(1));
    assert_eq!(descriptors[40..46], [4, 1, 0, 0, 1, 0]);
}
