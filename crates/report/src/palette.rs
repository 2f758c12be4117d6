//! Colours that people who see few of them can tell apart (after Okabe and Ito), by day and by night.
//!
//! An SVG has the colours of the day. The page has a rule of style for each that puts the one of the night in its place.

use serde::Serialize;

/// A colour on white, and what stands for it on black.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Colour {
    pub light: &'static str,
    pub dark: &'static str,
}

/// Of text and axes.
pub const INK: Colour = Colour { light: "#26262B", dark: "#DCDCE2" };
/// Of the lines behind.
pub const GRID: Colour = Colour { light: "#DDDDE3", dark: "#3A3A42" };
/// Of the paper, which a page does not show.
pub const PAPER: Colour = Colour { light: "#FFFFFF", dark: "#FFFFFF" };

/// One after the other, of what is beside one another.
pub const SERIES: [Colour; 8] = [
    Colour { light: "#0072B2", dark: "#56B4E9" },
    Colour { light: "#D55E00", dark: "#FF8F3F" },
    Colour { light: "#008F68", dark: "#35D0A0" },
    Colour { light: "#AA4A87", dark: "#E7A0CB" },
    Colour { light: "#A07400", dark: "#F0D040" },
    Colour { light: "#5A5A66", dark: "#B4B4C0" },
    Colour { light: "#7B3F1D", dark: "#C8966E" },
    Colour { light: "#3F3FA8", dark: "#9A9AFF" },
];

/// The colour of the series of that number. Behind the eighth they come again.
pub fn series(number: usize) -> Colour {
    SERIES[number % SERIES.len()]
}
