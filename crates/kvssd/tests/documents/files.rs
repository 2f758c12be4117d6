//! Files that documents name are there.

use crate::{files_in, read, root};

#[test]
fn every_source_that_a_document_names_is_there() {
    let files = files_in(&root(), &["rs", "md"]);
    let (mut named, mut missing) = (0, Vec::new());
    for document in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = read(document);
        for name in text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") && !name.contains(' ')) {
            named += 1;
            if !files.iter().any(|file| file.ends_with(name.trim_start_matches("../"))) {
                missing.push(format!("{}: {name}", document.display()));
            }
        }
    }
    assert!(named > 100, "only {named} names found: documents are not read as they are written");
    assert!(missing.is_empty(), "documents name what there is not: {missing:#?}");
}
