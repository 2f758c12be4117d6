//! Request distributions, by name.

use kvssd_types::named_enum;

named_enum! {
    /// Which records are asked for often (YCSB core property `requestdistribution`).
    pub enum Distribution: "distribution" {
        /// All records alike.
        Uniform = "uniform",
        /// A few records take most requests, and lie anywhere: YCSB's scrambled zipfian with theta 0.99.
        Zipfian = "zipfian",
        /// One after the other, in the order of their numbers, round and round (not YCSB's).
        Sequential = "sequential",
        /// The newer a record the more often it is asked for: YCSB's skewed latest, with theta 0.99.
        Latest = "latest",
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
