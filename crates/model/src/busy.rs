//! How busy a drive is at one throughput: the load of what it is made of, and what pieces of work wait for it.

/// No resource is loaded more.
pub(crate) const LOAD_MAX: f64 = 0.97;

/// What a resource works on: with that chance, on a piece of that many nanoseconds.
pub(crate) type Piece = (f64, f64);

/// A drive at one throughput.
#[derive(Clone, Debug)]
pub(crate) struct Busy {
    /// Operations a nanosecond.
    pub(crate) rate: f64,
    /// Load of the dies, of their channels, of the cores, and of the link's busier direction.
    pub(crate) dies: f64,
    pub(crate) channels: f64,
    pub(crate) cores: f64,
    pub(crate) link: f64,
    /// What a read waits for its die, and for its channel.
    pub(crate) die_wait_ns: f64,
    pub(crate) channel_wait_ns: f64,
    /// What a look-up that reads a piece waits for dies that have few of them, which all look-ups want, visit by visit.
    pub(crate) crowd_waits_ns: Vec<f64>,
    /// What a die and a channel work on.
    pub(crate) on_die: [Piece; 6],
    pub(crate) on_channel: [Piece; 6],
    /// What a command waits for a core, each time.
    pub(crate) core_wait_ns: f64,
    /// Pages that a step of collection reads: so many that it keeps up, if it can.
    pub(crate) step_pages: f64,
}

impl Busy {
    pub(crate) fn read_wait_ns(&self) -> f64 {
        self.die_wait_ns + self.channel_wait_ns
    }
}
