//! The profile of the program's heap, where the environment asks for one.
//!
//! A sampled block is a run of pages by itself, whatever its size. So no magazine takes it, and its free comes to the slow path
//! for what is no object of a class, which ends the sample. Without a profile that path has one load more.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::checked::inside;
use super::countdown;
use super::mode::{Place, environment};
use crate::heap::profile::{INTERVAL, INTERVALS, Profile};
use crate::heap::stderr;
use crate::os::Linux;
use crate::os::errno::KeptErrno;
use crate::os::say::say;

/// The file that is written at the end.
const FILE: &CStr = c"LARDER_HEAP_PROFILE";
/// Mean bytes between samples.
const BYTES: &CStr = c"LARDER_HEAP_PROFILE_INTERVAL";
/// What is said at the end of blocks that live.
const LEAKS: &CStr = c"LARDER_LEAKS";

const PATH: usize = libc::PATH_MAX as usize;

static PLACE: Place<MaybeUninit<Profile>> = Place(UnsafeCell::new(MaybeUninit::uninit()));
touched_at_start! {
    static PROFILE: AtomicPtr<Profile> = AtomicPtr::new(null_mut());
}
/// The file's path with its end. A copy: a program may change its environment.
static NAME: Place<[u8; PATH]> = Place(UnsafeCell::new([0; PATH]));
/// The process that began it: a child by `fork` has a file of its own.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// Whether what lives at the end is listed.
static LISTED: AtomicBool = AtomicBool::new(false);

/// The profile, if there is one.
#[inline]
pub(super) fn profile() -> Option<&'static Profile> {
    // SAFETY: null, or the place, which was written before.
    unsafe { PROFILE.load(Ordering::Acquire).as_ref() }
}

fn name() -> &'static CStr {
    // SAFETY: written before the profile was there, if at all, with its end.
    CStr::from_bytes_until_nul(unsafe { &*NAME.0.get() }).unwrap_or_default()
}

/// Begins a profile if the environment asks for one, before the heap is known to any other thread: the mean bytes between samples.
pub(super) fn begin(checked: bool) -> Option<usize> {
    let word = |name| environment(name).filter(|word| !word.is_empty());
    let (file, leaks) = (word(FILE), leaks());
    if file.is_none() && !leaks {
        return None;
    }
    if checked {
        say(format_args!(
            "{}: there is no profile in debug and hardened mode",
            FILE.to_string_lossy()
        ));
        return None;
    }
    if let Some(file) = file {
        if file.len() >= PATH {
            say(format_args!(
                "LARDER_HEAP_PROFILE: the path is too long; it is ignored"
            ));
            return None;
        }
        // SAFETY: it fits, with the zero behind it, and no thread reads it before the profile is there.
        unsafe { (&mut (*NAME.0.get()))[..file.len()].copy_from_slice(file) };
    }
    let interval = interval();
    let Ok(made) = Profile::new(Arc::new(Linux), interval) else {
        say(format_args!(
            "LARDER_HEAP_PROFILE: there is no memory for a profile; going on without it"
        ));
        return None;
    };
    if leaks {
        stderr::keep();
        LISTED.store(true, Ordering::Relaxed);
    }
    PROCESS.store(process(), Ordering::Relaxed);
    // SAFETY: only the thread that makes the heap comes here, and no thread reads the place before the pointer is stored.
    let made = unsafe { (*PLACE.0.get()).write(made) };
    PROFILE.store(made, Ordering::Release);
    // SAFETY: a plain function that stays. Registered before the program's own, it runs after them. A refusal (no memory) only
    // means that nothing is written at the end.
    unsafe { libc::atexit(end) };
    Some(interval)
}

/// Samples have stacks from now on.
pub(super) fn ready() {
    if let Some(profile) = profile() {
        inside(|| profile.begin_stacks());
    }
}

/// Whether the environment asks for what lives at the end.
fn leaks() -> bool {
    match environment(LEAKS).unwrap_or_default() {
        b"sample" => true,
        b"" | b"off" | b"0" => false,
        word => {
            crate::os::say::say_unknown("LARDER_LEAKS", word, "sample, off");
            false
        }
    }
}

