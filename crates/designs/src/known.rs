//! The designs that a program knows: those of the papers, and those that were added.

mod presets;

use self::presets::ORDERED;
pub use self::presets::{BLOCK, DESIGNS, ITER, KAML, MULTILEVEL, ORIGINAL, PINK, PLUS, RHIK, TESSERA};
use kvssd_ftl::{Design, DesignError, DesignTable, IndexCatalogue, IndexChoice, VictimChoice};
use std::sync::{PoisonError, RwLock};

/// What was added. It only grows, and no result depends on it but by the names that are asked for.
static ADDED: RwLock<Vec<Design>> = RwLock::new(Vec::new());

/// Adds a design of one's own: from now on it is found by its name, and by the name of its index in images.
///
/// # Errors
/// [`DesignError::Parameter`] when there is another design, index or policy of that name, it is none for a command line, or two parts of the
/// design have parameters of one name.
pub fn add(design: Design) -> Result<(), DesignError> {
    let is_of_names = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if design.name.is_empty() || design.name == "all" || !design.name.chars().all(is_of_names) {
        let why = format!("a design is called by letters, digits, -, _ and . alone, and not all: {:?}", design.name);
        return Err(DesignError::Parameter { key: "name".to_owned(), why });
    }
    design.check_names()?;
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let known: Vec<Design> = DESIGNS.into_iter().chain([BLOCK]).chain(added.iter().cloned()).collect();
    if known.contains(&design) {
        return Ok(());
    }
    if let Some((part, name)) = taken(&design, &known) {
        let why = format!("there is another {part} called {name:?} already");
        return Err(DesignError::Parameter { key: "name".to_owned(), why });
    }
    added.push(design);
    Ok(())
}

/// What of a design has a name that another has: what it is, and that name.
fn taken(design: &Design, known: &[Design]) -> Option<(&'static str, &'static str)> {
    let (index, policy) = (design.index.plan().name(), design.victims.policy().name());
    let mut policies = known.iter().map(|known| known.victims.clone()).chain(VictimChoice::ALL);
    if known.iter().any(|known| known.name == design.name) {
        Some(("design", design.name))
    } else if known.iter().any(|known| known.index.is_namesake(&design.index)) {
        Some(("index", index))
    } else {
        policies.any(|known| known.is_namesake(&design.victims)).then_some(("policy of victims", policy))
    }
}

/// [`DESIGNS`], [`BLOCK`], and what was added.
#[must_use]
pub fn all() -> Vec<Design> {
    DESIGNS.into_iter().chain([BLOCK]).chain(added()).collect()
}

/// What was added.
#[must_use]
pub fn added() -> Vec<Design> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The names of the indexes of all designs that take keys.
#[must_use]
pub fn indexes() -> Vec<&'static str> {
    let mut names: Vec<_> =
        all().iter().filter(|design| design.takes_keys()).map(|design| design.index.plan().name()).collect();
    names.dedup();
    names
}

/// The design called `name`.
///
/// # Errors
/// [`DesignError::Unknown`] when there is none.
pub fn named(name: &str) -> Result<Design, DesignError> {
    let mut known = all();
    let names: Vec<&str> = known.iter().map(|design| design.name).collect();
    match names.iter().position(|known| *known == name) {
        Some(position) => Ok(known.swap_remove(position)),
        None => Err(DesignError::Unknown { name: name.to_owned(), known: names.join(", ") }),
    }
}

/// The design that `table` describes: see [`Design::from_table`].
///
/// # Errors
/// As [`Design::from_table`].
pub fn from_table(table: DesignTable) -> Result<Design, DesignError> {
    Design::from_table(table, &all())
}

/// The indexes of the designs that take keys. Those that were added get no room in out-of-band areas beforehand: what a
/// drive looks like depends on its design alone.
#[derive(Clone, Copy, Debug)]
pub struct Known;

impl IndexCatalogue for Known {
    fn reserved(&self) -> Vec<IndexChoice> {
        DESIGNS.into_iter().map(|design| design.index).collect()
    }

    fn all(&self) -> Vec<IndexChoice> {
        all().into_iter().filter(Design::takes_keys).map(|design| design.index).collect()
    }

    fn victims(&self) -> Vec<VictimChoice> {
        all().into_iter().map(|design| design.victims).collect()
    }

    fn ordered(&self) -> Option<IndexChoice> {
        Some(ORDERED)
    }
}
