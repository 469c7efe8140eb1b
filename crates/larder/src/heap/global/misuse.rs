//! What happens when something is freed that is no block of the program's heap.

use core::fmt::{self, Write};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{bootstrap, state};
use crate::objects::Misuse;

/// A line on the stack: nothing may be allocated here.
struct Line {
    bytes: [u8; 160],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let n = s.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

/// Blocks that are larger than the size that their owner knows: those that no memory was found to make smaller.
static OUTGROWN: AtomicUsize = AtomicUsize::new(0);

/// A block stays as large as it is though its owner believes it to be smaller. Freed by its size it comes to the objects
/// of that size, serves as one of them, and is found when it goes home. True, for it may.
pub(super) fn outgrow() -> bool {
    OUTGROWN.fetch_add(1, Ordering::Relaxed);
    true
}

/// What the family meets when objects go home. Blocks of the bootstrap are no objects, but were as good as such.
pub(super) fn met(misuse: &Misuse) {
    let (Misuse::Foreign { addr } | Misuse::Misaligned { addr } | Misuse::Twice { addr }) = *misuse;
    let fine = NonNull::new(addr as *mut u8).is_some_and(|at| {
        bootstrap::has(at) || matches!(misuse, Misuse::Foreign { .. }) && is_outgrown(at)
    });
    if !fine {
        tell(format_args!("larder: {misuse}\n"));
        std::process::abort();
    }
}

/// Brings one of those blocks to where it belongs; false when there is none, or none begins there.
fn is_outgrown(at: NonNull<u8>) -> bool {
    let there = OUTGROWN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    let (Ok(_), Some(global)) = (there, state::global()) else {
        return false;
    };
    let classes = &global.classes;
    match classes.class_at(at).and_then(|class| classes.cache(class)) {
        // SAFETY: an object that was freed by its owner, and that its magazine had no place for.
        Some(cache) => unsafe { cache.put_checked(at) }.is_ok(),
        // SAFETY: as above.
        None => unsafe { classes.family().put_large(at) }.is_ok(),
    }
}

/// Says what was brought that is nobody's, and ends the process: to go on would be worse.
#[cold]
pub(super) fn end(addr: usize, function: &str) -> ! {
    tell(format_args!(
        "larder: {function}({addr:#x}): no block of this heap begins there\n"
    ));
    std::process::abort()
}

fn tell(text: fmt::Arguments<'_>) {
    let mut line = Line {
        bytes: [0; 160],
        len: 0,
    };
    let _ = line.write_fmt(text);
    let _ = rustix::io::write(rustix::stdio::stderr(), &line.bytes[..line.len]);
}
