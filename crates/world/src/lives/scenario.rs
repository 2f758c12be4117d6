//! The scenarios, so that whoever runs one can run any.

use super::report::{Loss, Report};
use super::{solo, sweep};
use kvssd_ftl::Design;

/// A kind of lives.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What happens in it.
    pub about: &'static str,
    /// Lets the drive with that seed live.
    pub run: fn(&Design, u64, &mut Report) -> Result<(), Loss>,
}

/// All of them.
pub const SCENARIOS: [Scenario; 2] = [
    Scenario {
        name: "solo",
        about: "one program, killed at any call of the disk, its machine stopped, its disk failing",
        run: solo::run,
    },
    Scenario {
        name: "sweep",
        about: "a scripted life in which the call of the disk that the seed names fails in each way, loses, misplaces, or is killed",
        run: sweep::run,
    },
];
