//! What is chosen for a namespace when it is created, and its index as it is saved for mounts.

use kvssd_cache::CacheAttributes;
use serde::{Deserialize, Serialize};

/// Bytes that all attributes of a namespace may take: they are one note, which must fit into a page of the journal. An
/// estimate.
const ATTRIBUTES_BYTES_MAX: usize = 256;
/// Bytes of the longest name of a namespace. An estimate.
pub const NAME_BYTES_MAX: usize = 64;
/// The name under which a namespace's cache is saved, among the parameters of its index.
const CACHE: &str = "cache";
/// The name under which a namespace's birth is saved, among its chosen parameters. Nobody chooses an index by the parameters of an existing
/// namespace, so a program that knows no births ignores it.
const BIRTH: &str = "birth";

/// What is chosen of a namespace when it is made (KAML, section III: CreateNamespace).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceAttributes {
    /// What it is called, beside its number: 1 to [`NAME_BYTES_MAX`] bytes, another name than all others have.
    pub name: Option<String>,
    /// The index by the name of its plan, with the parameters of the first design that has one; none for the drive's own.
    pub index: Option<String>,
    /// Parameters of the index that differ from that design's, by name.
    pub parameters: Vec<(String, String)>,
    /// The most bytes of flash that its records may take; none, or 0, for as many as the drive has.
    pub quota_bytes: Option<u64>,
    /// How many of the targets' logs its records go to; none for all.
    pub logs: Option<u32>,
    /// Whether its keys must have an order.
    pub is_ordered: bool,
    /// The cache that it is, which never refuses a pair for lack of room; `None` for a namespace that keeps its pairs. The firmware only
    /// remembers this; the code that has the drive evicts pairs.
    #[serde(skip)]
    pub cache: Option<CacheAttributes>,
}

impl NamespaceAttributes {
    /// The drive's own index, no name and no bounds.
    pub const PLAIN: NamespaceAttributes = NamespaceAttributes {
        name: None,
        index: None,
        parameters: Vec::new(),
        quota_bytes: None,
        logs: None,
        is_ordered: false,
        cache: None,
    };

    /// Checks the length of the attributes, and the name: one that is a number would be taken for a namespace's number.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (chosen, _) = self.clone().split_birth();
        let bytes = postcard::to_allocvec(&chosen).map_err(|error| error.to_string())?.len();
        if bytes > ATTRIBUTES_BYTES_MAX {
            return Err(format!("its attributes take {bytes} bytes, and may take {ATTRIBUTES_BYTES_MAX}"));
        }
        if let Some(cache) = &self.cache {
            cache.check().map_err(|error| error.to_string())?;
        }
        let Some(name) = &self.name else { return Ok(()) };
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) || name.chars().any(char::is_control) {
            return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes and is one line, unlike {name:?}"));
        }
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("the name {name} would be taken for a number"));
        }
        Ok(())
    }

    /// Adds the birth of the namespace.
    pub(crate) fn with_birth(mut self, birth: u64) -> Self {
        self.parameters.push((BIRTH.to_owned(), birth.to_string()));
        self
    }

    /// Splits off the birth of the namespace; 0 if it is not known.
    pub(crate) fn split_birth(mut self) -> (Self, u64) {
        let at = self.parameters.iter().position(|(key, _)| key == BIRTH);
        let birth = at.and_then(|at| self.parameters.remove(at).1.parse().ok());
        (self, birth.unwrap_or(0))
    }
}

/// The index of a namespace with all its parameters. Attributes leave some choices to the program, and another program may
/// choose differently: so all of them are saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedKind {
    /// The name of its plan.
    pub name: String,
    /// All its parameters.
    pub parameters: Vec<(String, String)>,
    /// The exclusive upper bound of its tags. It follows from the parameters and the drive; a program that computes another
    /// bound would find nothing.
    pub tags: u64,
}

impl SavedKind {
    /// Adds the cache that the namespace is. It is saved among the parameters so that a program that knows no caches refuses the drive: it
    /// would take the stamp behind each value for a part of the value.
    #[must_use]
    pub(crate) fn with_cache(mut self, cache: Option<&CacheAttributes>) -> Self {
        self.parameters.extend(cache.map(|cache| (CACHE.to_owned(), cache.to_string())));
        self
    }

    /// Splits off the cache that the namespace is, if it is one.
    ///
    /// # Errors
    /// Why the saved text is no cache.
    pub(crate) fn split(&self) -> Result<(SavedKind, Option<CacheAttributes>), String> {
        let mut kind = self.clone();
        let at = kind.parameters.iter().position(|(key, _)| key == CACHE);
        let text = at.map(|at| kind.parameters.remove(at).1);
        Ok((kind, text.as_deref().map(read_cache).transpose()?))
    }
}

/// A cache as it is written down.
pub(crate) fn read_cache(text: &str) -> Result<CacheAttributes, String> {
    text.parse().map_err(|error: kvssd_cache::AttributesError| error.to_string())
}
