//! What the heap holds, by the functions of glibc's `malloc.h`, and its options, of which there are none here.
//!
//! All numbers come from one reading of the heap: `arena` is `uordblks` and `fordblks` together, `malloc_stats` and `malloc_info`
//! print the same. Objects that are ready in the magazines of other threads count as in use, as those of glibc's thread caches do.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::{self, Write};

use larder::Larder;

/// glibc's structure, with sizes.
#[repr(C)]
#[derive(Default)]
struct MallInfo2 {
    /// Bytes of pages that the heap holds, without those of large blocks.
    arena: usize,
    ordblks: usize,
    smblks: usize,
    /// Large blocks are not counted.
    hblks: usize,
    /// Bytes of large blocks.
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    /// Bytes of the arena in use.
    uordblks: usize,
    /// Bytes of the arena that are free.
    fordblks: usize,
    /// Bytes of pages of which none is in use, for `malloc_trim`.
    keepcost: usize,
}

/// The same with numbers that end at 2 GiB.
#[repr(C)]
struct MallInfo([c_int; 10]);

impl MallInfo2 {
    fn now() -> Self {
        let stats = Larder::stats();
        let held = stats.held_bytes.max(stats.out_bytes);
        let arena = held - stats.large_bytes.min(held);
        let used = stats.in_use_bytes.min(arena);
        Self {
            arena,
            hblkhd: stats.large_bytes,
            uordblks: used,
            fordblks: arena - used,
            keepcost: held - stats.out_bytes,
            ..Self::default()
        }
    }

    /// Bytes of all pages, and those of them in use.
    fn all(&self) -> (usize, usize) {
        (self.arena + self.hblkhd, self.uordblks + self.hblkhd)
    }
}

#[unsafe(no_mangle)]
extern "C" fn mallinfo2() -> MallInfo2 {
    MallInfo2::now()
}

#[unsafe(no_mangle)]
extern "C" fn mallinfo() -> MallInfo {
    let all = MallInfo2::now();
    MallInfo(
        [
            all.arena,
            all.ordblks,
            all.smblks,
            all.hblks,
            all.hblkhd,
            all.usmblks,
            all.fsmblks,
            all.uordblks,
            all.fordblks,
            all.keepcost,
        ]
        .map(|n| c_int::try_from(n).unwrap_or(c_int::MAX)),
    )
}

/// Two lines in glibc's words on standard error.
#[unsafe(no_mangle)]
extern "C" fn malloc_stats() {
    let (system, used) = MallInfo2::now().all();
    let mut text = Text::default();
    let _ = write!(
        text,
        "system bytes     = {system:10}\nin use bytes     = {used:10}\n"
    );
    // SAFETY: this many bytes were written. There is nowhere to report that standard error cannot be written.
    unsafe { libc::write(libc::STDERR_FILENO, text.bytes.as_ptr().cast(), text.len) };
}

/// XML in the form of glibc's totals. 0, `EINVAL` for options, which must be 0, or -1.
///
/// # Safety
/// `stream` is an open file of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_info(options: c_int, stream: *mut c_void) -> c_int {
    unsafe extern "C" {
        fn fputs(text: *const c_char, stream: *mut c_void) -> c_int;
    }
    if options != 0 {
        return libc::EINVAL;
    }
    let info = MallInfo2::now();
    let (system, used) = info.all();
    let mut text = Text::default();
    let _ = write!(
        text,
        "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n\
         <total type=\"used\" size=\"{used}\"/>\n<total type=\"rest\" size=\"{}\"/>\n\
         <system type=\"current\" size=\"{system}\"/>\n</heap>\n\
         <total type=\"used\" size=\"{used}\"/>\n<total type=\"rest\" size=\"{}\"/>\n\
         <total type=\"mmap\" size=\"{}\"/>\n<system type=\"current\" size=\"{system}\"/>\n</malloc>\n",
        info.fordblks, info.fordblks, info.hblkhd
    );
    // SAFETY: the text ends with a zero, since it is not as long as the room; the stream is the caller's.
    let put = unsafe { fputs(text.bytes.as_ptr().cast(), stream) };
    if put < 0 { -1 } else { 0 }
}

/// 1 for the hints of glibc, which have nothing to say here; 0 for what would change what blocks hold or what misuse does, and for
/// what is unknown.
#[unsafe(no_mangle)]
extern "C" fn mallopt(option: c_int, _value: c_int) -> c_int {
    /// `M_ARENA_MAX`, `M_ARENA_TEST`, `M_MMAP_MAX`, `M_MMAP_THRESHOLD`, `M_TOP_PAD`, `M_TRIM_THRESHOLD`, `M_MXFAST`.
    const HINTS: [c_int; 7] = [-8, -7, -4, -3, -2, -1, 1];
    c_int::from(HINTS.contains(&option))
}

/// Text on the stack.
struct Text {
    bytes: [u8; 1024],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: [0; 1024],
            len: 0,
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        // The last byte stays 0.
        if end >= self.bytes.len() {
            return Err(fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
