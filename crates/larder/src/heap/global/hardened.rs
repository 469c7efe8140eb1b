//! The hardened mode of malloc, which the environment asks for: blocks end in a word that no program can guess, and freed ones rest
//! before they are used again.
//!
//! Beside the [marks](super::marked), which every malloc has:
//!
//! - The last word of a block's memory is its size, mixed with its address and a secret of the process. What lies between the
//!   block's end and that word begins with fixed bytes. Both are looked at when the block is freed or resized, and so is the word of
//!   the block before it, if that is in use: a write beyond either end is noticed.
//! - A freed block is filled, and rests in a queue of its thread. When it leaves, its content is looked at: a write after the
//!   free is noticed. Afterwards it is as any free block.
//!
//! Threads have heaps as in the usual mode, but the word that the fast path reads stays null. So the mode costs nothing where it is
//! off: every call of it goes the slow way.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering, fence};

use super::checked::UNSAID;
use super::mode::environment;
use super::state::{self, Global};
use super::{front, marked, misuse, slot};
use crate::heap::class::{class_of_layout, may_stay};
use crate::heap::{Call, Classes, GRAIN, Heap, Origin, SIZES, pattern};
use crate::os::random;
use crate::os::say::say_unknown;

const WORD: usize = size_of::<usize>();
/// What follows a block, as far as there is room before the word at the end.
const BEHIND: usize = usize::from_ne_bytes([pattern::AFTER; WORD]);
/// So much of a freed block is filled and looked at.
const MOST_FILLED: usize = 1 << 10;
/// Blocks that rest in a thread's queue, bytes of them, and bytes of the largest.
const RESTING: usize = 256;
const RESTING_BYTES: usize = 1 << 20;
const LARGEST_RESTING: usize = 32 << 10;

/// A thread's part. The heap is first: what ends a thread knows it by its heap.
#[repr(C)]
pub(super) struct Thread {
    pub(super) heap: Heap,
    resting: UnsafeCell<Resting>,
}

impl Thread {
    pub(super) fn new(classes: &Classes) -> Self {
        Self {
            heap: Heap::new(classes),
            resting: UnsafeCell::new(Resting {
                blocks: [(0, 0); RESTING],
                first: 0,
                len: 0,
                bytes: 0,
            }),
        }
    }

    /// The borrow must end before anything is called that may free.
    #[allow(clippy::mut_from_ref)]
    fn resting(&self) -> &mut Resting {
        // SAFETY: only its thread has it, and no caller keeps the borrow.
        unsafe { &mut *self.resting.get() }
    }
}

/// Freed blocks, the oldest first.
struct Resting {
    /// Address and class.
    blocks: [(usize, u32); RESTING],
    first: usize,
    len: usize,
    bytes: usize,
}

impl Resting {
    fn push(&mut self, at: NonNull<u8>, class: usize) {
        self.blocks[(self.first + self.len) % RESTING] = (at.as_ptr() as usize, class as u32);
        self.len += 1;
        self.bytes += SIZES[class];
    }

    fn pop(&mut self) -> Option<Block> {
        self.len = self.len.checked_sub(1)?;
        let (at, class) = self.blocks[self.first];
        self.first = (self.first + 1) % RESTING;
        let block = Block::of(NonNull::new(at as *mut u8)?, class as usize);
        self.bytes -= block.bytes;
        Some(block)
    }
}

/// The memory of a block.
#[derive(Clone, Copy)]
struct Block {
    at: NonNull<u8>,
    /// All that it has, the word at the end included.
    bytes: usize,
    /// `None` where it is a run of pages.
    class: Option<usize>,
}

impl Block {
    fn of(at: NonNull<u8>, class: usize) -> Self {
        Self {
            at,
            bytes: SIZES[class],
            class: Some(class),
        }
    }

    /// `None` for blocks that were given out before there was a heap, and where no block begins.
    fn at(global: &Global, at: NonNull<u8>) -> Option<Self> {
        if let Some(class) = global.classes.class_at(at) {
            return Some(Self::of(at, class));
        }
        Some(Self {
            at,
            bytes: global.classes.family().large_bytes(at).ok()?,
            class: None,
        })
    }

