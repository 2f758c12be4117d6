//! The scenarios, so that whoever runs one can run any.

use super::report::{Loss, Report};
use super::{hosts, liar, owners, solo, sweep, threads};
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
pub const SCENARIOS: [Scenario; 7] = [
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
    Scenario {
        name: "liar",
        about: "a disk that swaps pages, or gives back what a page or a superblock once was",
        run: liar::run,
    },
    Scenario {
        name: "hosts",
        about: "hosts on a network that breaks, and a service that is killed and comes again",
        run: hosts::run,
    },
    Scenario {
        name: "threads",
        about: "threads of a program on one store: batches, namespaces that come and go, transactions, close while others call",
        run: threads::run,
    },
    Scenario {
        name: "caches",
        about: "the same threads, where all namespaces but the first are caches: nothing old or deleted comes back, and no budget is exceeded",
        run: threads::run_with_caches,
    },
    Scenario {
        name: "owners",
        about: "programs that want one image: one has it, and the next finds everything when that was killed; readers beside each other",
        run: owners::run,
    },
];
