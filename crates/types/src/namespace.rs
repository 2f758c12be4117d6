//! Namespaces: key spaces of their own on one drive.

use crate::{Key, Value};
use std::fmt;

/// Names a namespace, as an NVMe NSID does: from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceId(pub u32);

impl NamespaceId {
    /// The one that every drive begins with.
    pub const FIRST: NamespaceId = NamespaceId(1);
}

impl fmt::Display for NamespaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One change of a batch.
#[derive(Clone, Debug)]
pub struct BatchChange<'a> {
    /// Whose key it is.
    pub namespace: NamespaceId,
    /// The key, which no other change of the batch in this namespace has.
    pub key: Key<'a>,
    /// What it is bound to; none when it is removed. That a key that is removed is not there is no error.
    pub value: Option<Value>,
}
