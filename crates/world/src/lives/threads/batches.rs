//! Batches of threads: all or none, also of those that a kill has left without an answer.

use super::Common;
use crate::lives::book::{Line, Place, SharedBook};
use crate::lives::caller::{Caller, Step, key};
use kvssd_host::{Batch, NamespaceId, Store};
use kvssd_runtime::time::Instant;
use std::collections::BTreeMap;

const BATCH_CHANGES: u64 = 6;

/// A batch that was not answered yet: of each key its line, and the value it gets.
pub(super) type Batched = Vec<(Place, Line, Option<u64>)>;

/// A batch over namespaces: a call on each of its keys.
pub(super) fn make(common: &Common, caller: &mut Caller, store: &Store) -> Step {
    let (mut batch, mut lines) = (Batch::new(), Batched::new());
    let ids: Vec<NamespaceId> = match store.namespaces() {
        Ok(infos) => infos.into_iter().map(|info| info.id).collect(),
        Err(error) => return Step::Ended(error),
    };
    for _ in 0..2 + caller.random.below(BATCH_CHANGES) {
        let id = ids[caller.random.below(ids.len() as u64) as usize];
        let place = (id.0, caller.random.below(common.keys as u64) as usize);
        if lines.iter().any(|(other, ..)| *other == place) {
            continue;
        }
        if caller.random.below(4) == 0 {
            batch.delete_in(id, &key(place.1));
            lines.push((place, caller.change(place, None), None));
        } else {
            let (value, bytes) = caller.value(place, true);
            batch.store_in(id, &key(place.1), &bytes);
            lines.push((place, caller.change(place, Some(value)), Some(value)));
        }
    }
    let began = Instant::now();
    common.batches.borrow_mut().push(lines.clone());
    let batched = store.batch(&batch);
    common.batches.borrow_mut().retain(|other| other[0].1 != lines[0].1);
    let lines: Vec<Line> = lines.into_iter().map(|(_, line, _)| line).collect();
    match batched {
        Ok(()) => {
            lines.into_iter().for_each(|line| caller.book.borrow_mut().end(line));
            Step::Answered
        }
        Err(error) => caller.not_done(&lines, began, error),
    }
}

/// Whether a batch that was not answered was made as a whole or not at all.
pub(super) fn look(book: &SharedBook, batched: &Batched, found: &BTreeMap<Place, Option<u64>>) {
    let is_made = |(place, _, value): &&(Place, Line, Option<u64>)| {
        value.is_some() && found.get(place).is_some_and(|found| found == value)
    };
    // What was stored before the batch began is there no more when that was made.
    let is_not_made = |(place, line, value): &&(Place, Line, Option<u64>)| match found.get(place) {
        Some(Some(found)) if Some(*found) != *value => {
            let book = book.borrow();
            book.stored(*found).is_some_and(|stored| stored < book.began(*line))
        }
        _ => false,
    };
    if let (Some(made), Some(not_made)) = (batched.iter().find(is_made), batched.iter().find(is_not_made)) {
        book.borrow_mut().fail(format!("a batch is made at {:?} and not at {:?}", made.0, not_made.0));
    }
}
