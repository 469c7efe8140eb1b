//! Objects with a constructor that takes 100 ns: who keeps them constructed saves it.

use std::ptr::NonNull;

use anyhow::ensure;

use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::timing::{keep, ns_per_op, thread_cpu_ns};
use crate::model::{Measures, Params};

/// An object of four cache lines.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Object {
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
pub(crate) unsafe fn construct(at: *mut Object) {
    let mut state = SEED;
    for step in 0..STEPS {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ step;
        // SAFETY: the index is below the number of words.
        unsafe { (&raw mut (*at).words[(step % WORDS as u64) as usize]).write_volatile(state) };
    }
}

/// Whether an object is as its constructor left it.
pub(crate) fn is_constructed(object: &Object) -> bool {
    let mut fresh = Object { words: [0; WORDS] };
    // SAFETY: a local of ours.
    unsafe { construct(&raw mut fresh) };
    fresh.words == object.words
}

/// Who hands out constructed objects.
pub(crate) trait Objects {
    /// A constructed object; `None` when there is no memory.
    fn get(&mut self) -> Option<NonNull<Object>>;

    /// Takes it back.
    ///
    /// # Safety
    /// It came from `get`, is as constructed, and is not used afterwards.
    unsafe fn put(&mut self, object: NonNull<Object>);

    /// As [`Heaps::path_taken`].
    ///
    /// # Errors
    /// When the path that is claimed was not taken.
    fn path_taken(&self) -> anyhow::Result<Option<f64>> {
        Ok(None)
    }
}

/// What everybody does without an object cache: a block and the constructor.
#[derive(Debug)]
pub(crate) struct Built<H>(pub(crate) H);

impl<H: Heap> Objects for Built<H> {
    #[inline(always)]
    fn get(&mut self) -> Option<NonNull<Object>> {
        let object = self.0.alloc(size_of::<Object>())?.cast();
        // SAFETY: a fresh block of the size, aligned as malloc's.
        unsafe { construct(object.as_ptr()) };
        Some(object)
    }

    #[inline(always)]
    unsafe fn put(&mut self, object: NonNull<Object>) {
        // SAFETY: from `get`, given up by the caller.
        unsafe { self.0.free(object.cast(), size_of::<Object>()) };
    }
}

/// `turns` times: get an object, look at one word, put it back.
#[inline(never)]
fn turns_of<O: Objects>(objects: &mut O, turns: u64) -> Option<u64> {
    let mut sum = 0;
    for turn in 0..turns {
        let object = objects.get()?;
        keep(objects);
        // SAFETY: ours until it is put back.
        unsafe {
            let word = (&raw const (*object.as_ptr()).words[turn as usize % WORDS]).read_volatile();
            sum ^= word;
            objects.put(object);
        }
        keep(objects);
    }
    Some(sum)
}

/// One run over blocks of an allocator.
///
/// # Errors
/// See [`run`].
pub(super) fn run_built<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let measures = run(&mut Built(heaps.local()?), params)?;
    Ok(match heaps.path_taken()? {
        Some(share) => measures.with("path_share", share),
        None => measures,
    })
}

/// One run: CPU time of an object and of the constructor alone.
///
/// # Errors
/// Missing factors, no memory, and objects that are not as constructed.
pub(crate) fn run<O: Objects>(objects: &mut O, params: &Params) -> anyhow::Result<Measures> {
    let turns = params.count("turns")? as u64;
    ensure!(turns > 0, "0 turns were asked for; at least 1 can be done");
    let warm = turns_of(objects, turns / 8 + 1);
    let start = thread_cpu_ns();
    let sum = turns_of(objects, turns);
    let spent = thread_cpu_ns() - start;
    let object = objects.get().filter(|_| warm.is_some() && sum.is_some());
    let Some(object) = object else {
        anyhow::bail!("no memory for an object of {} bytes", size_of::<Object>());
    };
    // SAFETY: ours until it is put back.
    let whole = is_constructed(unsafe { object.as_ref() });
    // SAFETY: from `get`.
    unsafe { objects.put(object) };
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
    let measures = Measures::new()
        .with("ns_per_object", ns_per_op(spent, turns))
        .with("constructor_ns", ns_per_op(alone, turns));
    Ok(match objects.path_taken()? {
        Some(share) => measures.with("path_share", share),
        None => measures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::SystemMalloc;

    /// Keeps one object and constructs it once, or forgets to.
    struct Kept {
        object: Box<Object>,
    }

    impl Objects for Kept {
        fn get(&mut self) -> Option<NonNull<Object>> {
            Some(NonNull::from(&mut *self.object))
        }

        unsafe fn put(&mut self, _object: NonNull<Object>) {}
    }

    #[test]
    fn objects_that_are_not_constructed_are_an_error() {
        let params = Params::new().with("turns", 100);
        run_built(&SystemMalloc, &params).expect("constructed");
        let object = Box::new(Object { words: [0; WORDS] });
        let mut kept = Kept { object };
        assert!(run(&mut kept, &params).is_err());
        // SAFETY: ours.
        unsafe { construct(&raw mut *kept.object) };
        run(&mut kept, &params).expect("constructed once");
    }
}
