//! What went wrong, for C.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};

use larder::arena::ArenaError;
use larder::heap::AllocError;
use larder::ids::IdError;
use larder::objects::{Misuse, ObjectError};
use larder::os::OsError;
use larder::pages::PoolError;
use larder::settings::SettingsError;
use larder_cache::CacheError;
use larder_policy::PolicyError;
use larder_sqlite::InstallError;

/// Bytes of the message of a `larder_error`, its end included. Longer messages are cut.
pub const LARDER_ERROR_BYTES: usize = 256;

/// How a call ended. Zero is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum larder_status {
    /// Done.
    LARDER_OK = 0,
    /// A pointer that must not be NULL is NULL.
    LARDER_NULL = 1,
    /// A number or a flag that makes no sense; the message names it.
    LARDER_ARGUMENT = 2,
    /// Not a handle of this kind, or one that was freed.
    LARDER_HANDLE = 3,
    /// A page, an object, a segment or an identifier that did not come from here, that is not the beginning of one, or that was already given back.
    LARDER_FOREIGN = 4,
    /// A limit that the program has set is reached.
    LARDER_LIMIT = 5,
    /// Nothing free is large enough: addresses that a pool reserved, spans of an arena, identifiers, numbers of caches.
    LARDER_EXHAUSTED = 6,
    /// The system has no memory.
    LARDER_MEMORY = 7,
    /// A system call failed for another reason; `os_errno` has its number.
    LARDER_SYSTEM = 8,
    /// A setting in the environment or in a file that it names makes no sense.
    LARDER_SETTING = 9,
    /// The buffer is too small.
    LARDER_BUFFER = 10,
    /// A defect in larder: please report it with the message on stderr.
    LARDER_PANIC = 11,
    /// A part of it is still in use, the identifier asked for is taken, one of its callbacks runs, or SQLite has begun.
    LARDER_BUSY = 12,
    /// The size that was given back differs from the size that was allocated there.
    LARDER_SIZE = 13,
    /// The source of an arena's spans gave none.
    LARDER_SOURCE = 14,
    /// The constructor of a cache failed.
    LARDER_CONSTRUCTOR = 15,
    /// A function of a block cache's storage failed; `os_errno` has what it returned.
    LARDER_STORAGE = 16,
    /// A failed sync took blocks of the file that cannot be written again: truncate it to 0 and write it anew.
    LARDER_LOST = 17,
}

use larder_status::*;

/// A sentence for each status, in the order of their numbers.
const SENTENCES: [&CStr; 18] = [
    c"done",
    c"a pointer that must not be NULL is NULL",
    c"an argument makes no sense",
    c"not a handle of this kind, or one that was freed",
    c"not the beginning of a page, an object or a segment that came from here",
    c"the limit is in use; raise it or give something back",
    c"nothing that is free is large enough; provide more or give something back",
    c"the system has no memory",
    c"a system call failed",
    c"a setting in the environment makes no sense",
    c"the buffer is too small",
    c"a defect in larder; please report it",
    c"something of it is still in use",
    c"another size was allocated there",
    c"the source of the arena's spans gave none",
    c"the constructor failed",
    c"the storage below a block cache failed",
    c"blocks of the file are lost; truncate it to 0 and write it anew",
];

/// The text of a status, in static memory; never NULL, even for a number that is no status. A larder_error says more.
#[unsafe(no_mangle)]
pub extern "C" fn larder_strerror(status: u32) -> *const c_char {
    let known = SENTENCES.get(status as usize);
    known.map_or(c"no larder_status".as_ptr(), |text| text.as_ptr())
}

/// The message of a failed call, in memory of the caller. A call that succeeds does not change it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_error {
    /// The status that the call returned.
    pub status: larder_status,
    /// The error number of the system call that failed, or 0.
    pub os_errno: i32,
    /// What was asked, what is wrong and what to do; ends with a zero byte.
    pub message: [c_char; LARDER_ERROR_BYTES],
}

/// A failure on its way out. The sentence is made where the caller wants it, and takes no memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failed {
    pub(crate) status: larder_status,
    why: Why,
}

/// How the body of a call ends.
pub(crate) trait Outcome {
    fn outcome(self) -> Result<(), Failed>;
}

impl Outcome for () {
    #[inline(always)]
    fn outcome(self) -> Result<(), Failed> {
        Ok(())
    }
}

impl Outcome for Result<(), Failed> {
    #[inline(always)]
    fn outcome(self) -> Self {
        self
    }
}

/// What a failure is about: the library's errors, each with the status that it becomes, and what this side says itself.
macro_rules! why {
    ($($error:ident => $status:expr),+ $(,)?) => {
        #[derive(Debug, Clone, PartialEq)]
        enum Why {
            /// What, and what is wrong with it.
            Said(&'static str, &'static str),
            /// A number between two pieces of text.
            Number(&'static str, u64, &'static str),
            /// What could not be had of the standard library, and the error number.
            Errno(&'static str, i32),
            $($error($error)),+
        }

        impl fmt::Display for Why {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Said(what, wrong) => write!(f, "{what} {wrong}"),
                    Self::Number(before, number, after) => write!(f, "{before} {number}{after}"),
                    Self::Errno(what, errno) => write!(f, "{what}: error number {errno} of the system"),
                    $(Self::$error(error) => error.fmt(f)),+
                }
            }
        }

        $(impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                let status: fn(&$error) -> larder_status = $status;
                Self { status: status(&error), why: Why::$error(error) }
            }
        }

        impl Outcome for Result<(), $error> {
            #[inline(always)]
            fn outcome(self) -> Result<(), Failed> {
                Ok(self?)
            }
        })+
    };
}

