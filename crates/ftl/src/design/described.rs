//! A design as a table of names and values, from which it is built again: also by a program whose presets are others.
//!
//! ```text
//!   name, index, validity, layout, victims      what it is made of, by name
//!   and each parameter
//! ```

use crate::design::{DESIGNS, Design, DesignError, IndexChoice, ValidityKind};
use crate::packing::RecordLayout;
use crate::victims::VictimPolicy;
use std::collections::BTreeMap;

/// What a design is called of which this program has no preset.
const OTHER: (&str, &str) = ("other", "a design of which this program has no preset");

/// A table of names and values.
pub type DesignTable = BTreeMap<String, String>;

impl Design {
    /// All that it is, but for its out-of-band areas.
    #[must_use]
    pub fn table(&self) -> DesignTable {
        let parts = [
            ("name", self.name),
            ("index", self.index.plan().name()),
            ("validity", self.validity.name()),
            ("layout", self.layout.name()),
            ("victims", self.victims.name()),
        ];
        let parts = parts.into_iter().map(|(key, value)| (key, value.to_owned()));
        parts.chain(self.parameters()).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// What `table` says, all of it and nothing else: no part and no parameter is left to a preset.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] with what is missing, is not known or cannot be.
    pub fn from_table(mut table: DesignTable) -> Result<Design, DesignError> {
        let fail = |key: &str, why: String| DesignError::Parameter { key: key.to_owned(), why };
        let mut take = |key: &str| table.remove(key).ok_or_else(|| fail(key, "nothing is said of it".to_owned()));
        let (name, index, validity) = (take("name")?, take("index")?, take("validity")?);
        let (layout, victims) = (take("layout")?, take("victims")?);
        let (name, description) = match Design::all().find(|preset| preset.name == name && preset.takes_keys()) {
            Some(preset) => (preset.name, preset.description),
            None => OTHER,
        };
        let unknown = |key: &str, value: &str| fail(key, format!("this program knows no {value:?}"));
        // A part is the first of its name; all that can be chosen of it is set below.
        let index: IndexChoice = part(|design| design.index.clone(), |part| part.plan().name() == index)
            .ok_or_else(|| unknown("index", &index))?;
        let validity: ValidityKind = part(|design| design.validity, |part| part.name() == validity)
            .ok_or_else(|| unknown("validity", &validity))?;
        let layout: RecordLayout =
            part(|design| design.layout, |part| part.name() == layout).ok_or_else(|| unknown("layout", &layout))?;
        let victims: VictimPolicy =
            part(|design| design.victims, |part| part.name() == victims).ok_or_else(|| unknown("victims", &victims))?;
        let mut design = Design { name, description, index, validity, layout, victims, ..DESIGNS[0].clone() };
        for (key, _) in design.parameters() {
            let value = table.remove(key).ok_or_else(|| fail(key, "nothing is said of it".to_owned()))?;
            design.set(key, &value)?;
        }
        match table.keys().next() {
            Some(key) => Err(fail(key, "it is not known".to_owned())),
            None => Ok(design),
        }
    }
}

/// The first part of a preset that is the one that is wanted.
fn part<P>(of: impl Fn(&Design) -> P, is_wanted: impl Fn(&P) -> bool) -> Option<P> {
    Design::all().map(|design| of(&design)).find(is_wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_design_is_what_its_table_says_whatever_the_presets_are() {
        for preset in Design::all() {
            let table = preset.table();
            let mut read = Design::from_table(table.clone()).unwrap();
            if !preset.takes_keys() {
                // No image holds one.
                assert_eq!(read.name, OTHER.0);
                continue;
            }
            if read.index.plan().name() != "lsm" {
                // Who keeps no order has nothing to read ahead, and says nothing of it.
                read.iterators = preset.iterators;
            }
            assert_eq!(read, preset);
            let mut renamed = table.clone();
            renamed.insert("name".to_owned(), "a name of another program".to_owned());
            let renamed = Design::from_table(renamed).unwrap();
            assert_eq!((renamed.name, renamed.table().len()), (OTHER.0, table.len()));
            assert_eq!(renamed.index, preset.index);
            for key in table.keys() {
                let mut less = table.clone();
                less.remove(key);
                assert!(Design::from_table(less).unwrap_err().to_string().contains(key.as_str()), "{key}");
                let mut other = table.clone();
                other.insert(key.clone(), "cabbages".to_owned());
                assert!(key == "name" || Design::from_table(other).is_err(), "{key}");
            }
        }
    }
}
