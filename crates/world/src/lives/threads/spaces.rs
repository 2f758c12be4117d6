//! Namespaces of threads, which come and go, and with them all keys in them.

use super::Common;
use super::caches;
use crate::linear::Found;
use crate::lives::book::{EXISTS, Line};
use crate::lives::caller::{Caller, Step};
use crate::lives::hardware::create_namespace;
use kvssd_host::{Error, NamespaceAttributes, NamespaceId, Store};

/// Names of namespaces.
const NAMES: [&str; 2] = ["s1", "s2"];
/// Numbers of namespaces are below.
pub(super) const IDS: usize = 9;

/// Makes a namespace. Which number it gets is not known before: one of them, in doubt.
pub(super) fn create(common: &Common, caller: &mut Caller, store: &Store) -> Step {
    let which = caller.random.below(NAMES.len() as u64) as usize;
    let (name, index) = (Some(NAMES[which].to_owned()), Some(common.hardware.indexes[which].to_owned()));
    let cache = common.has_caches.then(|| caches::some(&mut caller.random));
    let attributes = NamespaceAttributes { name, index, cache, ..NamespaceAttributes::PLAIN };
    let (value, _) = caller.book.borrow_mut().new_value((EXISTS, 0), 0);
    let begin = |id| caller.book.borrow_mut().begin((EXISTS, id), Found::Exactly(None), Some(Some(value)));
    let lines: Vec<Line> = (0..IDS).map(begin).collect();
    let created = create_namespace(store, attributes);
    let mut book = caller.book.borrow_mut();
    let is_it = |index: usize| created.as_ref().is_ok_and(|id| id.0 as usize == index);
    for (index, line) in lines.into_iter().enumerate() {
        if is_it(index) {
            book.end(line);
        } else {
            book.cancel(line);
        }
    }
    match created {
        Ok(_)
        | Err(Error::InvalidOptions { .. } | Error::TooManyNamespaces { .. } | Error::Refused { .. } | Error::Full) => {
            Step::Answered
        }
        Err(error) => Step::Ended(error),
    }
}

/// Deletes a namespace, and with it all keys in it.
pub(super) fn delete(caller: &mut Caller, store: &Store) -> Step {
    let id = match some(caller, store) {
        Ok(id) if id != NamespaceId::FIRST => id,
        Ok(_) => return Step::Answered,
        Err(error) => return Step::Ended(error),
    };
    let itself = caller.book.borrow_mut().begin((EXISTS, id.0 as usize), Found::Something, Some(None));
    let lines: Vec<Line> = (0..caller.keys).map(|number| caller.change((id.0, number), None)).collect();
    let deleted = store.delete_namespace(&id.to_string());
    let mut book = caller.book.borrow_mut();
    match deleted {
        Ok(()) => {
            book.end(itself);
            lines.into_iter().for_each(|line| book.end(line));
        }
        Err(Error::NoNamespace { .. }) => {
            book.end_with(itself, Found::Exactly(None), None);
            lines.into_iter().for_each(|line| book.cancel(line));
        }
        Err(error) => return Step::Ended(error),
    }
    Step::Answered
}

/// One of those that are there.
pub(super) fn some(caller: &mut Caller, store: &Store) -> Result<NamespaceId, Error> {
    let infos = store.namespaces()?;
    Ok(infos[caller.random.below(infos.len() as u64) as usize].id)
}
