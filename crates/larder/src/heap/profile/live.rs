//! What lives, in words: the stacks that allocated most of it.

use core::ffi::{CStr, c_void};
use core::fmt::{self, Write};

use super::Profile;
use super::gap::PARTS;
use super::out::Out;

/// Stacks that are listed.
const LISTED: usize = 20;

pub(super) fn say(profile: &Profile) {
    let mut out = Out::new(None);
    let _ = write(profile, &mut out);
    // There is nowhere to report that standard error cannot be written.
    let _ = out.finish();
}

fn write(profile: &Profile, out: &mut dyn Write) -> fmt::Result {
    let last = profile.samples.lock().last();
    let bytes = |number: u32| profile.samples.lock().site(number).1.live().bytes;
    let mut listed = [(0_u64, 0_u32); LISTED];
    let (mut sum, mut stacks) = (0, 0);
    for number in 0..=last {
        let bytes = bytes(number);
        sum += bytes;
        stacks += usize::from(bytes > 0);
        // Kept in order.
        if bytes > listed[LISTED - 1].0 {
            let place = listed.partition_point(|&(more, _)| more >= bytes);
            listed[place..].rotate_right(1);
            listed[place] = (bytes, number);
        }
    }
    for &(bytes, number) in listed.iter().filter(|(bytes, _)| *bytes > 0) {
        let (frames, site) = profile.samples.lock().site(number);
        let objects = (site.live().objects as f64 / PARTS + 0.5) as u64;
        writeln!(
            out,
            "larder: alive: about {bytes} bytes in {objects} blocks ({} sampled):",
            site.samples
        )?;
        for &ip in frames.as_slice() {
            place(ip.wrapping_sub(1), out)?;
        }
    }
    writeln!(out, "larder: alive: about {sum} bytes from {stacks} stacks")
}

/// The function of a call, as far as the loader knows it, and where it is: `addr2line -e FILE 0x1234` names the line of the source.
fn place(call: usize, out: &mut dyn Write) -> fmt::Result {
    // SAFETY: all zeroes is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for; the loader fills the value.
    let found = unsafe { libc::dladdr(call as *const c_void, &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return writeln!(out, "    {call:#x}");
    }
    // SAFETY: names of the loader's, which stay while the module is loaded.
    let text = |name| unsafe { CStr::from_ptr(name) }.to_bytes().utf8_chunks();
    out.write_str("    ")?;
    if !info.dli_sname.is_null() {
        text(info.dli_sname).try_for_each(|part| out.write_str(part.valid()))?;
        out.write_str(" ")?;
    }
    out.write_str("(")?;
    text(info.dli_fname).try_for_each(|part| out.write_str(part.valid()))?;
    writeln!(out, "+{:#x})", call - info.dli_fbase as usize)
}
