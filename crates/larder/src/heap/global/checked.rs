//! The heap of the program where every block is checked: threads get no heaps of their own, and all blocks come from one
//! [`Checker`].
//!
//! What the checker allocates itself, through the unwinder or the loader, comes from the ordinary size classes: the thread's
//! stage says that it is inside.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};

use super::misuse;
use super::mode::environment;
use super::slot::{self, Stage};
use crate::heap::{AllocError, Call, Checker, Claim, Origin, Outcome};
use crate::objects::Family;

/// A size or an alignment that the caller does not say.
pub(super) const UNSAID: usize = usize::MAX;

/// The checker, if `LARDER_MALLOC_DEBUG` asks for it.
#[cfg(feature = "debug-heap")]
pub(super) fn make(family: &Family) -> Option<Box<dyn Checker>> {
    use crate::heap::Classes;
    use crate::heap::debug::{DebugHeap, Options, say};

    let text = environment(c"LARDER_MALLOC_DEBUG")?;
    let Ok(text) = core::str::from_utf8(text) else {
        say(format_args!(
            "LARDER_MALLOC_DEBUG is no text; it is ignored"
        ));
        return None;
    };
    let options = Options::read(text, &mut |bad| {
        say(format_args!("LARDER_MALLOC_DEBUG: {bad}; it is ignored"));
    })?;
    let system = std::sync::Arc::new(crate::os::Linux);
    let heap = DebugHeap::new(Classes::plain(family, false), system, options);
    if heap.is_err() {
        say(format_args!(
            "there is no memory for the debug heap; going on without it"
        ));
    }
    Some(Box::new(heap.ok()?))
}

/// None: nothing is checked here, which is said where `LARDER_MALLOC_DEBUG` asks for it.
#[cfg(not(feature = "debug-heap"))]
pub(super) fn make(_: &Family) -> Option<Box<dyn Checker>> {
    let words = environment(c"LARDER_MALLOC_DEBUG")?;
    crate::heap::call::say_unchecked("LARDER_MALLOC_DEBUG", words);
    None
}

/// Runs what may itself allocate.
pub(super) fn inside<T>(f: impl FnOnce() -> T) -> T {
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
    checker: &dyn Checker,
    layout: Layout,
    zeroed: bool,
    origin: Origin,
) -> Result<NonNull<u8>, AllocError> {
    inside(|| checker.alloc(layout, zeroed, origin))
}

/// False when the checker knows no such block.
///
/// # Safety
/// As for `front::free`.
pub(super) unsafe fn free(
    checker: &dyn Checker,
    object: NonNull<u8>,
    size: usize,
    align: usize,
    call: Call,
) -> bool {
    // SAFETY: the caller's promise.
    let freed = inside(|| unsafe { checker.free(object, claim(size, align, call)) });
    matches!(freed, Outcome::Done(()))
}

/// `None` when the checker knows no such block.
///
/// # Safety
/// As for `front::realloc`.
pub(super) unsafe fn realloc(
    checker: &dyn Checker,
    object: NonNull<u8>,
    old: usize,
    size: usize,
    align: usize,
    call: Call,
) -> Option<*mut u8> {
    let Ok(layout) = Layout::from_size_align(size, align) else {
        return Some(null_mut());
    };
    // A caller that knows the old size knows the alignment too.
    let claim = claim(old, if old == UNSAID { UNSAID } else { align }, call);
    // SAFETY: the caller's promise.
    match inside(|| unsafe { checker.realloc(object, layout, claim) }) {
        Outcome::Done(result) => Some(result.map_or(null_mut(), NonNull::as_ptr)),
        Outcome::Unknown => None,
    }
}

/// Bytes that were asked for; 0 for what is not in use.
pub(super) fn size(checker: &dyn Checker, object: NonNull<u8>) -> usize {
    inside(|| match checker.size(object) {
        Outcome::Done(size) => size,
        Outcome::Unknown => {
            checker.invalid(object, Claim::of(Call::UsableSize));
            0
        }
    })
}

/// Says that no block begins at an address. Ends the process, unless it is checked and shall go on.
#[cold]
pub(super) fn foreign(checker: Option<&dyn Checker>, object: NonNull<u8>, call: Call) {
    match checker {
        Some(checker) => inside(|| checker.invalid(object, Claim::of(call))),
        None => misuse::end(object.as_ptr() as usize, call.name()),
    }
}
