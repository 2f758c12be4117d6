//! What a replay with a cache reports.

use serde::Serialize;

/// What a cache did on a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct CacheReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_by: Option<&'static str>,
    pub eviction: &'static str,
    pub admission: Vec<String>,
    pub budget_bytes: u64,
    pub budget_bytes_end: u64,
    pub held_bytes: u64,
    pub admitted: u64,
    pub kept_out: u64,
    pub evicted: u64,
    pub expired: u64,
    pub hits: HitReport,
    /// The same over time, in windows of as many requests each but the last.
    pub course: Vec<HitReport>,
}

/// Reads, and those that found their pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct HitReport {
    pub requests: u64,
    pub hits: u64,
    pub bytes: u64,
    pub hit_bytes: u64,
}

impl HitReport {
    /// Adds a read of so many bytes.
    pub(crate) fn add(&mut self, is_hit: bool, bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if is_hit {
            self.hits += 1;
            self.hit_bytes = self.hit_bytes.saturating_add(bytes);
        }
    }

    /// Adds what comes behind it.
    pub(crate) fn append(&mut self, next: &HitReport) {
        self.requests += next.requests;
        self.hits += next.hits;
        self.bytes = self.bytes.saturating_add(next.bytes);
        self.hit_bytes = self.hit_bytes.saturating_add(next.hit_bytes);
    }

    /// Of requests, and of bytes; 0 where there are none.
    #[must_use]
    pub fn ratios(&self) -> [f64; 2] {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        [share(self.hits, self.requests), share(self.hit_bytes, self.bytes)]
    }
}

/// Prefixes that requests of an LLM asked for, block by block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct PrefixReport {
    pub requests: u64,
    pub blocks: u64,
    pub loaded_blocks: u64,
    pub whole: u64,
    pub none: u64,
}

/// How long a drive lives under such requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct LifeReport {
    pub days: f64,
    pub stored_bytes_a_day: f64,
    pub programmed_bytes_a_day: f64,
    pub drive_writes_a_day: f64,
    pub block_erases_max: u32,
    pub years: f64,
}

impl LifeReport {
    /// Of a drive that programmed so many bytes for those that were stored, in so long; none where nothing was programmed or no time went by.
    pub(crate) fn of(
        stored_bytes: u64,
        programmed_bytes: u64,
        raw_bytes: u64,
        took_ns: u64,
        erases: u32,
    ) -> Option<Self> {
        const DAY_NS: f64 = 24.0 * 3600.0 * 1e9;
        let days = took_ns as f64 / DAY_NS;
        if programmed_bytes == 0 || took_ns == 0 {
            return None;
        }
        let a_day = |bytes: u64| bytes as f64 / days;
        Some(LifeReport {
            days,
            stored_bytes_a_day: a_day(stored_bytes),
            programmed_bytes_a_day: a_day(programmed_bytes),
            drive_writes_a_day: a_day(stored_bytes) / raw_bytes as f64,
            block_erases_max: erases,
            years: f64::from(erases) * raw_bytes as f64 / a_day(programmed_bytes) / 365.25,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_is_programmed_whole_once_a_day_lives_as_many_days_as_its_blocks_can_be_erased() {
        let day_ns = 24 * 3600 * 1_000_000_000;
        let life = LifeReport::of(500, 1000, 1000, day_ns, 3000).unwrap();
        assert!((life.years * 365.25 - 3000.0).abs() < 1e-6 && (life.drive_writes_a_day - 0.5).abs() < 1e-12);
        assert!(LifeReport::of(0, 0, 1000, day_ns, 3000).is_none());
    }
}
