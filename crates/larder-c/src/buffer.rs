//! Text into a buffer of C's.

use core::ffi::c_char;
use core::fmt::{self, Write};

use crate::error::{Failed, larder_status};

/// Counts every byte, keeps those that fit.
struct Cut {
    at: *mut u8,
    room: usize,
    len: usize,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let n = text.len().min(self.room.saturating_sub(self.len));
        if n > 0 {
            // SAFETY: `room` bytes are the caller's, `len + n` of them at most are written.
            unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), self.at.add(self.len), n) };
        }
        self.len += text.len();
        Ok(())
    }
}

/// Writes text with a zero byte at its end, as `snprintf` does: cut to the buffer, and `needed` says how many bytes the
/// whole takes, its end included.
///
/// # Safety
/// `buffer` points to `bytes` writable bytes, or is NULL and `bytes` is 0; `needed` is NULL or can be written.
pub(crate) unsafe fn text(
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    write: impl FnOnce(&mut dyn Write) -> fmt::Result,
) -> Result<(), Failed> {
    if buffer.is_null() && bytes > 0 {
        return Err(Failed::null("buffer"));
    }
    let mut cut = Cut {
        at: buffer.cast(),
        room: bytes.saturating_sub(1),
        len: 0,
    };
    // A sink that never fails.
    let _ = write(&mut cut);
    if bytes > 0 {
        // SAFETY: within the buffer, whose last byte is kept for this.
        unsafe { cut.at.add(cut.len.min(cut.room)).write(0) };
    }
    let whole = cut.len + 1;
    if !needed.is_null() {
        // SAFETY: the caller's promise.
        unsafe { needed.write(whole) };
    }
    if whole > bytes {
        return Err(Failed::number(
            larder_status::LARDER_BUFFER,
            "the buffer is too small: the text takes",
            whole as u64,
            " bytes",
        ));
    }
    Ok(())
}
