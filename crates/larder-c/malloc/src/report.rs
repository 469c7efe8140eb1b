//! The line of JSON at the program's end, if requested. One call writes it, so that the lines of several processes do not
//! mix.
//!
//! `LARDER_MALLOC_STATS=FILE` asks for it; the line goes to the end of the file. `larder run` reads it.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};
use core::fmt::{self, Write};

use larder::Larder;
use larder::heap::HeapMode;
use larder::internal::heap::say;

/// The environment variable that names the file.
const VARIABLE: &CStr = c"LARDER_MALLOC_STATS";

/// The file's path. Kept from the start: a program may change its environment.
struct Path(UnsafeCell<[u8; libc::PATH_MAX as usize]>);

// SAFETY: written by the loader's thread before the program begins, read by the one that ends it.
unsafe impl Sync for Path {}

static PATH: Path = Path(UnsafeCell::new([0; libc::PATH_MAX as usize]));

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn begin() {
    // SAFETY: no pointers. A program with more rights than its caller writes no file that the caller names.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    // SAFETY: a name that ends with a zero byte; the environment does not change before the program begins.
    let value = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: a value of the environment ends with a zero byte.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes_with_nul();
    if value.len() > libc::PATH_MAX as usize {
        return say(format_args!(
            "LARDER_MALLOC_STATS: the path is too long; it is ignored"
        ));
    }
    // SAFETY: it fits, and no other thread runs yet.
    unsafe { core::ptr::copy_nonoverlapping(value.as_ptr(), PATH.0.get().cast(), value.len()) };
}

extern "C" fn end() {
    // SAFETY: the array ends with a zero byte, also when nothing was written.
    let path = unsafe { CStr::from_ptr(PATH.0.get().cast()) };
    if !path.is_empty() {
        append(path);
    }
}

/// Apart: where no report is wanted, its room on the stack is not touched.
#[inline(never)]
fn append(path: &CStr) {
    let mut line = Line {
        bytes: [0; 16 << 10],
        len: 0,
    };
    if write_line(&mut line).is_err() {
        return;
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: a path that ends.
    let file: c_int = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    if file < 0 {
        return say_unwritten(path);
    }
    // SAFETY: this many bytes were written into the line.
    if unsafe { libc::write(file, line.bytes.as_ptr().cast(), line.len) } < 0 {
        say_unwritten(path);
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
}

/// What the system has just said of the file.
#[cold]
fn say_unwritten(path: &CStr) {
    let error = std::io::Error::last_os_error();
    let path = path.to_bytes();
    let path = &path[..path.len().min(120)];
    say(format_args!(
        "LARDER_MALLOC_STATS: {} cannot be written: {error}",
        path.escape_ascii()
    ));
}

struct Line {
    bytes: [u8; 16 << 10],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

fn write_line(line: &mut Line) -> fmt::Result {
    // SAFETY: no arguments, no failure.
    let pid = unsafe { libc::getpid() };
    let stats = Larder::stats();
    let mode = stats.mode.map_or("none", HeapMode::name);
    // SAFETY: all zeroes is a value, and the pointer is to a live one; a failure leaves the zeroes.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    write!(
        line,
        "{{\"schema\":1,\"pid\":{pid},\"mode\":\"{mode}\",\"held_bytes\":{},\"out_bytes\":{},\"large_bytes\":{},\
         \"metadata_bytes\":{},\"bootstrap_bytes\":{},\"peak_resident_bytes\":{},\"minor_faults\":{},\"major_faults\":{}",
        stats.held_bytes,
        stats.out_bytes,
        stats.large_bytes,
        stats.metadata_bytes,
        stats.bootstrap_bytes,
        // Linux counts it in KiB.
        usage.ru_maxrss * 1024,
        usage.ru_minflt,
        usage.ru_majflt,
    )?;
    line.write_str(",\"classes\":[")?;
    let used = stats.classes.iter().filter(|class| class.held_bytes > 0);
    for (i, class) in used.enumerate() {
        write!(
            line,
            "{}{{\"size\":{},\"held_bytes\":{},\"out\":{},\"slabs\":{}}}",
            if i > 0 { "," } else { "" },
            class.size,
            class.held_bytes,
            class.out,
            class.slabs,
        )?;
    }
    line.write_str("]}\n")
}
