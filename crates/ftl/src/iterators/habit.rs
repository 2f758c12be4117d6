//! Whether hosts follow a Seek with a Next. A host that asks for all that it wants in the Seek has no use for read-ahead.
//!
//! ```text
//!   Seek -> Next ..       it went on          a mean over the last Seeks of all iterators: above a half, values are read
//!   Seek -> Destroy       it did not          ahead behind a Seek; behind a Next they always are
//!   Seek -> Seek          it did not
//! ```

/// The whole of a mean.
const ALL: u32 = 1 << 16;
/// How much of the mean a new Seek is: 1 / 2^SHIFT, as of the times of an iterator.
const SHIFT: u32 = 3;

/// How hosts use the iterators of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    /// The share of the last Seeks that a Next followed, in parts of [`ALL`].
    followed: u32,
}

impl Default for Habit {
    /// As long as nothing is known, a Next is expected.
    fn default() -> Self {
        Habit { followed: ALL }
    }
}

impl Habit {
    /// Notes whether a Next followed a Seek, or something else.
    pub(super) fn ended(&mut self, is_followed: bool) {
        self.followed -= self.followed >> SHIFT;
        self.followed += if is_followed { ALL >> SHIFT } else { 0 };
    }

    /// Whether a Next follows most Seeks.
    pub(super) fn is_to_go_on(self) -> bool {
        self.followed > ALL / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_most_of_the_last_seeks_were() {
        let mut habit = Habit::default();
        assert!(habit.is_to_go_on(), "nothing is known");
        let until = |habit: &mut Habit, is_followed: bool| {
            (1..100)
                .find(|_| {
                    habit.ended(is_followed);
                    habit.is_to_go_on() == is_followed
                })
                .unwrap()
        };
        assert_eq!(until(&mut habit, false), 6);
        (0..100).for_each(|_| habit.ended(false));
        assert_eq!(until(&mut habit, true), 6);
        (0..100).for_each(|number| habit.ended(number % 4 > 0));
        assert!(habit.is_to_go_on(), "three of four go on");
    }
}
