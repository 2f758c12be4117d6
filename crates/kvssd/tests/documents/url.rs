//! `docs/NVME.md` has what can be in a URL.

use crate::{read, root};

#[test]
fn every_parameter_of_a_url_is_in_the_document_of_the_wire() {
    let source = read(&root().join("crates/nvme-client/src/url.rs"));
    let (_, set) = source.split_once("match key {\n").expect("parameters are set by their names");
    let (set, _) = set.split_once("other => {").expect("what is none is refused");
    let arms = set.lines().filter_map(|line| line.strip_prefix("            \""));
    let names: Vec<&str> = arms.filter_map(|arm| arm.split_once("\" => ")).map(|(name, _)| name).collect();
    assert!(names.contains(&"ns") && names.contains(&"tls-key-file"), "{names:?}");
    let document = read(&root().join("docs/NVME.md"));
    let missing: Vec<&&str> = names.iter().filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/NVME.md does not say what these parameters of a URL are: {missing:?}");
}
