//! The restartable sections of a CPU's slot, for x86-64.
//!
//! Each section finds the slot of the CPU it runs on, decides, and commits with exactly one store, its last
//! instruction. When the kernel preempts, migrates or signals the thread inside, it resumes at the abort address,
//! which starts the section anew; stores made before the commit went either to a free slot of a magazine that this CPU
//! still owns, to a counter, or to memory of the caller, and are made again. Leaving early by a jump is allowed,
//! because the kernel looks whether the address lies within the section.
//!
//! Offsets are those of [`Slot`](super::slot::Slot): first magazine 0, second 8, capacity 16, pushes 24 and 32. Pops are not
//! counted: the rounds that came in magazines and by pushes and are not there any more were popped. A section that turns to
//! the second magazine adds 8 to the slot's address, so the same commit serves both.

use core::arch::{asm, global_asm};

use super::FILL_MASK;
use super::sync::AtomicUsize;
pub(super) use crate::os::membarrier::restart_sequences;
use crate::os::rseq::Registration;

/// What an exchange of magazines returns instead of an old top. Tops are multiples of 8.
pub(super) const NOT_NOW: usize = 1;
/// The CPU layer is disabled.
pub(super) const DISABLED: usize = 2;
/// This CPU has no slot that is ever emptied: `end` says where those end.
pub(super) const BEYOND: usize = 3;

// What a thread without restartable sequences has in the place of the kernel's area. The kernel does not read it, and its CPU
// number is always 0. So such a thread may enter the sections too, and they need no check.
global_asm!(
    ".pushsection .tbss.larder_no_area_0_1, \"awT\", @nobits",
    ".balign 16",
    ".hidden larder_no_area_0_1",
    ".globl larder_no_area_0_1",
    ".type larder_no_area_0_1, @object",
    ".size larder_no_area_0_1, 16",
    "larder_no_area_0_1: .zero 16",
    ".popsection",
);

/// Where the sections find the kernel's area.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sections {
    offset: isize,
    id: isize,
}

/// Arms the section between labels 4 and 5 and leaves the address of this CPU's slot in `{slot}`.
///
/// 2 is where an aborted section starts again, 3 its descriptor, 7 the abort address behind the signature that the
/// kernel checks (the three bytes before make it an undefined instruction, so that disassemblers stay in step).
macro_rules! enter {
    () => {
        concat!(enter!(common), "\nadd {slot}, qword ptr [{base}]")
    };
    (common) => {
        ".pushsection __rseq_cs, \"aw\"
         .balign 32
         3: .long 0, 0
         .quad 4f, 5f - 4f, 7f
         .popsection
         .pushsection .text.unlikely, \"ax\"
         .byte 0x0f, 0xb9, 0x3d
         .long 0x53053053
         7: jmp 2f
         .popsection
         2: lea {slot}, [rip + 3b]
         mov qword ptr fs:[{offset} + 8], {slot}
         4: mov {slot:e}, dword ptr fs:[{id}]
         shl {slot}, 7"
    };
    // For sections that put a magazine in the CPU layer: the slot is a live one whatever `base` says, and the section goes on
    // only if `base` says so too. Were the slot found through `base`, enabling between two loads would let a section
    // commit into a disabled slot; disabling after the comparison restarts it.
    (live) => {
        concat!(enter!(common), "\nadd {slot}, {live}")
    };
}

/// A section: its instructions, and the operands that it has beside those of all sections. With `live`, the address of the live
/// slots, it enters there.
macro_rules! section {
    ($self:ident, $base:ident $(, $live:ident)?; $($line:literal),* $(,)? ; $($operand:tt)*) => {
        asm!(
            enter!($($live)?),
            $($line,)*
            "5:",
            slot = out(reg) _,
            $($live = in(reg) $live,)?
            base = in(reg) $base.as_ptr(),
            offset = in(reg) $self.offset,
            id = in(reg) $self.id,
            $($operand)*
            options(nostack),
        )
    };
}

