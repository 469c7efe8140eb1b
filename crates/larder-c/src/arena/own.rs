//! Quantum caches of one owner.

use std::sync::Arc;

use larder::arena::ArenaHandle;

use super::named::{Named, larder_arena};
use crate::busy::{Owned, on_owned};
use crate::call::{answer, free, make};
use crate::error::{larder_error, larder_status};
use crate::mark::opaque;

/// Magazines of one owner for the sizes that have a quantum cache: no lock, no restartable section. It may move between threads,
/// but only one may use it at a time. Others may give back what it took, and it may give back what others took. It keeps its arena.
pub struct larder_arena_handle {
    _opaque: [u8; 0],
}

/// A handle, which is dropped before the arena that it borrows.
type Own = Owned<ArenaHandle<'static>, Arc<Named>>;

fn own(arena: &Arc<Named>) -> Own {
    // SAFETY: the arena does not move and is only read. The count that the answer holds keeps it, and is dropped after the handle.
    let borrowed: &'static Named = unsafe { &*Arc::as_ptr(arena) };
    Owned::new(borrowed.arena.handle(), arena.clone())
}

opaque!(
    larder_arena_handle,
    Own,
    b"ldrahan1",
    "arena handle",
    |own| own.busy.may_end()
);

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { make(arena, out, error, |arena| Ok(own(arena))) }
}

/// Ends a handle; NULL does nothing. What is in its magazines goes back to the arena.
///
/// # Safety
/// `handle` is NULL or a live arena handle, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_handle_free(
    handle: *mut larder_arena_handle,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(handle) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on_owned(handle, error, |own| {
            answer(("addr", addr), || own.alloc(units))
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on_owned(handle, error, |own| own.free(addr, units)) }
}
