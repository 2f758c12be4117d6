//! Images as they lie in files: those of this format from its beginning on, and those whose pages lie where they should not.

pub mod golden;
mod misplaced;
mod script;
mod traced;
mod used;
mod widths;
