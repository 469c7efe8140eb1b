//! What a heap has at hand: an object of its loaded magazines, or room for one. These functions do nothing else, so a
//! caller inlines a dozen instructions.

use core::ptr::NonNull;

use super::class::CLASSES;
use super::heap::{Heap, object};

impl Heap {
    /// An object of a class, if the loaded magazine has one.
    #[inline(always)]
    pub(super) fn try_get(&self, class: usize) -> Option<NonNull<u8>> {
        self.pair(class).try_get().map(object)
    }

    /// Puts an object of these classes, found by its address, into the loaded magazine, if that has room and the classes have numbers of
    /// their own.
    ///
    /// # Safety
    /// The object is given up, where this is true.
    #[inline(always)]
    pub(super) unsafe fn try_put(&self, object: *mut u8) -> bool {
        // SAFETY: the classes own the family.
        let owner = unsafe { self.view.owner_inside(object as usize) };
        owner.is_some_and(|owner| {
            let class = usize::from(owner).wrapping_sub(self.first_number);
            class < CLASSES && self.pair(class).try_put(object as usize)
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::alloc::Layout;
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::heap::{Classes, SIZES};
    use crate::objects::Family;

    /// Takes an object of each class from a heap of new classes and says the numbers of their caches, and how many may be put by their
    /// address alone.
    fn numbers(family: &Family) -> (Classes, Vec<usize>, usize) {
        let classes = Classes::plain(family, false);
        let heap = Heap::new(&classes);
        let objects: Vec<_> = SIZES
            .iter()
            .map(|size| {
                heap.alloc(Layout::from_size_align(*size, 1).unwrap())
                    .unwrap()
            })
            .collect();
        let number = |object: &NonNull<u8>| usize::from(family.owner_number(object.as_ptr()));
        let numbers = objects.iter().map(number).collect();
        let mut put = 0;
        for (class, object) in objects.into_iter().enumerate() {
            // SAFETY: taken above from this heap, put once.
            unsafe {
                if heap.try_put(object.as_ptr()) {
                    put += 1;
                    assert_eq!(heap.try_get(class), Some(object), "it lies in its class");
                }
                heap.dealloc(object, Layout::from_size_align(SIZES[class], 1).unwrap());
            }
        }
        (classes, numbers, put)
    }

    #[test]
    fn objects_of_the_first_classes_of_a_family_are_put_by_their_address() {
        let family = Family::new().unwrap();
        let by_class: Vec<_> = (1..=CLASSES).collect();
        let (first, own, put) = numbers(&family);
        assert_eq!((own, put), (by_class.clone(), CLASSES));
        let (_second, others, put) = numbers(&family);
        assert!(others.iter().all(|number| *number > CLASSES) && put == 0);
        drop(first);
        let (_third, again, put) = numbers(&family);
        assert_eq!((again, put), (by_class, CLASSES));
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many objects")]
    fn a_class_has_its_number_though_many_make_it_at_once() {
        const THREADS: usize = 4;
        let family = Family::new().unwrap();
        for _ in 0..50 {
            let classes = Classes::plain(&family, false);
            let begun = AtomicUsize::new(0);
            let take = || {
                let heap = Heap::new(&classes);
                for (class, size) in SIZES.iter().enumerate() {
                    let layout = Layout::from_size_align(*size, 1).unwrap();
                    // All at the same class.
                    begun.fetch_add(1, Ordering::Relaxed);
                    while begun.load(Ordering::Relaxed) < THREADS * (class + 1) {
                        std::thread::yield_now();
                    }
                    let object = heap.alloc(layout).unwrap();
                    let number = usize::from(family.owner_number(object.as_ptr()));
                    assert_eq!(number, class + 1);
                    // SAFETY: just taken.
                    unsafe { heap.dealloc(object, layout) };
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(take);
                }
            });
        }
    }

    #[test]
    fn what_is_no_object_of_a_class_is_not_put() {
        let family = Family::new().unwrap();
        let heap = Heap::new(&Classes::plain(&family, false));
        let large = Layout::from_size_align(2 << 20, 1).unwrap();
        let run = heap.alloc(large).unwrap();
        let beside = 0_u64;
        // SAFETY: none is put.
        unsafe {
            assert!(!heap.try_put(core::ptr::null_mut()));
            assert!(!heap.try_put(run.as_ptr()));
            assert!(!heap.try_put((&raw const beside).cast_mut().cast()));
            heap.dealloc(run, large);
        }
    }
}
