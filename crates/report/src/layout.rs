//! How axes become plots: one gives colours, one is along a plot, and every value of the others gives plots of its own.
//!
//! ```text
//!   design = original, plus     value-bytes = 250, 500, 1000      nand.erase_ns = 3800000, 5000000
//!            colours                          along a plot                        two panels
//! ```

use crate::palette::SERIES;
use crate::study::{Axis, Group, ROW, Study};

/// The plots of a study.
pub struct Layout<'a> {
    study: &'a Study,
    /// The axis that gives colours.
    pub colour: Option<usize>,
    /// The axis that is along a plot.
    pub along: Option<usize>,
}

/// Groups that are shown together: they have the same value on every axis that gives panels.
pub struct Panel<'a> {
    /// Axes and the numbers of their values.
    pub at: Vec<(usize, usize)>,
    /// In words.
    pub name: String,
    pub groups: Vec<&'a Group>,
}

impl<'a> Layout<'a> {
    /// Designs give the colours if there are several; else names, else what there is. Numbers are along a plot rather than names.
    pub fn of(study: &'a Study) -> Layout<'a> {
        let axes: Vec<(usize, &Axis)> = study.axes.iter().enumerate().collect();
        let is_number = |axis: &Axis| axis.numbers().is_some();
        let has_colours = |axis: &Axis| axis.values.len() <= SERIES.len();
        let first = |is_meant: &dyn Fn(usize, &Axis) -> bool| {
            axes.iter().find(|(number, axis)| is_meant(*number, axis)).map(|(number, _)| *number)
        };
        let colour = first(&|_, axis| axis.name == "design" && has_colours(axis))
            .or_else(|| first(&|_, axis| !is_number(axis) && has_colours(axis)))
            .or_else(|| first(&|_, axis| has_colours(axis)).filter(|_| axes.len() > 1));
        let is_other = |number: usize| Some(number) != colour;
        let along =
            first(&|number, axis| is_other(number) && is_number(axis)).or_else(|| first(&|number, _| is_other(number)));
        Layout { study, colour, along }
    }

    /// The panels of plots along an axis.
    pub fn panels(&self) -> Vec<Panel<'a>> {
        self.panels_but(&[self.colour, self.along])
    }

    /// The panels of plots that have colours alone: a CDF for each value along the axis, too.
    pub fn narrow_panels(&self) -> Vec<Panel<'a>> {
        self.panels_but(&[self.colour])
    }

    /// The axes of a heat map, along its rows and its columns: `row` and `design`, else the names with the most values. None where fewer
    /// than two axes have names.
    pub fn map_axes(&self) -> Option<(usize, usize)> {
        let axes = &self.study.axes;
        let names = || (0..axes.len()).filter(|axis| axes[*axis].numbers().is_none());
        let most = |but: &dyn Fn(usize) -> bool| {
            names().rev().filter(|axis| !but(*axis)).max_by_key(|axis| axes[*axis].values.len())
        };
        let called = |name: &str| names().find(|axis| axes[*axis].name == name);
        let rows = called(ROW).or_else(|| most(&|axis| axes[axis].name == "design"))?;
        let columns = called("design").or_else(|| most(&|axis| axis == rows))?;
        Some((rows, columns))
    }

    /// Panels in which these axes are shown, one for each combination of values of the others.
    pub fn panels_but(&self, shown: &[Option<usize>]) -> Vec<Panel<'a>> {
        let axes: Vec<usize> = (0..self.study.axes.len()).filter(|axis| !shown.contains(&Some(*axis))).collect();
        let mut panels: Vec<Panel<'a>> = Vec::new();
        for group in &self.study.groups {
            let at: Vec<(usize, usize)> = axes.iter().map(|axis| (*axis, group.at[*axis])).collect();
            match panels.iter_mut().find(|panel| panel.at == at) {
                Some(panel) => panel.groups.push(group),
                None => panels.push(Panel { name: self.in_words(&at), at, groups: vec![group] }),
            }
        }
        panels.sort_by(|a, b| a.at.cmp(&b.at));
        panels
    }

    fn in_words(&self, at: &[(usize, usize)]) -> String {
        let axis = |number: usize| &self.study.axes[number];
        // An axis of pairs has several names, and as many values at each place.
        let words = |&(number, value): &(usize, usize)| {
            let (names, values) = (&axis(number).name, &axis(number).values[value]);
            let pairs = names.split(", ").zip(values.split(", ")).map(|(name, value)| format!("{name} {value}"));
            match names.split(", ").count() == values.split(", ").count() {
                true => pairs.collect::<Vec<_>>().join(", "),
                false => format!("{names} {values}"),
            }
        };
        at.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    /// The number and the name of a group's colour.
    pub fn colour_of(&self, group: &Group) -> (usize, String) {
        let colour = self.colour.map(|axis| (group.at[axis], self.study.axes[axis].values[group.at[axis]].clone()));
        colour.unwrap_or((0, "all".to_owned()))
    }

    /// The axis along a plot, and the number of a group's value there.
    pub fn along_of(&self, group: &Group) -> Option<(&'a Axis, usize)> {
        self.along.map(|axis| (&self.study.axes[axis], group.at[axis]))
    }

    /// What a group is called where it is beside others of its panel.
    pub fn name_in_panel(&self, group: &Group) -> String {
        let along = self.along_of(group).map(|(axis, number)| axis.values[number].clone());
        let colour = self.colour.map(|_| self.colour_of(group).1);
        let names: Vec<String> = along.into_iter().chain(colour).collect();
        if names.is_empty() { "all".to_owned() } else { names.join(", ") }
    }

    /// Where a group is, in words.
    pub fn place_of(&self, group: &Group) -> String {
        let values = self.study.axes.iter().zip(&group.at).map(|(axis, value)| axis.values[*value].as_str());
        values.collect::<Vec<_>>().join(", ")
    }
}
