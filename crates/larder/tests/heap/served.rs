//! The report of the paths that objects took is right.

use std::alloc::Layout;

use crate::common::modes;
use larder::heap::{Classes, Heap};
use larder::objects::Family;
use larder::os::rseq::Mode;

#[test]
fn hits_and_misses_of_all_classes_are_told_with_their_mode() {
    for mode in modes() {
        let classes = Classes::new(&Family::builder().mode(mode).build().unwrap());
        assert_eq!(classes.served().rseq_share(), None, "nobody asked");
        for size in [16, 100, 4096] {
            let layout = Layout::from_size_align(size, 16).unwrap();
            for _ in 0..1000 {
                let object = classes.alloc(layout).unwrap();
                // SAFETY: taken above with this layout, put once.
                unsafe { classes.dealloc(object, layout) };
            }
        }
        let served = classes.served();
        assert_eq!(served.mode, mode);
        assert!(
            (2700..=3000).contains(&served.hits) && (3..=300).contains(&served.misses),
            "{served:?}"
        );
        let share = served.rseq_share().unwrap();
        match mode {
            Mode::PerCpu(_) => assert!((0.9..1.0).contains(&share), "{share}"),
            Mode::Locked(_) => assert!(share == 0.0, "{share}"),
        }
    }
}

#[test]
fn heaps_and_large_objects_do_not_ask_the_cpus() {
    let classes = Classes::new(&Family::new().unwrap());
    let heap = Heap::new(&classes);
    let (small, large) = (Layout::new::<[u64; 4]>(), Layout::new::<[u8; 5 << 20]>());
    for layout in [small, large] {
        let object = heap.alloc(layout).unwrap();
        // SAFETY: taken above with this layout, put once.
        unsafe { heap.dealloc(object, layout) };
    }
    let object = classes.alloc(large).unwrap();
    // SAFETY: as above.
    unsafe { classes.dealloc(object, large) };
    assert_eq!(classes.served().hits, 0);
}
