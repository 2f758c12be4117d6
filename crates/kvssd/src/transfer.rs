//! `kvssd load` and `kvssd dump`: many pairs from and to files.
//!
//! ```text
//!   key,value lines (CSV)  |  {"key": .., "value": ..} lines (JSON)      text, or hex: and bytes; as it is, gzip or zstd
//!        | load: many at a time, one commit each           ^ dump
//!        v                                               |
//!                        the store in an image
//! ```

use crate::Outcome;
use crate::arguments::image::{DumpOptions, LoadOptions};
use crate::fail::{Behind, Failure, is_url};
use crate::format::Format;
use crate::output::{counted, is_dash, note, write_to};
use crate::pairs::{namespace, open_or_create, open_to_read};
use crate::progress::Progress;
use crate::salvage::{Lost, each_pair};
use crate::unnamed::Watched;
use kvssd_host::{Batch, Error as StoreError, Namespace, Store};
use kvssd_measure::Observer;
use kvssd_sim::trace::{InputBytes, decoded};
use kvssd_text::PairReader;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

/// Changes that are committed together, at most.
const BATCH_PAIRS: usize = 1024;
/// Bytes of keys and values that are committed together, about.
const BATCH_BYTES: usize = 1 << 20;
/// Pairs between two looks at the progress bar.
const PROGRESS_PAIRS: u64 = 512;

/// Stores the pairs of a file.
pub fn load(options: &LoadOptions) -> Outcome {
    let LoadOptions { image, file, format, sync, within } = options;
    let read = InputBytes::default();
    let (input, bytes) = open_input(file, &read)?;
    // An image that is not there yet is not made for what cannot be read.
    let (format, input) = Format::of_input(file, *format, input)?;
    let store = open_or_create(image, *sync, within)?;
    let watched = (!is_url(image)).then(|| Watched::open(image)).transpose()?;
    let into = namespace(&store, image, within)?;
    let mut progress = Progress::of_safe_work();
    progress.begin("bytes loaded", bytes);
    let value_bytes_max = store.stats().map_err(Failure::of_store(image))?.value_bytes_max;
    let mut pairs = format.reader(input, value_bytes_max);
    let told = || progress.progress(read.read());
    let loaded = load_all((&store, &into), [image, file], &mut pairs, told);
    drop(progress);
    // A wrong line takes nothing from those before it.
    let closed = store.close().map_err(Failure::of_store(image));
    let loaded = loaded?;
    closed?;
    watched.map_or(Ok(()), |watched| watched.check())?;
    note(&format!("{} loaded", counted(loaded as usize, "pair")));
    Ok(())
}

/// The bytes of a file or of the standard input, unpacked, and how many there are, if that is known. How far it was read goes into `read`.
fn open_input(file: &Path, read: &InputBytes) -> Result<(Box<dyn Read>, u64), Failure> {
    let cannot = |error: std::io::Error| Failure::of_input(file)(format!("cannot be read: {error}"));
    if is_dash(file) {
        return Ok((decoded(stdin().lock(), read).map_err(cannot)?, 0));
    }
    let input = File::open(file).map_err(cannot)?;
    let bytes = input.metadata().map_err(cannot)?.len();
    Ok((decoded(input, read).map_err(cannot)?, bytes))
}

fn load_all(
    (store, into): (&Store, &Namespace<'_>),
    [image, file]: [&Path; 2],
    pairs: &mut PairReader,
    mut told: impl FnMut(),
) -> Result<u64, Failure> {
    let mut loaded = 0;
    let mut is_at_end = false;
    let mut read: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while !is_at_end {
        read.clear();
        let mut bytes = 0;
        let mut wrong = None;
        while read.len() < BATCH_PAIRS && bytes < BATCH_BYTES && wrong.is_none() && !is_at_end {
            match pairs.next_pair() {
                Ok(Some((key, value))) => {
                    bytes += key.len() + value.len();
                    read.push((key, value));
                }
                Ok(None) => is_at_end = true,
                Err(why) => wrong = Some(Failure::of_input(file)(why)),
            }
        }
        let mut batch = Batch::new();
        read.iter().for_each(|(key, value)| _ = batch.store_in(into.id(), key, value));
        store.bulk(&batch).map_err(|error| {
            let behind = Behind { pairs: read.len() as u64, there: there(into, &read, &error) };
            Failure::Load { why: Box::new(Failure::of_store(image)(error)), loaded, behind }
        })?;
        loaded += read.len() as u64;
        told();
        if let Some(failure) = wrong {
            return Err(failure);
        }
    }
    Ok(loaded)
}

/// How many of the pairs of a batch are there though it failed, unless the drive cannot say so.
fn there(into: &Namespace<'_>, pairs: &[(Vec<u8>, Vec<u8>)], error: &StoreError) -> Option<u64> {
    // Who asks a drive that does not answer waits for it once more.
    if matches!(error, StoreError::Unreachable { .. } | StoreError::InDoubt { .. }) {
        return None;
    }
    let mut there = 0;
    let see = |number: usize, value: Option<Vec<u8>>| there += u64::from(value.as_ref() == Some(&pairs[number].1));
    into.retrieve_each(pairs.iter().map(|(key, _)| key.as_slice()), see).ok()?;
    Some(there)
}

/// Writes all pairs that can be read to a file.
pub fn dump(options: &DumpOptions) -> Outcome {
    let DumpOptions { image, file, format, within } = options;
    let format = Format::of(file, *format)?;
    let store = open_to_read(image)?;
    let mut progress = Progress::new();
    let from = namespace(&store, image, within)?;
    let pairs = from.info().map_err(Failure::of_store(image))?.utilization.pairs;
    progress.begin("pairs dumped", pairs);
    let mut lost = Lost::default();
    // What is written is kept, whatever is lost.
    write_to(file, |out| {
        let (mut writer, mut number) = (format.writer(out), 0);
        lost = each_pair(image, &store, &from, |key, value| {
            if progress.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            writer.write(key, value).map_err(Failure::of_output(file))?;
            number += 1;
            if number % PROGRESS_PAIRS == 0 {
                progress.progress(number);
            }
            Ok(())
        })?;
        writer.finish().map_err(Failure::of_output(file))
    })?;
    lost.told(image)
}
