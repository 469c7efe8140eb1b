//! Which function allocated a block and which frees it, as far as the caller says.

/// The function that a block came from. Its blocks go back by a function of the same family.
///
/// ```
/// use larder::heap::debug::{Call, Origin};
/// assert_eq!(Call::Free.origin(), Origin::Malloc);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Origin {
    /// malloc and its relatives, and the allocator of a Rust program.
    Malloc = 0,
    /// C++'s `operator new`.
    New = 1,
    /// C++'s `operator new[]`.
    NewArray = 2,
}

impl Origin {
    /// As messages name it.
    ///
    /// ```
    /// assert_eq!(larder::heap::debug::Origin::NewArray.name(), "operator new[]");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::New => "operator new",
            Self::NewArray => "operator new[]",
        }
    }

    pub(super) fn of(number: u8) -> Self {
        match number {
            1 => Self::New,
            2 => Self::NewArray,
            _ => Self::Malloc,
        }
    }
}

/// The function that a block is brought to.
///
/// ```
/// use larder::heap::debug::{Call, Origin};
/// assert_eq!((Call::DeleteArray.name(), Call::DeleteArray.origin()), ("operator delete[]", Origin::NewArray));
/// ```
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
    ///
    /// ```
    /// assert_eq!(larder::heap::debug::Call::Delete.name(), "operator delete");
    /// ```
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
    ///
    /// ```
    /// use larder::heap::debug::{Call, Origin};
    /// assert_eq!(Call::Delete.origin(), Origin::New);
    /// ```
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
    /// A call that says nothing.
    pub(crate) const fn of(call: Call) -> Self {
        Self {
            call,
            size: None,
            align: None,
        }
    }
}
