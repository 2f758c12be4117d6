//! Any 64 bytes are a command or have a status; and what is a command is written as it was read.
#![no_main]

use kvssd_nvme_spec::SubmissionEntry;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::{DataPointer, SglDescriptor};
use kvssd_nvme_spec::fabrics::{ConnectData, FabricsCommand};
use kvssd_nvme_spec::kv::KvCommand;
use libfuzzer_sys::fuzz_target;
use zerocopy::FromBytes;

fuzz_target!(|input: &[u8]| {
    let Ok((entry, data)) = SubmissionEntry::read_from_prefix(input) else { return };
    if let Ok(command) = KvCommand::from_entry(&entry) {
        assert_eq!(KvCommand::from_entry(&command.entry(entry.namespace.get())), Ok(command));
    }
    if let Ok(command) = KvCommand::decode(&entry, data) {
        assert_eq!(KvCommand::decode(&command.entry(entry.namespace.get()), &command.lead()), Ok(command));
    }
    let admin = AdminCommand::from(&entry);
    assert_eq!(AdminCommand::from(&admin.entry(1)), admin);
    let fabrics = FabricsCommand::from(&entry);
    assert_eq!(FabricsCommand::from(&SubmissionEntry::from(fabrics)), fabrics);
    let pointer = DataPointer::from(entry.data);
    if !matches!(pointer, DataPointer::Other { .. }) {
        assert_eq!(DataPointer::from(SglDescriptor::from(pointer)), pointer);
    }
    if let Some(connect) = data.first_chunk::<1024>().and_then(|data| ConnectData::from_data(data)) {
        let _ = kvssd_nvme_spec::read_text(&connect.host_nqn);
    }
});
