//! What lives, in words: the stacks that allocated most of it.

use core::fmt::{self, Write};

use super::Profile;
use super::gap::PARTS;
use crate::heap::output::{Output, calls};

/// Stacks that are listed.
const LISTED: usize = 20;

pub(super) fn say(profile: &Profile) {
    let _ = write(profile, &mut Output::new());
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
        calls(frames.as_slice(), out)?;
    }
    writeln!(out, "larder: alive: about {sum} bytes from {stacks} stacks")
}
