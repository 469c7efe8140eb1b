//! The profile as a file in pprof's format: `profile.proto` of <https://github.com/google/pprof>, uncompressed, which its
//! readers take as well.

use core::time::Duration;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::Profile;
use super::gap::PARTS;
use super::modules::Modules;
use super::out::{Count, Out, Sink};
use crate::heap::stacks::SAMPLED;
use crate::heap::stacks::mix;
use crate::os::MetaSlice;

/// Names of the values of a sample and of their units, as Go and tcmalloc write them.
const VALUES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];
const PERIOD: (&str, &str) = ("space", "bytes");

/// The table of strings begins with an empty one, the names and the units of the values, and those of the period.
const NAME: u64 = 1;
const PERIOD_NAME: u64 = NAME + 2 * VALUES.len() as u64;
/// Of each module follow its file and its identifier.
const FILE: u64 = PERIOD_NAME + 2;

/// The fields that are used.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const STRING: u32 = 6;
    pub(super) const TIME: u32 = 9;
    pub(super) const DURATION: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const DEFAULT_TYPE: u32 = 14;
}

pub(super) fn write(profile: &Profile, file: BorrowedFd<'_>) -> Result<(), Errno> {
    // Before the samples' lock is taken, since the loader's is.
    let modules = Modules::now(&profile.system).map_err(|_| Errno::NOMEM)?;
    let last = profile.samples.lock().last();
    // Room for all frames that there may be, of which those that there are take memory.
    let room = (2 * SAMPLED * (last as usize + 1)).next_power_of_two();
    let mut calls = MetaSlice::new(profile.system.clone(), room).map_err(|_| Errno::NOMEM)?;
    let out = &mut Out::new(file);
    let pair = |out: &mut dyn Sink, number: u32, name: u64| {
        message(out, number, &|out| {
            uint(out, 1, name);
            uint(out, 2, name + 1);
        });
    };
    for i in 0..VALUES.len() as u64 {
        pair(out, field::SAMPLE_TYPE, NAME + 2 * i);
    }
    // One after the other: no lock is held while the file is written.
    for number in 0..=last {
        let (frames, site) = profile.samples.lock().site(number);
        if site.allocated.bytes == 0 {
            continue;
        }
        for &ip in frames.as_slice() {
            keep(&mut calls, call(ip));
        }
        let live = site.live();
        let objects = |parts: u64| (parts as f64 / PARTS + 0.5) as u64;
        message(out, field::SAMPLE, &|out| {
            for &ip in frames.as_slice() {
                uint(out, 1, call(ip));
            }
            for value in [
                objects(site.allocated.objects),
                site.allocated.bytes,
                objects(live.objects),
                live.bytes,
            ] {
                uint(out, 2, value);
            }
        });
    }
    for (module, number) in modules.as_slice().iter().zip(0..) {
        message(out, field::MAPPING, &|out| {
            uint(out, 1, number + 1);
            uint(out, 2, module.start as u64);
            uint(out, 3, module.end as u64);
            uint(out, 4, module.offset as u64);
            uint(out, 5, FILE + 2 * number);
            uint(out, 6, FILE + 2 * number + 1);
        });
    }
    // A location has its address as its number.
    for &call in calls.iter().filter(|&&call| call != 0) {
        message(out, field::LOCATION, &|out| {
            uint(out, 1, call);
            if let Some(module) = modules.find(call as usize) {
                uint(out, 2, module as u64 + 1);
            }
            uint(out, 3, call);
        });
    }
    bytes(out, field::STRING, b"");
    for text in VALUES
        .into_iter()
        .chain([PERIOD])
        .flat_map(<[&str; 2]>::from)
    {
        bytes(out, field::STRING, text.as_bytes());
    }
    for module in modules.as_slice() {
        bytes(out, field::STRING, modules.name(module));
        let hex = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
        let mut text = [0; 40];
        for (pair, &byte) in text.chunks_mut(2).zip(module.id()) {
            pair.copy_from_slice(&[hex(byte >> 4), hex(byte)]);
        }
        bytes(out, field::STRING, &text[..2 * module.id().len()]);
    }
    let now = clock_gettime(ClockId::Realtime);
    let now = Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    uint(out, field::TIME, now.as_nanos() as u64);
    uint(
        out,
        field::DURATION,
        crate::os::coarse_now().saturating_sub(profile.begun),
    );
    pair(out, field::PERIOD_TYPE, PERIOD_NAME);
    uint(out, field::PERIOD, profile.interval as u64);
    uint(out, field::DEFAULT_TYPE, PERIOD_NAME - 2);
    out.finish()
}

/// The call that returns to an address: an address within it.
fn call(ip: usize) -> u64 {
    (ip as u64).wrapping_sub(1).max(1)
}

/// Keeps a number in a table of a power of two, of which at most half is taken. 0 is none.
fn keep(table: &mut [u64], number: u64) {
    let mut place = mix(number) as usize;
    loop {
        place &= table.len() - 1;
        if table[place] == 0 || table[place] == number {
            table[place] = number;
            return;
        }
        place += 1;
    }
}

#[inline(never)]
fn varint(out: &mut dyn Sink, mut n: u64) {
    let (mut bytes, mut len) = ([0; 10], 0);
    loop {
        let more = n > 127;
        bytes[len] = n as u8 & 127 | u8::from(more) << 7;
        len += 1;
        n >>= 7;
        if !more {
            break;
        }
    }
    out.put(&bytes[..len]);
}

/// A number.
#[inline(never)]
fn uint(out: &mut dyn Sink, field: u32, n: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, n);
}

#[inline(never)]
fn bytes(out: &mut dyn Sink, field: u32, bytes: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.put(bytes);
}

/// A message, whose length stands before it.
#[inline(never)]
fn message(out: &mut dyn Sink, field: u32, body: &dyn Fn(&mut dyn Sink)) {
    let mut count = Count::default();
    body(&mut count);
    varint(out, u64::from(field) << 3 | 2);
    varint(out, count.0 as u64);
    body(out);
}
