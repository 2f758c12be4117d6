//! How long flash takes: calendars of dies and channels.

mod buffer;
mod calendar;
mod clockwork;
mod recorder;

pub use buffer::WriteBuffer;
pub use calendar::{Calendar, Pool};
pub use clockwork::Clockwork;
pub use recorder::{Actor, CommandRecord, Lane, Part, Record, Recording, Slice, Window, Work};
