//! Objects with a constructor that takes 100 ns: a cache that keeps them constructed saves it.

use std::alloc::Layout;
use std::ptr::NonNull;

use anyhow::{bail, ensure};
use larder::objects::{Callbacks, Family, RawCache};

use super::loops::with_share;
use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::timing::{keep, ns_per_op, thread_cpu_ns};
use crate::model::{Measures, Params};

/// An object of four cache lines.
#[repr(C, align(16))]
#[derive(Debug)]
struct Object {
    words: [u64; WORDS],
}

const WORDS: usize = 32;

/// Dependent multiplications of the constructor: three cycles each, some 100 ns in all at 3 GHz.
const STEPS: u64 = 96;

/// What the constructor begins with.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The constructor: fills the object with the states of a multiplicative generator.
///
/// # Safety
/// `at` is valid for a write of an [`Object`] and aligned for it.
#[inline(never)]
unsafe fn construct(at: *mut Object) {
    let mut state = SEED;
    for step in 0..STEPS {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ step;
        // SAFETY: the index is below the number of words.
        unsafe { (&raw mut (*at).words[(step % WORDS as u64) as usize]).write_volatile(state) };
    }
}

/// Whether an object is as its constructor left it.
fn is_constructed(object: &Object) -> bool {
    let mut fresh = Object { words: [0; WORDS] };
    // SAFETY: a local of ours.
    unsafe { construct(&raw mut fresh) };
    fresh.words == object.words
}

/// Constructs an object where it lies.
///
/// # Safety
/// As for [`construct`].
unsafe fn make(at: NonNull<u8>, _data: *mut ()) -> bool {
    // SAFETY: the cache gives memory of the object's layout.
    unsafe { construct(at.as_ptr().cast()) };
    true
}

/// Larder's cache of constructed objects, and their size.
///
/// # Errors
/// What the cache needs and does not get.
pub(super) fn cache() -> anyhow::Result<(RawCache, usize)> {
    let callbacks = Callbacks {
        construct: Some(make),
        ..Callbacks::default()
    };
    let options = RawCache::builder(Layout::new::<Object>());
    // SAFETY: the constructor touches nothing but the object.
    let options = unsafe { options.callbacks(callbacks) };
    Ok((options.build(&Family::new()?)?, size_of::<Object>()))
}

/// What is done without an object cache: a block and the constructor.
struct Built<H>(H);

impl<H: Heap> Heap for Built<H> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let block = self.0.alloc(bytes)?;
        // SAFETY: a fresh block of the object's size, aligned as malloc's.
        unsafe { construct(block.as_ptr().cast()) };
        Some(block)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(block, bytes) };
    }
}

/// `turns` times: get an object, look at one word, put it back.
#[inline(never)]
fn turns_of<H: Heap>(objects: &mut H, turns: u64) -> Option<u64> {
    let mut sum = 0;
    for turn in 0..turns {
        let block = objects.alloc(size_of::<Object>())?;
        let object = block.cast::<Object>().as_ptr();
        keep(objects);
        // SAFETY: ours until it is put back.
        unsafe {
            sum ^= (&raw const (*object).words[turn as usize % WORDS]).read_volatile();
            objects.free(block, size_of::<Object>());
        }
        keep(objects);
    }
    Some(sum)
}

/// One run over blocks of an allocator, each constructed when it is taken.
///
/// # Errors
/// As [`kept`].
pub(super) fn built<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let measures = timed(&mut Built(heaps.local()?), params)?;
    with_share(heaps, measures)
}

/// One run over objects that stay constructed.
///
/// # Errors
/// Missing factors, no memory, and objects that are not as constructed.
pub(super) fn kept<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let measures = timed(&mut heaps.local()?, params)?;
    with_share(heaps, measures)
}

/// CPU time of an object and of the constructor alone.
fn timed<H: Heap>(objects: &mut H, params: &Params) -> anyhow::Result<Measures> {
    let turns = params.count("turns")? as u64;
    ensure!(turns > 0, "0 turns were asked for; at least 1 can be done");
    let warm = turns_of(objects, turns / 8 + 1);
    let start = thread_cpu_ns();
    let sum = turns_of(objects, turns);
    let spent = thread_cpu_ns() - start;
    let last = objects.alloc(size_of::<Object>());
    let Some(last) = last.filter(|_| warm.is_some() && sum.is_some()) else {
        bail!("no memory for an object of {} bytes", size_of::<Object>());
    };
    // SAFETY: ours until it is put back.
    let whole = is_constructed(unsafe { last.cast().as_ref() });
    // SAFETY: taken above.
    unsafe { objects.free(last, size_of::<Object>()) };
    ensure!(
        whole,
        "an object was handed out that is not as its constructor left it"
    );
    let mut own = Object { words: [0; WORDS] };
    let start = thread_cpu_ns();
    for _ in 0..turns {
        // SAFETY: a local of ours.
        unsafe { construct(&raw mut own) };
        keep(&raw const own);
    }
    let alone = thread_cpu_ns() - start;
    Ok(Measures::new()
        .with("ns_per_object", ns_per_op(spent, turns))
        .with("constructor_ns", ns_per_op(alone, turns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::SystemMalloc;

    /// Keeps one object and constructs it once, or forgets to.
    struct Kept {
        object: Box<Object>,
    }

    impl Heap for Kept {
        fn alloc(&mut self, _bytes: usize) -> Option<NonNull<u8>> {
            Some(NonNull::from(&mut *self.object).cast())
        }

        unsafe fn free(&mut self, _block: NonNull<u8>, _bytes: usize) {}
    }

    #[test]
    fn objects_that_are_not_constructed_are_an_error() {
        let params = Params::new().with("turns", 100);
        built(&SystemMalloc, &params).expect("constructed");
        let object = Box::new(Object { words: [0; WORDS] });
        let mut one = Kept { object };
        assert!(timed(&mut one, &params).is_err());
        // SAFETY: ours.
        unsafe { construct(&raw mut *one.object) };
        timed(&mut one, &params).expect("constructed once");
    }
}
