//! Arenas: ranges of numbers.

use core::ptr::NonNull;
use std::sync::Arc;

use larder::arena::{Arena, ArenaError, Extent, Import, Refusal};

use crate::error::{Failed, larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::{Opaque, end, give, shared};
use options::larder_arena_options;
use request::larder_arena_request;

pub(crate) mod options;
pub(crate) mod own;
pub(crate) mod quantum_stats;
pub(crate) mod request;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod walk;

/// Ranges of numbers: addresses, page indexes, identifiers, blocks of a disk. Every function except
/// larder_arena_free and larder_arena_destroy may be called by many threads at once.
#[derive(Debug)]
pub struct larder_arena {
    _opaque: [u8; 0],
}

/// An arena and the name that its errors carry.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) arena: Arena,
    _name: Option<Name>,
}

/// The text of a name, in memory that stays where it is. It is dropped after the arena, which takes it as static.
/// What the arena's errors say is written before the arena can go, so it is not read later.
#[derive(Debug)]
pub(crate) struct Name(NonNull<str>);

// SAFETY: text that never changes.
unsafe impl Send for Name {}
// SAFETY: as above.
unsafe impl Sync for Name {}

impl Name {
    /// A copy of a name.
    pub(crate) fn new(name: &str) -> Result<Self, Failed> {
        let mut own = String::new();
        own.try_reserve_exact(name.len()).map_err(|_| {
            Failed::said(
                larder_status::LARDER_MEMORY,
                "the arena's name",
                "cannot be copied: there is no memory",
            )
        })?;
        own.push_str(name);
        Ok(Self(NonNull::from(Box::leak(own.into_boxed_str()))))
    }

    /// # Safety
    /// The text is not read after this value is dropped.
    pub(crate) unsafe fn text(&self) -> &'static str {
        // SAFETY: leaked above, taken back in `drop` only, and never changed.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // SAFETY: leaked in `new`.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Named {
    /// # Safety
    /// The arena's name is this one or static.
    pub(crate) unsafe fn new(arena: Arena, name: Option<Name>) -> Self {
        Self { arena, _name: name }
    }
}

impl Import for Named {
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
        self.arena.import(size, align)
    }

    fn release(&self, span: Extent) {
        self.arena.release(span);
    }
}

impl Opaque for larder_arena {
    // Arenas over it and handles of it are owners as well.
    type Inside = Arc<Named>;
    const MARK: u64 = 0x6c64_7261_7265_6e31;
    const NAME: &'static str = "arena";
}

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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            give(out, || {
                let options = crate::options::read_sized(options)?;
                Ok(Arc::new(options.build()?))
            })
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(arena)) }
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            if arena.is_null() {
                return Ok(());
            }
            let live = shared(arena)?.arena.in_use();
            if live > 0 {
                return Err(Failed::number(
                    larder_status::LARDER_BUSY,
                    "the arena is not ended:",
                    live,
                    " units are allocated; give them back, or end it by larder_arena_free",
                ));
            }
            end(arena)
        })
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(error, || Ok(shared(arena)?.arena.add(addr, units)?)) }
}

/// Writes an address, or UINT64_MAX when there is none.
///
/// # Safety
/// `addr` is NULL or can be written.
pub(crate) unsafe fn answer(
    addr: *mut u64,
    take: impl FnOnce() -> Result<u64, ArenaError>,
) -> Result<(), Failed> {
    if addr.is_null() {
        return Err(Failed::null("addr"));
    }
    // SAFETY: the caller's promise. First a number that is no address, in case `take` fails or panics.
    unsafe {
        addr.write(u64::MAX);
        addr.write(take()?);
    }
    Ok(())
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let arena = &shared(arena)?.arena;
            answer(addr, || arena.alloc(units))
        })
    }
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let arena = &shared(arena)?.arena;
            if request.is_null() {
                return Err(Failed::null("request"));
            }
            let request = crate::options::read_sized(request)?.request()?;
            answer(addr, || arena.xalloc(&request))
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(error, || Ok(shared(arena)?.arena.free(addr, units)?)) }
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(core::ptr::null_mut(), || {
            shared(arena)?.arena.set_limit(units);
            Ok(())
        })
    }
}

/// # Safety
/// `units` is NULL or can be written.
unsafe fn give_back(
    arena: *const larder_arena,
    units: *mut u64,
    how: fn(&Arena) -> u64,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let given = how(&shared(arena)?.arena);
            if !units.is_null() {
                units.write(given);
            }
            Ok(())
        })
    }
}

/// Gives idle spans back to the source: call it regularly. `units`, which may be NULL, gets the units given back.
///
/// # Safety
/// `arena` is NULL or a live arena; `units` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_reap(
    arena: *const larder_arena,
    units: *mut u64,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { give_back(arena, units, Arena::maintain) }
}

/// Empties the quantum caches and gives all spans without allocations back to the source. `units`, which may be NULL, gets the units
/// given back.
///
/// # Safety
/// `arena` is NULL or a live arena; `units` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_drain(
    arena: *const larder_arena,
    units: *mut u64,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { give_back(arena, units, Arena::trim) }
}

/// Whether a number lies in one of the arena's spans, allocated or not; false for a pointer that is no arena.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_contains(arena: *const larder_arena, addr: u64) -> bool {
    value(false, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(arena)? }.arena.contains(addr))
    })
}

/// Units that consumers have; 0 for a pointer that is no arena. Looks at every segment.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_in_use(arena: *const larder_arena) -> u64 {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(arena)? }.arena.in_use())
    })
}

/// All sizes and addresses are multiples of this; 0 for a pointer that is no arena.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_quantum(arena: *const larder_arena) -> u64 {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(arena)? }.arena.quantum())
    })
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(error, || Ok(shared(arena)?.arena.audit()?)) }
}
