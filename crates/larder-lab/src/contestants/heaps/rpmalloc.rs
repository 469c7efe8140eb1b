//! rpmalloc 1.4.

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::OnceLock;

use anyhow::ensure;

use super::{Heap, Heaps};

mod c {
    use std::ffi::c_int;

    // The crate declares it without its argument.
    unsafe extern "C" {
        pub(super) fn rpmalloc_thread_finalize(release_caches: c_int);
    }
}

thread_local! {
    /// Memberships of this thread.
    static MEMBERSHIPS: Cell<usize> = const { Cell::new(0) };
}

/// `rpmalloc` and `rpfree`. Each thread must sign in before its first call and out after its last one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rpmalloc;

/// A thread's membership. The thread signs out when its last one ends.
#[derive(Debug)]
pub struct RpmallocThread {
    // The membership is the thread's.
    here: PhantomData<*mut ()>,
}

impl Heap for RpmallocThread {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the thread is signed in as long as this value lives.
        NonNull::new(unsafe { rpmalloc_sys::rpmalloc(bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _bytes: usize) {
        // SAFETY: allocated by rpmalloc and given up by the caller; the thread is signed in.
        unsafe { rpmalloc_sys::rpfree(block.as_ptr().cast()) };
    }

    #[inline(always)]
    fn alloc_zeroed(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: as in `alloc`.
        NonNull::new(unsafe { rpmalloc_sys::rpcalloc(1, bytes) }.cast())
    }

    #[inline(always)]
    fn alloc_aligned(&mut self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        // SAFETY: as in `alloc`; the alignment is a power of two.
        NonNull::new(unsafe { rpmalloc_sys::rpaligned_alloc(align, bytes) }.cast())
    }

    #[inline(always)]
    unsafe fn realloc(
        &mut self,
        block: NonNull<u8>,
        _bytes: usize,
        to: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: allocated by rpmalloc and given up by the caller; the thread is signed in.
        NonNull::new(unsafe { rpmalloc_sys::rprealloc(block.as_ptr().cast(), to) }.cast())
    }
}

impl Drop for RpmallocThread {
    fn drop(&mut self) {
        let left = MEMBERSHIPS.get().saturating_sub(1);
        MEMBERSHIPS.set(left);
        if left == 0 {
            // SAFETY: this thread is signed in and no value is left through which it would make another call.
            unsafe { c::rpmalloc_thread_finalize(1) };
        }
    }
}

impl Heaps for Rpmalloc {
    type Local<'a> = RpmallocThread;

    fn local(&self) -> anyhow::Result<RpmallocThread> {
        static READY: OnceLock<c_int> = OnceLock::new();
        // SAFETY: called once.
        let code = *READY.get_or_init(|| unsafe { rpmalloc_sys::rpmalloc_initialize() });
        ensure!(code == 0, "rpmalloc cannot be initialised: code {code}");
        // SAFETY: the library is initialised; where the thread is signed in already, this does nothing.
        unsafe { rpmalloc_sys::rpmalloc_thread_initialize() };
        MEMBERSHIPS.set(MEMBERSHIPS.get() + 1);
        Ok(RpmallocThread { here: PhantomData })
    }
}
