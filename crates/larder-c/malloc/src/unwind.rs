//! The unwinder, loaded when it is first needed.
//!
//! The standard library calls it for panics, which never leave this library, and a heap profile for its stacks. To load
//! `libgcc_s.so.1` into each process costs a tenth of a millisecond at its start, so the names are here, hidden, and find the
//! functions at their first call. A profile makes that call while this library is initialised: later the loader's lock may be with
//! a thread that waits for the one that allocates.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

const LIBRARY: &CStr = c"libgcc_s.so.1";

/// Defines the functions, in the order of the table.
macro_rules! functions {
    ($($place:literal $name:literal)+) => {
        const NAMES: [&CStr; FUNCTIONS.len()] = [$(match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!(),
        }),+];
        static FUNCTIONS: [AtomicPtr<c_void>; [$($place),+].len()] =
            [$({ let _ = $place; AtomicPtr::new(null_mut()) }),+];
        $(core::arch::global_asm!(
            concat!(".pushsection .text.", $name, ", \"ax\", @progbits"),
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            concat!("mov rax, qword ptr [rip + {functions} + 8 * ", $place, "]"),
            "test rax, rax",
            "je 2f",
            "jmp rax",
            // None of them has more than three arguments.
            "2:",
            "push rdi",
            "push rsi",
            "push rdx",
            "call {load}",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            concat!("jmp qword ptr [rip + {functions} + 8 * ", $place, "]"),
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            functions = sym FUNCTIONS,
            load = sym load_or_end,
        );)+
    };
}

functions! {
    0 "_Unwind_Backtrace"
    1 "_Unwind_DeleteException"
    2 "_Unwind_GetCFA"
    3 "_Unwind_GetDataRelBase"
    4 "_Unwind_GetIP"
    5 "_Unwind_GetIPInfo"
    6 "_Unwind_GetLanguageSpecificData"
    7 "_Unwind_GetRegionStart"
    8 "_Unwind_GetTextRelBase"
    9 "_Unwind_RaiseException"
    10 "_Unwind_Resume"
    11 "_Unwind_SetGR"
    12 "_Unwind_SetIP"
}

/// Finds all of them; false where the library cannot be loaded.
#[cold]
pub(crate) fn load() -> bool {
    // SAFETY: a name that ends; the library is never closed.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
    !library.is_null()
        && NAMES.iter().zip(&FUNCTIONS).all(|(name, function)| {
            // SAFETY: a name that ends.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            function.store(found, Ordering::Release);
            !found.is_null()
        })
}

/// A caller that needs them cannot go on without.
#[cold]
extern "C" fn load_or_end() {
    if !load() {
        const SAID: &[u8] = b"larder: libgcc_s.so.1 cannot be loaded\n";
        // SAFETY: so many bytes are there; then the process ends.
        unsafe {
            libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
            libc::abort();
        }
    }
}
