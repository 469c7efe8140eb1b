//! Text for standard error, without an allocation and without a lock, in as few writes as possible so that the lines of
//! threads do not mix.
//!
//! No lock: a message asks the loader for names, and the thread that holds the loader's lock may have a message of its
//! own. And no large array on the stack, which may be a signal handler's small one.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::heap::stderr;

const ROOM: usize = 16 << 10;
const SMALL: usize = 256;

struct Buffer {
    taken: AtomicBool,
    bytes: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: the bytes are touched only by the `Output` that set `taken`.
unsafe impl Sync for Buffer {}

static BUFFERS: [Buffer; 4] = [const {
    Buffer {
        taken: AtomicBool::new(false),
        bytes: UnsafeCell::new([0; ROOM]),
    }
}; 4];

/// A message on its way; written when it is dropped, or when the buffer is full.
pub(super) struct Output {
    /// The large buffer, if there was one.
    large: Option<&'static Buffer>,
    small: [u8; SMALL],
    len: usize,
}

impl Output {
    pub(super) fn new() -> Self {
        let large = BUFFERS
            .iter()
            .find(|buffer| !buffer.taken.swap(true, Ordering::Acquire));
        Self {
            large,
            small: [0; SMALL],
            len: 0,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self.large {
            // SAFETY: this value set `taken`, so the bytes are its own.
            Some(buffer) => unsafe { &mut *buffer.bytes.get() },
            None => &mut self.small,
        }
    }

    fn flush(&mut self) {
        let len = self.len;
        let mut rest = &self.bytes()[..len];
        while !rest.is_empty() {
            match stderr::write(rest) {
                Ok(n) if n > 0 => rest = &rest[n..],
                Err(Errno::INTR) => {}
                // There is nowhere to report that standard error cannot be written.
                _ => break,
            }
        }
        self.len = 0;
    }
}

/// A line of its own, as long as it may be.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = fmt::Write::write_fmt(&mut Output::new(), format_args!("larder: {text}\n"));
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes().len();
        for part in text.as_bytes().chunks(room) {
            if self.len + part.len() > room {
                self.flush();
            }
            let len = self.len;
            self.bytes()[len..len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
        if let Some(buffer) = self.large {
            buffer.taken.store(false, Ordering::Release);
        }
    }
}
