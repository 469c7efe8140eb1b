//! Calls that are inside a handle of one owner: a callback must not use the handle that called it.

use core::cell::{Cell, UnsafeCell};

use crate::call::on;
use crate::error::{Failed, Outcome, larder_error, larder_status};
use crate::mark::Opaque;

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

    /// Refuses to end the handle while a call is inside.
    pub(crate) fn may_end(&self) -> Result<(), Failed> {
        self.alone().map(drop)
    }
}

/// What one call at a time may change, and what it stands on, which is dropped after it.
#[derive(Debug)]
pub(crate) struct Owned<T, K = ()> {
    inside: UnsafeCell<T>,
    pub(crate) busy: Busy,
    _keeps: K,
}

impl<T, K> Owned<T, K> {
    pub(crate) fn new(inside: T, keeps: K) -> Self {
        Self {
            inside: UnsafeCell::new(inside),
            busy: Busy::default(),
            _keeps: keeps,
        }
    }

    /// # Safety
    /// No other thread uses it.
    #[inline]
    pub(crate) unsafe fn with<U>(
        &self,
        f: impl FnOnce(&mut T) -> Result<U, Failed>,
    ) -> Result<U, Failed> {
        let _here = self.busy.alone()?;
        // SAFETY: of one thread at a time (the caller's promise), and not from within a call of itself (`busy`).
        f(unsafe { &mut *self.inside.get() })
    }
}

/// Does something with what is behind a handle of one owner.
///
/// # Safety
/// As for [`on`], and no other thread uses the handle.
#[inline(always)]
pub(crate) unsafe fn on_owned<H: Opaque<Inside = Owned<T, K>>, T, K, O: Outcome>(
    handle: *const H,
    error: *mut larder_error,
    body: impl FnOnce(&mut T) -> O,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        on(handle, error, |own| {
            own.with(|inside| body(inside).outcome())
        })
    }
}
