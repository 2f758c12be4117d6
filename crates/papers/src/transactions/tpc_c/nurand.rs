//! NURand: who and what is chosen more often than others (clause 2.1.6).

use super::scale::TpcCScale;
use kvssd_types::Random;

/// A range of the specification: A and how many numbers there are.
struct Law {
    a: u64,
    numbers: u64,
}

const LAST_NAME: Law = Law { a: 255, numbers: 1000 };
const CUSTOMER: Law = Law { a: 1023, numbers: 3000 };
const ITEM: Law = Law { a: 8191, numbers: 100_000 };

/// NURand(A, 0, `numbers` - 1) with its C.
#[derive(Clone, Copy, Debug)]
pub(super) struct NuRand {
    a: u64,
    c: u64,
    numbers: u64,
}

impl NuRand {
    /// Of fewer numbers than the specification has, A is as much smaller, one less than a power of two.
    fn new(law: &Law, numbers: u64, random: &mut Random) -> Self {
        let a = ((law.a + 1) * numbers).div_ceil(law.numbers).next_power_of_two() - 1;
        NuRand { a, c: random.below(a + 1), numbers }
    }

    /// A number below `numbers`.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        ((random.below(self.a + 1) | random.below(self.numbers)) + self.c) % self.numbers
    }
}

/// The three laws of a run, and that of the last names of the population.
pub(super) struct Constants {
    pub(super) loaded_name: NuRand,
    pub(super) name: NuRand,
    pub(super) customer: NuRand,
    pub(super) item: NuRand,
}

impl Constants {
    pub(super) fn new(scale: &TpcCScale, random: &mut Random) -> Self {
        let loaded_name = NuRand::new(&LAST_NAME, scale.names(), random);
        let mut name = NuRand::new(&LAST_NAME, scale.names(), random);
        // The run's C of last names is not too near to the population's (clause 2.1.6.1).
        while name.a == LAST_NAME.a && !is_apart(loaded_name.c, name.c) {
            name.c = random.below(name.a + 1);
        }
        Constants {
            loaded_name,
            name,
            customer: NuRand::new(&CUSTOMER, scale.customers_per_district, random),
            item: NuRand::new(&ITEM, scale.items, random),
        }
    }
}

fn is_apart(loaded: u64, run: u64) -> bool {
    let delta = loaded.abs_diff(run);
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_of_the_full_size_are_those_of_the_specification() {
        for seed in 0..50 {
            let constants = Constants::new(&TpcCScale::specification(1), &mut Random::new(seed));
            assert_eq!([constants.name.a, constants.customer.a, constants.item.a], [255, 1023, 8191]);
            assert!(is_apart(constants.loaded_name.c, constants.name.c));
        }
    }

    #[test]
    fn some_numbers_come_up_far_more_often_and_none_is_out_of_range() {
        for numbers in [1, 7, 300, 3000] {
            let mut random = Random::new(3);
            let law = NuRand::new(&CUSTOMER, numbers, &mut random);
            let mut counts = vec![0u64; numbers as usize];
            (0..100_000).for_each(|_| counts[law.draw(&mut random) as usize] += 1);
            let most = counts.iter().max().unwrap();
            assert!(numbers < 300 || *most > 4 * 100_000 / numbers, "{numbers}: {most}");
        }
    }
}
