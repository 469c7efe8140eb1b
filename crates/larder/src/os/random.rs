//! Unpredictable numbers, from the kernel.

use std::io;

/// Fills `bytes` from the kernel's generator. Waits until it is seeded, which is early when the machine starts.
///
/// # Errors
/// What the kernel says: it is older than 3.17, or a filter forbids the call.
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: `rest` is borrowed for writing, and the kernel writes no more than its length.
        let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(count) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}
