//! `kvssd put`, `get`, `delete`, `exist` and `list`: one call on the store in an image, or on the wire where a URL stands for it.
//!
//! Commands that only ask open the image to be read, so that they can run side by side. `put` and `delete` leave it without a
//! checkpoint, which would take as long as the index is large: the next one who opens it does the journal again.

use crate::Outcome;
use crate::arguments::image::{DeleteOptions, ExistOptions, GetOptions, GivenValue, ListOptions, PutOptions};
use crate::arguments::namespace::InNamespace;
use crate::fail::Failure;
use crate::output::{self, is_dash, print_bytes, write_to};
use crate::salvage::{Lost, each_key};
use kvssd_device::LARGE_VALUE_BYTES_MAX;
use kvssd_host::{Missing, Namespace, Options, Store};
use kvssd_text::{Bytes, line};
use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

/// The namespace that every image begins with.
const FIRST: &str = "1";

/// Stores a pair.
pub fn put(options: &PutOptions) -> Outcome {
    let PutOptions { image, key, value, file, sync, within } = options;
    let value = match (value, file) {
        (_, Some(path)) => value_in(path)?,
        (Some(GivenValue::Bytes(bytes)), None) => bytes.clone(),
        (Some(GivenValue::Input) | None, None) => value_in(Path::new("-"))?,
    };
    let store = open_or_create(image, *sync, within)?;
    namespace(&store, image, within)?.store(&key.0, &value).map_err(Failure::of_store(image))
}

/// Prints a value.
pub fn get(options: &GetOptions) -> Outcome {
    let GetOptions { image, key, file, within } = options;
    let store = open_to_read(image)?;
    let value = namespace(&store, image, within)?.retrieve(&key.0).map_err(Failure::of_store(image))?;
    let value = value.ok_or_else(|| no_key(image, key))?;
    match file {
        Some(path) => write_to(path, |file| file.write_all(&value).map_err(Failure::of_output(path))),
        None => print_bytes(&value),
    }
}

/// Removes a pair.
pub fn delete(options: &DeleteOptions) -> Outcome {
    let DeleteOptions { image, key, sync, within } = options;
    let options = Options { missing: Missing::Fail, sync: *sync, ..Options::default() };
    let store = kvssd_host::open(image, options).map_err(Failure::of_store(image))?;
    let was_there = namespace(&store, image, within)?.delete(&key.0).map_err(Failure::of_store(image))?;
    if was_there { Ok(()) } else { Err(no_key(image, key)) }
}

/// Ends well if the key is there.
pub fn exist(options: &ExistOptions) -> Outcome {
    let ExistOptions { image, key, within } = options;
    let store = open_to_read(image)?;
    let is_there = namespace(&store, image, within)?.exist(&key.0).map_err(Failure::of_store(image))?;
    if is_there { Ok(()) } else { Err(no_key(image, key)) }
}

/// Prints keys.
pub fn list(options: &ListOptions) -> Outcome {
    let ListOptions { image, from, count, within } = options;
    let store = open_to_read(image)?;
    let namespace = namespace(&store, image, within)?;
    let from = from.as_ref().map(|key| key.0.as_slice());
    let mut lost = Lost::default();
    write_to(Path::new("-"), |out| {
        let mut print = |key: &[u8]| writeln!(out, "{}", line(key)).map_err(Failure::of_output(Path::new("-")));
        if from.is_none() && count.is_none() {
            lost = each_key(image, &namespace, print)?;
            return Ok(());
        }
        // Behind what cannot be read there is no order that a part of the keys could be told by.
        let count = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        namespace.keys(from).take(count).try_for_each(|key| print(&key.map_err(Failure::of_store(image))?))
    })?;
    lost.told(image)
}

/// The store in an image that others may read at the same time.
pub fn open_to_read(image: &Path) -> Result<Store, Failure> {
    kvssd_host::open(image, Options { read_only: true, ..Options::default() }).map_err(Failure::of_store(image))
}

/// The namespace of a store that is meant.
pub fn namespace<'s>(store: &'s Store, image: &Path, within: &InNamespace) -> Result<Namespace<'s>, Failure> {
    match &within.namespace {
        Some(name) => store.namespace(name).map_err(Failure::of_store(image)),
        None => Ok(store.own_namespace()),
    }
}

/// The store in an image, which is made when there is none and it would have the namespace that is meant.
pub fn open_or_create(image: &Path, sync: bool, within: &InNamespace) -> Result<Store, Failure> {
    let is_first = within.namespace.as_deref().is_none_or(|name| name == FIRST);
    let missing = if is_first { Missing::Create } else { Missing::Fail };
    let options = Options { missing, sync, ..Options::default() };
    let store = kvssd_host::open(image, options).map_err(Failure::of_store(image))?;
    if store.was_created() {
        let stats = store.stats().map_err(Failure::of_store(image))?;
        let mebibytes = stats.firmware.map_or(0, |firmware| firmware.flash_bytes >> 20);
        output::note(&format!("image {} is new: design {}, {mebibytes} MiB of flash", image.display(), stats.design));
    }
    Ok(store)
}

fn no_key(image: &Path, key: &Bytes) -> Failure {
    Failure::NoKey { path: image.to_owned(), key: line(&key.0) }
}

/// The bytes of a file, or of the standard input.
fn value_in(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = Failure::of_input(path);
    let cannot = |error: std::io::Error| fail(format!("cannot be read: {error}"));
    let mut value = Vec::new();
    // What no drive takes is not read on.
    let bytes_max = u64::from(LARGE_VALUE_BYTES_MAX);
    let mut read = |from: &mut dyn Read| from.take(bytes_max + 1).read_to_end(&mut value);
    if is_dash(path) { read(&mut stdin().lock()) } else { File::open(path).and_then(|mut file| read(&mut file)) }
        .map_err(cannot)?;
    if value.len() as u64 > bytes_max {
        return Err(fail("it is larger than any value".to_owned()));
    }
    Ok(value)
}
