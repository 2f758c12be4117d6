//! How a store is opened, and what is made when there is none.

/// What is done about an image that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is made.
    #[default]
    Create,
    /// That is an error.
    Fail,
    /// It is made; that there is one is an error.
    CreateNew,
}

/// How a store is opened. Of a drive on the wire only `read_only` is heeded; [`open`](crate::open) says which of the others it refuses.
///
/// ```
/// use kvssd_host::{Missing, Options};
///
/// let options = Options { create_bytes: 8 << 30, sync: true, ..Options::default() };
/// assert_eq!((options.missing, options.design.as_str()), (Missing::Create, "plus"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is done about an image that is not there.
    pub missing: Missing,
    /// Bytes of flash of an image that is made: a sparse file of about that length grows into it. Records get what garbage
    /// collection and the journal leave, 60 to 90 per cent ([`Stats::capacity_bytes`](crate::Stats::capacity_bytes)).
    pub create_bytes: u64,
    /// The firmware of an image that is made, with room for 16 namespaces.
    pub design: String,
    /// The largest value of an image that is made, up to 256 MiB ([`kvssd_device::LARGE_VALUE_BYTES_MAX`]); none for 2 MiB, or a superblock of the
    /// image (1/256 of its flash, 512 KiB at least) where that is less. Room for large values costs a byte a value, half of the namespaces, and a look
    /// at what a key has before it is changed while there are any.
    pub value_bytes_max: Option<u32>,
    /// An image that is made takes all its room at once, so that no store finds the disk full.
    pub preallocate: bool,
    /// What has returned outlives the machine and not only the process. A store then waits for the disk; threads that wait at
    /// the same time wait once. Who reads what another thread is about to make safe waits for that as well.
    pub sync: bool,
    /// Nothing is written; others may read at the same time. An image that is not there is an error then.
    pub read_only: bool,
}

impl Default for Options {
    /// An image of 1 GiB with the design `plus` when there is none; safe from the end of the process.
    fn default() -> Self {
        Options {
            missing: Missing::Create,
            create_bytes: 1 << 30,
            design: "plus".to_owned(),
            value_bytes_max: None,
            preallocate: false,
            sync: false,
            read_only: false,
        }
    }
}
