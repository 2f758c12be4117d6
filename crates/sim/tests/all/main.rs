//! Workloads on drives. One program: each that is linked costs as much as many tests, and the longest test runs beside the others.

mod batches;
mod course;
mod dbbench;
mod emulator;
mod experiments;
mod kvbench;
mod model;
mod once;
mod record;
mod replay;
mod side_by_side;
