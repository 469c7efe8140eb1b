//! Settings of a cache that is to be, and the functions that it calls.

use core::ffi::{c_char, c_void};
use core::ptr::NonNull;
use std::alloc::Layout;

use larder::objects::{Callbacks, Family, RawCache};

use crate::error::{Failed, larder_status};
use crate::options::{
    SizeFirst, alignment, blank, check_flags, check_reserved, init, magazine, name,
};

/// Slabs stay with the cache until it ends: memory of an object may be read after its put, and is then an object of the same kind,
/// free or used again.
pub const LARDER_CACHE_TYPE_STABLE: u32 = 1;
/// The first object of every slab begins at a page, without cache colouring.
pub const LARDER_CACHE_NO_COLOUR: u32 = 2;

const ALL_FLAGS: u32 = 3;

/// Constructs an object in place; false when it fails, and then the object is not constructed. It is called without a lock, from any
/// thread, by several at once, and may use other caches. It must return: no longjmp, no C++ exception.
pub type larder_construct_fn =
    Option<unsafe extern "C" fn(object: *mut c_void, user: *mut c_void) -> bool>;

/// Destroys a constructed object before its slab goes back, and must accept it however its users left it. The same rules apply.
pub type larder_destruct_fn = Option<unsafe extern "C" fn(object: *mut c_void, user: *mut c_void)>;

/// Called when memory is short: puts back objects that the program can do without. It must not end the cache. The same rules apply.
pub type larder_reclaim_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Ends what `user` points to: called once, from any thread, after the last call of the others has returned. That may be later than
/// larder_cache_free, when it was called while the cache's callbacks ran or another thread asked all caches for memory. Not called
/// for a cache that could not be made. The same rules apply.
pub type larder_cache_end_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Settings of a cache. `larder_cache_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_cache_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_cache_options)`.
    pub size: usize,
    /// A name for statistics, of which 31 bytes are copied; NULL is none.
    pub name: *const c_char,
    /// Most bytes of slabs; 0 is no limit.
    pub limit_bytes: usize,
    /// Fewest pages of a slab, up to 64; 0 is 1. With large slabs, a cache with many objects ends faster.
    pub slab_pages: usize,
    /// Objects of a magazine at first, 1 to 255; 0 chooses.
    pub magazine_objects: usize,
    /// Objects of a magazine at most, up to 255; 0 chooses.
    pub magazine_most_objects: usize,
    /// LARDER_CACHE_* flags, or 0.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
    /// NULL: objects have the contents that a former user left.
    pub construct: larder_construct_fn,
    /// NULL: objects need no destructor.
    pub destruct: larder_destruct_fn,
    /// NULL: no function is called.
    pub reclaim: larder_reclaim_fn,
    /// Handed to the functions. It must live until `end` is called, or without one until the family and all that is of it are gone.
    pub user: *mut c_void,
    /// NULL: no function is called when `user` is no longer needed.
    pub end: larder_cache_end_fn,
}

// SAFETY: the size, then numbers, pointers and functions that may be NULL.
unsafe impl SizeFirst for larder_cache_options {}

impl Default for larder_cache_options {
    fn default() -> Self {
        blank()
    }
}

/// Fills in the defaults. `options` points to a `larder_cache_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_options_init(
    options: *mut larder_cache_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

/// The program's functions, at an address that the cache knows. The cache frees them after the last call.
#[derive(Debug)]
struct Hooks {
    construct: larder_construct_fn,
    destruct: larder_destruct_fn,
    reclaim: larder_reclaim_fn,
    user: *mut c_void,
    end: larder_cache_end_fn,
}

// SAFETY: the header asks that the functions may be called from any thread with this pointer.
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

/// # Safety
/// `data` points to [`Hooks`] that live as long as the cache does, `object` is of the cache's layout: so for the next three.
unsafe fn construct(object: NonNull<u8>, data: *mut ()) -> bool {
    // SAFETY: the promise above.
    let hooks = unsafe { &*data.cast::<Hooks>() };
    match hooks.construct {
        // SAFETY: the program's function, called as the header says.
        Some(f) => unsafe { f(object.as_ptr().cast(), hooks.user) },
        None => true,
    }
}

/// # Safety
/// As for [`construct`].
unsafe fn destruct(object: NonNull<u8>, data: *mut ()) {
    // SAFETY: the promise above.
    let hooks = unsafe { &*data.cast::<Hooks>() };
    if let Some(f) = hooks.destruct {
        // SAFETY: as above.
        unsafe { f(object.as_ptr().cast(), hooks.user) }
    }
}

