//! Any bytes are pairs of an iterator or are cut off, and what are pairs is written as it was read; the same of namespaces.
#![no_main]

use kvssd_nvme_spec::extended::{PairsReader, PairsWriter};
use kvssd_nvme_spec::named::{CreateNamespace, namespaces_page, read_name, read_namespaces};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = read_name(input);
    let _ = CreateNamespace::from_data(input).map(CreateNamespace::is_known);
    if let Some(entries) = read_namespaces(input) {
        assert_eq!(read_namespaces(&namespaces_page(&entries)), Some(entries));
    }
    let Ok(reader) = PairsReader::new(input) else { return };
    let Ok(pairs) = reader.collect::<Result<Vec<_>, _>>() else { return };
    let mut writer = PairsWriter::new(input.len()).unwrap();
    assert!(pairs.iter().all(|(key, value)| writer.push(key, value)));
    let written = writer.finish();
    let again: Vec<_> = PairsReader::new(&written).unwrap().map(Result::unwrap).collect();
    assert_eq!(again, pairs);
});
