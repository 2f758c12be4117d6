//! All keys of a namespace, past pages that cannot be read: what `dump` and `list` give, and what they lack.
//!
//! ```text
//!   keys in their order   a b c d |  a page that cannot be read
//!   keys that can be told         |  a c d f k ..   without those before, and only what is there   -> f k
//!   pairs that are counted, less those that were given  ->  what is lost
//! ```

use crate::Outcome;
use crate::fail::{Failure, is_url};
use kvssd_host::{Error, Namespace, Store};
use kvssd_text::line;
use std::collections::BTreeSet;
use std::path::Path;

/// So many keys are named that cannot be read.
const KEYS_NAMED_MAX: usize = 5;

/// Values that a drive on the wire is asked for at a time, and how much memory they may take. Estimates.
const AHEAD_MAX: u64 = 64;
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// What is not in an output, since it cannot be read.
#[derive(Debug, Default)]
pub struct Lost {
    pairs: u64,
    /// Keys that are known and cannot be read, the first of them, and how many there are.
    keys: Vec<String>,
    keys_known: u64,
}

impl Lost {
    fn note(&mut self, key: &[u8]) {
        self.keys_known += 1;
        if self.keys.len() < KEYS_NAMED_MAX {
            self.keys.push(line(key));
        }
    }

    /// Fails if there is something, with what is known of it.
    pub fn told(self, image: &Path) -> Outcome {
        let Lost { pairs, keys, keys_known } = self;
        let others = keys_known - keys.len() as u64;
        match pairs {
            0 => Ok(()),
            _ => Err(Failure::Lost { path: image.to_owned(), pairs, keys, others }),
        }
    }
}

/// Calls `give` with each key of a namespace, once. What cannot be read of a pair, which `give` says, is lost; any other failure is an end.
pub fn each_key(
    image: &Path,
    namespace: &Namespace<'_>,
    mut give: impl FnMut(&[u8]) -> Outcome,
) -> Result<Lost, Failure> {
    let (mut lost, mut listed, mut given) = (Lost::default(), 0, 0);
    let mut hand = |key: &[u8], lost: &mut Lost| match give(key) {
        Err(Failure::Store { error: Error::Damaged { .. }, .. }) => {
            lost.note(key);
            Ok(())
        }
        given_now => given_now.map(|()| given += 1),
    };
    for key in namespace.keys(None) {
        match key {
            Ok(key) => {
                hand(&key, &mut lost)?;
                listed += 1;
            }
            Err(error @ Error::Damaged { .. }) if !is_url(image) => {
                for key in keys_behind(namespace, listed, &error).map_err(Failure::of_store(image))? {
                    match namespace.exist(&key) {
                        Ok(true) => hand(&key, &mut lost)?,
                        Ok(false) => {}
                        Err(Error::Damaged { .. }) => lost.note(&key),
                        Err(error) => return Err(Failure::of_store(image)(error)),
                    }
                }
                // Of those that are lost in the index, no key is known.
                let counted = namespace.info().map_err(Failure::of_store(image))?.utilization.pairs;
                lost.pairs = counted.saturating_sub(given);
                return Ok(lost);
            }
            // No List over the wire leaves a key out.
            Err(Error::Damaged { why }) => {
                let why = format!("{why}; end the service and ask its image, of which all that can be read comes");
                return Err(Failure::of_store(image)(Error::Damaged { why }));
            }
            Err(error) => return Err(Failure::of_store(image)(error)),
        }
    }
    lost.pairs = lost.keys_known;
    Ok(lost)
}

/// As [`each_key`], with their values. A key that was deleted after it was listed has none, and is not given. A drive on the wire is asked
/// for several at a time.
pub fn each_pair(
    image: &Path,
    store: &Store,
    namespace: &Namespace<'_>,
    mut give: impl FnMut(&[u8], &[u8]) -> Outcome,
) -> Result<Lost, Failure> {
    if !is_url(image) {
        return each_key(image, namespace, |key| give_one(image, namespace, key, &mut give));
    }
    let value_bytes_max = store.stats().map_err(Failure::of_store(image))?.value_bytes_max;
    let ahead = (AHEAD_BYTES_MAX / value_bytes_max.max(1)).clamp(1, AHEAD_MAX) as usize;
    let mut unreadable: Vec<Box<[u8]>> = Vec::new();
    let mut give_all = |keys: Vec<Box<[u8]>>| {
        let mut values = vec![None; keys.len()];
        let found = namespace.retrieve_each(keys.iter().map(AsRef::as_ref), |number, value| values[number] = value);
        match found {
            Ok(()) => {
                let pairs = keys.iter().zip(values).filter_map(|(key, value)| Some((key, value?)));
                pairs.into_iter().try_for_each(|(key, value)| give(key, &value))
            }
            // One of them: which, each of them says by itself.
            Err(Error::Damaged { .. }) => {
                keys.into_iter().try_for_each(|key| match give_one(image, namespace, &key, &mut give) {
                    Err(Failure::Store { error: Error::Damaged { .. }, .. }) => {
                        unreadable.push(key);
                        Ok(())
                    }
                    given => given,
                })
            }
            Err(error) => Err(Failure::of_store(image)(error)),
        }
    };
    let mut waiting: Vec<Box<[u8]>> = Vec::new();
    let listed = each_key(image, namespace, |key| {
        waiting.push(key.into());
        if waiting.len() < ahead { Ok(()) } else { give_all(std::mem::take(&mut waiting)) }
    });
    // Also of a list that ends early. Who asks a drive that does not answer would wait for it once more.
    let is_silent = matches!(listed, Err(Failure::Store { error: Error::Unreachable { .. }, .. }));
    let given = if is_silent { Ok(()) } else { give_all(waiting) };
    let mut lost = listed?;
    given?;
    unreadable.iter().for_each(|key| lost.note(key));
    lost.pairs = lost.keys_known;
    Ok(lost)
}

fn give_one(
    image: &Path,
    namespace: &Namespace<'_>,
    key: &[u8],
    give: &mut impl FnMut(&[u8], &[u8]) -> Outcome,
) -> Outcome {
    let value = namespace.retrieve_value(key).map_err(Failure::of_store(image))?;
    value.map_or(Ok(()), |value| give(key, &value.into_bytes()))
}

/// The keys that can be told, without those that came before a list ended with an error.
fn keys_behind(namespace: &Namespace<'_>, listed: usize, error: &Error) -> Result<Vec<Box<[u8]>>, Error> {
    let before = namespace.keys(None).take(listed).collect::<Result<BTreeSet<_>, _>>()?;
    if before.len() != listed {
        return Err(error.clone());
    }
    Ok(namespace.salvage_keys()?.into_iter().filter(|key| !before.contains(key)).collect())
}
