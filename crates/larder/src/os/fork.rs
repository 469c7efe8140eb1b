//! What the child of a fork must know: that it is one.
//!
//! Locks held by threads that do not exist in the child would never be released there. Registered locks are taken
//! around the fork; locks that are only ever tried carry the [`generation`] in which they were taken, so that the
//! child recognises a stale one.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::lock::RawLock;
use super::lock::order::Rank;

/// One lock, or several behind one name, such as those of all caches of a family: registering allocates, and caches
/// come and go where nothing may.
pub(crate) trait Around {
    /// Takes all of it, in a fixed order.
    fn before(&self);
    /// Releases all of it.
    fn after(&self);
}

impl Around for RawLock {
    fn before(&self) {
        self.lock_around_fork();
    }
    fn after(&self) {
        self.unlock();
    }
}

static GENERATION: AtomicU32 = AtomicU32::new(1);
static REGISTRY: Registry = Registry {
    lock: <RawLock>::new(Rank::ForkList),
    entries: core::cell::UnsafeCell::new(Vec::new()),
};
static HANDLERS: AtomicBool = AtomicBool::new(false);

struct Registry {
    lock: RawLock,
    entries: core::cell::UnsafeCell<Vec<*const dyn Around>>,
}

// SAFETY: `entries` is only touched while `lock` is held.
unsafe impl Sync for Registry {}

/// Number of forks between the first process and this one, plus one. Never 0.
#[must_use]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
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
    unsafe { &mut *REGISTRY.entries.get() }.retain(|&l| !core::ptr::addr_eq(l, lock));
    REGISTRY.lock.unlock();
}

/// Calls `f` for every lock, the last registered first: what was there earlier may be used under what came later (a pool
/// under its caches, the program's heap under everything), so it must be free until those who hold the later locks are
/// done. `pthread_atfork` has the same order.
fn for_each(f: impl Fn(&dyn Around)) {
    // SAFETY: called between `prepare` and its counterpart, so the registry's lock is held, and registered locks
    // are alive by the contract of `register`.
    for &lock in unsafe { &*REGISTRY.entries.get() }.iter().rev() {
        // SAFETY: as above.
        f(unsafe { &*lock });
    }
}

extern "C" fn prepare() {
    REGISTRY.lock.lock_around_fork();
    for_each(|lock| lock.before());
}

extern "C" fn in_parent() {
    for_each(|lock| lock.after());
    REGISTRY.lock.unlock();
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    in_parent();
}
