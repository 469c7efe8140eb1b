//! Quantum caches of one owner.

use core::cell::UnsafeCell;
use core::fmt;
use std::sync::Arc;

use larder::arena::ArenaHandle;

use super::{Named, answer, larder_arena};
use crate::busy::Busy;
use crate::error::{larder_error, larder_status};
use crate::guard::guard;
use crate::mark::{Opaque, end, give, shared};

/// Magazines of one owner for the sizes that have a quantum cache: no lock, no restartable section. It may move between threads,
/// but only one may use it at a time. Others may give back what it took, and it may give back what others took. It keeps its arena.
#[derive(Debug)]
pub struct larder_arena_handle {
    _opaque: [u8; 0],
}

/// A handle and the owner of the arena that it borrows.
pub(crate) struct Own {
    /// Dropped before the arena, which does not move and is only read.
    handle: UnsafeCell<ArenaHandle<'static>>,
    busy: Busy,
    _arena: Arc<Named>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an arena's handle")
    }
}

impl Own {
    fn new(arena: Arc<Named>) -> Self {
        // SAFETY: the arena is behind a count that this value holds, and is dropped after the handle.
        let borrowed: &'static Named = unsafe { &*Arc::as_ptr(&arena) };
        Self {
            handle: UnsafeCell::new(borrowed.arena.handle()),
            busy: Busy::default(),
            _arena: arena,
        }
    }

    /// # Safety
    /// No other thread uses the handle.
    unsafe fn with<T>(
        &self,
        f: impl FnOnce(&mut ArenaHandle<'static>) -> Result<T, crate::error::Failed>,
    ) -> Result<T, crate::error::Failed> {
        let _here = self.busy.alone()?;
        // SAFETY: of one thread at a time (the caller's promise), and not from within a call of itself (`busy`).
        f(unsafe { &mut *self.handle.get() })
    }
}

impl Opaque for larder_arena_handle {
    type Inside = Own;
    const MARK: u64 = 0x6c64_7261_6861_6e31;
    const NAME: &'static str = "arena handle";

    fn may_end(inside: &Own) -> Result<(), crate::error::Failed> {
        inside.busy.alone().map(drop)
    }
}

/// Makes a handle over an arena. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `arena` is NULL or a live arena; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_handle_new(
    arena: *const larder_arena,
    out: *mut *mut larder_arena_handle,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let arena = shared(arena)?;
            give(out, || Ok(Own::new(arena.clone())))
        })
    }
}

/// Ends a handle; NULL does nothing. What is in its magazines goes back to the arena.
///
/// # Safety
/// `handle` is NULL or a live arena handle, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_handle_free(
    handle: *mut larder_arena_handle,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(handle)) }
}

/// As larder_arena_alloc.
///
/// # Safety
/// `handle` is NULL or a live arena handle that no other thread uses meanwhile; `addr` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_handle_alloc(
    handle: *mut larder_arena_handle,
    units: u64,
    addr: *mut u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            shared(handle)?.with(|handle| answer(addr, || handle.alloc(units)))
        })
    }
}

/// As larder_arena_dealloc.
///
/// # Safety
/// `handle` is NULL or a live arena handle that no other thread uses meanwhile; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_handle_dealloc(
    handle: *mut larder_arena_handle,
    addr: u64,
    units: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            shared(handle)?.with(|handle| Ok(handle.free(addr, units)?))
        })
    }
}
