//! The C library, from C. One program: each that is linked costs as much as many tests.

mod compiler;
mod handles;
mod layout;
mod lost_answers;
mod over_the_wire;
mod programs;
mod proxy;
