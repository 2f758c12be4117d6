//! A design as a table of names and values, from which it is built again: also by a program whose presets are others.
//!
//! ```text
//!   name, index, validity, layout, victims      what it is made of, by name
//!   and each parameter
//! ```

use crate::design::{Design, DesignError};
use crate::iterators::{IteratorPlan, PrefetchDegree};
use crate::layout::packing::RecordLayout;
use crate::space::victims::VictimChoice;
use std::collections::BTreeMap;

/// What a design is called of which this program has no preset.
const OTHER: (&str, &str) = ("other", "a design of which this program has no preset");

/// What a parameter is where nothing is said of it, since it came later than the first tables.
fn later(key: &str) -> Option<&'static str> {
    match key {
        "stores_behind_max" | "gathered_blocks_max" => Some("0"),
        "gc_victims_max" => Some("1"),
        "gc_pace" => Some("room"),
        "compares_later" => Some("false"),
        _ => None,
    }
}

/// A table of names and values.
pub type DesignTable = BTreeMap<String, String>;

impl Design {
    /// All that it is, except for its out-of-band areas.
    #[must_use]
    pub fn table(&self) -> DesignTable {
        let parts = [
            ("name", self.name),
            ("index", self.index.plan().name()),
            ("validity", self.validity.name()),
            ("layout", self.layout.name()),
            ("victims", self.victims.policy().name()),
        ];
        let parts = parts.into_iter().map(|(key, value)| (key, value.to_owned()));
        let parameters = self.parameters().into_iter().filter(|(key, value)| later(key) != Some(value.as_str()));
        parts.chain(parameters).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// What a table says of a parameter, if only because it came later than the table.
    #[must_use]
    pub fn value_in<'t>(table: &'t DesignTable, key: &str) -> Option<&'t str> {
        table.get(key).map(String::as_str).or(later(key))
    }

    /// What `table` says, made of parts of the `known` designs: no part and no parameter is left to what one of them
    /// would choose.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] with what is missing, is not known or cannot be.
    pub fn from_table(mut table: DesignTable, known: &[Design]) -> Result<Design, DesignError> {
        let fail = |key: &str, why: String| DesignError::Parameter { key: key.to_owned(), why };
        let mut take = |key: &str| table.remove(key).ok_or_else(|| fail(key, "nothing is said of it".to_owned()));
        let (name, index, validity) = (take("name")?, take("index")?, take("validity")?);
        let (layout, victims) = (take("layout")?, take("victims")?);
        // A part is that of the first who has one of its name; all that can be chosen of it is set below.
        let first = |key: &str, name: &str, of: fn(&Design) -> &'static str| {
            let missing = || fail(key, format!("this program knows no {name:?}"));
            known.iter().find(|design| of(design) == name).ok_or_else(missing)
        };
        let of_index = first("index", &index, |design| design.index.plan().name())?;
        let of_validity = first("validity", &validity, |design| design.validity.name())?;
        // A layout without parameters may be one that no design has any more.
        let of_layout = first("layout", &layout, |design| design.layout.name()).map(|of| of.layout);
        let layout = of_layout.or_else(|why| RecordLayout::of_grains(&layout).map_err(|_| why))?;
        let victims = VictimChoice::named(&victims, known.iter().map(|design| design.victims.clone()));
        let victims = victims.map_err(|why| fail("victims", why))?;
        // One that is not there is none; which it is, is set below.
        let mut any_plan = IteratorPlan { prefetch_degree: PrefetchDegree::Adaptive, ..IteratorPlan::NONE };
        let reads_ahead = any_plan.parameters().iter().any(|(key, _)| table.contains_key(*key));
        let preset = known.iter().find(|preset| preset.name == name && preset.takes_keys());
        let (name, description) = preset.map_or(OTHER, |preset| (preset.name, preset.description));
        let mut design = Design {
            name,
            description,
            index: of_index.index.clone(),
            validity: of_validity.validity,
            layout,
            victims,
            indexes: preset.unwrap_or(of_index).indexes,
            iterators: if reads_ahead { any_plan } else { IteratorPlan::NONE },
            out_of_band: None,
            planted: None,
            // Its numbers are parameters.
            ..of_index.clone()
        };
        for (key, _) in design.parameters() {
            let value = Design::value_in(&table, key).ok_or_else(|| fail(key, "nothing is said of it".to_owned()))?;
            design.set(key, value)?;
            table.remove(key);
        }
        match table.keys().next() {
            Some(key) => Err(fail(key, "it is not known".to_owned())),
            None => Ok(design),
        }
    }
}
