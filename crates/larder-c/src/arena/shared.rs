//! An arena for all threads.

use std::sync::Arc;

use super::named::larder_arena;
use super::options::larder_arena_options;
use super::request::larder_arena_request;
use crate::call::{NO_ERROR, answer, ask, destroy, free, give_back, guard, on, take};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::give;
use crate::options::read_sized;

/// Makes an arena. `options` may be NULL for the defaults. `out` gets the arena, or NULL after a failure.
///
/// # Safety
/// `options` is NULL or has as many bytes as its first field says, and what it points to lives and does what its documentation
/// asks for; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_new(
    options: *const larder_arena_options,
    out: *mut *mut larder_arena,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            give(out, || Ok(Arc::new(read_sized(options)?.build()?)))
        })
    }
}

/// Ends an arena, even if ranges of it are allocated; NULL does nothing. Imported spans that are free as a whole go back to their
/// source. Its handles keep it, and so do arenas that import from it.
///
/// # Safety
/// `arena` is NULL or a live arena, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_free(arena: *mut larder_arena) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(arena) }
}

/// Ends an arena of which nothing is allocated; NULL does nothing. With allocations it does nothing, and the error LARDER_BUSY says how much is allocated.
///
/// # Safety
/// `arena` is NULL or a live arena, which no other thread uses, and which is not used afterwards; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_destroy(
    arena: *mut larder_arena,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        destroy(
            arena,
            error,
            |named| named.arena.in_use(),
            [
                "the arena is not ended:",
                " units are allocated; give them back, or end it by larder_arena_free",
            ],
        )
    }
}

/// Adds a span by hand: `units` numbers from `addr` on. It stays as long as the arena.
///
/// # Safety
/// `arena` is NULL or a live arena; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_add(
    arena: *const larder_arena,
    addr: u64,
    units: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(arena, error, |named| named.arena.add(addr, units)) }
}

/// Takes `units` numbers in a row, rounded up to a multiple of the quantum, anywhere. `addr` gets the first, or UINT64_MAX after a
/// failure.
///
/// # Safety
/// `arena` is NULL or a live arena; `addr` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_alloc(
    arena: *const larder_arena,
    units: u64,
    addr: *mut u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(arena, ("addr", addr), error, |own| own.arena.alloc(units)) }
}

/// Takes what a request describes: alignment, phase, boundaries, bounds, another fit. `addr` gets the first number, or UINT64_MAX
/// after a failure. A request with bounds never asks the source.
///
/// # Safety
/// `arena` is NULL or a live arena; `request` is NULL or has as many bytes as its first field says; `addr` and `error` are NULL
/// or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_xalloc(
    arena: *const larder_arena,
    request: *const larder_arena_request,
    addr: *mut u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(arena, error, |named| {
            if request.is_null() {
                return Err(Failed::null("request"));
            }
            let request = read_sized(request)?.request()?;
            answer(("addr", addr), || named.arena.xalloc(&request))
        })
    }
}

/// Gives back a range: its address, and its units as requested or rounded up to the quantum. A range that was never taken, or was
/// given back already, is LARDER_FOREIGN; another size is LARDER_SIZE; then nothing has changed.
///
/// # Safety
/// `arena` is NULL or a live arena; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_dealloc(
    arena: *const larder_arena,
    addr: u64,
    units: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(arena, error, |named| named.arena.free(addr, units)) }
}

/// Changes the limit on all spans together; UINT64_MAX is none. A lower limit takes no span away, but lets no further span in.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_set_limit(
    arena: *const larder_arena,
    units: u64,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(arena, NO_ERROR, |named| named.arena.set_limit(units)) }
}

/// Gives idle spans back to the source: call it regularly. `units`, which may be NULL, gets the units given back.
///
/// # Safety
/// `arena` is NULL or a live arena; `units` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_maintain(
    arena: *const larder_arena,
    units: *mut u64,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(arena, units, |named| named.arena.maintain()) }
}

/// Empties the quantum caches and gives all spans without allocations back to the source. `units`, which may be NULL, gets the units
/// given back.
///
/// # Safety
/// `arena` is NULL or a live arena; `units` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_trim(
    arena: *const larder_arena,
    units: *mut u64,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(arena, units, |named| named.arena.trim()) }
}

/// Whether a number lies in one of the arena's spans, allocated or not; false for a pointer that is no arena.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_contains(arena: *const larder_arena, addr: u64) -> bool {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(arena, false, |named| named.arena.contains(addr)) }
}

/// Units that consumers have; 0 for a pointer that is no arena. Looks at every segment.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_in_use(arena: *const larder_arena) -> u64 {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(arena, 0, |named| named.arena.in_use()) }
}

/// All sizes and addresses are multiples of this; 0 for a pointer that is no arena.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_quantum(arena: *const larder_arena) -> u64 {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(arena, 0, |named| named.arena.quantum()) }
}

/// Checks that all that the arena knows agrees, for programs that suspect their memory. O(segments). LARDER_PANIC names what
/// does not.
///
/// # Safety
/// `arena` is NULL or a live arena; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_audit(
    arena: *const larder_arena,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(arena, error, |named| named.arena.audit()) }
}
