//! Guard pages: pages that no thread can access.

use rustix::mm::{self, MprotectFlags};

use super::{OsError, Span};

/// Makes pages inaccessible; [`commit`](super::System::commit) makes them accessible again. Contents are kept. It calls the
/// kernel directly: guard pages are used over the real system only.
///
/// # Safety
/// The span lies inside of one range that the caller reserved, and nothing uses it.
///
/// # Errors
/// The kernel's refusal, usually since the process has too many ranges (`vm.max_map_count`).
pub(crate) unsafe fn forbid(span: Span) -> Result<(), OsError> {
    // SAFETY: the caller owns the span.
    unsafe { mm::mprotect(span.at.as_ptr().cast(), span.len, MprotectFlags::empty()) }
        .map_err(|e| OsError::new("mprotect(guard)", span.len, e))
}
