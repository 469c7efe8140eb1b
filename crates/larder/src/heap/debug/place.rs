//! What lies at an address that is no block's.

use core::ffi::c_void;

/// In words, for a message.
pub(super) fn of(address: usize) -> &'static str {
    if on_stack(address) {
        return "which is on the stack";
    }
    // SAFETY: all zeroes is a value, which the loader fills.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    if unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0 {
        return "which is in a module's code or data";
    }
    "where no block is"
}

/// On this thread's stack. Asking may allocate.
fn on_stack(address: usize) -> bool {
    // SAFETY: all zeroes is a value, which the library fills; it is destroyed if it was made.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return false;
        }
        let (mut low, mut bytes) = (core::ptr::null_mut(), 0);
        let known =
            libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        known == 0 && (low as usize..low as usize + bytes).contains(&address)
    }
}
