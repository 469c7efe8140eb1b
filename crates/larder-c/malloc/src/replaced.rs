//! Operators that the program has replaced.
//!
//! A program may replace `operator new(size_t)` and `operator delete(void *)` and leave the other forms alone: the standard has
//! the arrays', the sized and the nothrow forms call those. Ours do not, since both would be ours; so where a plain form is the
//! program's, the other forms are left to the C++ library, which calls it.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const REPLACED: u8 = 2;

static PLAIN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The forms that others are made of.
const NAMES: [&CStr; 8] = [
    c"_Znwm",
    c"_Znam",
    c"_ZdlPv",
    c"_ZdaPv",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZdlPvSt11align_val_t",
    c"_ZdaPvSt11align_val_t",
];

/// Is one of the plain forms the program's? One load: it is known since the library was loaded, but for the constructors that
/// run before its own.
#[inline]
pub(crate) fn any() -> bool {
    match PLAIN.load(Ordering::Relaxed) {
        OURS => false,
        REPLACED => true,
        _ => look(),
    }
}

/// Looks, which takes the loader's lock. So it is done before a constructor can wait for a thread of its own that uses an
/// operator: one that is loaded by `dlopen` holds that lock.
#[cold]
pub(crate) fn look() -> bool {
    let here = object_of(object_of as *const c_void);
    let replaced = NAMES.iter().any(|name| {
        // SAFETY: a name that ends, in a scope that the loader defines.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        !found.is_null() && object_of(found) != here
    });
    PLAIN.store(if replaced { REPLACED } else { OURS }, Ordering::Relaxed);
    replaced
}

/// Where the program or library begins that has this address.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeroes is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for, and the answer is written to `info`.
    unsafe { libc::dladdr(address, &raw mut info) };
    info.dli_fbase
}

/// The C++ library's function of a name, which is looked up once, at its first use; NULL where there is none.
pub(crate) fn library(cached: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cached.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a name that ends, in the objects after this one.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    cached.store(found, Ordering::Relaxed);
    found
}
