//! Signals that arrive inside the restartable sections as fast as the machine can send them, while threads are moved between
//! CPUs: nothing is lost or has two owners.
//!
//! A section that is interrupted resumes at its abort address, which the kernel knows by the signature in front of it; so the
//! handler can tell, and the storm counts, how often a signal really hit a section. `LARDER_STRESS_SECONDS` says for how long.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use larder::os::rseq::Mode;

use super::cpus::{allowed_cpus, pin};
use super::{Rng, stress};

const PERIOD_US: libc::suseconds_t = 30;
const RSEQ_SIGNATURE: u32 = 0x5305_3053;

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static RESTARTS: AtomicU64 = AtomicU64::new(0);
/// What the handler does beside counting.
static BESIDE: OnceLock<fn()> = OnceLock::new();

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
    if let Some(work) = BESIDE.get() {
        work();
    }
}

/// Lets the handler do this, too.
pub(crate) fn also(work: fn()) {
    BESIDE.set(work).unwrap();
}

/// Signals that were handled.
pub(crate) fn signals() -> u64 {
    SIGNALS.load(Ordering::Relaxed)
}

/// Handles SIGALRM from here on, sent by a timer of the process.
pub(crate) fn start_timer() {
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
pub(crate) fn take_alarms(take: bool) {
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

/// What is under the storm: things that are taken and given back, by themselves or many at once.
pub(crate) trait Source: Sync {
    type Held;
    /// Most of them that one of so many threads holds.
    fn most_held(&self, threads: usize) -> usize;
    fn get(&self, rng: &mut Rng, out: &mut Vec<Self::Held>);
    /// Notes the owner's token.
    fn mark(&self, held: &mut Self::Held, token: u64);
    /// Panics if another token was noted since; there is none afterwards.
    fn check(&self, held: &Self::Held, token: u64);
    fn put(&self, held: Self::Held);
    fn put_many(&self, many: &mut Vec<Self::Held>);
    /// Returns all that is not in use to the source, while the other threads go on.
    fn park(&self);
    /// What did not come back, and bytes that are out.
    fn end(self) -> (usize, usize);
}

/// Threads take and put under signals and moves. Each thing carries a token while it is held.
pub(crate) fn storm<S: Source>(mode: Mode, threads: usize, source: S) {
    let stop = AtomicBool::new(false);
    let gets = AtomicU64::new(0);
    let most = source.most_held(threads);
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
                    let mut held: Vec<(S::Held, u64)> = Vec::new();
                    let mut got = Vec::new();
                    let mut n = (me as u64) << 40;
                    let checked = |(one, token)| {
                        source.check(&one, token);
                        one
                    };
                    while !stop.load(Ordering::Relaxed) {
                        if held.len() < most && (held.is_empty() || rng.below(2) == 0) {
                            source.get(&mut rng, &mut got);
                            for mut one in got.drain(..) {
                                n += 1;
                                source.mark(&mut one, n);
                                held.push((one, n));
                            }
                        } else if rng.below(16) == 0 {
                            let from = held.len() - held.len().min(7);
                            got.extend(held.drain(from..).map(checked));
                            source.put_many(&mut got);
                        } else {
                            source.put(checked(held.swap_remove(rng.below(held.len()))));
                        }
                    }
                    held.drain(..).map(checked).for_each(|one| source.put(one));
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
            // The timer hits one thread in a period at best; this hits all of them besides.
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
    assert_eq!(source.end(), (0, 0), "something was lost");
    let (signals, restarts) = (signals(), RESTARTS.load(Ordering::Relaxed));
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

/// As many threads as run at once here.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}
