//! The whole program under one seed: nothing in it is a stand-in but the disk, the network and the clock.
//!
//! ```text
//!   seed -> Acts ----> Program: Store -> Drive -> firmware -> image -> SimulatedDisk <- Strike: killed, stopped, failed
//!                         |                                                |              at the call that the seed says
//!                         +-- Model: what was answered, what is in doubt --+-- the next process looks at everything
//! ```
//!
//! A loss says its seed and life, the last steps before it, and is repeated by them.

pub mod act;
pub mod hardware;
pub mod history;
pub mod model;
pub mod program;
pub mod solo;
