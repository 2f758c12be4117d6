//! Flash, its time and its images. One program: each that is linked costs as much as many tests.

mod block_device;
mod calendars_against_reference;
mod closed_loop;
mod cores_against_reference;
mod failed_sync;
mod image;
mod program_order;
mod reference;
mod shared_reads;
mod validation_970pro;
