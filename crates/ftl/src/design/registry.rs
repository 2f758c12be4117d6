//! The designs that a program knows: those that come with it, and those that were added.

use crate::design::{BLOCK, DESIGNS, Design, DesignError};
use std::sync::{PoisonError, RwLock};

/// What was added. It only grows, and no result depends on it but by the names that are asked for.
static ADDED: RwLock<Vec<Design>> = RwLock::new(Vec::new());

impl Design {
    /// Adds a design of one's own: from now on it is found by its name, and by the name of its index in images.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] when there is another design of that name.
    pub fn add(design: Design) -> Result<(), DesignError> {
        let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
        let presets = DESIGNS.into_iter().chain([BLOCK]);
        if let Some(known) = presets.chain(added.iter().cloned()).find(|known| known.name == design.name) {
            let why = format!("there is a design {:?} already", design.name);
            let fail = DesignError::Parameter { key: "name".to_owned(), why };
            return if known == design { Ok(()) } else { Err(fail) };
        }
        added.push(design);
        Ok(())
    }

    /// [`DESIGNS`], [`BLOCK`], and what was added.
    pub fn all() -> impl Iterator<Item = Design> {
        let added = ADDED.read().unwrap_or_else(PoisonError::into_inner).clone();
        DESIGNS.into_iter().chain([BLOCK]).chain(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_design() {
        let own = Design { name: "a design of one's own", ..DESIGNS[1].clone() };
        assert_eq!([Design::add(own.clone()), Design::add(own.clone())], [Ok(()), Ok(())]);
        assert!(Design::all().any(|design| design == own));
        for known in DESIGNS.into_iter().chain([BLOCK, own]) {
            assert_eq!(Design::add(known.clone()), Ok(()), "it is there already");
            let other = Design { grain_bytes: known.grain_bytes * 2, ..known.clone() };
            let why = Design::add(other).unwrap_err().to_string();
            assert!(why.contains("name") && why.contains(&format!("{:?}", known.name)), "{why}");
            let found: Vec<Design> = Design::all().filter(|design| design.name == known.name).collect();
            assert_eq!(found, [known]);
        }
    }
}
