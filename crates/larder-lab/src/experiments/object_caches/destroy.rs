//! "Destruction could be murder": what the end of an interpreter costs, by its classes and its live objects.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use anyhow::ensure;
use larder::internal::heap::SIZES;
use larder::objects::{Family, RawCache};

use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::timing::touch;
use crate::model::{Measures, Params};

/// Classes that the bulk of the objects is in: the smallest, so that a million objects are some 70 MiB.
const BULK: usize = 8;

/// Objects in all heaps of a run together, about: more heaps where each is small, so that a clock can see them.
const WORK: usize = 4000;

/// Heaps of a run at most.
const MOST_HEAPS: usize = 8;

/// Heaps whose objects are freed one by one although they could die whole.
#[derive(Debug)]
pub(super) struct OneByOne<H>(pub(super) H);

impl<H: Heaps> Heaps for OneByOne<H> {
    type Local<'a>
        = H::Local<'a>
    where
        Self: 'a;

    fn local(&self) -> anyhow::Result<H::Local<'_>> {
        self.0.local()
    }
}

/// Size of object `i` of a heap with `classes` classes: each class has one first, then the small ones get the rest.
fn size_of(i: usize, classes: usize) -> usize {
    SIZES[if i < classes {
        i
    } else {
        i % classes.min(BULK)
    }]
}

/// How many heaps a run destroys.
fn heaps_of(objects: usize) -> usize {
    (WORK / objects).clamp(1, MOST_HEAPS)
}

/// Makes heaps with `objects` live objects in `classes` classes each, and times their end: every object freed, unless the
/// heap takes them with it, and the heap dropped.
///
/// # Errors
/// Missing factors, more classes than there are, no memory, and an object that is not as it was left.
pub(super) fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let (classes, objects) = (params.count("classes")?, params.count("objects")?);
    ensure!(
        classes > 0 && classes <= SIZES.len() && objects >= classes,
        "{objects} objects in {classes} classes were asked for; there are {} classes, and each is to have an object",
        SIZES.len()
    );
    let count = heaps_of(objects);
    let mut all = Vec::new();
    for number in 0..count {
        let mut heap = heaps.local()?;
        let mut live: Vec<NonNull<u8>> = Vec::with_capacity(objects);
        for i in 0..objects {
            let Some(object) = heap.alloc(size_of(i, classes)) else {
                anyhow::bail!("no memory for object {i} of {objects}");
            };
            // SAFETY: ours, and no class has less than 16 bytes.
            unsafe { touch(object.as_ptr(), stamp(number, i)) };
            live.push(object);
        }
        all.push((heap, live));
    }
    // An object that two have had at a time is not what it was.
    for (number, (_, live)) in all.iter().enumerate() {
        for (i, object) in live.iter().enumerate() {
            // SAFETY: live, written above.
            let found = unsafe { object.cast::<u64>().as_ptr().read_volatile() };
            ensure!(found == stamp(number, i), "object {i} was overwritten");
        }
    }
    let (mut destroyed, mut dropped) = (0, 0);
    for (mut heap, live) in all {
        let begin = Instant::now();
        if !H::DIES_WHOLE {
            for (i, object) in live.iter().enumerate() {
                // SAFETY: from this heap with this size, and not used again.
                unsafe { heap.free(*object, size_of(i, classes)) };
            }
        }
        // Nothing was freed then, and a look at the clock is not the heap's.
        let freed = if H::DIES_WHOLE {
            Duration::ZERO
        } else {
            begin.elapsed()
        };
        drop(heap);
        let end = begin.elapsed();
        destroyed += end.as_nanos();
        dropped += (end - freed).as_nanos();
    }
    Ok(measures(destroyed, dropped, count))
}

fn stamp(heap: usize, object: usize) -> u64 {
    (heap as u64) << 40 | object as u64
}

fn measures(destroyed: u128, dropped: u128, heaps: usize) -> Measures {
    // A clock that did not move would be a ratio of nothing.
    let each = |ns: u128| ns.max(1) as f64 / heaps as f64;
    Measures::new()
        .with("destroy_ns", each(destroyed))
        .with("drop_ns", each(dropped))
}

/// The same for an interpreter with a handle of each of `classes` object caches: more than there are size classes. Its
/// objects are back in the handles' magazines; what is timed is that these go to the depots.
///
/// # Errors
/// Missing factors, and what the caches need and do not get.
pub(super) fn run_handles(params: &Params) -> anyhow::Result<Measures> {
    let (classes, objects) = (params.count("classes")?, params.count("objects")?);
    ensure!(
        classes > 0 && classes <= 4096 && objects >= classes,
        "{objects} objects in {classes} caches were asked for; each is to have an object, and 4096 caches are enough"
    );
    let family = Family::new()?;
    let caches = (0..classes)
        .map(|i| {
            RawCache::new(&family, Layout::from_size_align(16 * (i % 32 + 1), 16)?)
                .map_err(Into::into)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let count = heaps_of(objects);
    let mut all = Vec::new();
    for _ in 0..count {
        let mut handles: Vec<_> = caches.iter().map(RawCache::handle).collect();
        let mut live = Vec::with_capacity(objects);
        for i in 0..objects {
            live.push(handles[i % classes].get()?);
        }
        for (i, object) in live.into_iter().enumerate() {
            // SAFETY: from this handle, put once.
            unsafe { handles[i % classes].put(object) };
        }
        all.push(handles);
    }
    let mut destroyed = 0;
    for handles in all {
        let begin = Instant::now();
        drop(handles);
        destroyed += begin.elapsed().as_nanos();
    }
    Ok(measures(destroyed, destroyed, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::{Broken, LarderHeaps, LarderPrivate, SystemMalloc};

    fn params(classes: i64, objects: i64) -> Params {
        Params::new()
            .with("classes", classes)
            .with("objects", objects)
    }

    #[test]
    fn every_object_is_freed_once_unless_the_heap_dies_whole() {
        let counting = Broken::new(SystemMalloc, 0);
        run(&counting, &params(30, 1000)).expect("runs");
        assert_eq!(counting.calls(), 4 * 1000);
        assert_eq!(counting.out(), 0);
        let private = LarderPrivate::new().expect("a family");
        let whole = run(&private, &params(30, 1000)).expect("runs");
        assert_eq!(whole.get("destroy_ns"), whole.get("drop_ns"));
        let freed = run(&OneByOne(private), &params(30, 1000)).expect("runs");
        assert!(freed.get("destroy_ns") > freed.get("drop_ns"));
        run(&LarderHeaps::new().expect("classes"), &params(40, 40)).expect("runs");
    }

    #[test]
    fn an_object_that_two_have_is_seen() {
        assert!(run(&Broken::new(SystemMalloc, 100), &params(1, 1000)).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let too_many = larder::internal::heap::CLASSES as i64 + 1;
        for (classes, objects) in [(0, 1), (too_many, 100), (30, 29)] {
            assert!(run(&SystemMalloc, &params(classes, objects)).is_err());
        }
        assert!(run_handles(&params(2, 1)).is_err());
        assert!(
            run_handles(&params(300, 300))
                .expect("runs")
                .get("destroy_ns")
                .is_some_and(|ns| ns > 0.0)
        );
    }
}
