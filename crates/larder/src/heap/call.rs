//! Which function allocated a block and which frees it, as far as the caller says; and what a checked heap makes of it.

use core::alloc::Layout;
use core::any::Any;
use core::fmt;
use core::ptr::NonNull;

use super::error::AllocError;

/// The function that a block came from. Its blocks go back by a function of the same family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Origin {
    /// malloc and its relatives, and the allocator of a Rust program.
    #[default]
    Malloc = 0,
    /// C++'s `operator new`.
    New = 1,
    /// C++'s `operator new[]`.
    NewArray = 2,
}

impl Origin {
    /// As messages name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::New => "operator new",
            Self::NewArray => "operator new[]",
        }
    }
}

/// The function that a block is brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// `free`.
    Free,
    /// `free_sized` of C23.
    FreeSized,
    /// `free_aligned_sized` of C23.
    FreeAlignedSized,
    /// `realloc` and `reallocarray`.
    Realloc,
    /// `malloc_usable_size`.
    UsableSize,
    /// C++'s `operator delete`.
    Delete,
    /// C++'s `operator delete[]`.
    DeleteArray,
    /// A deallocation or reallocation of the allocator of a Rust program, or of an explicit heap.
    Dealloc,
}

impl Call {
    /// As messages name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::FreeSized => "free_sized",
            Self::FreeAlignedSized => "free_aligned_sized",
            Self::Realloc => "realloc",
            Self::UsableSize => "malloc_usable_size",
            Self::Delete => "operator delete",
            Self::DeleteArray => "operator delete[]",
            Self::Dealloc => "dealloc",
        }
    }

    /// Whose blocks it takes.
    #[must_use]
    pub fn origin(self) -> Origin {
        match self {
            Self::Delete => Origin::New,
            Self::DeleteArray => Origin::NewArray,
            _ => Origin::Malloc,
        }
    }
}

/// A call with what its caller says about the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) call: Call,
    pub(crate) size: Option<usize>,
    pub(crate) align: Option<usize>,
}

impl Claim {
    /// A call with a layout is one of Rust's; one without says nothing more.
    fn with(otherwise: Call, layout: Option<Layout>) -> Self {
        Self {
            call: layout.map_or(otherwise, |_| Call::Dealloc),
            size: layout.map(|layout| layout.size()),
            align: layout.map(|layout| layout.align()),
        }
    }

    /// A call that says nothing.
    pub(crate) const fn of(call: Call) -> Self {
        Self {
            call,
            size: None,
            align: None,
        }
    }
}

/// What a call came to.
#[cfg_attr(
    not(feature = "debug-heap"),
    expect(dead_code, reason = "nothing checks")
)]
pub(crate) enum Outcome<T> {
    /// It is done, misuse of the block included, which was reported.
    Done(T),
    /// No block of this heap begins, or began lately, at the address.
    Unknown,
}

/// A heap that records every block and checks it. Classes and the program's heap that have one take all their blocks from it.
pub(crate) trait Checker: Any + fmt::Debug + Send + Sync {
    /// A block.
    ///
    /// # Errors
    /// No memory, or none on purpose.
    fn alloc(
        &self,
        layout: Layout,
        zeroed: bool,
        origin: Origin,
    ) -> Result<NonNull<u8>, AllocError>;

    /// Takes a block back.
    ///
    /// # Safety
    /// What the claim's function asks of its callers; misuse that can be found is reported.
    unsafe fn free(&self, at: NonNull<u8>, claim: Claim) -> Outcome<()>;

    /// A block of another size with the same contents; the old one is freed. It always moves, so that later uses of the
    /// old address are found.
    ///
    /// # Safety
    /// As for [`free`](Self::free).
    ///
    /// # Errors
    /// As for [`alloc`](Self::alloc); then the block stays.
    unsafe fn realloc(
        &self,
        at: NonNull<u8>,
        layout: Layout,
        claim: Claim,
    ) -> Outcome<Result<NonNull<u8>, AllocError>>;

    /// Bytes that were asked for.
    fn size(&self, at: NonNull<u8>) -> Outcome<usize>;

    /// Bytes that were asked for of a block in use; `None` for anything else.
    fn live_size(&self, at: NonNull<u8>) -> Option<usize>;

    /// Says that no block begins at an address.
    fn invalid(&self, at: NonNull<u8>, claim: Claim);

    /// At the end of a heap that goes: reports what is damaged, and unmaps what lies between guard pages. The rest goes
    /// with its classes.
    fn finish(&self);
}

impl dyn Checker {
    /// Takes a block of an explicit heap back; an address that is no block's is reported.
    ///
    /// # Safety
    /// As for [`Classes::dealloc`](super::Classes::dealloc); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn dealloc(&self, at: NonNull<u8>, layout: Option<Layout>) {
        let claim = Claim::with(Call::Free, layout);
        // SAFETY: the caller's promise.
        if let Outcome::Unknown = unsafe { self.free(at, claim) } {
            self.invalid(at, claim);
        }
    }

    /// A block of an explicit heap in another size.
    ///
    /// # Safety
    /// As for [`Classes::realloc`](super::Classes::realloc); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn resize(
        &self,
        at: NonNull<u8>,
        old: Option<Layout>,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        let claim = Claim::with(Call::Realloc, old);
        // SAFETY: the caller's promise.
        match unsafe { self.realloc(at, new, claim) } {
            Outcome::Done(result) => result,
            Outcome::Unknown => {
                self.invalid(at, claim);
                // The process goes on after a misuse: the owner of the old block is unknown.
                self.alloc(new, false, Origin::Malloc)
            }
        }
    }
}

/// Says that the words of a variable ask for checks, which this build does not have.
#[cfg(not(feature = "debug-heap"))]
pub(crate) fn say_unchecked(variable: &str, words: &[u8]) {
    let mut any = false;
    for word in words.split(|&b| b == b',') {
        match word.trim_ascii() {
            b"" => {}
            b"off" | b"0" => return,
            _ => any = true,
        }
    }
    if any {
        crate::os::say::say(format_args!(
            "{variable}: nothing is checked here; preload liblarder_malloc_debug.so instead, or build with larder's \
             feature debug-heap"
        ));
    }
}
