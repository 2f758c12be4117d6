//! Request distributions, by name.

use super::WorkloadError;
use std::fmt;
use std::str::FromStr;

/// Which records are asked for often (YCSB core property `requestdistribution`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All records alike.
    Uniform,
    /// A few records take most requests, and lie anywhere: YCSB's scrambled zipfian with theta 0.99.
    Zipfian,
    /// One after the other, in the order of their numbers, round and round (not YCSB's).
    Sequential,
    /// The newer a record the more often it is asked for: YCSB's skewed latest, with theta 0.99.
    Latest,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: [Distribution; 4] =
        [Distribution::Uniform, Distribution::Zipfian, Distribution::Sequential, Distribution::Latest];

    /// The name a user types.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Zipfian => "zipfian",
            Distribution::Sequential => "sequential",
            Distribution::Latest => "latest",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Distribution {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        Distribution::ALL.into_iter().find(|distribution| distribution.name() == name).ok_or_else(|| {
            WorkloadError::UnknownName {
                what: "distribution",
                name: name.to_owned(),
                choices: "uniform, zipfian, sequential, latest",
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for distribution in Distribution::ALL {
            assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }
    }

    #[test]
    fn a_wrong_name_is_told_the_choices() {
        let message = "zipf".parse::<Distribution>().unwrap_err().to_string();
        assert_eq!(message, "unknown distribution \"zipf\": choose one of uniform, zipfian, sequential, latest");
        assert!(Distribution::ALL.iter().all(|distribution| message.contains(distribution.name())));
    }
}
