//! What can be wrong, and the message that says it.

use core::fmt::{self, Write};

use super::output::Output;
use super::records::{self, Record};
use super::stacks::Frames;
use super::symbol;
use crate::heap::{Call, Claim, Origin};

/// When a damage was seen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen {
    /// When the block was brought to a function.
    By(Claim),
    /// When the memory of a freed block was to be used again.
    Reuse,
    /// When all blocks were looked at: at the program's end, or on request.
    Check,
    /// When it happened: a guard page was touched.
    Access,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Brought back twice.
    Double(Claim),
    /// Its size was asked for after it was freed.
    Asked(Claim),
    /// No block begins there.
    Invalid(Claim, &'static str),
    /// The size is another one.
    Size(Claim, usize),
    /// The alignment is another one.
    Align(Claim, usize),
    /// A function of another family.
    Family(Claim),
    /// Something wrote so many bytes after the end.
    Overflow(usize, Seen),
    /// Something wrote so many bytes before the beginning.
    Underflow(usize, Seen),
    /// Something used a freed block at this offset.
    AfterFree(usize, Seen),
}

/// A misuse, with all that is known of the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incident {
    pub(super) kind: Kind,
    /// The address that the program brought or touched.
    pub(super) address: usize,
    pub(super) block: Option<Record>,
    pub(super) allocated: Frames,
    pub(super) freed: Frames,
    /// Where it was seen; empty where that says nothing.
    pub(super) here: Frames,
}

impl Incident {
    pub(super) fn new(kind: Kind, address: usize, here: Frames) -> Self {
        Self {
            kind,
            address,
            block: None,
            allocated: Frames::NONE,
            freed: Frames::NONE,
            here,
        }
    }

    /// The whole message in one write, as far as it fits.
    pub(super) fn tell(&self) {
        let mut out = Output::new();
        let _ = self.write(&mut out);
    }

    fn write(&self, out: &mut Output) -> fmt::Result {
        let at = self.address;
        match self.kind {
            Kind::Double(claim) => {
                let name = claim.call.name();
                writeln!(
                    out,
                    "larder: double free: {name}({at:#x}) of a block that is free"
                )?;
            }
            Kind::Asked(claim) => {
                let name = claim.call.name();
                writeln!(
                    out,
                    "larder: use after free: {name}({at:#x}) of a block that is free"
                )?;
            }
            Kind::Invalid(claim, what) => {
                let kind = match claim.call {
                    Call::UsableSize => "pointer",
                    _ => "free",
                };
                write!(
                    out,
                    "larder: invalid {kind}: {}({at:#x}), ",
                    claim.call.name()
                )?;
                match &self.block {
                    Some(block) => writeln!(out, "{}", Beside { at, block })?,
                    None => writeln!(out, "{what}")?,
                }
            }
            Kind::Size(claim, size) => {
                let (name, has) = (claim.call.name(), self.block.map_or(0, |b| b.size));
                writeln!(
                    out,
                    "larder: mismatched size: {name}({at:#x}) with {size} bytes of a block of {has}"
                )?;
            }
            Kind::Align(claim, align) => {
                let (name, has) = (claim.call.name(), self.block.map_or(0, |b| b.asked_align()));
                writeln!(
                    out,
                    "larder: mismatched alignment: {name}({at:#x}) with alignment {align} of a block aligned to {has}"
                )?;
            }
            Kind::Family(claim) => {
                let of = self.block.map_or(Origin::Malloc, |b| b.origin);
                writeln!(
                    out,
                    "larder: mismatched functions: {}({at:#x}) of a block of {}",
                    claim.call.name(),
                    of.name()
                )?;
            }
            Kind::Overflow(by, seen) => {
                write!(out, "larder: overflow: byte {by} after the end of a block ")?;
                self.write_seen(seen, out)?;
            }
            Kind::Underflow(by, seen) => {
                write!(out, "larder: underflow: byte {by} before a block ")?;
                self.write_seen(seen, out)?;
            }
            Kind::AfterFree(offset, seen) => {
                write!(
                    out,
                    "larder: use after free: byte {offset} of a free block "
                )?;
                self.write_seen(seen, out)?;
            }
        }
        if !self.here.as_slice().is_empty() {
            writeln!(out, "  here:")?;
            symbol::write(&self.here, out)?;
        }
        if let Some(block) = &self.block {
            writeln!(
                out,
                "  block of {} bytes at {:#x}, by {}, thread {}:",
                block.size,
                block.at,
                block.origin.name(),
                block.alloc_thread
            )?;
            symbol::write(&self.allocated, out)?;
            if block.state != records::LIVE {
                writeln!(out, "  freed by thread {}:", block.free_thread)?;
                symbol::write(&self.freed, out)?;
            }
        }
        Ok(())
    }

    fn write_seen(&self, seen: Seen, out: &mut Output) -> fmt::Result {
        match seen {
            Seen::By(claim) => writeln!(
                out,
                "was written, seen by {}({:#x})",
                claim.call.name(),
                self.address
            ),
            Seen::Reuse => writeln!(out, "was written, seen before its memory is used again"),
            Seen::Check => writeln!(out, "was written, seen when all blocks were looked at"),
            Seen::Access => writeln!(out, "was touched, at {:#x}", self.address),
        }
    }
}

/// Where an address lies that no block begins at.
struct Beside<'a> {
    at: usize,
    block: &'a Record,
}

impl fmt::Display for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, block) = (self.at, self.block);
        let end = block.at + block.size;
        if at < block.at {
            write!(f, "which is {} before a block", bytes(block.at - at))
        } else if at >= end {
            write!(f, "which is {} after the end of a block", bytes(at - end))
        } else {
            write!(f, "which is {} into a block", bytes(at - block.at))
        }
    }
}

/// So many bytes, in words.
fn bytes(n: usize) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "{n} byte{}", if n == 1 { "" } else { "s" }))
}
