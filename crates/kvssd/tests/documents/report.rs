//! `docs/REPORT.md` names what reports have.

use crate::{files_in, read, root};
use std::collections::BTreeSet;

#[test]
fn every_part_of_dram_is_in_the_document_of_reports() {
    let document = read(&root().join("docs/REPORT.md"));
    let sources = ["ftl", "designs"].map(|name| root().join("crates").join(name).join("src"));
    let texts = sources.iter().flat_map(|folder| files_in(folder, &["rs"])).map(|path| read(&path));
    let parts: BTreeSet<String> = texts
        .flat_map(|text| {
            let calls = text.split("dram.add(\"").skip(1);
            calls.filter_map(|rest| rest.split_once('"')).map(|(part, _)| part.to_owned()).collect::<Vec<_>>()
        })
        .collect();
    assert!(parts.len() > 20, "only {parts:?}: the sources are not read as they are written");
    let missing: Vec<&String> = parts.iter().filter(|part| !document.contains(&format!("`{part}`"))).collect();
    assert!(missing.is_empty(), "docs/REPORT.md does not say what these parts of DRAM are: {missing:?}");
}
