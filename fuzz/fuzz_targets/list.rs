//! Any bytes are a list of keys or are cut off; and what is a list is written as it was read.
#![no_main]

use kvssd_nvme_spec::identify::{descriptor_command_set, read_namespace_list};
use kvssd_nvme_spec::list::{ListReader, ListWriter};
use kvssd_nvme_spec::log_page::read_discovery_page;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = descriptor_command_set(input);
    let _ = read_namespace_list(input).count();
    let _ = read_discovery_page(input).count();
    let Ok(reader) = ListReader::new(input) else { return };
    let Ok(keys) = reader.collect::<Result<Vec<_>, _>>() else { return };
    let mut writer = ListWriter::new(input.len() + 4);
    assert!(keys.iter().all(|key| writer.push(key)));
    let written = writer.finish();
    let again: Vec<_> = ListReader::new(&written).unwrap().map(Result::unwrap).collect();
    assert_eq!(again, keys);
});
