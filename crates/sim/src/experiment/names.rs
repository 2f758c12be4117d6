//! Choices in JSON: by the names that people use.

use crate::dbbench::DbBenchmark;
use crate::workload::{Distribution, SizeDistribution, YcsbCore};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Choices of [`kvssd_types::named_enum`] are written as their names.
macro_rules! by_name {
    ($($choice:ty),+) => {$(
        impl Serialize for $choice {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $choice {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )+};
}

by_name!(DbBenchmark, Distribution, SizeDistribution, YcsbCore);
