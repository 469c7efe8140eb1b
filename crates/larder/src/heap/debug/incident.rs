//! What can be wrong, and the message that says it.

use core::fmt::{self, Write};

use super::Frames;
use super::records::{self, Record};
use super::symbol;
use crate::heap::output::Output;
use crate::heap::{Call, Claim};

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
        let block = self.block.unwrap_or_default();
        let call =
            |claim: Claim| fmt::from_fn(move |f| write!(f, "{}({at:#x})", claim.call.name()));
        out.write_str("larder: ")?;
        match self.kind {
            Kind::Double(claim) => {
                writeln!(out, "double free: {} of a block that is free", call(claim))
            }
            Kind::Asked(claim) => {
                writeln!(
                    out,
                    "use after free: {} of a block that is free",
                    call(claim)
                )
            }
            Kind::Invalid(claim, what) => {
                let kind = match claim.call {
                    Call::UsableSize => "pointer",
                    _ => "free",
                };
                write!(out, "invalid {kind}: {}, ", call(claim))?;
                match &self.block {
                    Some(block) => writeln!(out, "{}", beside(at, block)),
                    None => writeln!(out, "{what}"),
                }
            }
            Kind::Size(claim, size) => writeln!(
                out,
                "mismatched size: {} with {size} bytes of a block of {}",
                call(claim),
                block.size
            ),
            Kind::Align(claim, align) => writeln!(
                out,
                "mismatched alignment: {} with alignment {align} of a block aligned to {}",
                call(claim),
                block.asked_align()
            ),
            Kind::Family(claim) => writeln!(
                out,
                "mismatched functions: {} of a block of {}",
                call(claim),
                block.origin.name()
            ),
            Kind::Overflow(by, seen) => writeln!(
                out,
                "overflow: byte {by} after the end of a block {}",
                self.seen(seen)
            ),
            Kind::Underflow(by, seen) => writeln!(
                out,
                "underflow: byte {by} before a block {}",
                self.seen(seen)
            ),
            Kind::AfterFree(offset, seen) => writeln!(
                out,
                "use after free: byte {offset} of a free block {}",
                self.seen(seen)
            ),
        }?;
        if !self.here.as_slice().is_empty() {
            writeln!(out, "  here:")?;
            symbol::write(&self.here, out)?;
        }
        if self.block.is_some() {
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

    fn seen(&self, seen: Seen) -> impl fmt::Display {
        let at = self.address;
        fmt::from_fn(move |f| match seen {
            Seen::By(claim) => write!(f, "was written, seen by {}({at:#x})", claim.call.name()),
            Seen::Reuse => f.write_str("was written, seen before its memory is used again"),
            Seen::Check => f.write_str("was written, seen when all blocks were looked at"),
            Seen::Access => write!(f, "was touched, at {at:#x}"),
        })
    }
}

/// Where an address lies that no block begins at.
fn beside(at: usize, block: &Record) -> impl fmt::Display {
    let end = block.at + block.size;
    let (n, side) = if at < block.at {
        (block.at - at, "before a block")
    } else if at >= end {
        (at - end, "after the end of a block")
    } else {
        (at - block.at, "into a block")
    };
    fmt::from_fn(move |f| {
        let ending = if n == 1 { "" } else { "s" };
        write!(f, "which is {n} byte{ending} {side}")
    })
}
