//! What the tests of object caches share.

// Every test binary uses its own part of it.
#![allow(dead_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use larder::objects::{Callbacks, Family, FamilyBuilder, RawCache, RawCacheBuilder};
use larder::os::rseq::Mode;
use larder::pages::PagePool;

/// A family that is the same on every machine, and whose upkeep comes only when it is called.
pub(crate) fn family_builder(mode: Mode) -> FamilyBuilder {
    Family::builder()
        .pages(pages(mode))
        .mode(mode)
        .interval(Duration::from_secs(3600))
}

pub(crate) fn pages(mode: Mode) -> larder::pages::PagePoolBuilder {
    PagePool::builder()
        .ignore_environment()
        .mode(mode)
        .reserve_bytes(256 << 20)
}

pub(crate) fn family(mode: Mode) -> Family {
    family_builder(mode).build().unwrap()
}

pub(crate) fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Small magazines, so that their edges are met often.
pub(crate) fn options(size: usize) -> RawCacheBuilder {
    RawCache::builder(layout(size, 8)).magazine(7, 15)
}

/// Puts an object back.
pub(crate) fn put(cache: &RawCache, object: NonNull<u8>) {
    // SAFETY: tests put what they took, once.
    unsafe { cache.put(object) };
}

/// Writes `byte` all over an object.
pub(crate) fn fill(object: NonNull<u8>, size: usize, byte: u8) {
    // SAFETY: the object is the caller's and has that size.
    unsafe { object.as_ptr().write_bytes(byte, size) };
}

pub(crate) fn is_filled(object: NonNull<u8>, size: usize, byte: u8) -> bool {
    // SAFETY: the object is the caller's, and was filled.
    unsafe { core::slice::from_raw_parts(object.as_ptr(), size) }
        .iter()
        .all(|&b| b == byte)
}

/// Writes a token into an object of at least 8 aligned bytes.
pub(crate) fn mark(object: NonNull<u8>, token: u64) {
    // SAFETY: the object is the caller's.
    unsafe { object.cast::<u64>().write_volatile(token) };
}

pub(crate) fn marked(object: NonNull<u8>) -> u64 {
    // SAFETY: the object is the caller's and was marked.
    unsafe { object.cast::<u64>().read_volatile() }
}

/// What the constructors of a test have made and its destructors ended.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) made: AtomicUsize,
    pub(crate) ended: AtomicUsize,
}

impl Count {
    pub(crate) fn both(&self) -> (usize, usize) {
        (
            self.made.load(Ordering::Relaxed),
            self.ended.load(Ordering::Relaxed),
        )
    }
}

/// What constructed objects begin with.
pub(crate) const MARK: u64 = 0x6d61_726b_6d61_726b;

unsafe fn construct(at: NonNull<u8>, data: *mut ()) -> bool {
    // SAFETY: `data` is a `Count`.
    unsafe { &*data.cast::<Count>() }
        .made
        .fetch_add(1, Ordering::Relaxed);
    mark(at, MARK);
    true
}

unsafe fn destroy(at: NonNull<u8>, data: *mut ()) {
    // SAFETY: as above.
    unsafe { &*data.cast::<Count>() }
        .ended
        .fetch_add(1, Ordering::Relaxed);
    assert_eq!(marked(at), MARK, "destroyed what is not constructed");
    mark(at, 0);
}

/// A cache whose objects begin with [`MARK`] and are counted.
pub(crate) fn counted(family: &Family, size: usize, count: &Count) -> RawCache {
    let callbacks = Callbacks {
        data: core::ptr::from_ref(count).cast_mut().cast(),
        construct: Some(construct),
        destroy: Some(destroy),
        ..Callbacks::default()
    };
    // SAFETY: the functions fit the data, which outlives the cache in these tests.
    unsafe { options(size).callbacks(callbacks) }
        .build(family)
        .unwrap()
}
