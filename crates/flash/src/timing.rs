//! How long flash takes: calendars of dies and channels.

mod buffer;
mod calendar;
mod clockwork;

pub use buffer::WriteBuffer;
pub use calendar::{Calendar, Pool};
pub use clockwork::Clockwork;
