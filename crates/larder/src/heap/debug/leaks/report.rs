//! The leaks in words.

use core::fmt::{self, Write};

use super::super::heap::DebugHeap;
use super::super::symbol;
use super::LeakStats;
use super::mark::{Group, Groups};
use crate::heap::output::Output;

/// Most places that are reported.
const MOST: usize = 100;

pub(super) fn tell(heap: &DebugHeap, groups: &Groups, stats: LeakStats) {
    let mut out = Output::new();
    let _ = write(heap, groups.as_slice(), stats, &mut out);
}

fn write(heap: &DebugHeap, groups: &[Group], stats: LeakStats, out: &mut Output) -> fmt::Result {
    if groups.is_empty() {
        return writeln!(out, "larder: leaks: none");
    }
    for group in groups.iter().take(MOST) {
        write!(
            out,
            "larder: leak: {} bytes in {}, by {}",
            group.bytes,
            count(group.blocks, "block"),
            group.origin.name()
        )?;
        match group.indirect {
            0 => {}
            n if n == group.blocks => write!(out, ", behind other leaks")?,
            n => write!(out, ", {n} of them behind other leaks")?,
        }
        writeln!(out, ":")?;
        let frames = heap.inner.lock().stacks.frames(group.stack);
        symbol::write(&frames, out)?;
    }
    if groups.len() > MOST {
        writeln!(out, "larder: leaks: {} more places", groups.len() - MOST)?;
    }
    writeln!(
        out,
        "larder: leaks: {} bytes in {} from {}",
        stats.bytes,
        count(stats.blocks, "block"),
        count(groups.len(), "place")
    )
}

/// A number of things in words.
fn count(n: usize, thing: &'static str) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "{n} {thing}{}", if n == 1 { "" } else { "s" }))
}