fn interval() -> usize {
    let Some(word) = environment(BYTES).filter(|word| !word.is_empty()) else {
        return INTERVAL;
    };
    let number = core::str::from_utf8(word)
        .ok()
        .and_then(|word| word.parse().ok());
    number.filter(|n| INTERVALS.contains(n)).unwrap_or_else(|| {
        let word = &word[..word.len().min(64)];
        say(format_args!(
            "LARDER_HEAP_PROFILE_INTERVAL: \"{}\" is no number of bytes from {} to {}; it is ignored",
            word.escape_ascii(),
            INTERVALS.start(),
            INTERVALS.end()
        ));
        INTERVAL
    })
}

fn process() -> i32 {
    // SAFETY: no arguments, no failure.
    unsafe { libc::getpid() }
}

extern "C" fn end() {
    let Some(profile) = profile() else {
        return;
    };
    if !name().is_empty() {
        let mut path = Path::default();
        if path.expand(name().to_bytes()).is_ok()
            && let Err(error) = write_to(path.as_c_str())
        {
            let path = path.as_c_str().to_bytes();
            let path = &path[..path.len().min(120)];
            say(format_args!(
                "LARDER_HEAP_PROFILE: {} cannot be written: {error}",
                path.escape_ascii()
            ));
        }
    }
    if LISTED.load(Ordering::Relaxed) {
        inside(|| profile.say_live());
    }
}

/// Writes the profile of the program's heap to a file, in the format of pprof. It takes locks: not from a signal handler.
///
/// # Errors
/// A number of `errno.h`: `ENODATA` where there is no profile, or what the system says of the file.
pub fn write_profile(path: &CStr) -> Result<(), i32> {
    write_to(path).map_err(Errno::raw_os_error)
}

fn write_to(path: &CStr) -> Result<(), Errno> {
    let profile = profile().ok_or(Errno::NODATA)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = rustix::fs::open(path, flags, mode)?;
    inside(|| profile.write(file.as_fd()))
}

/// A path with its end.
struct Path {
    bytes: [u8; PATH],
    len: usize,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            bytes: [0; PATH],
            len: 0,
        }
    }
}

impl Path {
    /// `%p` is the process's number. Where it is not there, the children by `fork` have theirs behind the name.
    fn expand(&mut self, name: &[u8]) -> core::fmt::Result {
        let mut numbered = process() == PROCESS.load(Ordering::Relaxed);
        let mut rest = name;
        while let Some((&first, others)) = rest.split_first() {
            rest = others;
            if let (b'%', Some(b'p')) = (first, others.first()) {
                rest = &others[1..];
                numbered = true;
                write!(self, "{}", process())?;
            } else {
                self.put(&[first])?;
            }
        }
        if !numbered {
            write!(self, ".{}", process())?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> core::fmt::Result {
        let end = self.len + bytes.len();
        // The last byte stays 0.
        if end >= PATH {
            return Err(core::fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.put(text.as_bytes())
    }
}

/// A block is a sample.
pub(super) fn add(object: NonNull<u8>, size: usize) {
    if let Some(profile) = profile() {
        let _errno = KeptErrno::new();
        inside(|| profile.add(object.as_ptr() as usize, size));
    }
}

/// A block that is no object of a class is freed: it may be a sampled one.
#[inline]
pub(super) fn freed(object: NonNull<u8>) {
    if let Some(profile) = profile() {
        profile.remove(object.as_ptr() as usize);
    }
}

/// A block that grows or shrinks has got a run of pages, or keeps the one that it has, which counts as a free and an allocation: a run
/// may be longer than what was asked for.
pub(super) fn resized(object: NonNull<u8>, size: usize) {
    if let Some(profile) = profile() {
        profile.remove(object.as_ptr() as usize);
        if countdown::count(size).is_some_and(|due| due.profile) {
            add(object, size);
        }
    }
}
