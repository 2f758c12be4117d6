//! The formats, a file each.

mod csv;
mod ibm;
mod meta;
mod mooncake;
mod oracle_general;
mod twitter;

pub(super) use csv::Csv;
pub(super) use ibm::Ibm;
pub(super) use meta::Meta;
pub(super) use mooncake::Mooncake;
pub(super) use oracle_general::OracleGeneral;
pub(super) use twitter::Twitter;

#[cfg(test)]
mod tests;
