//! Which superblock is collected: a policy says what each costs, and the collector takes the one that costs the least.
//!
//! ```text
//!   closed superblocks that give a page -> Candidate -> VictimPolicy::cost -> the least, of several the first
//! ```
//!
//! A policy of one's own is a type that implements [`VictimPolicy`], and a design whose `victims` is
//! [`VictimChoice::of`] it. While room is short, [`Greedy`] chooses, whatever the policy: what is wanted then is room. Where superblocks lie on
//! several targets, the choice is made among those of the target with the fewest free ones, if what it gives is half of what the first one gives.
//!
//! A policy has no dice and no memory. Who draws some of all and takes the best of these (d-choices) has a hash of `age_pages` draw: it
//! differs between superblocks and from choice to choice, but for those that were full before a mount.

mod candidate;
mod cost_benefit;
mod erase_counts;
mod greedy;

pub use self::candidate::Candidate;
pub(crate) use self::candidate::{Candidates, can_be_collected, gives_grains};
pub use self::cost_benefit::CostBenefit;
pub use self::erase_counts::EraseCounts;
pub use self::greedy::Greedy;

use crate::parameters::{Chosen, Parameters, first_named, texts};
use dyn_clone::DynClone;
use std::any::Any;
use std::fmt;

/// How often a grain of the map counts that a victim keeps. The index writes its sections again and again, each time
/// somewhere else: what of them is moved dies soon after, where it was or where it is. An estimate.
pub const MAP_KEPT_WEIGHT: u64 = 8;

/// Chooses what is collected. It is a pure function of what it sees.
pub trait VictimPolicy: Any + DynClone + fmt::Debug + Send + Sync {
    /// The name in descriptions and images.
    fn name(&self) -> &'static str;

    /// What can be chosen of it, by name: each is `design.NAME` on the command line, and kept in images.
    fn parameters(&mut self) -> Parameters<'_> {
        Vec::new()
    }

    /// Whether that can be.
    ///
    /// # Errors
    /// Which parameter cannot, and what it may be.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What collecting this one costs, in units of the policy's own. The least is taken; of several, the first of the drive.
    fn cost(&self, candidate: &Candidate) -> u64;

    /// The spread of erases beyond which the least worn superblock is collected though it gives nothing: data that never dies leaves it so.
    /// With a bound, streams go on in the free superblock with the fewest erases; without, in the one that has been free for longest.
    fn erase_spread_max(&self) -> Option<u32> {
        None
    }
}

/// A policy, and what was chosen of it.
#[derive(Clone, Debug)]
pub struct VictimChoice(Chosen<dyn VictimPolicy>);

/// Of the same name, with the same parameters.
impl PartialEq for VictimChoice {
    fn eq(&self, other: &Self) -> bool {
        self.policy().name() == other.policy().name() && self.parameters() == other.parameters()
    }
}

impl Eq for VictimChoice {}

impl VictimChoice {
    /// The least that lives, as most designs have it.
    pub const GREEDY: VictimChoice = VictimChoice::of(&Greedy);
    /// Those that come with the firmware.
    pub const ALL: [VictimChoice; 3] =
        [VictimChoice::GREEDY, VictimChoice::of(&EraseCounts { erase_spread_max: 16 }), VictimChoice::of(&CostBenefit)];

    /// That policy.
    #[must_use]
    pub const fn of(policy: &'static dyn VictimPolicy) -> Self {
        VictimChoice(Chosen::of(policy))
    }

    /// What chooses.
    #[must_use]
    pub fn policy(&self) -> &dyn VictimPolicy {
        self.0.get()
    }

    /// The same, to be chosen otherwise.
    pub(crate) fn policy_mut(&mut self) -> &mut dyn VictimPolicy {
        self.0.get_mut()
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        texts(dyn_clone::clone_box(self.policy()).parameters())
    }

    /// Whether the two have one name and are of different types: an image has the name alone.
    #[must_use]
    pub fn is_namesake(&self, other: &VictimChoice) -> bool {
        let type_of = |choice: &VictimChoice| (choice.policy() as &dyn Any).type_id();
        self.policy().name() == other.policy().name() && type_of(self) != type_of(other)
    }

    /// The first of that name among `own` and those that come with the firmware.
    pub(crate) fn named(name: &str, own: impl IntoIterator<Item = VictimChoice>) -> Result<VictimChoice, String> {
        let choices = own.into_iter().chain(VictimChoice::ALL);
        first_named("policy of victims", name, choices, |choice| choice.policy().name())
    }
}
