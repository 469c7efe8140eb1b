//! Forks: how a child recognises that it is one, and the locks that are taken around a fork.
//!
//! Locks held by threads that do not exist in the child would never be released there. Registered locks are taken
//! around the fork; locks that are only ever tried carry the [`generation`] in which they were taken, so that the
//! child recognises a stale one.
//!
//! A signal handler may fork, in the middle of a fork and in the middle of a call that holds a lock. So a process that
//! started no thread takes no lock: what its thread holds, the thread's copy in the child releases. With threads all signals
//! are blocked from the first lock to the last release. If another library's fork handler or the handler of a fault forks
//! there nevertheless, its thread has the locks already.
//!
//! Where the C library's own malloc is this one, the lock of its list of streams comes before all of them. The C library's fork takes it
//! after the handlers. Its holder may wait for a stream, and the user of that stream for memory: so it must be taken before the locks
//! that memory needs. Elsewhere it must not: handlers that were registered before run with it, and may wait for a thread that opens a
//! stream.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::lock::RawLock;
use super::lock::order::Rank;
use super::signals::Blocked;

/// One lock, or several behind one name, such as those of all caches of a family: registering allocates, and caches
/// come and go where nothing may allocate.
pub(crate) trait Around {
    /// Takes all of it, in a fixed order.
    fn before(&self);
    /// Releases all of it. In the child of a fork no thread is left but the caller's.
    fn after(&self, in_child: bool);
}

impl Around for RawLock {
    fn before(&self) {
        self.lock_around_fork();
    }
    fn after(&self, _: bool) {
        self.unlock();
    }
}

static GENERATION: AtomicU32 = AtomicU32::new(1);
/// The streams of the C library get their memory here.
static SERVES_STREAMS: AtomicBool = AtomicBool::new(false);
static REGISTRY: Registry = Registry {
    lock: <RawLock>::new(Rank::ForkList),
    entries: UnsafeCell::new(Vec::new()),
    forker: AtomicUsize::new(0),
    fork: UnsafeCell::new(None),
};
touched_at_start! {
    static HANDLERS: AtomicBool = AtomicBool::new(false);
}

struct Registry {
    lock: RawLock,
    entries: UnsafeCell<Vec<*const dyn Around>>,
    /// The thread that took all locks to fork; 0 is none.
    forker: AtomicUsize,
    fork: UnsafeCell<Option<Fork>>,
}

/// What a thread that forks keeps while it holds all locks.
struct Fork {
    /// Forks within this one that have not ended.
    inner: u32,
    streams: Option<Streams>,
    _signals: Blocked,
}

// SAFETY: `entries` and `fork` are only touched while `lock` is held: by its holder, which is `forker` during a fork.
unsafe impl Sync for Registry {}

/// Number of forks between the first process and this one, plus one. Never 0.
#[must_use]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// From now on a fork waits for the C library's list of streams before it takes any lock: their memory comes from here. Called before
/// the program can register handlers, which then run before that.
pub fn serve_streams() {
    SERVES_STREAMS.store(true, Ordering::Relaxed);
}

/// Installs the handlers; later calls do nothing.
pub(crate) fn install() {
    // The interpreter has neither fork nor its handlers.
    if !cfg!(miri) && !HANDLERS.swap(true, Ordering::AcqRel) {
        // SAFETY: the three handlers are plain functions that live as long as the process. A refusal (ENOMEM)
        // leaves the child without handlers, which matters only if a lock is held at the fork.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    }
}

/// Takes `lock` around every fork until [`unregister`]. False when there is no memory to remember it.
///
/// # Safety
/// `lock` stays where it is and alive until it is unregistered.
#[must_use]
pub(crate) unsafe fn register(lock: *const dyn Around) -> bool {
    install();
    REGISTRY.lock.lock();
    // SAFETY: the registry's lock is held.
    let entries = unsafe { &mut *REGISTRY.entries.get() };
    let room = entries.try_reserve(1).is_ok();
    if room {
        entries.push(lock);
    }
    REGISTRY.lock.unlock();
    room
}

/// Forgets a lock.
pub(crate) fn unregister(lock: *const dyn Around) {
    REGISTRY.lock.lock();
    // SAFETY: the registry's lock is held.
    let entries = unsafe { &mut *REGISTRY.entries.get() };
    // What was registered last is mostly the first to go. The others stay in order.
    let at = entries.iter().rposition(|&l| core::ptr::addr_eq(l, lock));
    if let Some(at) = at {
        entries.remove(at);
    }
    REGISTRY.lock.unlock();
}

/// Calls `f` for every lock, the last registered first: an earlier lock may be taken under a later one (that of a pool under
/// those of its caches, that of the program's heap under all), so it must be free until the threads that hold the later
/// locks are done. `pthread_atfork` has the same order.
fn for_each(f: impl Fn(&dyn Around)) {
    // SAFETY: called between `prepare` and its counterpart, so the registry's lock is held, and registered locks
    // are alive by the contract of `register`.
    for &lock in unsafe { &*REGISTRY.entries.get() }.iter().rev() {
        // SAFETY: as above.
        f(unsafe { &*lock });
    }
}

/// The number of this thread, which its copy in the child has, too.
fn this_thread() -> usize {
    // SAFETY: it has no conditions, and is the same in the child.
    unsafe { libc::pthread_self() as usize }
}

/// The address of a name of the C library, or null where it has none. The linker binds it, so nothing is looked up when it is needed.
#[cfg(all(target_arch = "x86_64", target_env = "gnu", not(miri)))]
macro_rules! address_of {
    ($name:literal) => {{
        let address: *const c_void;
        // SAFETY: one load, of a word that holds the address, or null.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {address}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                address = out(reg) address,
                options(nostack, preserves_flags, readonly, pure),
            );
        }
        address
    }};
}

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu", not(miri))))]
macro_rules! address_of {
    ($name:literal) => {
        core::ptr::null::<c_void>()
    };
}

