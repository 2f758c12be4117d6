//! How many values are read ahead: a number, or what the drive's own times ask for.
//!
//! ```text
//!   Next arrives ... given | host thinks | Next arrives ...
//!        <- blocked ->      <--------- interval -------->          degree = (read + 4 deviations) / (interval - blocked)
//! ```
//!
//! That is D_opt of IterKVSSD, section 4.5, with T_d the time of a read and T_A + T_e + T_wait what is left of an
//! interval when the waiting for values is taken out; and since some reads meet others on their channel or die, with
//! the deviations that a retransmission timer adds to a mean (RFC 6298, section 2). Reads that queue behind each other
//! take longer the more there are: what a read takes at the least bounds the degree, so that it does not feed itself.

use crate::index::{Parameter, Parameters};
use kvssd_types::Nanos;

/// The most values that are read ahead.
const DEGREE_MAX: u32 = 256;
/// How much of a mean a new measurement is: 1 / 2^SHIFT.
const SHIFT: u32 = 3;
/// The upper bound of the degree, in halves of the degree that the shortest read time asks for. Chosen by the sweep of `kvssd
/// reproduce iter`.
const GAIN_HALVES: u64 = 5;
/// The shortest read time grows by 1 / 2^FORGETTING_SHIFT with each measurement, so that an old one is forgotten.
const FORGETTING_SHIFT: u32 = 10;
/// Deviations above the mean that a read is given (RFC 6298: K).
const DEVIATIONS: u64 = 4;

/// What iterators read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IteratorPlan {
    /// Whether the next table of a level is read while the iterator is still in the one before (section 4.4).
    pub index_prefetch: bool,
    /// How many values are read ahead (section 4.5).
    pub prefetch_degree: PrefetchDegree,
}

impl IteratorPlan {
    /// Nothing is read ahead.
    pub const NONE: IteratorPlan = IteratorPlan { index_prefetch: false, prefetch_degree: PrefetchDegree::Fixed(0) };

    pub(crate) fn parameters(&mut self) -> Parameters<'_> {
        vec![("index_prefetch", &mut self.index_prefetch), ("prefetch_degree", &mut self.prefetch_degree)]
    }
}

/// How many values are read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchDegree {
    /// A fixed number.
    Fixed(u32),
    /// As many as the measured times ask for.
    Adaptive,
    /// Like `Adaptive`, but none after a Seek if hosts do not follow most Seeks with a Next.
    Followed,
}

impl PrefetchDegree {
    /// Whether nothing is read ahead.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == PrefetchDegree::Fixed(0)
    }

    /// Whether the degree is learned from times.
    pub(super) fn is_adaptive(self) -> bool {
        !matches!(self, PrefetchDegree::Fixed(_))
    }

    /// Whether the degree depends on what hosts do after a Seek.
    pub(super) fn heeds_habit(self) -> bool {
        self == PrefetchDegree::Followed
    }
}

impl Parameter for PrefetchDegree {
    fn text(&self) -> String {
        match self {
            PrefetchDegree::Fixed(degree) => degree.to_string(),
            PrefetchDegree::Adaptive => "adaptive".to_owned(),
            PrefetchDegree::Followed => "followed".to_owned(),
        }
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        *self = match (text, text.parse()) {
            ("adaptive", _) => PrefetchDegree::Adaptive,
            ("followed", _) => PrefetchDegree::Followed,
            (_, Ok(degree)) if degree <= DEGREE_MAX => PrefetchDegree::Fixed(degree),
            _ => return Err(format!("the value must be 0 to {DEGREE_MAX}, adaptive or followed")),
        };
        Ok(())
    }
}

/// The measured mean times of an iterator. A new iterator begins with those of the last one that was used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// From the request of a read to its end.
    read_ns: u64,
    /// The mean deviation of that.
    deviation_ns: u64,
    /// The shortest recent read.
    read_ns_min: u64,
    /// From one pair to the next, without the waiting.
    interval_ns: u64,
    /// When the last pairs were returned, and how many.
    last: Option<(Nanos, u64)>,
}

impl Pace {
    /// So many `pairs` were asked for at `arrived`, known at `found` and returned at `given`: from `found` on the command waited for them.
    pub(super) fn gave(&mut self, arrived: Nanos, found: Nanos, given: Nanos, pairs: u64) {
        if let Some((before, _)) = self.last.filter(|_| pairs > 0) {
            let interval_ns = found.0.saturating_sub(before.0.min(arrived.0));
            mean(&mut self.interval_ns, interval_ns / pairs);
        }
        self.last = Some((given, pairs));
    }

    /// The iterator was sent elsewhere: the next interval says nothing.
    pub(super) fn stop(&mut self) {
        self.last = None;
    }

    /// A read took so long.
    pub(super) fn read(&mut self, took_ns: u64) {
        if self.read_ns > 0 {
            mean(&mut self.deviation_ns, took_ns.abs_diff(self.read_ns));
        }
        mean(&mut self.read_ns, took_ns);
        let forgetting = self.read_ns_min + (self.read_ns_min >> FORGETTING_SHIFT);
        self.read_ns_min = if forgetting == 0 { took_ns } else { took_ns.min(forgetting) };
    }

    /// How many values are in flight after more were asked for. This exceeds the degree, so that several are asked for at once,
    /// and those that share a page take one read.
    pub(super) fn degree_high(&self, plan: PrefetchDegree) -> u32 {
        let degree = self.degree(plan);
        match plan {
            PrefetchDegree::Fixed(_) => degree,
            PrefetchDegree::Adaptive | PrefetchDegree::Followed => degree + degree / 4,
        }
    }

    /// The mean times of a read and of an interval.
    pub(super) fn times(&self) -> (Nanos, Nanos) {
        (Nanos(self.read_ns), Nanos(self.interval_ns))
    }

    /// The least number of values to keep in flight.
    pub(super) fn degree(&self, plan: PrefetchDegree) -> u32 {
        match plan {
            PrefetchDegree::Fixed(degree) => degree,
            // Nothing was measured yet: the first reads tell how long one takes.
            _ if self.read_ns == 0 || self.interval_ns == 0 => 4,
            PrefetchDegree::Adaptive | PrefetchDegree::Followed => {
                let at_once = self.last.map_or(1, |(_, pairs)| pairs.max(1));
                let least = self.read_ns_min.div_ceil(self.interval_ns) + at_once;
                let wanted = (self.read_ns + DEVIATIONS * self.deviation_ns).div_ceil(self.interval_ns);
                wanted.clamp(least, least * GAIN_HALVES / 2).min(DEGREE_MAX.into()) as u32
            }
        }
    }
}

fn mean(mean: &mut u64, new: u64) {
    *mean = if *mean == 0 { new } else { *mean - (*mean >> SHIFT) + (new >> SHIFT) };
}
