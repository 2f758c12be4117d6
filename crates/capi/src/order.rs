//! Orders of keys.

use kvssd_host::NamespaceInfo;

/// What the name of a namespace ends with whose keys are met from the greatest to the least.
pub(crate) const DESCENDING: &str = " (descending)";

/// In which order iterators meet keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    None,
    Ascending,
    Descending,
}

impl Order {
    pub(crate) fn of(info: &NamespaceInfo) -> Order {
        let is_descending = || info.attributes.name.as_ref().is_some_and(|name| name.ends_with(DESCENDING));
        match info.is_ordered {
            false => Order::None,
            true if is_descending() => Order::Descending,
            true => Order::Ascending,
        }
    }
}
