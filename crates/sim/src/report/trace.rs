//! What a replay reports beside what every run does.

use super::cache::{CacheReport, LifeReport, PrefixReport};
use serde::Serialize;

/// What came of the requests of a trace.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct TraceReport {
    pub format: &'static str,
    pub pace: &'static str,
    pub lines: u64,
    pub bad_lines: u64,
    pub hits: u64,
    pub misses: u64,
    pub filled: u64,
    pub joined: u64,
    pub not_stored: u64,
    pub deleted: u64,
    pub nothing_to_delete: u64,
    pub exist_hits: u64,
    pub exist_misses: u64,
    pub refused_full: u64,
    pub values_cut: u64,
    pub keys_hashed: u64,
    pub ttls_ignored: u64,
    pub pairs: u64,
    pub wrong_answers: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefixes: Option<PrefixReport>,
    pub life: Option<LifeReport>,
}
