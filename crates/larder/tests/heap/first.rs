//! The first allocations of a program, by many threads at once: all of them are served, and not by the buffer of the start.

use std::sync::Barrier;

use crate::common::{role, run};
use larder::Larder;
use larder::internal::heap as global;

#[test]
fn threads_that_come_first_together_are_all_served() {
    if role().is_none() {
        for _ in 0..20 {
            run("threads_that_come_first_together_are_all_served", "first");
        }
        return;
    }
    // This program's own allocator is the system's, so larder's heap has had no call yet.
    let together = Barrier::new(8);
    std::thread::scope(|s| {
        for t in 0..8_u8 {
            let together = &together;
            s.spawn(move || {
                together.wait();
                for _ in 0..20_000 {
                    let at = global::alloc(500, 16);
                    assert!(!at.is_null(), "thread {t} was refused");
                    // SAFETY: a block of 500 bytes, put once.
                    unsafe {
                        at.write_bytes(t, 500);
                        assert_eq!(at.add(499).read(), t);
                        global::free(at);
                    }
                }
            });
        }
    });
    assert_eq!(Larder::stats().bootstrap_bytes, 0);
}
