//! What is in a trace, without a drive.

use crate::error::SimError;
use crate::trace::{Action, InputBytes, Requests, TraceReader};
use kvssd_measure::Observer;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// How many requests are read at a time: enough that looking up every so often costs nothing.
const CHUNK: usize = 1 << 12;

/// What a trace asks for.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the names are the JSON's; docs/REPORT.md says what each means")]
pub struct TraceSummary {
    pub format: &'static str,
    pub lines: u64,
    pub bad_lines: u64,
    pub requests: u64,
    pub actions: BTreeMap<&'static str, u64>,
    pub key_bytes_max: u64,
    pub value_bytes_max: u64,
    pub written_bytes: u64,
    pub unique_keys: u64,
    pub working_set_bytes: u64,
    pub duration_ns: Option<u64>,
}

impl TraceSummary {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// When it cannot be read, or the observer interrupts.
    pub fn of(
        mut reader: TraceReader<'_>,
        format: &'static str,
        input: &InputBytes,
        observer: &mut dyn Observer,
    ) -> Result<Self, SimError> {
        let mut summary = TraceSummary { format, ..TraceSummary::default() };
        let mut counts = [0u64; Action::ALL.len()];
        let (mut first_ns, mut last_ns) = (None, None);
        let mut requests = Requests::new();
        let mut largest: HashMap<u64, u64> = HashMap::new();
        loop {
            requests.clear();
            reader.fill(&mut requests, CHUNK)?;
            if requests.is_empty() {
                break;
            }
            for request in requests.list() {
                let times = u64::from(request.times);
                counts[request.action as usize] += times;
                summary.key_bytes_max = summary.key_bytes_max.max(requests.key(request).bytes().len() as u64);
                summary.value_bytes_max = summary.value_bytes_max.max(request.value_bytes);
                let writes = matches!(request.action, Action::Set | Action::Add | Action::Replace | Action::Grow);
                let written = if writes { request.value_bytes.saturating_mul(times) } else { 0 };
                summary.written_bytes = summary.written_bytes.saturating_add(written);
                let bytes = largest.entry(request.hash()).or_default();
                *bytes = request.value_bytes.max(*bytes);
                first_ns = first_ns.or(request.at_ns);
                last_ns = last_ns.max(request.at_ns);
            }
            observer.progress(input.read());
            if observer.is_interrupted() {
                return Err(SimError::Interrupted);
            }
        }
        if counts == [0; Action::ALL.len()] {
            return Err(reader.empty().into());
        }
        (summary.lines, summary.bad_lines) = (reader.lines(), reader.bad_lines());
        summary.unique_keys = largest.len() as u64;
        summary.working_set_bytes = largest.into_values().fold(0, u64::saturating_add);
        summary.requests = counts.iter().sum();
        let names = Action::ALL.into_iter().map(Action::name);
        summary.actions = names.zip(counts).filter(|(_, count)| *count > 0).collect();
        summary.duration_ns = first_ns.zip(last_ns).map(|(first, last)| last.saturating_sub(first));
        Ok(summary)
    }
}
