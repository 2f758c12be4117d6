//! What a trace asks for.

use kvssd_types::{KEY_BYTES_MAX, Key, named_enum};
use std::fmt::Write as _;
use std::ops::Range;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// What short keys are filled up with.
const FILL: u8 = b'.';

/// The length of a key that stands for one too long: 128 bits in hexadecimal.
const HASHED_KEY_BYTES: usize = 32;

named_enum! {
    /// What is to be done with a key. A command each, if nothing else is said.
    pub enum Action: "action" {
        /// Retrieve. A miss is counted, and nothing is stored: whoever wrote the trace wrote the store that followed, too.
        Get = "get",
        /// Retrieve, and store when it is not there: for traces that do not say what was stored.
        Fetch = "fetch",
        /// Exist, then retrieve when it is there, store when not.
        Probe = "probe",
        /// Store.
        Set = "set",
        /// Store if it is absent.
        Add = "add",
        /// Store if it is there.
        Replace = "replace",
        /// Retrieve, then store a value that is longer by the request's size (append, prepend). Nothing when it is not there.
        Grow = "grow",
        /// Retrieve, then store a value of the same size (incr, decr). Nothing when it is not there.
        Touch = "touch",
        /// Delete.
        Delete = "delete",
        /// Exist.
        Exist = "exist",
    }
}

impl Action {
    /// The action of a cache's command, in small letters: memcached's, and those that other stores call alike.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Action> {
        Some(match name {
            b"get" | b"gets" | b"read" | b"retrieve" => Action::Get,
            b"set" | b"put" | b"write" | b"store" | b"update" | b"insert" => Action::Set,
            b"add" => Action::Add,
            // Whether the token of a compare-and-swap was right is in no trace: it is taken to be.
            b"replace" | b"cas" => Action::Replace,
            b"append" | b"prepend" => Action::Grow,
            b"incr" | b"decr" => Action::Touch,
            b"delete" | b"remove" => Action::Delete,
            b"exist" | b"exists" | b"head" => Action::Exist,
            b"fetch" => Action::Fetch,
            _ => return None,
        })
    }
}

/// A block of several that are asked for together, and in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number, from 0 on.
    pub number: u32,
    /// How many they are.
    pub of: u32,
}

/// One request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub action: Action,
    /// The size of the value in bytes as the trace has it, 0 where it has none.
    pub value_bytes: u64,
    /// The part of the value that is wanted: the first byte and the number of bytes.
    pub part: Option<(u64, u64)>,
    /// When, in nanoseconds from some beginning.
    pub at_ns: Option<u64>,
    /// How often, at least once.
    pub times: u32,
    /// How long the pair that is stored lives, in nanoseconds; none where the trace does not say, or says for ever.
    pub ttl_ns: Option<u64>,
    /// Whose it is, as a number for each: pairs of one stream die together, as far as the trace knows.
    pub stream: Option<u64>,
    /// Where it stands among the blocks of an LLM's request.
    pub block: Option<Block>,
    pub(super) key: Range<usize>,
    pub(super) hash: u64,
    pub(super) is_hashed: bool,
}

impl Request {
    /// A request for a whole value, once, without a time; its key comes with [`Requests::push`].
    #[must_use]
    pub fn new(action: Action, value_bytes: u64) -> Self {
        Request {
            action,
            value_bytes,
            part: None,
            at_ns: None,
            times: 1,
            ttl_ns: None,
            stream: None,
            block: None,
            key: 0..0,
            hash: 0,
            is_hashed: false,
        }
    }

    /// The hash that tells keys apart.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether the key stands for one that no drive takes.
    #[must_use]
    pub fn is_key_hashed(&self) -> bool {
        self.is_hashed
    }
}

/// Requests and their keys, in two vectors that are used again: reading allocates nothing once they have grown.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    list: Vec<Request>,
    keys: Vec<u8>,
    digits: String,
}

impl Requests {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Requests::default()
    }

    /// Adds a request for `key`, which was `key_bytes` long (see the module for what becomes of keys).
    pub fn push(&mut self, key: &[u8], key_bytes: u64, mut request: Request) {
        let start = self.keys.len();
        request.is_hashed = !(1..=KEY_BYTES_MAX).contains(&key.len());
        if request.is_hashed {
            self.digits.clear();
            write!(self.digits, "{:0width$x}", xxh3_128(key), width = HASHED_KEY_BYTES)
                .expect("a string takes everything");
            self.keys.extend_from_slice(self.digits.as_bytes());
        } else {
            self.keys.extend_from_slice(key);
            let length = key.len().max(key_bytes.min(KEY_BYTES_MAX as u64) as usize);
            self.keys.resize(start + length, FILL);
        }
        request.key = start..self.keys.len();
        request.hash = xxh3_64(&self.keys[start..]);
        self.list.push(request);
    }

    /// The requests, in the order in which they came.
    #[must_use]
    pub fn list(&self) -> &[Request] {
        &self.list
    }

    /// The key of one of these requests.
    #[must_use]
    pub fn key(&self, request: &Request) -> Key<'_> {
        Key::new(&self.keys[request.key.clone()]).expect("push makes keys that drives take")
    }

    /// Has all of them come so much later; none if that is later than time goes.
    pub(crate) fn delay(&mut self, by_ns: u64) -> Option<()> {
        let mut times = self.list.iter_mut().filter_map(|request| request.at_ns.as_mut());
        times.try_for_each(|at_ns| {
            *at_ns = at_ns.checked_add(by_ns)?;
            Some(())
        })
    }

    /// The number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets all requests, and keeps the room.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Forgets all requests but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.list.truncate(len);
        self.keys.truncate(self.list.last().map_or(0, |request| request.key.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_filled_up_or_hashed() {
        let mut requests = Requests::new();
        let long = vec![b'k'; 256];
        for (key, key_bytes) in [(&b"abc"[..], 5), (b"abc", 2), (b"abc", 1 << 40), (b"", 3), (&long, 256)] {
            requests.push(key, key_bytes, Request::new(Action::Get, 0));
        }
        let keys: Vec<&[u8]> = requests.list().iter().map(|request| requests.key(request).bytes()).collect();
        assert_eq!(&keys[..2], [&b"abc.."[..], b"abc"]);
        assert_eq!((keys[2].len(), keys[3].len(), keys[4].len()), (255, 32, 32));
        let hashed: Vec<bool> = requests.list().iter().map(Request::is_key_hashed).collect();
        assert_eq!(hashed, [false, false, false, true, true]);
    }

    #[test]
    fn what_is_taken_back_leaves_the_rest() {
        let mut requests = Requests::new();
        for key in [b"a", b"b", b"c"] {
            requests.push(key, 1, Request::new(Action::Set, 1));
        }
        requests.truncate(1);
        requests.push(b"d", 1, Request::new(Action::Set, 1));
        let keys: Vec<&[u8]> = requests.list().iter().map(|request| requests.key(request).bytes()).collect();
        assert_eq!(keys, [b"a", b"d"]);
    }
}