/// # Safety
/// As for [`construct`].
unsafe fn reclaim(data: *mut ()) {
    // SAFETY: the promise above.
    let hooks = unsafe { &*data.cast::<Hooks>() };
    if let Some(f) = hooks.reclaim {
        // SAFETY: as above.
        unsafe { f(hooks.user) }
    }
}

/// # Safety
/// As for [`construct`]; called once, by a cache that makes no further call.
unsafe fn ended(data: *mut ()) {
    // SAFETY: `build` made it by `Box::into_raw`, and this is the only call.
    let hooks = unsafe { Box::from_raw(data.cast::<Hooks>()) };
    if let Some(f) = hooks.end {
        // SAFETY: as above.
        unsafe { f(hooks.user) }
    }
}

/// The functions in memory of their own; none when there is no memory, where `Box::new` would end the process.
fn hold(hooks: Hooks) -> Option<NonNull<Hooks>> {
    // SAFETY: the struct has a size.
    let at = NonNull::new(unsafe { std::alloc::alloc(Layout::new::<Hooks>()) }.cast::<Hooks>())?;
    // SAFETY: fresh memory of this layout.
    unsafe { at.write(hooks) };
    Some(at)
}

/// The largest power of two up to 16 that divides the size: no C type of that size needs more, except with `alignas`.
fn natural(bytes: usize) -> usize {
    1 << bytes.trailing_zeros().min(4)
}

impl larder_cache_options {
    /// # Safety
    /// `name` is NULL or ends with a zero byte; the functions do what the header asks of them.
    pub(super) unsafe fn build(
        &self,
        family: &Family,
        bytes: usize,
        align: usize,
    ) -> Result<RawCache, Failed> {
        check_flags(self.flags, ALL_FLAGS)?;
        check_reserved("options.reserved is", self.reserved)?;
        if self.slab_pages > 64 {
            return Err(Failed::argument(
                "options.slab_pages is",
                self.slab_pages as u64,
                "; it is at most 64",
            ));
        }
        let align = alignment(align, natural(bytes))?;
        let layout = Layout::from_size_align(bytes, align).map_err(|_| {
            Failed::argument(
                "objects of",
                bytes as u64,
                " bytes were asked for; a cache holds 1 byte to 4 MiB, aligned to at most a page",
            )
        })?;
        let mut options = RawCache::builder(layout)
            .type_stable(self.flags & LARDER_CACHE_TYPE_STABLE != 0)
            .colour(self.flags & LARDER_CACHE_NO_COLOUR == 0)
            .slab_pages(self.slab_pages.max(1));
        // SAFETY: the caller's promise.
        if let Some(name) = unsafe { name(self.name)? } {
            options = options.name(name);
        }
        if self.limit_bytes != 0 {
            options = options.limit_bytes(self.limit_bytes);
        }
        if let Some((first, most)) = magazine(self.magazine_objects, self.magazine_most_objects)? {
            options = options.magazine(first, most);
        }
        let hooks = hold(Hooks {
            construct: self.construct,
            destruct: self.destruct,
            reclaim: self.reclaim,
            user: self.user,
            end: self.end,
        });
        let hooks = hooks.ok_or_else(|| Failed::memory("a cache"))?;
        let callbacks = Callbacks {
            data: hooks.as_ptr().cast(),
            construct: self.construct.is_some().then_some(construct),
            destroy: self.destruct.is_some().then_some(destruct),
            reclaim: self.reclaim.is_some().then_some(reclaim),
            end: Some(ended),
        };
        // SAFETY: the functions may be called from any thread and do what fits the layout (the header asks for it); what
        // `data` points to lives until `ended`.
        let options = unsafe { options.callbacks(callbacks) };
        options.build(family).map_err(|failed| {
            // SAFETY: made above; a cache that was not made calls nothing.
            drop(unsafe { Box::from_raw(hooks.as_ptr()) });
            failed.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_natural_alignment_is_enough_for_every_type_of_that_size() {
        let cases = [
            (1, 1),
            (6, 2),
            (12, 4),
            (24, 8),
            (48, 16),
            (4096, 16),
            (0, 16),
        ];
        for (bytes, align) in cases {
            assert_eq!(natural(bytes), align, "{bytes}");
        }
    }
}
