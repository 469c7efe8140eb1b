//! Signals arrive inside the restartable sections as fast as the machine can send them: no page is lost or doubled.
//!
//! A section that is interrupted resumes at its abort address, which the kernel knows by the signature in front of it;
//! so the handler can tell, and the test counts, how often a signal really hit a section.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::cpus::{allowed_cpus, pin};
use crate::common::*;
use larder::os::page_size;
use larder::os::rseq::Mode;
use larder::pages::PagePool;

const PAGES: usize = 600;
const PERIOD_US: libc::suseconds_t = 50;
const RSEQ_SIGNATURE: u32 = 0x5305_3053;

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static RESTARTS: AtomicU64 = AtomicU64::new(0);
/// The pool that the busy handler uses; null for the handler that only counts.
static SECOND: AtomicPtr<PagePool> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the kernel passes the interrupted thread's context.
        let at = unsafe {
            (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize]
        };
        // SAFETY: the bytes before the instruction pointer are code of some mapping, which is readable; a pointer at
        // the very start of a mapping is a function's first instruction in no loaded object.
        if unsafe { (at as *const u32).sub(1).read_unaligned() } == RSEQ_SIGNATURE {
            RESTARTS.fetch_add(1, Ordering::Relaxed);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = context;
    // SAFETY: null, or a pool that outlives the threads that get signals.
    if let Some(pool) = unsafe { SECOND.load(Ordering::Acquire).as_ref() } {
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
}

/// Handles SIGALRM from here on, sent by a timer of the process.
fn start_timer() {
    // SAFETY: a handler of the right form and plain structures.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &raw const action, core::ptr::null_mut()),
            0
        );
        let period = libc::timeval {
            tv_sec: 0,
            tv_usec: PERIOD_US,
        };
        let timer = libc::itimerval {
            it_interval: period,
            it_value: period,
        };
        assert_eq!(
            libc::setitimer(libc::ITIMER_REAL, &raw const timer, core::ptr::null_mut()),
            0
        );
    }
}

/// Whether this thread takes SIGALRM: the workers do, so that the process's timer hits them.
fn take_alarms(take: bool) {
    // SAFETY: a set of signals on the stack.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGALRM);
        let how = if take {
            libc::SIG_UNBLOCK
        } else {
            libc::SIG_BLOCK
        };
        libc::pthread_sigmask(how, &raw const set, core::ptr::null_mut());
    }
}

/// The owner of each page, found by the page's address, so a page with two owners is seen when it happens.
struct Owners {
    by_page: Vec<AtomicUsize>,
    base: AtomicUsize,
}

impl Owners {
    fn of(&self, page: *const u8) -> &AtomicUsize {
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

/// Threads use the pool in every way under signals; returns how many gets there were.
fn storm(mode: Mode, threads: usize, park: bool) {
    let pool = builder(mode)
        .magazine(3, 31)
        .cluster(cluster(64))
        .limit_bytes(PAGES * page_size())
        .build()
        .unwrap();
    let owners = Owners {
        by_page: (0..3 * (64 << 20) / page_size())
            .map(|_| AtomicUsize::new(0))
            .collect(),
        base: AtomicUsize::new(0),
    };
    let share = PAGES / 2 / threads;
    let stop = AtomicBool::new(false);
    let gets = AtomicU64::new(0);
    take_alarms(false);
    start_timer();
    std::thread::scope(|s| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let workers: Vec<_> = (1..=threads)
            .map(|me| {
                let (pool, owners, stop, gets, sender) =
                    (&pool, &owners, &stop, &gets, sender.clone());
                s.spawn(move || {
                    // SAFETY: asks for the own number.
                    sender.send(unsafe { libc::pthread_self() }).unwrap();
                    drop(sender);
                    take_alarms(true);
                    let mut rng = Rng(me as u64);
                    let mut held = Vec::new();
                    let mut many = Vec::new();
                    let mut n = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        if rng.below(64) == 0 {
                            pool.get_many(&mut many, share.min(5)).unwrap();
                            for page in &many {
                                assert_eq!(
                                    owners.of(page.as_ptr()).swap(me, Ordering::AcqRel),
                                    0,
                                    "a page has two owners"
                                );
                            }
                            for page in &many {
                                assert_eq!(owners.of(page.as_ptr()).swap(0, Ordering::AcqRel), me);
                            }
                            pool.put_many(many.drain(..));
                        } else if held.len() < share && (held.is_empty() || rng.below(2) == 0) {
                            let mut page = pool.get().unwrap();
                            assert_eq!(
                                owners.of(page.as_ptr()).swap(me, Ordering::AcqRel),
                                0,
                                "a page has two owners"
                            );
                            n += 1;
                            stamp(&mut page, n);
                            held.push((page, n));
                        } else {
                            let (page, stamped) = held.swap_remove(rng.below(held.len()));
                            assert!(is_stamped(&page, stamped), "somebody wrote into our page");
                            assert_eq!(owners.of(page.as_ptr()).swap(0, Ordering::AcqRel), me);
                        }
                    }
                    for (page, stamped) in held {
                        assert!(is_stamped(&page, stamped));
                        owners.of(page.as_ptr()).store(0, Ordering::Release);
                    }
                    gets.fetch_add(n, Ordering::Relaxed);
                    // Signals go to the threads that still take them.
                    take_alarms(false);
                })
            })
            .collect();
        drop(sender);
        let targets: Vec<_> = receiver.iter().collect();
        let end = Instant::now() + stress(mode, 1.0);
        let mut turn = 0;
        while Instant::now() < end
            && !workers
                .iter()
                .any(std::thread::ScopedJoinHandle::is_finished)
        {
            // The timer hits one thread every 50 us at best; this hits all of them besides. The threads live until
            // `stop`, so their handles are good.
            for &target in &targets {
                // SAFETY: a thread that has not been joined.
                unsafe { libc::pthread_kill(target, libc::SIGALRM) };
            }
            turn += 1;
            if park && turn % 8 == 0 {
                pool.trim();
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(
            workers
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .all(|end| end.is_ok())
        );
    });
    assert_holds(&pool, PAGES);
    pool.trim();
    assert_eq!(pool.stats().out_bytes, 0, "pages were lost");
    let (signals, restarts) = (
        SIGNALS.load(Ordering::Relaxed),
        RESTARTS.load(Ordering::Relaxed),
    );
    println!(
        "{mode}, {threads} threads: {} gets, {signals} signals, {restarts} sections restarted",
        gets.load(Ordering::Relaxed)
    );
    assert!(signals > 100, "signals did not arrive");
    if matches!(mode, Mode::PerCpu(_)) {
        assert!(
            restarts > 0,
            "no signal hit a section, so nothing was tested"
        );
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

#[test]
fn signals_inside_the_sections() {
    alone("signals_inside_the_sections", |mode| {
        storm(mode, threads(), false)
    });
}

#[test]
fn signals_while_more_threads_than_cpus_are_parked() {
    alone("signals_while_more_threads_than_cpus_are_parked", |mode| {
        storm(mode, 4 * threads(), true);
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
        storm(mode, 1, false);
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
        assert!(SIGNALS.load(Ordering::Relaxed) > 0);
        pool.trim();
        assert_eq!(pool.stats().out_bytes, 0);
    });
}