/// Whether the C library started no thread in this process. Its own fork then takes no lock either; false where it does not
/// say.
fn is_alone() -> bool {
    let alone = address_of!("__libc_single_threaded").cast::<AtomicBool>();
    // SAFETY: null, as before glibc 2.32, or the C library's variable, a byte of 0 or 1.
    unsafe { alone.as_ref() }.is_some_and(|alone| alone.load(Ordering::Relaxed))
}

/// The lock of the C library's list of streams. A thread may take it again while it has it.
struct Streams {
    unlock: unsafe extern "C" fn(),
    reset: unsafe extern "C" fn(),
}

impl Streams {
    /// Takes the lock, where their memory comes from here and the C library lets others have it.
    fn lock() -> Option<Self> {
        if !SERVES_STREAMS.load(Ordering::Relaxed) {
            return None;
        }
        let addresses = [
            address_of!("_IO_list_lock"),
            address_of!("_IO_list_unlock"),
            address_of!("_IO_list_resetlock"),
        ];
        // SAFETY: null, or functions of glibc that take and return nothing.
        let [lock, unlock, reset] = addresses.map(|at| unsafe {
            core::mem::transmute::<*const c_void, Option<unsafe extern "C" fn()>>(at)
        });
        let (lock, unlock, reset) = (lock?, unlock?, reset?);
        // SAFETY: `unlock` or `reset` ends it.
        unsafe { lock() };
        Some(Self { unlock, reset })
    }
}

/// What this thread keeps, if it holds all locks.
fn fork_of_this_thread() -> Option<&'static mut Option<Fork>> {
    // SAFETY: this thread holds the registry's lock, and with all signals blocked nothing of it is on the way elsewhere.
    (REGISTRY.forker.load(Ordering::Relaxed) == this_thread())
        .then(|| unsafe { &mut *REGISTRY.fork.get() })
}

extern "C" fn prepare() {
    if let Some(outer) = fork_of_this_thread() {
        if let Some(outer) = outer {
            outer.inner += 1;
        }
        return;
    }
    if is_alone() {
        return;
    }
    let signals = Blocked::new();
    let streams = Streams::lock();
    REGISTRY.lock.lock_around_fork();
    for_each(|lock| lock.before());
    // SAFETY: the registry's lock is held.
    unsafe {
        *REGISTRY.fork.get() = Some(Fork {
            inner: 0,
            streams,
            _signals: signals,
        });
    }
    REGISTRY.forker.store(this_thread(), Ordering::Relaxed);
}

extern "C" fn in_parent() {
    release(false);
}

/// Ends what [`prepare`] began.
fn release(in_child: bool) {
    // Without locks there is nothing to release.
    let Some(fork) = fork_of_this_thread() else {
        return;
    };
    match fork {
        Some(outer) if outer.inner > 0 => outer.inner -= 1,
        _ => {
            // Signals stay blocked until all locks are released.
            let fork = fork.take();
            for_each(|lock| lock.after(in_child));
            REGISTRY.forker.store(0, Ordering::Relaxed);
            REGISTRY.lock.unlock();
            if let Some(fork) = &fork
                && let Some(streams) = &fork.streams
            {
                // SAFETY: this thread took the lock.
                unsafe { (streams.unlock)() };
            }
        }
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // The C library resets the lock where it knows of threads. Twice is as good as once: the child has one thread.
    if let Some(Some(fork)) = fork_of_this_thread()
        && let Some(streams) = fork.streams.take()
    {
        // SAFETY: this thread took the lock, and no thread waits for it.
        unsafe { (streams.reset)() };
    }
    release(true);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn locks_that_stay_registered_keep_their_order() {
        let locks = [(); 3].map(|()| <RawLock>::new(Rank::IdLedger));
        for lock in &locks {
            // SAFETY: it stays where it is until the end of the test.
            assert!(unsafe { register(lock) });
        }
        let places = || {
            REGISTRY.lock.lock();
            // SAFETY: the registry's lock is held.
            let entries = unsafe { &*REGISTRY.entries.get() };
            let of = |lock| entries.iter().position(|&l| core::ptr::addr_eq(l, lock));
            let places = locks.each_ref().map(|lock| of(&raw const *lock));
            REGISTRY.lock.unlock();
            places
        };
        unregister(&locks[1]);
        let left = places();
        assert!(left[0].is_some() && left[1].is_none(), "{left:?}");
        assert!(left[0] < left[2], "{left:?}");
        unregister(&locks[0]);
        unregister(&locks[2]);
        assert_eq!(places(), [None; 3]);
    }
}
