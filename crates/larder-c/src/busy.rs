//! Calls that are inside a handle of one owner: a callback must not use the handle that called it.

use core::cell::Cell;

use crate::error::{Failed, larder_status};

/// How deep calls are nested in a handle.
#[derive(Debug, Default)]
pub(crate) struct Busy(Cell<u32>);

/// Counts the call out when it ends, by a return or a panic.
pub(crate) struct Here<'a>(&'a Cell<u32>);

impl Drop for Here<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Busy {
    /// Enters the handle; refused when another call is inside.
    #[inline]
    pub(crate) fn alone(&self) -> Result<Here<'_>, Failed> {
        if self.0.get() != 0 {
            return Err(Failed::said(
                larder_status::LARDER_BUSY,
                "the handle is in use:",
                "a callback must not use the handle that called it, and only one thread may use it at a time",
            ));
        }
        Ok(self.among())
    }

    /// Enters the handle beside other calls.
    #[inline]
    pub(crate) fn among(&self) -> Here<'_> {
        self.0.set(self.0.get() + 1);
        Here(&self.0)
    }
}
