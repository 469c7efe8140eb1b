//! The heap of the program in debug mode: threads get no heaps of their own, and whatever is allocated comes to the one
//! debug heap.
//!
//! What the debug heap allocates itself, through the unwinder or the loader, comes from the ordinary size classes: the
//! thread's stage says that it is inside.

use core::alloc::Layout;
use core::fmt::Write;
use core::ptr::{NonNull, null_mut};
use std::sync::Arc;

use super::mode::environment;
use super::slot::{self, Stage};
use super::{misuse, state};
use crate::heap::debug::{
    Call, Claim, DebugHeap, Here, LeakStats, LiveBlock, Options, Origin, Outcome, Output,
    keep_stderr, watch,
};
use crate::heap::{AllocError, Classes};
use crate::objects::Family;
use crate::os::Linux;

/// A size or an alignment that the caller does not say.
pub(super) const UNSAID: usize = usize::MAX;

/// The debug heap, if `LARDER_MALLOC_DEBUG` asks for it.
pub(super) fn make(family: &Family) -> Option<DebugHeap> {
    let text = environment(c"LARDER_MALLOC_DEBUG")?;
    let Ok(text) = core::str::from_utf8(text) else {
        say("LARDER_MALLOC_DEBUG is no text; it is ignored");
        return None;
    };
    let options = Options::read(text, &mut |bad| {
        let _ = writeln!(
            Output::new(),
            "larder: LARDER_MALLOC_DEBUG: {bad}; it is ignored"
        );
    })?;
    match DebugHeap::new(Classes::plain(family, false), Arc::new(Linux), options) {
        Ok(heap) => Some(heap),
        Err(_) => {
            say("there is no memory for the debug heap; going on without it");
            None
        }
    }
}

fn say(text: &str) {
    let _ = writeln!(Output::new(), "larder: {text}");
}

/// What a debug heap needs of the process, once it has its place: to look at all blocks when the program ends, and at
/// touched guard pages. The former is registered before the program's own handlers, so it runs after them.
pub(super) fn begin() {
    extern "C" fn end() {
        if let Some(debug) = debug() {
            let here = Here::new();
            inside(|| debug.at_exit(&here));
        }
    }
    if let Some(debug) = debug() {
        keep_stderr();
        watch(debug);
        // SAFETY: a plain function that stays. A refusal (no memory) only means that the blocks are not looked at.
        unsafe { libc::atexit(end) };
    }
}

fn debug() -> Option<&'static DebugHeap> {
    state::global().and_then(state::Global::debug)
}

/// Runs what may itself allocate.
fn inside<T>(f: impl FnOnce() -> T) -> T {
    struct Back(Stage);
    impl Drop for Back {
        fn drop(&mut self) {
            slot::set_stage(self.0);
        }
    }
    let _back = Back(slot::stage());
    slot::set_stage(Stage::Inside);
    f()
}

fn claim(size: usize, align: usize, call: Call) -> Claim {
    Claim {
        call,
        size: (size != UNSAID).then_some(size),
        align: (align != UNSAID).then_some(align),
    }
}

pub(super) fn alloc(
    debug: &DebugHeap,
    layout: Layout,
    zeroed: bool,
    origin: Origin,
) -> Result<NonNull<u8>, AllocError> {
    inside(|| debug.alloc(layout, zeroed, origin))
}

/// False when there is no debug heap, or it knows no such block.
///
/// # Safety
/// As for `front::free`.
pub(super) unsafe fn free(object: NonNull<u8>, size: usize, align: usize, call: Call) -> bool {
    debug().is_some_and(|debug| {
        // SAFETY: the caller's promise.
        let freed = inside(|| unsafe { debug.free(object, claim(size, align, call)) });
        matches!(freed, Outcome::Done(()))
    })
}

/// `None` when there is no debug heap, or it knows no such block.
///
/// # Safety
/// As for `front::realloc`.
pub(super) unsafe fn realloc(
    object: NonNull<u8>,
    old: usize,
    size: usize,
    align: usize,
    call: Call,
) -> Option<*mut u8> {
    let debug = debug()?;
    let Ok(layout) = Layout::from_size_align(size, align) else {
        return Some(null_mut());
    };
    // A caller that knows the old size knows the alignment too.
    let claim = claim(old, if old == UNSAID { UNSAID } else { align }, call);
    // SAFETY: the caller's promise.
    match inside(|| unsafe { debug.realloc(object, layout, claim) }) {
        Outcome::Done(result) => Some(result.map_or(null_mut(), NonNull::as_ptr)),
        Outcome::Unknown => None,
    }
}

/// Bytes that were asked for; 0 for what is not in use.
pub(super) fn size(object: NonNull<u8>) -> usize {
    let Some(debug) = debug() else {
        return 0;
    };
    inside(|| match debug.size(object) {
        Outcome::Done(size) => size,
        Outcome::Unknown => {
            debug.invalid(object, Claim::of(Call::UsableSize));
            0
        }
    })
}

/// Says that no block begins at an address. Ends the process, unless it is debugged and shall go on.
#[cold]
pub(super) fn foreign(object: NonNull<u8>, call: Call) {
    match debug() {
        Some(debug) => inside(|| debug.invalid(object, Claim::of(call))),
        None => misuse::end(object.as_ptr() as usize, call.name()),
    }
}

/// What the program's heap checks; `None` when it is not in debug mode, or not there yet.
///
/// ```
/// // This program was started without LARDER_MALLOC_DEBUG.
/// assert_eq!(larder::heap::global::debug_options(), None);
/// ```
#[must_use]
pub fn debug_options() -> Option<Options> {
    debug().map(|debug| *debug.options())
}

/// Shows every live block of the program, in debug mode; shows none without it. Each is shown once, and those that come
/// and go meanwhile may be missed. What `f` allocates itself is not debugged. Takes time in proportion to the blocks that
/// there were at most.
///
/// ```
/// larder::heap::global::for_each_live(|block| println!("{} bytes at {:#x}", block.size, block.address));
/// ```
pub fn for_each_live(mut f: impl FnMut(LiveBlock)) {
    if let Some(debug) = debug() {
        inside(|| debug.for_each_live(&mut f));
    }
}

/// Looks at the redzones of all blocks and at all freed blocks that are kept, in debug mode. Reports each damage, and
/// ends the process unless the options say that it goes on. Returns how many there were; 0 without debug mode.
///
/// ```
/// assert_eq!(larder::heap::global::check(), 0);
/// ```
pub fn check() -> usize {
    debug().map_or(0, |debug| inside(|| debug.check()))
}

/// Searches for blocks that nothing of the program points to, in debug mode, and reports them on standard error by the
/// place that allocated them. Threads are stopped for the time of it: some milliseconds and what it takes to read all
/// memory that the program wrote. `None` without debug mode, or without memory for the search.
///
/// ```
/// // This program was started without LARDER_MALLOC_DEBUG.
/// assert_eq!(larder::heap::global::leaks(), None);
/// ```
pub fn leaks() -> Option<LeakStats> {
    let here = Here::new();
    debug().and_then(|debug| inside(|| debug.leaks(&here)))
}