    /// The word at the end. Another thread may look at it, as the one before its own block.
    fn word(&self) -> &AtomicUsize {
        // SAFETY: inside of the block, which is a multiple of a word long and aligned to one.
        unsafe { self.at.add(self.bytes - WORD).cast().as_ref() }
    }

    /// Where the bytes begin that follow a block of this size, and how many there are before the word at the end.
    fn behind(&self, size: usize) -> (*mut u8, usize) {
        let room = self.bytes - WORD - size;
        (self.at.as_ptr().wrapping_add(size), room.min(WORD))
    }

    /// The first byte behind a block of this size that was written, by its distance.
    fn written_behind(&self, size: usize) -> Option<usize> {
        let (at, bytes) = self.behind(size);
        // SAFETY: inside of the block. The last bytes may be those of the word at the end, which do not count.
        let differs = unsafe { at.cast::<usize>().read_unaligned() } ^ BEHIND;
        let first = differs.to_le().trailing_zeros() as usize / 8;
        (first < bytes).then_some(first)
    }
}

/// The secret of the process.
#[derive(Debug)]
pub(super) struct Hardening {
    secret: usize,
}

impl Hardening {
    /// What `LARDER_HARDENED` asks for.
    pub(super) fn chosen() -> Option<Self> {
        match environment(c"LARDER_HARDENED")? {
            b"" | b"0" | b"off" => return None,
            b"1" | b"on" => {}
            word => {
                say_unknown("LARDER_HARDENED", word, "on, off, 1, 0");
                return None;
            }
        }
        let mut bytes = [0; WORD];
        // Where the kernel gives none, the address space's own secret is left.
        if random::fill(&mut bytes).is_err() {
            bytes = (&raw const bytes as usize).to_ne_bytes();
        }
        Some(Self {
            secret: usize::from_ne_bytes(bytes),
        })
    }

