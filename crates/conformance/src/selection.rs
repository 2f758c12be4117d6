//! Which designs a test is to run: all that come along, or those of the environment variable `DESIGN`.

use kvssd_designs::DESIGNS;
use kvssd_ftl::Design;
use std::env;

/// Names of designs with commas between them.
const DESIGN: &str = "DESIGN";

/// The designs that come along and that `DESIGN` names, or all of them where it is not set.
///
/// # Panics
/// When it names a design that there is not.
#[must_use]
pub fn selected() -> Vec<Design> {
    let Some(names) = names_in(DESIGN) else { return DESIGNS.to_vec() };
    let named = |name: &String| kvssd_designs::named(name).unwrap_or_else(|error| panic!("{DESIGN}={name}: {error}"));
    names.iter().map(named).filter(Design::takes_keys).collect()
}

/// The names in an environment variable, with commas between them. None where it is not set.
pub(crate) fn names_in(variable: &str) -> Option<Vec<String>> {
    let names = env::var(variable).ok()?;
    Some(names.split(',').map(|name| name.trim().to_owned()).collect())
}

/// Whether [`selected`] has the design of that name.
#[must_use]
pub fn is_selected(name: &str) -> bool {
    selected().iter().any(|design| design.name == name)
}
