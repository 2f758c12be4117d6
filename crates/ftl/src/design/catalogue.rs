//! The indexes that the namespaces of a drive may choose.

use crate::design::IndexChoice;
use std::fmt;

/// The indexes that the namespaces of a drive may choose, beside the drive's own. A design brings it along: the
/// firmware knows no index by itself.
pub trait IndexCatalogue: fmt::Debug + Send + Sync {
    /// The out-of-band areas of a new drive have room for the tags of these, where they can. Bytes of drives follow
    /// from it: it is the same in every program.
    fn reserved(&self) -> Vec<IndexChoice>;

    /// All of them. Of several with one name the first is meant.
    fn all(&self) -> Vec<IndexChoice> {
        self.reserved()
    }

    /// What a namespace gets that is to keep keys in order and names no index; the first of all that does so, where none is said.
    fn ordered(&self) -> Option<IndexChoice> {
        None
    }
}

/// The same drives come of both.
impl PartialEq for dyn IndexCatalogue {
    fn eq(&self, other: &Self) -> bool {
        self.reserved() == other.reserved()
    }
}

impl Eq for dyn IndexCatalogue {}

/// Every namespace has the drive's own index.
#[derive(Clone, Copy, Debug)]
pub struct OwnIndex;

impl IndexCatalogue for OwnIndex {
    fn reserved(&self) -> Vec<IndexChoice> {
        Vec::new()
    }
}
