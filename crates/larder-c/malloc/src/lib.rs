//! `liblarder_malloc.so`: larder as the malloc of a program that knows nothing of it; and `liblarder_malloc_debug.so`, from the
//! same source, which checks what the program does with its blocks where `LARDER_MALLOC_DEBUG` asks for it.
//!
//!     LD_PRELOAD=/path/to/liblarder_malloc.so PROGRAM
//!
//! | module | what it is |
//! |---|---|
//! | `c` | malloc, free, calloc, realloc, reallocarray and what asks about blocks |
//! | `aligned` | the functions that take an alignment |
//! | `operators` | `new` and `delete` of C++ |
//! | `info` | what the heap holds, in the words of glibc's `malloc.h` |
//! | `profile` | the heap profile at the program's word |
//! | `start` | what happens when the library is loaded |
//! | `report` | what is written at the program's end, where it is asked for |
//! | `own` | the allocator of the library's own Rust code |
//! | `tls` | thread-local variables without the loader |
//! | `unwind` | the unwinder, loaded when it is needed; the checking malloc, which walks stacks from the first block on, links it |
//!
//! The heap itself is [`larder::Larder`], which may be called at any time: before `main`, while it is being made, at a
//! thread's end. Nothing here takes a lock or allocates, with one exception: where the program has replaced C++ operators, the
//! loader is asked once for those of the C++ library. The library exports the names of the C library that programs call, and
//! nothing else: a test reads the symbol table. A panic does not leave the library: `extern "C"` ends the process, since a broken
//! malloc has no caller to return an error to.
//!
//! Where the standard leaves a choice the functions follow glibc, with which programs are tested: `realloc(p, 0)` frees `p` and
//! returns NULL, a size of 0 is a block of its own, `memalign` rounds its alignment up. `aligned_alloc` refuses an alignment that
//! is not a power of two (`EINVAL`), as glibc does since 2.38.

mod aligned;
mod c;
mod errno;
mod info;
mod operators;
mod own;
mod profile;
mod replaced;
mod report;
mod start;
mod tls;
#[cfg(lazy_unwinder)]
mod unwind;
