//! Operators that the program has replaced.
//!
//! A program may replace `operator new(size_t)` and `operator delete(void *)` only: the standard lets the array, sized and nothrow
//! forms call these two. The forms of this library do not call them. So where the program has replaced a plain form, the other
//! forms go to the C++ library, which calls it.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const REPLACED: u8 = 2;

static PLAIN: AtomicU8 = AtomicU8::new(UNKNOWN);

unsafe extern "C-unwind" {
    // The plain forms, which the other forms call. The loader has bound these names, as those of the program, to the first definition.
    fn _Znwm(size: usize) -> *mut c_void;
    fn _Znam(size: usize) -> *mut c_void;
    fn _ZnwmSt11align_val_t(size: usize, align: usize) -> *mut c_void;
    fn _ZnamSt11align_val_t(size: usize, align: usize) -> *mut c_void;
    fn _ZdlPv(block: *mut c_void);
    fn _ZdaPv(block: *mut c_void);
    fn _ZdlPvSt11align_val_t(block: *mut c_void, align: usize);
    fn _ZdaPvSt11align_val_t(block: *mut c_void, align: usize);
}

unsafe extern "C" {
    /// Where this library begins, and its code ends: the linker's names.
    static __ehdr_start: u8;
    static _etext: u8;
}

/// Whether the program has replaced a plain form.
#[inline]
pub(crate) fn any() -> bool {
    match PLAIN.load(Ordering::Relaxed) {
        OURS => false,
        REPLACED => true,
        _ => look(),
    }
}

#[cold]
fn look() -> bool {
    let here = (&raw const __ehdr_start).addr()..(&raw const _etext).addr();
    let plain = [
        _Znwm as *const () as usize,
        _Znam as *const () as usize,
        _ZnwmSt11align_val_t as *const () as usize,
        _ZnamSt11align_val_t as *const () as usize,
        _ZdlPv as *const () as usize,
        _ZdaPv as *const () as usize,
        _ZdlPvSt11align_val_t as *const () as usize,
        _ZdaPvSt11align_val_t as *const () as usize,
    ];
    let replaced = plain.iter().any(|form| !here.contains(form));
    PLAIN.store(if replaced { REPLACED } else { OURS }, Ordering::Relaxed);
    replaced
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
