//! What reads a trace piece by piece.

use super::SimError;
use super::input::Input;
use super::sink::Sink;

/// Approximate number of records of a step.
pub(super) const BATCH: usize = 512;

/// The reader of a format.
pub(super) trait Parser: Send {
    /// Reads until there are some records; false at the end.
    fn step(&mut self, input: &mut Input, sink: &mut Sink) -> Result<bool, SimError>;

    /// Whether the trace itself says that its times are microseconds, where its format leaves that open.
    fn in_microseconds(&self) -> bool {
        false
    }
}
