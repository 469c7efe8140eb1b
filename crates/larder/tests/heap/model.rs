//! Heaps against a model: no object overlaps another, none is lost, and what is in it stays.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::NonNull;

use larder::heap::{Classes, Heap};
use larder::internal::heap::SIZES;
use larder::objects::Family;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Alloc {
        heap: usize,
        size: usize,
        align: usize,
    },
    Free {
        heap: usize,
        which: usize,
        known: bool,
    },
    Realloc {
        heap: usize,
        which: usize,
        size: usize,
    },
    Trim {
        heap: usize,
    },
    Replace {
        heap: usize,
    },
    Reap,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![12 => 0_usize..200, 6 => 0_usize..5000, 2 => 0_usize..300_000, 1 => 0_usize..4_000_000]
}

fn op() -> impl Strategy<Value = Op> {
    let heap = 0_usize..3;
    prop_oneof![
        8 => (heap.clone(), size(), 0_u32..14).prop_map(|(heap, size, align)| Op::Alloc { heap, size, align: 1 << align }),
        6 => (heap.clone(), any::<usize>(), any::<bool>()).prop_map(|(heap, which, known)| Op::Free { heap, which, known }),
        3 => (heap.clone(), any::<usize>(), size()).prop_map(|(heap, which, size)| Op::Realloc { heap, which, size }),
        1 => heap.clone().prop_map(|heap| Op::Trim { heap }),
        1 => heap.prop_map(|heap| Op::Replace { heap }),
        1 => Just(Op::Reap),
    ]
}

/// One live object: every byte of it has the same value.
struct Live {
    at: NonNull<u8>,
    layout: Layout,
    stamp: u8,
}

impl Live {
    fn new(at: NonNull<u8>, layout: Layout, stamp: u8) -> Self {
        assert_eq!(at.as_ptr() as usize % layout.align(), 0, "{layout:?}");
        // SAFETY: the object has this many bytes.
        unsafe { at.write_bytes(stamp, layout.size()) };
        Self { at, layout, stamp }
    }

    fn check(&self, bytes: usize) {
        // SAFETY: the object has this many bytes, all written.
        let bytes = unsafe { std::slice::from_raw_parts(self.at.as_ptr(), bytes) };
        assert!(
            bytes.iter().all(|&b| b == self.stamp),
            "{:?} was overwritten",
            self.layout
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn objects_are_disjoint_and_keep_what_is_in_them(ops in prop::collection::vec(op(), 1..400)) {
        let family = Family::builder()
            .pages(larder::pages::PagePool::builder().reserve_bytes(256 << 20))
            .build()
            .unwrap();
        let classes = Classes::new(&family);
        let mut heaps = [(); 3].map(|()| Heap::new(&classes));
        let mut live: Vec<Live> = Vec::new();
        let mut stamp = 0_u8;
        for op in ops {
            stamp = stamp.wrapping_add(1);
            match op {
                Op::Alloc { heap, size, align } => {
                    let layout = Layout::from_size_align(size, align).unwrap();
                    let at = heaps[heap].alloc(layout).unwrap();
                    live.push(Live::new(at, layout, stamp));
                }
                Op::Free { heap, which, known } if !live.is_empty() => {
                    let object = live.swap_remove(which % live.len());
                    object.check(object.layout.size());
                    // SAFETY: taken from a heap of the same classes, with this layout, and gone from the list.
                    unsafe {
                        if known {
                            heaps[heap].dealloc(object.at, object.layout);
                        } else {
                            heaps[heap].dealloc_by_address(object.at);
                        }
                    }
                }
                Op::Realloc { heap, which, size } if !live.is_empty() => {
                    let object = live.swap_remove(which % live.len());
                    let new = Layout::from_size_align(size, object.layout.align()).unwrap();
                    // SAFETY: as above.
                    let at = unsafe { heaps[heap].realloc(object.at, object.layout, new) }.unwrap();
                    let kept = Live { at, ..object };
                    kept.check(kept.layout.size().min(size));
                    live.push(Live::new(at, new, stamp));
                }
                Op::Trim { heap } => heaps[heap].trim(),
                Op::Replace { heap } => heaps[heap] = Heap::new(&classes),
                Op::Reap => {
                    family.maintain();
                }
                Op::Free { .. } | Op::Realloc { .. } => {}
            }
        }
        let mut spans: Vec<_> = live.iter().map(|o| (o.at.as_ptr() as usize, o.layout.size())).collect();
        spans.sort_unstable();
        prop_assert!(spans.windows(2).all(|w| w[0].0 + w[0].1.max(1) <= w[1].0));
        for object in &live {
            object.check(object.layout.size());
            prop_assert!(classes.usable_size(object.at).unwrap() >= object.layout.size());
            // SAFETY: taken above, put once.
            unsafe { classes.dealloc(object.at, object.layout) };
        }
        drop(heaps);
        family.trim();
        prop_assert_eq!(family.large_held_bytes(), 0);
        drop(classes);
        prop_assert_eq!(family.pool().stats().out_bytes, 0, "all slabs are home");
    }
}

#[test]
fn the_sizes_of_all_classes_are_whole() {
    let classes = Classes::new(&Family::new().unwrap());
    let heap = Heap::new(&classes);
    let mut at = HashMap::new();
    for (class, &size) in SIZES.iter().enumerate() {
        let layout = Layout::from_size_align(size, 1).unwrap();
        for _ in 0..100 {
            let object = heap.alloc(layout).unwrap();
            assert_eq!(classes.class_at(object), Some(class));
            assert!(at.insert(object, layout).is_none(), "the same object twice");
        }
    }
    for (object, layout) in at {
        // SAFETY: taken above, put once.
        unsafe { heap.dealloc(object, layout) };
    }
}