    fn key(&self, at: usize) -> usize {
        let mixed = (at ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
        mixed ^ (mixed >> (usize::BITS / 2 - 3))
    }

    /// A block in use has this size from now on.
    ///
    /// # Safety
    /// The block is the caller's, and has room for so much and the word.
    unsafe fn seal(&self, block: &Block, size: usize) {
        let (at, bytes) = block.behind(size);
        // SAFETY: the caller's promise. The word at the end changes by one store: the thread that frees the next block may look at it.
        unsafe { at.write_bytes(pattern::AFTER, bytes) };
        let key = self.key(block.at.as_ptr() as usize);
        block.word().store(key ^ size, Ordering::Relaxed);
    }

    /// The size of a block, if its word is whole.
    fn sealed(&self, block: &Block) -> Option<usize> {
        let key = self.key(block.at.as_ptr() as usize);
        let size = block.word().load(Ordering::Relaxed) ^ key;
        (size <= block.bytes - WORD).then_some(size)
    }

    /// The size of a block whose end is whole. Does not return where it is not.
    fn checked(&self, block: &Block, call: Call) -> usize {
        let at = block.at.as_ptr() as usize;
        let Some(size) = self.sealed(block) else {
            misuse::damaged(format_args!(
                "overflow: the end of the block at {at:#x} was written, seen by {}({at:#x})",
                call.name()
            ));
        };
        if let Some(offset) = block.written_behind(size) {
            misuse::damaged(format_args!(
                "overflow: byte {offset} after the end of a block of {size} bytes was written, seen by {}({at:#x})",
                call.name()
            ));
        }
        size
    }

    /// Looks at the end of the block before one. Does not return where it is damaged.
    fn check_before(&self, global: &Global, block: &Block, call: Call) {
        let Some(class) = block.class else {
            return;
        };
        let at = block.at.as_ptr() as usize;
        let before = NonNull::new(at.wrapping_sub(block.bytes) as *mut u8);
        let Some(before) = before.filter(|&before| {
            marked::mark_at(global, before) != 0 && global.classes.class_at(before) == Some(class)
        }) else {
            return;
        };
        // What is marked was sealed before, and no one else ends the slab while this block is in it.
        fence(Ordering::Acquire);
        let before = Block {
            at: before,
            ..*block
        };
        if self.sealed(&before).is_none() {
            misuse::damaged(format_args!(
                "underflow: the bytes before the block at {at:#x} were written, or after that at {:#x}, seen by {}({at:#x})",
                before.at.as_ptr() as usize,
                call.name()
            ));
        }
    }

    pub(super) fn alloc(
        &self,
        global: &Global,
        size: usize,
        align: usize,
        zeroed: bool,
    ) -> *mut u8 {
        let layout = size
            .checked_add(WORD)
            .and_then(|bytes| Layout::from_size_align(bytes, align).ok());
        let Some(layout) = layout else {
            return null_mut();
        };
        let block = match (slot::hardened(), class_of_layout(layout)) {
            (Some(Thread { heap, .. }), Some(class)) if align <= GRAIN => {
                let got = if zeroed {
                    heap.get_zeroed(class, layout.size())
                } else {
                    heap.get(class)
                };
                got.ok().map(|at| Block::of(at, class))
            }
            _ => {
                let at = if zeroed {
                    front::alloc_zeroed(layout.size(), align)
                } else {
                    front::alloc_as(layout.size(), align, Origin::Malloc)
                };
                let Some(block) = NonNull::new(at).and_then(|at| Block::at(global, at)) else {
                    return at;
                };
                Some(block)
            }
        };
        let Some(block) = block else {
            return null_mut();
        };
        // SAFETY: just taken, with so much.
        unsafe { self.seal(&block, size) };
        if block.class.is_some() {
            // Sealed before it is marked: a thread that frees the block behind it looks.
            fence(Ordering::Release);
            marked::set(global, block.at);
        }
        block.at.as_ptr()
    }

    /// # Safety
    /// As for `marked::free_sized_as`.
    pub(super) unsafe fn free(&self, global: &Global, at: NonNull<u8>, size: usize, call: Call) {
        let block = match marked::give_up(at, call) {
            Some((_, class)) => Some(Block::of(at, class)),
            None => Block::at(global, at),
        };
        let Some(block) = block else {
            // SAFETY: the caller's promise.
            return unsafe { front::free_found(at, UNSAID, UNSAID, call) };
        };
        let has = self.checked(&block, call);
        if size != UNSAID && size != has {
            misuse::wrong_size(at, size, has, call);
        }
        self.check_before(global, &block, call);
        match (slot::hardened(), block.class) {
            (Some(thread), Some(class)) if block.bytes <= LARGEST_RESTING => {
                let filled = has.min(MOST_FILLED);
                // SAFETY: the program gave the block up.
                unsafe { pattern::fill(at.as_ptr() as usize, filled, pattern::FREED) };
                thread.resting().push(at, class);
                self.wake(thread, RESTING - 1, RESTING_BYTES);
            }
            // SAFETY: the caller's promise.
            _ => unsafe { front::free_found(at, UNSAID, UNSAID, call) },
        }
    }

    /// Gives the oldest blocks of a thread's queue back, until there are at most so many. Does not return where one was written to.
    fn wake(&self, thread: &Thread, most: usize, bytes: usize) {
        while thread.resting().len > most || thread.resting().bytes > bytes {
            let oldest = thread.resting().pop();
            let Some((block, class)) = oldest.and_then(|block| Some((block, block.class?))) else {
                return;
            };
            self.check_freed(&block);
            // SAFETY: the program gave it up, and it is out of the queue.
            unsafe { thread.heap.put(block.at, class) };
        }
    }

    fn check_freed(&self, block: &Block) {
        let at = block.at.as_ptr() as usize;
        let Some(size) = self.sealed(block) else {
            misuse::damaged(format_args!(
                "use after free: the end of a free block at {at:#x} was written, seen before its memory is used again"
            ));
        };
        // SAFETY: inside of a block that is free.
        let changed = unsafe { pattern::changed(at, size.min(MOST_FILLED), pattern::FREED) };
        if let Some(offset) = changed {
            misuse::damaged(format_args!(
                "use after free: byte {offset} of a free block of {size} bytes at {at:#x} was written, seen before its memory is used again"
            ));
        }
    }

    /// # Safety
    /// As for `marked::realloc`; the block is in use.
    pub(super) unsafe fn realloc(
        &self,
        global: &Global,
        at: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> *mut u8 {
        let has = match Block::at(global, at) {
            Some(block) => {
                let has = self.checked(&block, Call::Realloc);
                // SAFETY: the caller's promise.
                if unsafe { self.resize(global, &block, has, size, align) } {
                    return at.as_ptr();
                }
                has
            }
            // Of the time before there was a heap, or no block: then it is reported.
            None => match front::bootstrap_size(at) {
                Some(has) => has,
                // SAFETY: as above.
                None => unsafe {
                    front::free_found(at, UNSAID, UNSAID, Call::Realloc);
                    return null_mut();
                },
            },
        };
        let to = self.alloc(global, size, align, false);
        if to.is_null() {
            if size <= has && (at.as_ptr() as usize).is_multiple_of(align) {
                if let Some(block) = Block::at(global, at) {
                    // SAFETY: it has room for more.
                    unsafe { self.seal(&block, size) };
                }
                return at.as_ptr();
            }
            return to;
        }
        // SAFETY: both have at least so many bytes, and one of them is new.
        unsafe {
            to.copy_from_nonoverlapping(at.as_ptr(), has.min(size));
            self.free(global, at, UNSAID, Call::Realloc);
        }
        to
    }

    /// Gives a block another size where it is; false when it must move.
    ///
    /// # Safety
    /// As for [`realloc`](Self::realloc).
    unsafe fn resize(
        &self,
        global: &Global,
        block: &Block,
        has: usize,
        size: usize,
        align: usize,
    ) -> bool {
        let Some(bytes) = size.checked_add(WORD) else {
            return false;
        };
        if !(block.at.as_ptr() as usize).is_multiple_of(align) {
            return false;
        }
        let class = Layout::from_size_align(bytes, align)
            .ok()
            .and_then(class_of_layout);
        let stays = match (class, block.class) {
            (Some(new), Some(old)) => new == old || may_stay(old, bytes),
            (None, None) => {
                let family = global.classes.family();
                // SAFETY: the caller's promise; what lies beyond is given up.
                size <= has && size > has / 2
                    || unsafe { family.resize_large(block.at, bytes) }.unwrap_or(false)
            }
            _ => false,
        };
        if stays && let Some(block) = Block::at(global, block.at) {
            // SAFETY: the block has room for it.
            unsafe { self.seal(&block, size) };
        }
        stays
    }

    /// Bytes that were asked for; 0 for what is no block in use.
    pub(super) fn size(&self, global: &Global, at: NonNull<u8>) -> usize {
        match Block::at(global, at) {
            Some(block) if block.class.is_some() && marked::mark_at(global, at) == 0 => 0,
            Some(block) => self.checked(&block, Call::UsableSize),
            None => front::bootstrap_size(at).unwrap_or(0),
        }
    }
}

/// Looks at the blocks that rest when the program ends, after its own handlers.
pub(super) fn begin() {
    extern "C" fn end() {
        if let (Some((_, hardening)), Some(thread)) = (state::hardened(), slot::hardened()) {
            hardening.wake(thread, 0, 0);
        }
    }
    // SAFETY: a plain function that stays. A refusal (no memory) only means that the blocks are not looked at.
    unsafe { libc::atexit(end) };
}

/// At a thread's end: nothing rests in it any more, and it has no heap.
pub(super) fn end_thread() {
    if let (Some((_, hardening)), Some(thread)) = (state::hardened(), slot::hardened()) {
        hardening.wake(thread, 0, 0);
        // SAFETY: the thread's own word.
        unsafe { slot::set_hardened(None) };
    }
}
