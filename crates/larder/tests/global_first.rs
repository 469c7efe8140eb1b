//! The first allocations of a program, by many threads at once: all of them are served, and not by the buffer of the start.

#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::sync::Barrier;

use larder::Larder;
use larder::internal::heap as global;

const ROLE: &str = "LARDER_TEST_FIRST";

#[test]
fn threads_that_come_first_together_are_all_served() {
    if std::env::var_os(ROLE).is_none() {
        for _ in 0..20 {
            let ended = Command::new(std::env::current_exe().unwrap())
                .env(ROLE, "1")
                .output()
                .unwrap();
            assert!(ended.status.success(), "{ended:?}");
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
