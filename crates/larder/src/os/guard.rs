//! Pages that nobody may touch.

use rustix::mm::{self, MprotectFlags};

use super::{OsError, Span};

/// Makes pages inaccessible; [`commit`](super::System::commit) makes them accessible again. Contents are kept. The real
/// system's call: nobody debugs a heap over another one.
///
/// # Safety
/// The span lies inside of one range that the caller reserved, and nobody uses it.
///
/// # Errors
/// The kernel's refusal, usually since the process has too many ranges (`vm.max_map_count`).
pub(crate) unsafe fn forbid(span: Span) -> Result<(), OsError> {
    // SAFETY: the caller owns the span.
    unsafe { mm::mprotect(span.at.as_ptr().cast(), span.len, MprotectFlags::empty()) }
        .map_err(|e| OsError::new("mprotect(guard)", span.len, e))
}
