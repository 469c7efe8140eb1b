//! Spans from functions of the program.

use core::ffi::c_void;
use core::fmt;

use larder::arena::{Extent, Import, Refusal};

/// A span that a source gives: `units` numbers from `addr` on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_span {
    /// First number.
    pub addr: u64,
    /// Numbers.
    pub units: u64,
}

/// Gives a span of at least `units` whose first number is a multiple of `align`, a power of two; false when it cannot. It is called
/// without a lock, from any thread, by several at once. It must return: no longjmp, no C++ exception.
pub type larder_import_fn = Option<
    unsafe extern "C" fn(units: u64, align: u64, span: *mut larder_span, user: *mut c_void) -> bool,
>;

/// Takes back a span exactly as it was given. The same rules apply.
pub type larder_release_fn =
    Option<unsafe extern "C" fn(span: *const larder_span, user: *mut c_void)>;

type ImportFn = unsafe extern "C" fn(u64, u64, *mut larder_span, *mut c_void) -> bool;

/// The program's functions as a source.
pub(super) struct Given {
    pub(super) import: ImportFn,
    pub(super) release: larder_release_fn,
    pub(super) user: *mut c_void,
}

// SAFETY: the header asks that the functions may be called from any thread with this pointer.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the program's source")
    }
}

impl Import for Given {
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
        let mut span = larder_span::default();
        // SAFETY: the program's function, called as the header says; the span is on this stack.
        let given = unsafe { (self.import)(size, align, &raw mut span, self.user) };
        if given {
            Ok(Extent {
                addr: span.addr,
                size: span.units,
            })
        } else {
            Err(Refusal {
                by: "the program's import function",
                why: "it gave no span",
                cause: None,
            })
        }
    }

    fn release(&self, span: Extent) {
        if let Some(release) = self.release {
            let span = larder_span {
                addr: span.addr,
                units: span.size,
            };
            // SAFETY: as above.
            unsafe { release(&raw const span, self.user) };
        }
    }
}
