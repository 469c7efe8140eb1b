//! Why a shelf does not do what its caller asked for.

use super::magazines::Magazine;

/// Why a magazine was not put on the shelf. It still belongs to the caller.
#[derive(Debug)]
pub(super) enum Refused {
    /// The slot changed in the meantime, or its lock is taken: look again.
    NotNow(Magazine),
    /// The shelf is being emptied, or closed for good.
    Parked(Magazine),
}

/// The result of an attempt to begin emptying the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// The shelf is parked, and this thread may empty it.
    Begun,
    /// Another thread empties it.
    Busy,
    /// The shelf is closed.
    Closed,
    /// The kernel would not restart the sections (a seccomp filter that came later).
    NoBarrier,
}
