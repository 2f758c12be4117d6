//! LMCache's recordings of its storage manager (0.5.6, `lmcache/v1/mp_observability/trace`): frames of MessagePack, each behind its length.
//!
//! ```text
//!   [u32 length, high end first] {"type": "header", "magic": "LMCT", "format_version": 1, "level": "storage", ...}
//!   [u32 length]                 {"type": "record", "t_mono": seconds, "qualname": "...StorageManager.reserve_write", "args": {...}}
//! ```
//!
//! | call | becomes |
//! |---|---|
//! | `submit_prefetch_task` | a [`Action::Get`] of each key: what is missing is stored by calls of its own |
//! | `reserve_write` | an [`Action::Add`] of each key, as large as its layout says |
//! | everything else | nothing: it ends what these began |
//!
//! A key is the hash of its chunk, the rank, the group and the model, and its stream is the model's.

use super::super::fields::BadRecord;
use super::super::{Action, Framing, Request, Requests, TraceFormat};
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8] = b"LMCT";
const LENGTH_BYTES: usize = 4;
/// The longest frame: some ten thousand keys, and no more than the reader holds at a time. An estimate.
const FRAME_BYTES_MAX: usize = 1 << 20;
const CALLS: &str = "lmcache.v1.distributed.storage_manager.StorageManager.";

/// LMCache's recordings.
#[derive(Clone, Debug, Default)]
pub(in crate::trace) struct LmCache {
    /// The bytes of the frame that comes, behind its length.
    frame_bytes: Option<usize>,
    has_header: bool,
    key: Vec<u8>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    magic: &'a [u8],
    #[serde(default)]
    format_version: u64,
    #[serde(borrow, default)]
    level: &'a str,
    #[serde(default)]
    t_mono: f64,
    #[serde(borrow, default)]
    qualname: &'a str,
    #[serde(borrow, default)]
    args: Arguments<'a>,
}

#[derive(Default, Deserialize)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    keys: Vec<Wrapped<ObjectKey<'a>>>,
    #[serde(borrow, default)]
    layout_desc: Option<Wrapped<Layout<'a>>>,
    #[serde(borrow, default)]
    spec: Option<Wrapped<Task<'a>>>,
}

/// A value with its type's name beside it.
#[derive(Deserialize)]
struct Wrapped<T> {
    v: T,
}

#[derive(Deserialize)]
struct ObjectKey<'a> {
    #[serde(borrow)]
    chunk_hash: &'a [u8],
    #[serde(borrow)]
    model_name: &'a str,
    kv_rank: u64,
    #[serde(default)]
    object_group_id: u32,
}

#[derive(Deserialize)]
struct Layout<'a> {
    shapes: Vec<Vec<u64>>,
    #[serde(borrow)]
    dtypes: Vec<&'a str>,
}

#[derive(Deserialize)]
struct Task<'a> {
    #[serde(borrow)]
    key_groups: Vec<Wrapped<Group<'a>>>,
}

#[derive(Deserialize)]
struct Group<'a> {
    #[serde(borrow)]
    keys: Vec<Wrapped<ObjectKey<'a>>>,
}

impl Layout<'_> {
    /// The bytes of its tensors.
    fn bytes(&self) -> Option<u64> {
        let tensors = self.shapes.iter().zip(&self.dtypes);
        tensors
            .map(|(shape, dtype)| shape.iter().try_fold(element_bytes(dtype)?, |bytes, &side| bytes.checked_mul(side)))
            .try_fold(0u64, |sum, bytes| sum.checked_add(bytes?))
    }
}

/// Bytes of an element of a tensor, by PyTorch's name of its type.
fn element_bytes(dtype: &str) -> Option<u64> {
    Some(match dtype.strip_prefix("torch.")? {
        "float64" | "int64" | "uint64" | "double" | "long" => 8,
        "float32" | "int32" | "uint32" | "float" | "int" => 4,
        "float16" | "bfloat16" | "int16" | "uint16" | "half" | "short" => 2,
        "int8" | "uint8" | "bool" => 1,
        eight if eight.starts_with("float8_") => 1,
        _ => return None,
    })
}

impl LmCache {
    /// Whether a file begins as these do.
    pub(in crate::trace) fn is_begun(sample: &[u8]) -> bool {
        let first = sample.get(LENGTH_BYTES..).unwrap_or_default();
        first.get(..64).unwrap_or(first).windows(MAGIC.len()).any(|bytes| bytes == MAGIC)
    }

    fn frame(&mut self, bytes: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let frame: Frame<'_> =
            rmp_serde::from_slice(bytes).map_err(|_| BadRecord::new("the frame", "is none of LMCache's"))?;
        if !self.has_header {
            let is_ours = frame.magic == MAGIC && frame.format_version == 1 && frame.level == "storage";
            let why = "is none of LMCache's level \"storage\", format 1";
            self.has_header = is_ours;
            return if is_ours {
                Ok(())
            } else {
                Err(BadRecord { is_fatal: true, ..BadRecord::new("the header", why) })
            };
        }
        let seconds = frame.t_mono;
        if !(0.0..1e9).contains(&seconds) {
            return Err(BadRecord::number("t_mono"));
        }
        let at_ns = Some((seconds * 1e9) as u64);
        match frame.qualname.strip_prefix(CALLS) {
            Some("reserve_write") => {
                let layout = frame.args.layout_desc.ok_or(BadRecord::new("layout_desc", "is not there"))?.v;
                let bytes = layout.bytes().ok_or(BadRecord::new("layout_desc", "has a type that is not known"))?;
                let request = Request { at_ns, ..Request::new(Action::Add, bytes) };
                frame.args.keys.iter().for_each(|key| self.push(&key.v, &request, requests));
            }
            Some("submit_prefetch_task") => {
                let task = frame.args.spec.ok_or(BadRecord::new("spec", "is not there"))?.v;
                let request = Request { at_ns, ..Request::new(Action::Get, 0) };
                let keys = task.key_groups.iter().flat_map(|group| &group.v.keys);
                keys.for_each(|key| self.push(&key.v, &request, requests));
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, key: &ObjectKey<'_>, request: &Request, requests: &mut Requests) {
        self.key.clear();
        self.key.extend_from_slice(key.chunk_hash);
        self.key.extend_from_slice(&key.kv_rank.to_be_bytes());
        self.key.extend_from_slice(&key.object_group_id.to_be_bytes());
        self.key.extend_from_slice(key.model_name.as_bytes());
        requests.push(&self.key, 0, Request { stream: Some(xxh3_64(key.model_name.as_bytes())), ..request.clone() });
    }
}

impl TraceFormat for LmCache {
    fn framing(&self) -> Framing {
        Framing::Records(self.frame_bytes.unwrap_or(LENGTH_BYTES))
    }

    fn tick_ns(&self) -> u64 {
        1
    }

    fn parse(&mut self, piece: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let Some(frame_bytes) = self.frame_bytes.take() else {
            let cut = BadRecord::new("the frame", "has no length: the file is cut");
            let length = u32::from_be_bytes(piece.try_into().map_err(|_| cut)?) as usize;
            if !(1..=FRAME_BYTES_MAX).contains(&length) {
                // Where the next one begins nobody knows.
                return Err(BadRecord { is_fatal: true, ..BadRecord::new("the frame", "is of no length that can be") });
            }
            self.frame_bytes = Some(length);
            return Ok(());
        };
        if piece.len() < frame_bytes {
            return Err(BadRecord::new("the frame", "has too few bytes: the file is cut"));
        }
        self.frame(piece, requests)
    }
}
