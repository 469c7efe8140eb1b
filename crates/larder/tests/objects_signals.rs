//! Signals arrive inside the restartable sections of object caches and of size classes as fast as the machine can send
//! them, while threads are moved between CPUs: no object is lost or has two owners.
//!
//! `LARDER_STRESS_SECONDS` says for how long; a section that was hit is known by its abort address, as in `pool_signals`.

#![allow(clippy::unwrap_used)]

mod common;
mod objects_common;

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use common::cpus::{allowed_cpus, pin};
use common::*;
use larder::heap::Classes;
use larder::objects::RawCache;
use larder::os::rseq::Mode;
use objects_common::*;

const PERIOD_US: libc::suseconds_t = 30;
const RSEQ_SIGNATURE: u32 = 0x5305_3053;
const MOST_HELD: usize = 60;

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static RESTARTS: AtomicU64 = AtomicU64::new(0);

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
}

/// Handles SIGALRM from here on, sent by a timer of the process.
fn start_timer() {
    // SAFETY: a handler of the right form and plain structures.
    let started = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        let period = libc::timeval {
            tv_sec: 0,
            tv_usec: PERIOD_US,
        };
        let timer = libc::itimerval {
            it_interval: period,
            it_value: period,
        };
        (
            libc::sigaction(libc::SIGALRM, &raw const action, core::ptr::null_mut()),
            libc::setitimer(libc::ITIMER_REAL, &raw const timer, core::ptr::null_mut()),
        )
    };
    assert_eq!(started, (0, 0));
}

/// Whether this thread takes SIGALRM: the workers do, so that the process's timer hits them.
fn take_alarms(take: bool) {
    let how = if take {
        libc::SIG_UNBLOCK
    } else {
        libc::SIG_BLOCK
    };
    // SAFETY: a set of signals on the stack.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGALRM);
        libc::pthread_sigmask(how, &raw const set, core::ptr::null_mut());
    }
}

/// All CPUs of this process, and each by itself.
fn cpus() -> Vec<Vec<usize>> {
    let all = allowed_cpus();
    let single: Vec<_> = all.iter().take(16).map(|&cpu| vec![cpu]).collect();
    core::iter::once(all).chain(single).collect()
}

/// What is under the storm: objects that are taken and given back, by themselves or many at once.
trait Source: Sync {
    fn get(&self, rng: &mut Rng, out: &mut Vec<NonNull<u8>>);
    fn put(&self, object: NonNull<u8>);
    fn put_many(&self, objects: &[NonNull<u8>]);
    /// Returns all objects that are not in use to the source, while the other threads go on.
    fn park(&self);
    /// Objects that did not come back, and pages that are out.
    fn end(self) -> (usize, usize);
}

impl Source for RawCache {
    fn get(&self, rng: &mut Rng, out: &mut Vec<NonNull<u8>>) {
        if rng.below(16) != 0 {
            return out.push(RawCache::get(self).unwrap());
        }
        let mut many = [NonNull::dangling(); 5];
        assert_eq!(self.get_many(&mut many), Ok(5));
        out.extend(many);
    }
    fn put(&self, object: NonNull<u8>) {
        put(self, object);
    }
    fn put_many(&self, objects: &[NonNull<u8>]) {
        // SAFETY: each was taken once.
        unsafe { RawCache::put_many(self, objects) };
    }
    fn park(&self) {
        self.drain();
    }
    fn end(self) -> (usize, usize) {
        self.drain();
        let (stats, family) = (self.stats(), self.family().clone());
        assert_eq!(stats.refused, 0);
        drop(self);
        family.drain();
        (stats.out, family.pool().stats().out_bytes)
    }
}

/// Sizes of the objects of [`Classes`] that the storm uses: which one, is in the upper half of their second word.
const SIZES: [usize; 3] = [16, 48, 700];

fn layout_of(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap()
}

