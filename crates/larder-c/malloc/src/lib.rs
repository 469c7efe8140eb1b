//! `liblarder_malloc.so`: larder as the malloc of a program that knows nothing of it.
//!
//!     LD_PRELOAD=/path/to/liblarder_malloc.so PROGRAM
//!
//! | module | what it is |
//! |---|---|
//! | `c` | malloc, free, calloc, realloc, reallocarray and what asks about blocks |
//! | `aligned` | the functions that take an alignment |
//! | `operators` | `new` and `delete` of C++ |
//! | `start` | what happens when the library is loaded |
//! | `report` | what is written at the program's end, where it is asked for |
//! | `tls` | thread-local variables without the loader |
//!
//! The heap itself is [`larder::heap::global`], which may be called at any time: before `main`, while it is being made, at a
//! thread's end. Nothing here takes a lock or allocates, but where the program has replaced operators of C++: the loader is
//! asked for the library's once. What is exported is what the programs call, under the names of the C library, and
//! nothing else: a test reads the symbol table. A panic cannot leave: `extern "C"` ends the
//! process instead, since a broken malloc has no caller to return an error to.
//!
//! The functions follow glibc where the standard leaves a choice, since that is what the programs were tried with:
//! `realloc(p, 0)` frees and answers NULL, a size of 0 is a block of its own. Where glibc of old is lax, the standard's
//! word is taken: an alignment that is not a power of two is `EINVAL`.

mod aligned;
mod c;
mod errno;
mod operators;
mod replaced;
mod report;
mod start;
mod tls;
