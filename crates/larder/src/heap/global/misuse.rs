//! What happens when something is freed that is no block of the program's heap.

use core::fmt::{self, Write};
use core::ptr::NonNull;

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

/// A block stays as large as it is though its owner believes it to be smaller. Freed by its size it comes to the objects
/// of that size, serves as one of them, and is found when it goes home. One of the bootstrap has no home.
pub(super) fn outgrow() {
    if let Some(global) = state::global() {
        global.classes.outgrow();
    }
}

/// What the family meets when objects go home. Blocks of the bootstrap are no objects, but were as good as such.
pub(super) fn met(misuse: &Misuse) {
    let (Misuse::Foreign { addr } | Misuse::Misaligned { addr } | Misuse::Twice { addr }) = *misuse;
    let fine = NonNull::new(addr as *mut u8).is_some_and(bootstrap::has);
    if !fine {
        tell(format_args!("larder: {misuse}\n"));
        std::process::abort();
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
