//! The formats, a file each.

mod csv;
mod ibm;
mod lcs;
mod lmcache;
mod meta;
mod mlperf;
mod mooncake;
mod oracle_general;
mod twitter;
mod vscsi;

pub use csv::ColumnName;
pub(super) use csv::Csv;
pub(super) use ibm::Ibm;
pub(super) use lcs::Lcs;
pub(super) use lmcache::LmCache;
pub(super) use meta::Meta;
pub(super) use mlperf::MlPerf;
pub(super) use mooncake::Mooncake;
pub(super) use oracle_general::OracleGeneral;
pub(super) use twitter::Twitter;
pub(super) use vscsi::Vscsi;

#[cfg(test)]
mod tests;
