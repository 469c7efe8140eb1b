//! Structs of numbers for C: read by size, so that they may grow, and as JSON.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};

use crate::buffer;
use crate::call::on;
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::Opaque;

/// Above any machine's memory: the pool's value for no limit.
const NO_LIMIT: u64 = 1 << 60;

/// A struct of C's that begins with its size.
pub(crate) trait Numbers: Copy {
    /// The text of an error after the size.
    const HINT: &'static str;

    /// Writes the fields after the size as members of a JSON object, each with a comma before it.
    fn members(&self, out: &mut dyn Write) -> fmt::Result;
}

/// Says of each field of a struct of numbers where it comes from: the field of the same name of `$stats`, or `= $value`. The struct
/// itself is spelled out for the header.
macro_rules! numbers {
    ($type:ident, |$of:ident: $source:ty| $stats:ident = $taken:expr; $($name:ident $(= $value:expr)?),+ $(,)?) => {
        impl From<$source> for $type {
            fn from($of: $source) -> Self {
                let $stats = $taken;
                Self {
                    size: size_of::<Self>(),
                    $($name: $crate::numbers::numbers!(@value $stats $name $($value)?)),+
                }
            }
        }

        impl $crate::numbers::Numbers for $type {
            const HINT: &'static str = concat!("; set it to sizeof(", stringify!($type), ")");

            fn members(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
                $($crate::numbers::Member::write(&self.$name, stringify!($name), out)?;)+
                Ok(())
            }
        }
    };
    (@value $stats:ident $name:ident) => {
        // Counts and bytes of a 64-bit machine; wider types do not exist here.
        $stats.$name as u64
    };
    (@value $stats:ident $name:ident $value:expr) => {
        $value
    };
}
pub(crate) use numbers;

/// A value in the JSON.
pub(crate) trait Member {
    fn write(&self, name: &str, out: &mut dyn Write) -> fmt::Result;
}

impl Member for u64 {
    fn write(&self, name: &str, out: &mut dyn Write) -> fmt::Result {
        // No limit is no number.
        if *self == u64::MAX && name.starts_with("limit") {
            write!(out, ",\"{name}\":null")
        } else {
            write!(out, ",\"{name}\":{self}")
        }
    }
}

/// A name that ends with a zero byte.
impl Member for [c_char; 32] {
    fn write(&self, name: &str, out: &mut dyn Write) -> fmt::Result {
        write!(out, ",\"{name}\":\"")?;
        let bytes = self.map(|c| c as u8);
        let text = CStr::from_bytes_until_nul(&bytes)
            .ok()
            .and_then(|text| text.to_str().ok())
            .unwrap_or_default();
        for c in text.chars() {
            match c {
                '"' | '\\' => write!(out, "\\{c}")?,
                c if u32::from(c) < 32 => write!(out, "\\u{:04x}", u32::from(c))?,
                c => out.write_char(c)?,
            }
        }
        out.write_str("\"")
    }
}

/// At most 31 bytes of a name, so that a zero stays.
pub(crate) fn text(name: &str) -> [c_char; 32] {
    let mut text = [0; 32];
    for (to, from) in text.iter_mut().zip(name.bytes().take(31)) {
        *to = from as c_char;
    }
    text
}

/// A limit as C reads it.
pub(crate) fn limit(bytes: usize) -> u64 {
    match bytes as u64 {
        NO_LIMIT.. => u64::MAX,
        bytes => bytes,
    }
}

/// Reads the numbers of a handle into a struct of C's: as much as the program knows of it.
///
/// # Safety
/// `handle` as for [`shared`](crate::mark::shared); `stats` is NULL or begins with a `usize` that says how many bytes it has;
/// `error` is NULL or can be written.
pub(crate) unsafe fn read<H: Opaque, T>(
    handle: *const H,
    stats: *mut T,
    error: *mut larder_error,
) -> larder_status
where
    T: Numbers + for<'a> From<&'a H::Inside>,
{
    // SAFETY: the caller's promises.
    unsafe { try_read(handle, stats, error, |inside| Ok(inside.into())) }
}

/// As [`read`], for numbers that may not be there.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn try_read<H: Opaque, T: Numbers>(
    handle: *const H,
    stats: *mut T,
    error: *mut larder_error,
    take: impl FnOnce(&H::Inside) -> Result<T, Failed>,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe { on(handle, error, |inside| write(stats, || take(inside))) }
}

/// Writes numbers into a struct of C's: as many as the program knows of them.
///
/// # Safety
/// `stats` is NULL or begins with a `usize` that says how many bytes it has.
pub(crate) unsafe fn write<T: Numbers>(
    stats: *mut T,
    take: impl FnOnce() -> Result<T, Failed>,
) -> Result<(), Failed> {
    if stats.is_null() {
        return Err(Failed::null("stats"));
    }
    // SAFETY: the caller's promises.
    unsafe {
        let room = stats.cast::<usize>().read_unaligned();
        if room < size_of::<usize>() {
            return Err(Failed::argument("stats.size is", room as u64, T::HINT));
        }
        let own = take()?;
        let size = room.min(size_of::<T>());
        core::ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), stats.cast::<u8>(), size);
        // What was written; after the copy, which wrote the size of the library's own struct.
        stats.cast::<usize>().write_unaligned(size);
    }
    Ok(())
}

/// Writes the numbers of a handle as one JSON object.
///
/// # Safety
/// `handle` as for [`shared`](crate::mark::shared); the rest as for [`buffer::text`]; `error` is NULL or can be written.
pub(crate) unsafe fn json<H: Opaque, T>(
    handle: *const H,
    (at, bytes, needed): (*mut c_char, usize, *mut usize),
    error: *mut larder_error,
) -> larder_status
where
    T: Numbers + for<'a> From<&'a H::Inside>,
{
    // SAFETY: the caller's promises.
    unsafe {
        on(handle, error, |inside| {
            write_json(&T::from(inside), (at, bytes, needed))
        })
    }
}

/// Writes numbers as one JSON object.
///
/// # Safety
/// As for [`buffer::text`].
pub(crate) unsafe fn write_json<T: Numbers>(
    stats: &T,
    (at, bytes, needed): (*mut c_char, usize, *mut usize),
) -> Result<(), Failed> {
    // SAFETY: the caller's promises.
    unsafe {
        buffer::text(at, bytes, needed, |out| {
            out.write_str("{\"schema\":1")?;
            stats.members(out)?;
            out.write_str("}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_string() {
        let mut name = [0; 32];
        for (to, from) in name.iter_mut().zip(b"a\"b\\c\nd") {
            *to = *from as c_char;
        }
        let mut text = String::new();
        name.write("name", &mut text).unwrap();
        assert_eq!(text, ",\"name\":\"a\\\"b\\\\c\\u000ad\"");
        let json: serde_json::Value = serde_json::from_str(&format!("{{{}}}", &text[1..])).unwrap();
        assert_eq!(json["name"], "a\"b\\c\nd");
    }
}
