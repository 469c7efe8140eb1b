//! The page pool under the storm of signals.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::cpus::{allowed_cpus, pin};
use crate::common::signals::{Source, also, signals, start_timer, storm, take_alarms, threads};
use crate::common::*;
use larder::os::page_size;
use larder::os::rseq::Mode;
use larder::pages::{PageBuf, PagePool};

/// The pool that the busy handler uses.
static SECOND: AtomicPtr<PagePool> = AtomicPtr::new(core::ptr::null_mut());

/// What the busy handler does.
fn use_second() {
    // SAFETY: a pool that outlives the threads that get signals.
    let pool = unsafe { &*SECOND.load(Ordering::Acquire) };
    let pages = [pool.get_raw(), pool.get_raw()];
    for page in pages.into_iter().flatten() {
        // SAFETY: just taken, put once; the first word tells whether another thread has it, too.
        unsafe {
            let word = &*page.as_ptr().cast::<AtomicUsize>();
            if word.swap(1, Ordering::AcqRel) != 0 {
                libc::abort();
            }
            word.store(0, Ordering::Release);
            pool.put_raw(page);
        }
    }
}

/// The owner of each page, found by the page's address, so a page with two owners is seen when it happens.
struct Owners {
    by_page: Vec<AtomicU64>,
    base: AtomicUsize,
}

impl Owners {
    fn of(&self, page: *const u8) -> &AtomicU64 {
        // All pages lie in one reservation aligned to 2 MiB; the tests' one is 64 MiB.
        let _ = self.base.compare_exchange(
            0,
            page as usize >> 26 << 26,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        let offset = (page as usize)
            .wrapping_sub(self.base.load(Ordering::Relaxed))
            .wrapping_add(64 << 20);
        &self.by_page[offset / page_size()]
    }
}

/// A pool of so many pages, and whose they are.
struct Pages {
    pool: PagePool,
    pages: usize,
    owners: Owners,
}

impl Pages {
    fn new(mode: Mode, threads: usize) -> Self {
        let pages = usize::max(600, 32 * threads);
        let pool = builder(mode)
            .magazine(3, 31)
            .cluster(cluster(64))
            .limit_bytes(pages * page_size())
            .build()
            .unwrap();
        let owners = Owners {
            by_page: (0..3 * (64 << 20) / page_size())
                .map(|_| AtomicU64::new(0))
                .collect(),
            base: AtomicUsize::new(0),
        };
        Self {
            pool,
            pages,
            owners,
        }
    }
}

impl Source for Pages {
    type Held = PageBuf;
    /// Half of the pages, less those that come five at a time.
    fn most_held(&self, threads: usize) -> usize {
        self.pages / 2 / threads - 5
    }
    fn get(&self, rng: &mut Rng, out: &mut Vec<PageBuf>) {
        match rng.below(32) {
            0 => self.pool.get_many(out, 5).unwrap(),
            _ => out.push(self.pool.get().unwrap()),
        }
    }
    fn mark(&self, page: &mut PageBuf, token: u64) {
        let before = self.owners.of(page.as_ptr()).swap(token, Ordering::AcqRel);
        assert_eq!(before, 0, "a page has two owners");
        stamp(page, token);
    }
    fn check(&self, page: &PageBuf, token: u64) {
        assert!(is_stamped(page, token), "a held page was written to");
        let before = self.owners.of(page.as_ptr()).swap(0, Ordering::AcqRel);
        assert_eq!(before, token, "a page has two owners");
    }
    fn put(&self, page: PageBuf) {
        drop(page);
    }
    fn put_many(&self, pages: &mut Vec<PageBuf>) {
        self.pool.put_many(pages.drain(..));
    }
    fn park(&self) {
        self.pool.trim();
    }
    fn end(self) -> (usize, usize) {
        assert_holds(&self.pool, self.pages);
        self.pool.trim();
        (0, self.pool.stats().out_bytes)
    }
}

#[test]
fn signals_inside_the_sections() {
    alone("signals_inside_the_sections", |mode| {
        storm(mode, threads(), Pages::new(mode, threads()));
    });
}

#[test]
fn signals_while_more_threads_than_cpus_are_parked() {
    alone("signals_while_more_threads_than_cpus_are_parked", |mode| {
        storm(mode, 4 * threads(), Pages::new(mode, 4 * threads()));
    });
}

#[test]
fn handlers_that_use_a_pool_themselves() {
    alone("handlers_that_use_a_pool_themselves", |mode| {
        // Warm and wide, so that the handler takes the fast path, which is all that a handler may take: on every CPU,
        // because a thread may be moved to another one in the midst of the first pool's slow path.
        let second = Box::leak(Box::new(builder(mode).magazine(255, 255).build().unwrap()));
        for cpu in allowed_cpus() {
            std::thread::scope(|s| {
                s.spawn(|| {
                    pin(0, &[cpu]);
                    let warm: Vec<_> = (0..200).map(|_| second.get_zeroed().unwrap()).collect();
                    drop(warm);
                });
            });
        }
        SECOND.store(second, Ordering::Release);
        also(use_second);
        storm(mode, 1, Pages::new(mode, 1));
    });
}

#[test]
fn the_timer_alone_is_survived_for_long() {
    alone("the_timer_alone_is_survived_for_long", |mode| {
        let pool = builder(mode).build().unwrap();
        start_timer();
        take_alarms(true);
        let end = Instant::now() + stress(mode, 1.0);
        let mut turns = 0_u64;
        while Instant::now() < end {
            let (mut a, mut b) = (pool.get().unwrap(), pool.get().unwrap());
            assert_ne!(a.as_ptr(), b.as_ptr());
            stamp(&mut a, turns);
            stamp(&mut b, !turns);
            assert!(is_stamped(&a, turns) && is_stamped(&b, !turns));
            turns += 1;
        }
        take_alarms(false);
        assert!(signals() > 0);
        pool.trim();
        assert_eq!(pool.stats().out_bytes, 0);
    });
}
