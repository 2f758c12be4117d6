//! A chart: marks on two scales, and the data that they show.

use crate::palette::Colour;
use crate::scale::Scale;
use serde::Serialize;

#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    /// What is to be said of it, below.
    pub about: String,
    /// The number of the value that it is of, for each axis that gives plots of their own.
    pub at: Vec<(usize, usize)>,
    /// Whether its colours are the values of an axis, which can be chosen.
    pub is_coloured: bool,
    pub x: Scale,
    pub y: Scale,
    pub legend: Vec<Entry>,
    pub marks: Vec<Mark>,
    pub data: Data,
}

/// What a colour stands for.
#[derive(Clone, Debug)]
pub struct Entry {
    pub colour: Colour,
    /// Whether its marks are frames and rings.
    pub is_hollow: bool,
    pub name: String,
}

impl Entry {
    /// Of marks that are filled.
    pub fn filled(colour: Colour, name: String) -> Entry {
        Entry { colour, is_hollow: false, name }
    }
}

/// What is drawn, at places of the scales.
#[derive(Clone, Debug)]
pub enum Mark {
    Line {
        colour: Colour,
        points: Vec<(f64, f64)>,
    },
    Dot {
        colour: Colour,
        at: (f64, f64),
    },
    /// A hollow dot.
    Ring {
        colour: Colour,
        at: (f64, f64),
    },
    /// From one end to the other, along an axis.
    Interval {
        colour: Colour,
        from: (f64, f64),
        to: (f64, f64),
    },
    /// Two corners.
    Bar {
        colour: Colour,
        from: (f64, f64),
        to: (f64, f64),
    },
    /// A hollow bar.
    Frame {
        colour: Colour,
        from: (f64, f64),
        to: (f64, f64),
    },
}

/// Rows of as many cells as there are names.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Data {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Data {
    pub fn new<const N: usize>(names: [&str; N]) -> Data {
        Data { names: names.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub fn add<const N: usize>(&mut self, row: [String; N]) {
        assert_eq!(N, self.names.len());
        self.rows.push(row.into());
    }

    /// As CSV (RFC 4180, with ends of lines as Unix has them).
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(&self.names).chain(&self.rows) {
            writer.write_record(row).expect("rows are as long as the first, and memory takes them");
        }
        let bytes = writer.into_inner().expect("memory takes them");
        String::from_utf8(bytes).expect("cells are text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut data = Data::new(["design", "p99_ns"]);
        data.add(["a \"b\", c".to_owned(), "7".to_owned()]);
        assert_eq!(data.csv(), "design,p99_ns\n\"a \"\"b\"\", c\",7\n");
    }
}
