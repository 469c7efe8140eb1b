//! What the programs of tests share.

// Every program uses its own part of it.
#![allow(dead_code)]

pub(crate) mod cpus;
pub(crate) mod fork;
pub(crate) mod objects;
mod process;
pub(crate) mod signals;

pub(crate) use process::*;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

use larder::os::rseq::{self, Mode};
use larder::os::testing::{Call, Failing, Hook};
use larder::os::{OsError, page_size};
use larder::pages::{ClusterSize, PagePool, PagePoolBuilder};

/// Both modes, or the locked one alone where this machine has no restartable sequences.
pub(crate) fn modes() -> Vec<Mode> {
    let mut modes = vec![Mode::Locked("test")];
    if let mode @ Mode::PerCpu(_) = rseq::mode() {
        modes.push(mode);
    }
    modes
}

/// A builder that is the same on every machine: small magazines, so that their edges are met often.
pub(crate) fn builder(mode: Mode) -> PagePoolBuilder {
    PagePool::builder()
        .ignore_environment()
        .mode(mode)
        .magazine(7, 15)
        .reserve_bytes(64 << 20)
        .decay(Duration::from_secs(3600))
}

pub(crate) fn cluster(pages: usize) -> ClusterSize {
    ClusterSize::pages(pages).unwrap()
}

/// Runs `body` for every mode in a process of its own, so that nothing of the test harness or of other tests is there.
#[track_caller]
pub(crate) fn alone(test: &str, body: impl Fn(Mode)) {
    match role() {
        None => {
            for number in 0..modes().len() {
                print!("{}", run(test, &number.to_string()));
            }
        }
        // On a machine that is very busy the self-test of restartable sequences may fail in one process and not in another.
        Some(number) => match modes().get(number.parse::<usize>().unwrap()) {
            Some(&mode) => body(mode),
            None => println!("{test}: not run, restartable sequences failed their self-test here"),
        },
    }
}

/// How long the long tests take: `LARDER_STRESS_SECONDS`, else `usual` seconds. The locked mode, which has fewer ways
/// to go wrong, gets a quarter.
pub(crate) fn stress(mode: Mode, usual: f64) -> Duration {
    let seconds = std::env::var("LARDER_STRESS_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(usual);
    let share = if matches!(mode, Mode::PerCpu(_)) {
        1.0
    } else {
        0.25
    };
    Duration::from_secs_f64(seconds * share)
}

/// Tells the threads to stop, also when the test fails while they run: their scope would wait for ever.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.next() % n
    }
}

/// Writes `stamp` to both ends of a page.
pub(crate) fn stamp(page: &mut [u8], stamp: u64) {
    let n = page.len();
    page[..8].copy_from_slice(&stamp.to_ne_bytes());
    page[n - 8..].copy_from_slice(&stamp.to_ne_bytes());
}

/// Whether a page still carries a stamp at both ends.
pub(crate) fn is_stamped(page: &[u8], stamp: u64) -> bool {
    page[..8] == stamp.to_ne_bytes() && page[page.len() - 8..] == stamp.to_ne_bytes()
}

pub(crate) fn is_zero(page: &[u8]) -> bool {
    page.iter().all(|&b| b == 0)
}

/// Takes pages until the pool refuses, checks that there are exactly `pages`, all different and writable, and puts
/// them back: no page was lost, and none is there twice.
pub(crate) fn assert_holds(pool: &PagePool, pages: usize) {
    let mut held = Vec::new();
    let mut addresses = HashSet::new();
    let error = loop {
        match pool.get() {
            Ok(mut page) => {
                assert!(
                    addresses.insert(page.as_ptr()),
                    "a page was handed out twice"
                );
                stamp(&mut page, held.len() as u64);
                held.push(page);
            }
            Err(error) => break error,
        }
        assert!(held.len() <= pages, "more than {pages} pages");
    };
    assert_eq!(
        held.len(),
        pages,
        "pages are missing; the pool says: {error}"
    );
    for (i, page) in held.iter().enumerate() {
        assert!(is_stamped(page, i as u64), "page {i} was overwritten");
    }
}

/// Pages of `pages` pages from `at` on that are backed by memory.
pub(crate) fn backed(at: *const u8, pages: usize) -> usize {
    let mut vector = vec![0_u8; pages];
    // SAFETY: the kernel writes one byte for each page of the range.
    let result = unsafe {
        libc::mincore(
            at as *mut _,
            pages * page_size(),
            vector.as_mut_ptr().cast(),
        )
    };
    assert_eq!(result, 0, "mincore: {}", std::io::Error::last_os_error());
    vector.iter().filter(|&&byte| byte & 1 != 0).count()
}

/// Fails some calls, and keeps the account of mappings.
#[derive(Debug)]
pub(crate) struct Faults {
    failing: Failing,
    armed: AtomicBool,
    /// Calls that were seen while armed.
    seen: AtomicUsize,
    /// Whether returning memory may fail too.
    release_fails: bool,
    mapped: AtomicIsize,
}

impl Faults {
    pub(crate) fn new(failing: Failing, release_fails: bool) -> Self {
        Self {
            failing,
            armed: AtomicBool::new(true),
            seen: AtomicUsize::new(0),
            release_fails,
            mapped: AtomicIsize::new(0),
        }
    }

    /// No call fails from here on.
    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::Relaxed);
    }

    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Reservations that were not returned.
    pub(crate) fn mapped(&self) -> isize {
        self.mapped.load(Ordering::Relaxed)
    }
}

impl Hook for Faults {
    fn before(&self, call: Call, bytes: usize) -> Result<(), OsError> {
        if self.armed.load(Ordering::Relaxed) && (call != Call::Release || self.release_fails) {
            self.seen.fetch_add(1, Ordering::Relaxed);
            self.failing.before(call, bytes)?;
        }
        match call {
            Call::Reserve => self.mapped.fetch_add(1, Ordering::Relaxed),
            Call::Release => self.mapped.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        Ok(())
    }
}
