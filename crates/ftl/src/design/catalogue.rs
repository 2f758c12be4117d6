//! The indexes that the namespaces of a drive may choose, and the policies that a design may.

use crate::design::IndexChoice;
use crate::space::victims::VictimChoice;
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

    /// The policies of victims that a design may be [set](crate::Design::set) to, beside its own and those that come with the firmware.
    fn victims(&self) -> Vec<VictimChoice> {
        Vec::new()
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