impl Source for Classes {
    fn get(&self, rng: &mut Rng, out: &mut Vec<NonNull<u8>>) {
        let which = rng.below(SIZES.len());
        let object = self.alloc(layout_of(SIZES[which])).unwrap();
        // SAFETY: an object of at least 16 bytes, just taken.
        unsafe { object.cast::<u64>().add(1).write(which as u64) };
        out.push(object);
    }
    fn put(&self, object: NonNull<u8>) {
        // SAFETY: written above, and the object is the caller's.
        let which = unsafe { object.cast::<u64>().add(1).read() };
        // SAFETY: taken with this layout, put once.
        unsafe { self.dealloc(object, layout_of(SIZES[which as usize])) };
    }
    fn put_many(&self, objects: &[NonNull<u8>]) {
        for &object in objects {
            // SAFETY: each was taken once.
            unsafe { self.dealloc_by_address(object) };
        }
    }
    fn park(&self) {
        self.family().drain();
    }
    fn end(self) -> (usize, usize) {
        let family = self.family().clone();
        family.drain();
        let out = family.pool().stats().out_bytes;
        drop(self);
        (0, out)
    }
}

/// Threads take and put under signals and moves, each object stamped while it is held.
fn storm(mode: Mode, threads: usize, source: impl Source) {
    let stop = AtomicBool::new(false);
    let gets = AtomicU64::new(0);
    take_alarms(false);
    start_timer();
    std::thread::scope(|s| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let workers: Vec<_> = (1..=threads)
            .map(|me| {
                let (source, stop, gets, sender) = (&source, &stop, &gets, sender.clone());
                s.spawn(move || {
                    // SAFETY: asks for the own numbers.
                    sender
                        .send(unsafe { (libc::pthread_self(), libc::gettid()) })
                        .unwrap();
                    drop(sender);
                    take_alarms(true);
                    let mut rng = Rng(me as u64);
                    let mut held: Vec<(NonNull<u8>, u64)> = Vec::new();
                    let mut got = Vec::new();
                    let mut n = (me as u64) << 40;
                    let checked = |(object, token)| {
                        assert_eq!(marked(object), token, "an object has two owners");
                        mark(object, 0);
                        object
                    };
                    while !stop.load(Ordering::Relaxed) {
                        if held.len() < MOST_HELD && (held.is_empty() || rng.below(2) == 0) {
                            source.get(&mut rng, &mut got);
                            for object in got.drain(..) {
                                n += 1;
                                mark(object, n);
                                held.push((object, n));
                            }
                        } else if rng.below(16) == 0 {
                            let from = held.len() - held.len().min(7);
                            got.extend(held.drain(from..).map(checked));
                            source.put_many(&got);
                            got.clear();
                        } else {
                            source.put(checked(held.swap_remove(rng.below(held.len()))));
                        }
                    }
                    held.drain(..)
                        .map(checked)
                        .for_each(|object| source.put(object));
                    gets.fetch_add(n & 0xFF_FFFF_FFFF, Ordering::Relaxed);
                    // Signals go to the threads that still take them.
                    take_alarms(false);
                })
            })
            .collect();
        drop(sender);
        let targets: Vec<_> = receiver.iter().collect();
        let cpus = cpus();
        let end = Instant::now() + stress(mode, 1.0);
        let mut turn = 0;
        while Instant::now() < end
            && !workers
                .iter()
                .any(std::thread::ScopedJoinHandle::is_finished)
        {
            for &(thread, id) in &targets {
                // SAFETY: a thread that has not been joined: it lives until `stop`.
                unsafe { libc::pthread_kill(thread, libc::SIGALRM) };
                if turn % 16 == 0 {
                    pin(id, &cpus[(turn / 16 + id as usize) % cpus.len()]);
                }
            }
            turn += 1;
            if turn % 8 == 0 {
                source.park();
            }
        }
        for &(_, id) in &targets {
            pin(id, &cpus[0]);
        }
        stop.store(true, Ordering::Relaxed);
        let ends: Vec<_> = workers
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        assert!(ends.iter().all(Result::is_ok), "a worker failed");
    });
    assert_eq!(source.end(), (0, 0), "objects or pages were lost");
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
fn signals_and_moves_inside_the_sections_of_a_cache() {
    alone("signals_and_moves_inside_the_sections_of_a_cache", |mode| {
        storm(mode, threads(), options(64).create(&family(mode)).unwrap());
    });
}

#[test]
fn signals_while_more_threads_than_cpus_use_a_cache() {
    alone("signals_while_more_threads_than_cpus_use_a_cache", |mode| {
        storm(
            mode,
            4 * threads(),
            options(64).create(&family(mode)).unwrap(),
        );
    });
}

#[test]
fn signals_and_moves_inside_the_sections_of_classes() {
    alone("signals_and_moves_inside_the_sections_of_classes", |mode| {
        storm(mode, 2 * threads(), Classes::new(&family(mode)));
    });
}