/// A section that puts a magazine into a live slot, and leaves what was there, or why it did not, in `old`.
macro_rules! exchange {
    ($self:ident, $base:ident, $live:ident, $end:ident; $($line:literal),* $(,)? ; $($operand:tt)*) => {{
        let old: usize;
        section!(
            $self, $base, $live;
            "mov {old:e}, {disabled}",
            "cmp {live}, qword ptr [{base}]",
            "jne 5f",
            "mov {old:e}, {beyond}",
            "cmp {slot}, {end}",
            "jae 5f",
            $($line,)*
            ;
            old = out(reg) old,
            end = in(reg) $end,
            disabled = const DISABLED,
            beyond = const BEYOND,
            not_now = const NOT_NOW,
            $($operand)*
        );
        old
    }};
}

impl Sections {
    pub(super) fn new(registration: Registration) -> Self {
        Self {
            offset: registration.offset(),
            id: registration.id_offset(),
        }
    }

    /// For a CPU layer that is disabled for good: [`pop`](Self::pop) finds nothing there and [`push`](Self::push) no room.
    pub(super) fn idle() -> Self {
        let offset: isize;
        // SAFETY: reads where the words above lie for every thread that the C library started.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + larder_no_area_0_1@GOTTPOFF]",
                offset = out(reg) offset,
                options(nostack, preserves_flags, readonly, pure),
            );
        }
        // A section stores 8 bytes behind the offset, into the second word; the first one stays zero.
        Self { offset, id: offset }
    }

    /// Takes a round. The first value has no fill bits when both magazines are empty; else the second is the round.
    ///
    /// 11 instructions when the first magazine has a round, and 2 that look at the result.
    ///
    /// # Safety
    /// `base` is the address of an array of slots with one for every CPU.
    #[inline(always)]
    pub(super) unsafe fn pop(self, base: &AtomicUsize) -> (usize, usize) {
        let (top, round): (usize, usize);
        // SAFETY: reads the slot, the top round of a magazine that the slot owns; commits the slot's new top.
        unsafe {
            section!(
                self, base;
                "mov {top}, qword ptr [{slot}]",
                "test {top:e}, {mask}",
                "jnz 6f",
                "add {slot}, 8",
                "mov {top}, qword ptr [{slot}]",
                "test {top:e}, {mask}",
                "jz 5f",
                "6: mov {round}, qword ptr [{top}]",
                "lea {new}, [{top} - 8]",
                "mov qword ptr [{slot}], {new}",
                ;
                top = out(reg) top,
                round = out(reg) round,
                new = out(reg) _,
                mask = const FILL_MASK,
            );
        }
        (top, round)
    }

    /// Gives a round; false when both magazines are full.
    ///
    /// 14 instructions when the first magazine has room, and nothing looks at a result.
    ///
    /// # Safety
    /// As for [`pop`](Self::pop).
    #[inline(always)]
    pub(super) unsafe fn push(self, base: &AtomicUsize, round: usize) -> bool {
        // SAFETY: writes the free slot above the top of a magazine that the CPU's slot owns; commits the new top. The label
        // is a way to leave early.
        unsafe {
            section!(
                self, base;
                "mov {top}, qword ptr [{slot}]",
                "mov {fill:e}, {top:e}",
                "and {fill:e}, {mask}",
                "cmp {fill}, qword ptr [{slot} + 16]",
                "jb 6f",
                "mov {fill}, qword ptr [{slot} + 16]",
                "add {slot}, 8",
                "mov {top}, qword ptr [{slot}]",
                "mov {new:e}, {top:e}",
                "and {new:e}, {mask}",
                "cmp {new}, {fill}",
                "jae {full}",
                "6: mov qword ptr [{top} + 8], {round}",
                "inc qword ptr [{slot} + 24]",
                "add {top}, 8",
                "mov qword ptr [{slot}], {top}",
                ;
                top = out(reg) _,
                fill = out(reg) _,
                new = out(reg) _,
                round = in(reg) round,
                mask = const FILL_MASK,
                full = label { return false },
            );
        }
        true
    }

    /// Takes up to `n` rounds from one of the two magazines and says how many.
    ///
    /// # Safety
    /// As for [`pop`](Self::pop), and `out` has room for `n` rounds.
    pub(super) unsafe fn pop_many(self, base: &AtomicUsize, out: *mut usize, n: usize) -> usize {
        let taken: usize;
        // SAFETY: as `pop`; besides, it writes to the caller's array, which an aborted section writes again.
        unsafe {
            section!(
                self, base;
                "mov {top}, qword ptr [{slot}]",
                "mov {taken:e}, {top:e}",
                "and {taken:e}, {mask}",
                "jnz 6f",
                "add {slot}, 8",
                "mov {top}, qword ptr [{slot}]",
                "mov {taken:e}, {top:e}",
                "and {taken:e}, {mask}",
                "jz 5f",
                "6: shr {taken:e}, 3",
                "cmp {taken}, {n}",
                "cmova {taken}, {n}",
                "xor {i:e}, {i:e}",
                "8: mov {word}, qword ptr [{top}]",
                "mov qword ptr [{out} + 8*{i}], {word}",
                "sub {top}, 8",
                "inc {i}",
                "cmp {i}, {taken}",
                "jb 8b",
                "mov qword ptr [{slot}], {top}",
                ;
                top = out(reg) _,
                taken = out(reg) taken,
                i = out(reg) _,
                word = out(reg) _,
                out = in(reg) out,
                n = in(reg) n,
                mask = const FILL_MASK,
            );
        }
        taken
    }

    /// Gives up to `n` rounds to one of the two magazines and says how many.
    ///
    /// # Safety
    /// As for [`pop`](Self::pop), and `from` has `n` rounds.
    pub(super) unsafe fn push_many(
        self,
        base: &AtomicUsize,
        from: *const usize,
        n: usize,
    ) -> usize {
        let given: usize;
        // SAFETY: as `push`, for several free slots above the top.
        unsafe {
            section!(
                self, base;
                "mov {top}, qword ptr [{slot}]",
                "mov {word:e}, {top:e}",
                "and {word:e}, {mask}",
                "mov {given}, qword ptr [{slot} + 16]",
                "sub {given}, {word}",
                "ja 6f",
                "mov {given}, qword ptr [{slot} + 16]",
                "add {slot}, 8",
                "mov {top}, qword ptr [{slot}]",
                "mov {word:e}, {top:e}",
                "and {word:e}, {mask}",
                "sub {given}, {word}",
                "ja 6f",
                "mov {given:e}, 0",
                "jmp 5f",
                "6: shr {given:e}, 3",
                "cmp {given}, {n}",
                "cmova {given}, {n}",
                "xor {i:e}, {i:e}",
                "8: mov {word}, qword ptr [{from} + 8*{i}]",
                "add {top}, 8",
                "mov qword ptr [{top}], {word}",
                "inc {i}",
                "cmp {i}, {given}",
                "jb 8b",
                "add qword ptr [{slot} + 24], {given}",
                "mov qword ptr [{slot}], {top}",
                ;
                top = out(reg) _,
                given = out(reg) given,
                i = out(reg) _,
                word = out(reg) _,
                from = in(reg) from,
                n = in(reg) n,
                mask = const FILL_MASK,
            );
        }
        given
    }

    /// Puts magazine `new` in the place of an empty one (or of none), whose top it returns.
    ///
    /// # Safety
    /// As for [`pop`](Self::pop); `live` is the address of the live slots, and `end` where those end that may have
    /// magazines; the caller gives up `new` unless the result is [`NOT_NOW`], [`DISABLED`] or [`BEYOND`].
    pub(super) unsafe fn replace_empty(
        self,
        base: &AtomicUsize,
        live: usize,
        end: usize,
        new: usize,
    ) -> usize {
        // SAFETY: reads the slot; commits the new top.
        unsafe {
            exchange!(
                self, base, live, end;
                "mov {old}, qword ptr [{slot}]",
                "test {old:e}, {mask}",
                "jz 6f",
                "add {slot}, 8",
                "mov {old}, qword ptr [{slot}]",
                "test {old:e}, {mask}",
                "jz 6f",
                "mov {old:e}, {not_now}",
                "jmp 5f",
                "6: mov qword ptr [{slot}], {new}",
                ;
                new = in(reg) new,
                mask = const FILL_MASK,
            )
        }
    }

    /// Puts magazine `new` in the place of a full one (or of none), whose top it returns.
    ///
    /// # Safety
    /// As for [`replace_empty`](Self::replace_empty).
    pub(super) unsafe fn replace_full(
        self,
        base: &AtomicUsize,
        live: usize,
        end: usize,
        new: usize,
    ) -> usize {
        // SAFETY: reads the slot; commits the new top.
        unsafe {
            exchange!(
                self, base, live, end;
                "mov {capacity}, qword ptr [{slot} + 16]",
                "mov {old}, qword ptr [{slot}]",
                "mov {fill:e}, {old:e}",
                "and {fill:e}, {mask}",
                "cmp {fill}, {capacity}",
                "jae 6f",
                "add {slot}, 8",
                "mov {old}, qword ptr [{slot}]",
                "mov {fill:e}, {old:e}",
                "and {fill:e}, {mask}",
                "cmp {fill}, {capacity}",
                "jae 6f",
                "mov {old:e}, {not_now}",
                "jmp 5f",
                "6: mov qword ptr [{slot}], {new}",
                ;
                capacity = out(reg) _,
                fill = out(reg) _,
                new = in(reg) new,
                mask = const FILL_MASK,
            )
        }
    }

    /// Puts `new` into the word at `word` bytes of the slot if that word is zero. Returns 0 when it did, [`NOT_NOW`]
    /// when the word was not zero, [`DISABLED`] or [`BEYOND`].
    ///
    /// # Safety
    /// As for [`replace_empty`](Self::replace_empty); `word` is 0 or 8.
    pub(super) unsafe fn set_if_none(
        self,
        base: &AtomicUsize,
        live: usize,
        end: usize,
        word: usize,
        new: usize,
    ) -> usize {
        // SAFETY: reads one word of the slot; commits it.
        unsafe {
            exchange!(
                self, base, live, end;
                "mov {old:e}, {not_now}",
                "cmp qword ptr [{slot} + {word}], 0",
                "jne 5f",
                "xor {old:e}, {old:e}",
                "mov qword ptr [{slot} + {word}], {new}",
                ;
                word = in(reg) word,
                new = in(reg) new,
            )
        }
    }

    /// Sets the capacity of this CPU's magazines in bytes, if it has both. False when it has not or is disabled.
    ///
    /// # Safety
    /// As for [`replace_empty`](Self::replace_empty); `bytes` is at most the fill of a full magazine.
    pub(super) unsafe fn set_capacity(self, base: &AtomicUsize, live: usize, bytes: usize) -> bool {
        let done: usize;
        // SAFETY: reads the slot; commits its capacity.
        unsafe {
            section!(
                self, base, live;
                "xor {done:e}, {done:e}",
                "cmp {live}, qword ptr [{base}]",
                "jne 5f",
                "cmp qword ptr [{slot}], 0",
                "je 5f",
                "cmp qword ptr [{slot} + 8], 0",
                "je 5f",
                "mov {done:e}, 1",
                "mov qword ptr [{slot} + 16], {bytes}",
                ;
                done = out(reg) done,
                bytes = in(reg) bytes,
            );
        }
        done == 1
    }
}
