//! Object caches and size classes under the storm of signals.

use std::alloc::Layout;
use std::ptr::NonNull;

use crate::common::objects::*;
use crate::common::signals::{Source, storm, threads};
use crate::common::*;
use larder::heap::Classes;
use larder::objects::RawCache;

const MOST_HELD: usize = 60;

impl Source for RawCache {
    type Held = NonNull<u8>;
    fn most_held(&self, _: usize) -> usize {
        MOST_HELD
    }
    fn get(&self, rng: &mut Rng, out: &mut Vec<NonNull<u8>>) {
        if rng.below(16) != 0 {
            return out.push(RawCache::get(self).unwrap());
        }
        let mut many = [NonNull::dangling(); 5];
        assert_eq!(self.get_many(&mut many), Ok(5));
        out.extend(many);
    }
    fn mark(&self, object: &mut NonNull<u8>, token: u64) {
        mark(*object, token);
    }
    fn check(&self, object: &NonNull<u8>, token: u64) {
        assert_eq!(marked(*object), token, "an object has two owners");
        mark(*object, 0);
    }
    fn put(&self, object: NonNull<u8>) {
        put(self, object);
    }
    fn put_many(&self, objects: &mut Vec<NonNull<u8>>) {
        // SAFETY: each was taken once.
        unsafe { RawCache::put_many(self, objects) };
        objects.clear();
    }
    fn park(&self) {
        self.trim();
    }
    fn end(self) -> (usize, usize) {
        self.trim();
        let (stats, family) = (self.stats(), self.family().clone());
        assert_eq!(stats.refused, 0);
        drop(self);
        family.trim();
        (stats.out, family.pool().stats().out_bytes)
    }
}

/// Sizes of the objects of [`Classes`] that the storm uses: which one, is in the upper half of their second word.
const SIZES: [usize; 3] = [16, 48, 700];

fn layout_of(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap()
}

impl Source for Classes {
    type Held = NonNull<u8>;
    fn most_held(&self, _: usize) -> usize {
        MOST_HELD
    }
    fn get(&self, rng: &mut Rng, out: &mut Vec<NonNull<u8>>) {
        let which = rng.below(SIZES.len());
        let object = self.alloc(layout_of(SIZES[which])).unwrap();
        // SAFETY: an object of at least 16 bytes, just taken.
        unsafe { object.cast::<u64>().add(1).write(which as u64) };
        out.push(object);
    }
    fn mark(&self, object: &mut NonNull<u8>, token: u64) {
        mark(*object, token);
    }
    fn check(&self, object: &NonNull<u8>, token: u64) {
        assert_eq!(marked(*object), token, "an object has two owners");
        mark(*object, 0);
    }
    fn put(&self, object: NonNull<u8>) {
        // SAFETY: written above, and the object is the caller's.
        let which = unsafe { object.cast::<u64>().add(1).read() };
        // SAFETY: taken with this layout, put once.
        unsafe { self.dealloc(object, layout_of(SIZES[which as usize])) };
    }
    fn put_many(&self, objects: &mut Vec<NonNull<u8>>) {
        for object in objects.drain(..) {
            // SAFETY: each was taken once.
            unsafe { self.dealloc_by_address(object) };
        }
    }
    fn park(&self) {
        self.family().trim();
    }
    fn end(self) -> (usize, usize) {
        let family = self.family().clone();
        family.trim();
        let out = family.pool().stats().out_bytes;
        drop(self);
        (0, out)
    }
}

#[test]
fn signals_and_moves_inside_the_sections_of_a_cache() {
    alone("signals_and_moves_inside_the_sections_of_a_cache", |mode| {
        storm(mode, threads(), options(64).build(&family(mode)).unwrap());
    });
}

#[test]
fn signals_while_more_threads_than_cpus_use_a_cache() {
    alone("signals_while_more_threads_than_cpus_use_a_cache", |mode| {
        storm(
            mode,
            4 * threads(),
            options(64).build(&family(mode)).unwrap(),
        );
    });
}

#[test]
fn signals_and_moves_inside_the_sections_of_classes() {
    alone("signals_and_moves_inside_the_sections_of_classes", |mode| {
        storm(mode, 2 * threads(), Classes::new(&family(mode)));
    });
}
