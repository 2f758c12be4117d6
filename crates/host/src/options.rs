//! How a store is opened, and how an image is created.

/// What is done if there is no image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Create it.
    #[default]
    Create,
    /// Fail.
    Fail,
    /// Create it; fail if there is one.
    CreateNew,
}

/// How a store is opened. On the wire only `read_only` counts; [`open`](crate::open) says which of the others it
/// refuses.
///
/// ```
/// use kvssd_host::{Missing, Options};
///
/// let options = Options { create_bytes: 8 << 30, sync: true, ..Options::default() };
/// assert_eq!((options.missing, options.design.as_str()), (Missing::Create, "plus"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is done if there is no image.
    pub missing: Missing,
    /// Flash of a new image, in bytes: the file is sparse and grows to about that length. Garbage collection and the
    /// journal leave 60 to 90 per cent for records ([`Stats::capacity_bytes`](crate::Stats::capacity_bytes)).
    pub create_bytes: u64,
    /// The firmware of a new image, which has room for 16 namespaces.
    pub design: String,
    /// Parameters of the firmware of a new image, by name, and what they are set to. They are kept in the image.
    pub parameters: Vec<(String, String)>,
    /// The largest value of a new image, up to 256 MiB ([`kvssd_device::LARGE_VALUE_BYTES_MAX`]). `None` is 2 MiB, or a
    /// superblock of the image (1/256 of its flash, at least 512 KiB) if that is less. Large values cost a byte a
    /// value, half of the namespaces, and a look-up before each change while there are any.
    pub value_bytes_max: Option<u32>,
    /// Partitions of a new image, up to 64 ([`kvssd_device::PARTITIONS_MAX`]): as many threads change it side by side. Each has its part of the
    /// flash, of the memory, of quotas and of budgets of caches, and the image is full when one of them is. Without
    /// `value_bytes_max` the largest value is that of an image of the size of a partition. 0 is 1.
    pub partitions: u32,
    /// A new image allocates all its room at once, so that no store finds the disk full.
    pub preallocate: bool,
    /// Calls that have returned outlive the machine, not only the process. Each change waits for the disk; threads that
    /// wait at the same time share the wait. A read of a change that is not on the disk yet waits as well.
    pub sync: bool,
    /// Nothing is written, and other processes may read at the same time. A missing image is an error: none is made, and
    /// [`Missing::CreateNew`] is refused.
    pub read_only: bool,
    /// Pages of the image that are kept in memory, in bytes; no more than the image has. 0 keeps 64 pages. Up to half of it goes to small
    /// values of ordered namespaces that ranges have shown.
    pub cache_bytes: u64,
}

impl Default for Options {
    /// Creates an image of 1 GiB with the design `plus` if there is none; changes outlive the process; 64 MiB of pages are kept in
    /// memory.
    fn default() -> Self {
        Options {
            missing: Missing::Create,
            create_bytes: 1 << 30,
            design: "plus".to_owned(),
            parameters: Vec::new(),
            value_bytes_max: None,
            partitions: 1,
            preallocate: false,
            sync: false,
            read_only: false,
            cache_bytes: 64 << 20,
        }
    }
}