why! {
    OsError => of_system,
    PoolError => of_pool,
    ArenaError => of_arena,
    ObjectError => of_object,
    AllocError => of_alloc,
    Misuse => |_| LARDER_FOREIGN,
    IdError => of_id,
    BlocksError => |error| of_blocks(&error.0),
    InstallError => of_install,
    SettingsError => |_| LARDER_SETTING,
}

/// An error of a block cache; two are the same that say the same.
#[derive(Debug, Clone)]
struct BlocksError(CacheError);

impl PartialEq for BlocksError {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl fmt::Display for BlocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<CacheError> for Failed {
    fn from(error: CacheError) -> Self {
        BlocksError(error).into()
    }
}

impl Outcome for Result<(), CacheError> {
    #[inline(always)]
    fn outcome(self) -> Result<(), Failed> {
        Ok(self?)
    }
}

// The library's enums may grow: what is new is an argument where most of them are, and else the system's.

fn of_system(error: &OsError) -> larder_status {
    const ENOMEM: i32 = 12;
    match error.raw_os_error() {
        ENOMEM => LARDER_MEMORY,
        _ => LARDER_SYSTEM,
    }
}

fn of_pool(error: &PoolError) -> larder_status {
    match error {
        PoolError::System(os) => of_system(os),
        PoolError::Limit { .. } => LARDER_LIMIT,
        PoolError::Exhausted { .. } => LARDER_EXHAUSTED,
        PoolError::List { .. } => LARDER_MEMORY,
        PoolError::Settings(_) => LARDER_SETTING,
        PoolError::Helper(_) => LARDER_SYSTEM,
        _ => LARDER_ARGUMENT,
    }
}

fn of_arena(error: &ArenaError) -> larder_status {
    match error {
        ArenaError::NoSpace { .. } => LARDER_EXHAUSTED,
        ArenaError::Limit { .. } => LARDER_LIMIT,
        ArenaError::Source { .. } => LARDER_SOURCE,
        ArenaError::NotAllocated { .. } => LARDER_FOREIGN,
        ArenaError::WrongSize { .. } => LARDER_SIZE,
        ArenaError::Memory { cause, .. } => of_system(cause),
        _ => LARDER_ARGUMENT,
    }
}

fn of_object(error: &ObjectError) -> larder_status {
    match error {
        ObjectError::Layout { .. } => LARDER_ARGUMENT,
        ObjectError::TooMany { .. } => LARDER_EXHAUSTED,
        ObjectError::Limit { .. } => LARDER_LIMIT,
        ObjectError::Pages(pool) => of_pool(pool),
        ObjectError::System(os) => of_system(os),
        ObjectError::Refused => LARDER_CONSTRUCTOR,
        _ => LARDER_SYSTEM,
    }
}

fn of_id(error: &IdError) -> larder_status {
    match error {
        IdError::Full { .. } | IdError::Resting { .. } | IdError::Retired { .. } => {
            LARDER_EXHAUSTED
        }
        IdError::NotAllocated { .. } | IdError::Stale { .. } => LARDER_FOREIGN,
        IdError::Taken { .. } => LARDER_BUSY,
        IdError::OutOfMemory => LARDER_MEMORY,
        _ => LARDER_ARGUMENT,
    }
}

fn of_blocks(error: &CacheError) -> larder_status {
    match error {
        CacheError::Pages(pool) => of_pool(pool),
        CacheError::Pinned { .. } | CacheError::Held { .. } | CacheError::Guards { .. } => {
            LARDER_BUSY
        }
        CacheError::Files { .. } => LARDER_EXHAUSTED,
        CacheError::Read { .. } | CacheError::Write { .. } | CacheError::Sync { .. } => {
            LARDER_STORAGE
        }
        CacheError::Lost { .. } => LARDER_LOST,
        CacheError::Memory { .. } | CacheError::Pool(_) => LARDER_MEMORY,
        _ => LARDER_ARGUMENT,
    }
}

fn of_install(error: &InstallError) -> larder_status {
    match error {
        InstallError::Rule(PolicyError::Memory { .. }) => LARDER_MEMORY,
        InstallError::Rule(_) => LARDER_ARGUMENT,
        InstallError::Pool(pool) => of_pool(pool),
        InstallError::TooLate | InstallError::Twice => LARDER_BUSY,
        _ => LARDER_SYSTEM,
    }
}

fn of_alloc(error: &AllocError) -> larder_status {
    match error {
        AllocError::Limit { .. } => LARDER_LIMIT,
        AllocError::Memory(error) => of_object(error),
        AllocError::Foreign { .. } => LARDER_FOREIGN,
        _ => LARDER_SYSTEM,
    }
}

/// A sentence in fixed memory: errors are made when there is no other.
struct Message {
    bytes: [u8; LARDER_ERROR_BYTES],
    len: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is the end's.
        let room = LARDER_ERROR_BYTES - 1 - self.len;
        let mut n = text.len().min(room);
        while !text.is_char_boundary(n) {
            n -= 1;
        }
        self.bytes[self.len..self.len + n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        // The rest of a message that was cut would read as if it belonged to what stands there.
        if n < text.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

impl Failed {
    fn new(status: larder_status, why: Why) -> Self {
        Self { status, why }
    }

    /// `what` and `wrong` are two parts of one sentence.
    pub(crate) fn said(status: larder_status, what: &'static str, wrong: &'static str) -> Self {
        Self::new(status, Why::Said(what, wrong))
    }

    /// `before`, the number, `after`.
    pub(crate) fn number(
        status: larder_status,
        before: &'static str,
        number: u64,
        after: &'static str,
    ) -> Self {
        Self::new(status, Why::Number(before, number, after))
    }

    /// `what` could not be had for `error`.
    pub(crate) fn io(what: &'static str, error: &std::io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        Self::new(LARDER_SYSTEM, Why::Errno(what, errno))
    }

    pub(crate) fn null(what: &'static str) -> Self {
        Self::said(LARDER_NULL, what, "is NULL")
    }

    /// There is no memory for `what`.
    pub(crate) fn memory(what: &'static str) -> Self {
        Self::said(LARDER_MEMORY, what, "cannot be had: there is no memory")
    }

    /// An argument that is no power of two, and the like: `before`, the number, `after`.
    pub(crate) fn argument(before: &'static str, number: u64, after: &'static str) -> Self {
        Self::number(LARDER_ARGUMENT, before, number, after)
    }

    /// The number of the system's error, where it was the system.
    fn errno(&self) -> i32 {
        let system = match &self.why {
            Why::Errno(_, errno) => return *errno,
            Why::BlocksError(BlocksError(
                CacheError::Read { source, .. }
                | CacheError::Write { source, .. }
                | CacheError::Sync { source, .. },
            )) => return source.raw_os_error().unwrap_or(0),
            Why::BlocksError(BlocksError(CacheError::Pages(PoolError::System(os)))) => Some(os),
            Why::OsError(os)
            | Why::PoolError(PoolError::System(os))
            | Why::InstallError(InstallError::Pool(PoolError::System(os)))
            | Why::ArenaError(ArenaError::Memory { cause: os, .. })
            | Why::ObjectError(
                ObjectError::System(os) | ObjectError::Pages(PoolError::System(os)),
            )
            | Why::AllocError(AllocError::Memory(
                ObjectError::System(os) | ObjectError::Pages(PoolError::System(os)),
            )) => Some(os),
            Why::ArenaError(ArenaError::Source { refusal, .. }) => refusal.cause.as_ref(),
            _ => None,
        };
        system.map_or(0, OsError::raw_os_error)
    }

    /// Writes it where the caller wants it.
    ///
    /// # Safety
    /// `out` points to memory for a `larder_error`.
    #[cold]
    pub(crate) unsafe fn write(&self, out: *mut larder_error) {
        let mut text = Message {
            bytes: [0; LARDER_ERROR_BYTES],
            len: 0,
        };
        // What does not fit is cut.
        let _ = write!(text, "{}", self.why);
        let error = larder_error {
            status: self.status,
            os_errno: self.errno(),
            message: text.bytes.map(|b| b as c_char),
        };
        // SAFETY: the caller's promise. An unaligned struct would be the caller's fault, and costs nothing to survive.
        unsafe { out.write_unaligned(error) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(error: &larder_error) -> String {
        // SAFETY: the message ends with a zero byte, which is what is tested.
        unsafe { CStr::from_ptr(error.message.as_ptr()) }
            .to_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_and_ends() {
        let long: &'static str = Box::leak("\u{e4}".repeat(LARDER_ERROR_BYTES).into_boxed_str());
        let mut error = larder_error {
            status: LARDER_OK,
            os_errno: 7,
            message: [1; LARDER_ERROR_BYTES],
        };
        // SAFETY: the pointer is to a live struct.
        unsafe { Failed::said(LARDER_LIMIT, long, "tail").write(&raw mut error) };
        assert_eq!(error.status, LARDER_LIMIT);
        assert_eq!(error.os_errno, 0);
        let cut = text(&error);
        assert!(
            long.starts_with(&cut) && cut.len() >= LARDER_ERROR_BYTES - 2,
            "{cut}"
        );
    }

    #[test]
    fn every_status_has_its_sentence() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..SENTENCES.len() as u32 {
            // SAFETY: the answer is a static string.
            let text = unsafe { CStr::from_ptr(larder_strerror(n)) };
            assert_ne!(text, c"no larder_status", "{n}");
            assert!(seen.insert(text), "{n}");
        }
        for n in [SENTENCES.len() as u32, u32::MAX] {
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr(larder_strerror(n)) };
            assert_eq!(text, c"no larder_status");
        }
    }
}
