//! Settings of what is to be: structs of C's that begin with their size, and what several of them have.

use core::ffi::{CStr, c_char};

use larder::os::rseq::Mode;
use larder::settings::Settings;

use crate::error::{Failed, larder_status};

/// The best mode that works here.
pub const LARDER_MODE_AUTO: u32 = 0;
/// A lock per stock, tried and never waited for.
pub const LARDER_MODE_LOCKED: u32 = 1;

/// A struct of C's that begins with its size.
///
/// # Safety
/// The first field is a `usize`, the struct's size. The others are numbers, pointers and functions that may be NULL, so that zero
/// bytes are values, and so is whatever C writes there.
pub(crate) unsafe trait SizeFirst: Copy + Default {}

/// Nothing but the size: where most defaults of a struct begin.
pub(crate) fn blank<T: SizeFirst>() -> T {
    let mut all = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the struct begins with its size, and zero bytes are values of the other fields.
    unsafe {
        all.as_mut_ptr().cast::<usize>().write(size_of::<T>());
        all.assume_init()
    }
}

/// A struct of C's that begins with its size. A program that knows fewer fields keeps the defaults of the others; one that
/// knows more must not have used the additional ones.
///
/// # Safety
/// The pointer is NULL, or to a struct that begins with a `usize` that says how many bytes it has.
pub(crate) unsafe fn read_sized<T: SizeFirst>(given: *const T) -> Result<T, Failed> {
    let mut own = T::default();
    if given.is_null() {
        return Ok(own);
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { given.cast::<usize>().read_unaligned() };
    // Never smaller than the first version's first two words; never absurd.
    if size < 2 * size_of::<usize>() || size > 4096 {
        return Err(Failed::number(
            larder_status::LARDER_ARGUMENT,
            "options.size is",
            size as u64,
            "; fill the struct in with its init function",
        ));
    }
    let known = size.min(size_of::<T>());
    // SAFETY: both have `known` bytes, and they do not overlap: `own` is on this stack.
    unsafe {
        core::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut own).cast::<u8>(), known);
    }
    Ok(own)
}

/// How magazines are kept, where the program chose.
pub(crate) fn mode(mode: u32) -> Result<Option<Mode>, Failed> {
    match mode {
        LARDER_MODE_AUTO => Ok(None),
        LARDER_MODE_LOCKED => Ok(Some(Mode::Locked("as the program asked"))),
        other => Err(Failed::argument(
            "options.mode is",
            other.into(),
            ", which is no mode",
        )),
    }
}

/// Rounds of a magazine at first and at most, where the program chose; 0 leaves the choice of one of them.
pub(crate) fn magazine(first: usize, most: usize) -> Result<Option<(usize, usize)>, Failed> {
    const MOST: usize = larder::internal::MAX_ROUNDS;
    if (first, most) == (0, 0) {
        return Ok(None);
    }
    let highest = if most == 0 {
        MOST.min(127.max(first))
    } else {
        most
    };
    let lowest = if first == 0 { highest.min(63) } else { first };
    if lowest > highest || highest > MOST {
        return Err(Failed::argument(
            "options: magazines of",
            if lowest > MOST { lowest } else { highest } as u64,
            " were asked for; they have at most 255, and at first no more than at most",
        ));
    }
    Ok(Some((lowest, highest)))
}

/// Refuses flags that this version does not know.
pub(crate) fn check_flags(flags: u32, known: u32) -> Result<(), Failed> {
    if flags & !known != 0 {
        return Err(Failed::argument(
            "options.flags is",
            flags.into(),
            ", with bits that this version does not know",
        ));
    }
    Ok(())
}

/// A name that C gives.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn name<'a>(given: *const c_char) -> Result<Option<&'a str>, Failed> {
    // SAFETY: the caller's promise.
    unsafe { text(given, "options.name") }
}

/// What C gives as a text in this field.
///
/// # Safety
/// The pointer is NULL, or to bytes that end with a zero byte and stay for `'a`.
pub(crate) unsafe fn text<'a>(
    given: *const c_char,
    field: &'static str,
) -> Result<Option<&'a str>, Failed> {
    if given.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(given) }
        .to_str()
        .map_err(|_| Failed::said(larder_status::LARDER_ARGUMENT, field, "is no UTF-8"))?;
    Ok(Some(text))
}

/// The settings file that C names.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn settings(given: *const c_char) -> Result<Option<Settings>, Failed> {
    // SAFETY: the caller's promise.
    let path = unsafe { text(given, "options.settings") }?;
    Ok(path.map(|path| Settings::read(path.as_ref())).transpose()?)
}

/// Refuses numbers in a field that has no meaning yet.
pub(crate) fn check_reserved(what: &'static str, number: u32) -> Result<(), Failed> {
    match number {
        0 => Ok(()),
        other => Err(Failed::argument(what, other.into(), "; it must be 0")),
    }
}

/// An alignment that C asks for; 0 is `otherwise`.
#[inline]
pub(crate) fn alignment(align: usize, otherwise: usize) -> Result<usize, Failed> {
    match align {
        0 => Ok(otherwise),
        n if n.is_power_of_two() => Ok(n),
        n => Err(Failed::argument(
            "align is",
            n as u64,
            "; it must be a power of two",
        )),
    }
}

/// Fills in defaults.
///
/// # Safety
/// The pointer is NULL, or to memory for a `T`.
pub(crate) unsafe fn init<T: SizeFirst>(options: *mut T) -> larder_status {
    if options.is_null() {
        return larder_status::LARDER_NULL;
    }
    // SAFETY: the caller's promise.
    unsafe { options.write(T::default()) };
    larder_status::LARDER_OK
}
