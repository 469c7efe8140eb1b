//! Objects that stay constructed: the library's caches with a constructor.

use std::alloc::Layout;
use std::ptr::NonNull;

use larder::objects::{Callbacks, Family, RawCache, RawHandle};

use crate::contestants::heaps::per_cpu_share;

use super::constructed::{Object, Objects, construct};

/// Constructs an object where it lies.
///
/// # Safety
/// As for [`construct`].
unsafe fn make(at: NonNull<u8>, _data: *mut ()) -> bool {
    // SAFETY: the cache gives memory of the object's layout.
    unsafe { construct(at.as_ptr().cast()) };
    true
}

fn cache() -> anyhow::Result<RawCache> {
    let callbacks = Callbacks {
        construct: Some(make),
        ..Callbacks::default()
    };
    let options = RawCache::options(Layout::new::<Object>());
    // SAFETY: the constructor touches nothing but the object.
    let options = unsafe { options.callbacks(callbacks) };
    Ok(options.create(&Family::new()?)?)
}

/// Through the CPU's magazines.
pub(super) struct PerCpu(RawCache);

impl PerCpu {
    /// A cache with default settings.
    ///
    /// # Errors
    /// What it needs and does not get.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(cache()?))
    }
}

impl Objects for PerCpu {
    #[inline(always)]
    fn get(&mut self) -> Option<NonNull<Object>> {
        self.0.get().ok().map(NonNull::cast)
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: NonNull<Object>) {
        // SAFETY: from `get`, as constructed, given up by the caller.
        unsafe { self.0.put(object.cast()) };
    }

    fn path_taken(&self) -> anyhow::Result<Option<f64>> {
        per_cpu_share(&self.0)
    }
}

/// Through a handle.
pub(super) struct Handle(RawHandle);

impl Handle {
    /// A handle of a cache with default settings.
    ///
    /// # Errors
    /// What it needs and does not get.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(cache()?.handle()))
    }
}

impl Objects for Handle {
    #[inline(always)]
    fn get(&mut self) -> Option<NonNull<Object>> {
        self.0.get().ok().map(NonNull::cast)
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: NonNull<Object>) {
        // SAFETY: as above.
        unsafe { self.0.put(object.cast()) };
    }
}
