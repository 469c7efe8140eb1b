//! How often a thread tries again before it sleeps or gives up. Models of threads explore every try, so there they are few.

/// Tries of a lock before the thread sleeps: a slow path holds it for well under a microsecond unless it is descheduled.
pub(super) const LOCK_SPINS: u32 = if cfg!(loom) { 1 } else { 64 };

/// Most tries to take a CPU's slot whose holder is at work when the CPU layer of a stock is emptied.
pub(crate) const SLOT_TRIES: u32 = if cfg!(loom) { 2 } else { 100_000 };
