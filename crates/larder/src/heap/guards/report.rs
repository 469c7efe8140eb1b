//! What is wrong with the use of a block in a slot, and what is said of it.

use core::fmt::{self, Write};
use core::time::Duration;

use super::{Guards, Slot};
use crate::heap::Call;
use crate::heap::output::{Output, calls};
use crate::heap::stacks::{Frames, SAMPLED};
use crate::os::{turns, wait_turn};

/// How long a thread that met a fault waits for the lock: at most so long, since it may have it itself.
const PATIENCE: u32 = turns(Duration::from_secs(1));

/// What is wrong with a call, or with an access.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wrong {
    /// The block is free.
    Twice(Call),
    /// No block begins there.
    Inside(Call),
    /// The caller says another size.
    Size(Call, usize),
    /// The byte at an address beside the block was written.
    Written(Call, usize),
    /// The address was touched; by a write or not, where that is known.
    Touched(Option<bool>),
}

impl Guards {
    /// Says what is wrong with a call with an address, and ends the process: to go on would be worse.
    #[cold]
    pub(super) fn end(&self, wrong: Wrong, address: usize, here: &Frames<SAMPLED>) -> ! {
        let slot = self.slots.lock().slots[self.slot(address)];
        say(wrong, address, &slot, here);
        std::process::abort()
    }

    /// A fault at an address of these, by the instruction at `ip`: says what was misused, if a block was.
    pub(crate) fn touched(&self, address: usize, ip: usize, write: Option<bool>) {
        for turn in 0..PATIENCE {
            let Some(slots) = self.slots.try_lock() else {
                wait_turn(turn);
                continue;
            };
            let slot = slots.slots[self.slot(address)];
            drop(slots);
            // Another thread may have got the slot for a new block meanwhile.
            if slot.at != 0 && !(slot.live && slot.has(address)) {
                let here = self.stacks.stack().from(ip);
                say(Wrong::Touched(write), address, &slot, &here);
            }
            return;
        }
    }
}

fn say(wrong: Wrong, address: usize, slot: &Slot, here: &Frames<SAMPLED>) {
    let _ = write(wrong, address, slot, here, &mut Output::new());
}

fn write(
    wrong: Wrong,
    address: usize,
    slot: &Slot,
    here: &Frames<SAMPLED>,
    out: &mut dyn Write,
) -> fmt::Result {
    let Slot { at, size, .. } = *slot;
    match wrong {
        Wrong::Twice(call) => writeln!(
            out,
            "larder: double free: {}({address:#x}) of a block of {size} bytes that is free",
            call.name()
        ),
        Wrong::Inside(call) => {
            write!(out, "larder: invalid free: {}({address:#x}), ", call.name())?;
            match address.wrapping_sub(at) {
                1 => writeln!(out, "which is 1 byte into a block of {size}"),
                inside if inside < size => {
                    writeln!(out, "which is {inside} bytes into a block of {size}")
                }
                _ => out.write_str("where no block begins\n"),
            }
        }
        Wrong::Size(call, said) => writeln!(
            out,
            "larder: mismatched size: {}({address:#x}) with {said} bytes of a block of {size}",
            call.name()
        ),
        Wrong::Written(call, written) => {
            place(slot, written, out)?;
            writeln!(out, "written, seen by {}({address:#x})", call.name())
        }
        Wrong::Touched(write) => {
            place(slot, address, out)?;
            let how = match write {
                Some(true) => "written",
                Some(false) => "read",
                None => "touched",
            };
            writeln!(out, "{how}, at {address:#x}")
        }
    }?;
    out.write_str("  here:\n")?;
    calls(here.as_slice(), out)?;
    if at != 0 {
        writeln!(out, "  block of {size} bytes at {at:#x}, allocated:")?;
        calls(slot.allocated.as_slice(), out)?;
    }
    if !slot.freed.as_slice().is_empty() {
        out.write_str("  freed:\n")?;
        calls(slot.freed.as_slice(), out)?;
    }
    Ok(())
}

/// The kind of a wrong access, and where it was.
fn place(slot: &Slot, address: usize, out: &mut dyn Write) -> fmt::Result {
    let (kind, by, of) = if slot.has(address) {
        ("use after free", address - slot.at, "of")
    } else if address < slot.at {
        ("underflow", slot.at - 1 - address, "before")
    } else {
        (
            "overflow",
            address - slot.at - slot.size,
            "after the end of",
        )
    };
    let (kind, a) = match slot.live {
        true => (kind, "a"),
        false => ("use after free", "a free"),
    };
    write!(
        out,
        "larder: {kind}: byte {by} {of} {a} block of {} bytes was ",
        slot.size
    )
}
