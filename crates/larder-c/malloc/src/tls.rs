//! Thread-local variables without a call into the loader.
//!
//! The standard library was compiled for any shared object, so it calls `__tls_get_addr` for its thread-local variables. After a
//! `dlopen` the loader's function may first update the thread's list of modules, and then it calls malloc: this malloc, in the
//! middle of itself. So the library has a function of its own. The library is loaded with the program and marked so that all its
//! thread-local variables lie in the initial block (`DF_STATIC_TLS`), at the same distance from the thread pointer in every
//! thread. Only this library calls the function, so the address is a sum.
//!
//! Method: the initial-exec model of Drepper, "ELF Handling For Thread-Local Storage", 2013, behind the general one's call.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
core::arch::global_asm!(
    ".pushsection .text.larder_tls_get_addr, \"ax\", @progbits",
    ".hidden __tls_get_addr",
    ".globl __tls_get_addr",
    ".type __tls_get_addr, @function",
    "__tls_get_addr:",
    // Distances of a variable of this library from the thread pointer and from the begin of the library's block.
    "mov rax, qword ptr [rip + larder_thread_0_1@GOTTPOFF]",
    "lea rcx, [larder_thread_0_1@DTPOFF]",
    "sub rax, rcx",
    // The second word of the argument is the place in the block; the first, the module, is this library.
    "add rax, qword ptr [rdi + 8]",
    "add rax, qword ptr fs:[0]",
    "ret",
    ".size __tls_get_addr, . - __tls_get_addr",
    ".popsection",
);
