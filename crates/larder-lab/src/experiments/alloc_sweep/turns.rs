//! The turns that are timed: what a cell does with its blocks, from its factors.

use std::convert::Infallible;
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};

use super::{ELSEWHERE, NS, PEAK, WALL};
use crate::contestants::heaps::{ALIGN, Heap, Heaps};
use crate::contestants::timing::thread_cpu_ns;
use crate::experiments::alloc_workloads::draw::Draw;
use crate::experiments::alloc_workloads::handover::Mailboxes;
use crate::experiments::alloc_workloads::memory::Memory;
use crate::experiments::alloc_workloads::workload::in_threads;
use crate::experiments::allocators::Work;
use crate::model::{Measures, Params};

/// Blocks that go to another thread at once.
const BATCH: usize = 16;

/// So many bytes of blocks, and so many blocks, wait for a thread, or twice as many: where there are more threads than CPUs, it does not
/// run all the time.
const WAITING_BYTES: usize = 1 << 20;
const WAITING: usize = 1 << 10;

/// How often a thread lets others run before it frees blocks itself that another one should free, and for how many batches in a row it
/// does so in vain.
const YIELDS: usize = 8;
const IN_VAIN: usize = 64;

/// What a block that grows begins with, where it grows by half.
const FIRST: usize = 4 << 10;

/// The largest block of the lowest doubling of mixed sizes.
const LEAST: usize = 16;

/// A block of so many bytes is large.
const LARGE: usize = 1 << 20;

/// Every how many bytes a block is written that is written as a whole.
const PAGE: usize = 4 << 10;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
enum Form {
    Plain,
    Zeroed,
    Aligned(usize),
}

/// What a cell does. Factors that it lacks have the plainest value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    bytes: usize,
    /// Live blocks of a thread.
    live: usize,
    /// The blocks are not of one doubling, but of all doublings up to the largest, as many of each.
    mixed: bool,
    /// Of a thread.
    turns: usize,
    threads: usize,
    /// The oldest block is freed, not one at random.
    fifo: bool,
    /// Another thread frees the blocks.
    elsewhere: bool,
    form: Form,
    /// One block is taken, grows to its size by so many bytes at a time, by half where it is 0, and is freed.
    step: Option<usize>,
}

impl Turns {
    fn of(params: &Params) -> anyhow::Result<Self> {
        let or = |name: &str, default| params.count(name).unwrap_or(default);
        let form = match (or("zeroed", 0), or("align", ALIGN)) {
            (0, ALIGN) => Form::Plain,
            (0, align) => Form::Aligned(align),
            _ => Form::Zeroed,
        };
        let turns = Self {
            bytes: params.count("bytes")?,
            live: params.count("live")?,
            mixed: params.text("sizes").is_ok(),
            turns: params.count("turns")?,
            threads: or("threads", 1),
            fifo: params.text("order").is_ok(),
            elsewhere: params.text("freed").is_ok(),
            form,
            step: params.count("step").ok(),
        };
        ensure!(
            (2..=1 << 40).contains(&turns.bytes) && (1..=1 << 24).contains(&turns.live),
            "{} blocks of {} bytes were asked for; there must be one, of 2 bytes at least",
            turns.live,
            turns.bytes
        );
        ensure!(
            !turns.mixed || turns.bytes >= LEAST,
            "mixed sizes up to {} bytes were asked for; it must be {LEAST} at least",
            turns.bytes
        );
        ensure!(
            (1..=256).contains(&turns.threads) && turns.turns > 0,
            "{} turns of {} threads were asked for; both must be at least 1, and threads at most 256",
            turns.turns,
            turns.threads
        );
        let aligned = matches!(turns.form, Form::Aligned(align) if !align.is_power_of_two());
        ensure!(!aligned, "an alignment must be a power of two");
        Ok(turns)
    }

    /// Turns before time begins. Of large blocks as many as are timed: so long each turn may meet pages that no block before had.
    fn warm_up(&self) -> usize {
        match *self {
            Self { step: Some(_), .. } => 1,
            Self {
                bytes, turns, live, ..
            } if bytes >= LARGE => turns + live,
            Self { turns, live, .. } => turns / 8 + live,
        }
    }

    /// One thread's share: what it takes untimed, and from when to when it was timed.
    fn thread<H: Heaps>(
        &self,
        heaps: &H,
        number: usize,
        mail: &Mailboxes<Taken>,
        start: &Barrier,
    ) -> anyhow::Result<Span> {
        let mut arrival = Arrival(Some(start));
        let mut heap = heaps.local()?;
        let mut blocks = Blocks::new(&mut heap, *self, number, mail)?;
        blocks.write_all()?;
        blocks.run(self.warm_up())?;
        arrival.arrive();
        let (begin, cpu) = (Instant::now(), thread_cpu_ns());
        blocks.sent = Sent::default();
        let calls = blocks.run(self.turns)?;
        Ok(Span {
            cpu: thread_cpu_ns() - cpu,
            end: Instant::now(),
            begin,
            calls,
            sent: blocks.sent,
        })
    }
}

/// The timed part of a thread.
struct Span {
    begin: Instant,
    end: Instant,
    cpu: u64,
    calls: usize,
    sent: Sent,
}

/// Batches of blocks for another thread.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    all: usize,
    /// Those that found no room there.
    back: usize,
    /// So many in a row did not, after a while: the other thread may have ended.
    in_vain: usize,
}

/// A thread's place at the start. It is taken also by a thread that fails before, so that the others do not wait for it.
struct Arrival<'a>(Option<&'a Barrier>);

impl Arrival<'_> {
    fn arrive(&mut self) {
        if let Some(start) = self.0.take() {
            start.wait();
        }
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.arrive();
    }
}

impl Work for Turns {
    fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
        let turns = Self::of(params)?;
        let waiting = (WAITING_BYTES / turns.bytes).clamp(BATCH, WAITING);
        let mail = Mailboxes::new(turns.threads, waiting);
        let start = Barrier::new(turns.threads);
        let memory = Memory::watch();
        let thread = |number| turns.thread(heaps, number, &mail, &start);
        // A process of one thread is what most programs are, and some allocators know one.
        let spans = match turns.threads {
            1 => vec![thread(0)?],
            threads => in_threads(threads, thread)?,
        };
        // The loop's own record of its blocks is no cost of theirs.
        let record = (turns.threads * turns.live * size_of::<Taken>()) as u64;
        let peak = memory.peak().map(|peak| peak.saturating_sub(record));
        let mut heap = heaps.local()?;
        for block in mail.rest() {
            // SAFETY: sent by a thread that gave it up.
            unsafe { block.free(&mut heap, turns.form) };
        }
        let calls = spans.iter().map(|span| span.calls).sum::<usize>() as f64;
        let cpu = spans.iter().map(|span| span.cpu).sum::<u64>() as f64;
        let begin = spans.iter().map(|span| span.begin).min();
        let end = spans.iter().map(|span| span.end).max();
        let wall = begin.zip(end).context("no thread ran")?;
        let wall = wall.1.duration_since(wall.0).as_nanos() as f64;
        let measures = Measures::new()
            .with(NS, cpu / calls)
            .with(WALL, wall / calls);
        let sent = |count: fn(&Sent) -> usize| spans.iter().map(|s| count(&s.sent)).sum::<usize>();
        let measures = match sent(|sent| sent.all) {
            0 => measures,
            all => measures.with(ELSEWHERE, 1.0 - sent(|sent| sent.back) as f64 / all as f64),
        };
        Ok(match peak {
            Some(peak) => measures.with(PEAK, peak as f64),
            None => measures,
        })
    }
}

/// A block that is taken.
#[derive(Debug, Clone, Copy)]
struct Taken {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a block belongs to the owner of this value; any thread may free it.
unsafe impl Send for Taken {}

impl Taken {
    /// # Safety
    /// The block came from a heap of the same kind in this form, and is given up by the caller.
    #[inline(always)]
    unsafe fn free<H: Heap>(self, heap: &mut H, form: Form) {
        // SAFETY: the caller's promise.
        unsafe {
            match form {
                Form::Plain | Form::Zeroed => heap.free(self.at, self.bytes),
                Form::Aligned(align) => heap.free_aligned(self.at, self.bytes, align),
            }
        }
    }
}

/// A thread's live blocks, each of a random size above half of the largest, or of any doubling below it; a single one always has the
/// largest.
struct Blocks<'h, H: Heap> {
    heap: &'h mut H,
    mail: &'h Mailboxes<Taken>,
    passing: [Vec<Taken>; 2],
    number: usize,
    turns: Turns,
    live: Vec<Taken>,
    oldest: usize,
    draw: Draw,
    sent: Sent,
}

impl<'h, H: Heap> Blocks<'h, H> {
    fn new(
        heap: &'h mut H,
        turns: Turns,
        number: usize,
        mail: &'h Mailboxes<Taken>,
    ) -> anyhow::Result<Self> {
        let mut blocks = Self {
            heap,
            mail,
            passing: mail.vectors(),
            number,
            turns,
            live: Vec::with_capacity(turns.live),
            oldest: 0,
            draw: Draw::new(number),
            sent: Sent::default(),
        };
        if turns.step.is_none() {
            for _ in 0..turns.live {
                let bytes = blocks.size();
                let block = blocks.take(bytes)?;
                blocks.live.push(block);
            }
        }
        Ok(blocks)
    }

    #[inline(always)]
    fn size(&mut self) -> usize {
        let most = match self.turns {
            Turns { live: 1, bytes, .. } => return bytes,
            Turns {
                mixed: false,
                bytes,
                ..
            } => bytes,
            Turns { bytes, .. } => bytes >> self.draw.below((bytes / LEAST).ilog2() as usize + 1),
        };
        most - self.draw.below(most / 2)
    }

    /// Writes the live blocks as a whole, and as many that follow: a program's blocks hold something, and a loop whose pages are new
    /// times the kernel. Blocks of zeros are taken for what stays zero, and are left as they are.
    fn write_all(&mut self) -> anyhow::Result<()> {
        if matches!(self.turns.form, Form::Zeroed) {
            return Ok(());
        }
        for index in 0..self.live.len() {
            self.write(index);
        }
        for _ in 0..self.live.len() {
            let index = self.turn()?;
            self.write(index);
        }
        Ok(())
    }

    fn write(&self, index: usize) {
        let Taken { at, bytes } = self.live[index];
        for offset in (0..bytes).step_by(PAGE) {
            // SAFETY: within a live block.
            unsafe { at.add(offset).write_volatile(1) };
        }
    }

    /// A block whose first and last byte are written: a program that takes one writes it.
    #[inline(always)]
    fn take(&mut self, bytes: usize) -> anyhow::Result<Taken> {
        let at = match self.turns.form {
            Form::Plain => self.heap.alloc(bytes),
            Form::Zeroed => self.heap.alloc_zeroed(bytes),
            Form::Aligned(align) => self.heap.alloc_aligned(bytes, align),
        };
        // LLVM knows malloc and free by name and may remove a pair whose block no other code can see.
        let at = black_box(at.ok_or_else(|| refused(bytes))?);
        // SAFETY: the block has this many bytes, at least one.
        let (first, last) = unsafe { (at, at.add(bytes - 1)) };
        if matches!(self.turns.form, Form::Zeroed) {
            // SAFETY: within the block, and written by the allocator.
            let found = unsafe { first.read_volatile() | last.read_volatile() };
            ensure!(found == 0, "a block that must be zero is not");
        }
        // SAFETY: within the block.
        unsafe {
            first.write_volatile(1);
            last.write_volatile(1);
        }
        Ok(Taken { at, bytes })
    }

    /// So many turns; the calls that each of them is counted as.
    fn run(&mut self, turns: usize) -> anyhow::Result<usize> {
        if let Some(step) = self.turns.step {
            let grown = (0..turns).map(|_| self.grow(step));
            return grown.sum();
        }
        for _ in 0..turns {
            self.turn()?;
        }
        Ok(turns)
    }

    /// Frees a block and takes another; its place.
    #[inline(always)]
    fn turn(&mut self) -> anyhow::Result<usize> {
        let live = self.live.len();
        let index = match (live, self.turns.fifo) {
            (1, _) => 0,
            (_, false) => self.draw.below(live),
            (_, true) => {
                let next = self.oldest + 1;
                self.oldest = if next < live { next } else { 0 };
                self.oldest
            }
        };
        let bytes = self.size();
        let block = self.live[index];
        if self.turns.elsewhere {
            self.send(block);
        } else {
            // SAFETY: taken in this form, and replaced at once.
            unsafe { block.free(self.heap, self.turns.form) };
        }
        // Where there is no memory the loop ends, and the slot must not be freed again.
        match self.take(bytes) {
            Ok(block) => self.live[index] = block,
            Err(error) => {
                self.live.swap_remove(index);
                return Err(error);
            }
        }
        Ok(index)
    }

    /// Gives a block to the next thread, with others.
    #[inline(never)]
    fn send(&mut self, block: Taken) {
        self.passing[0].push(block);
        if self.passing[0].len() < BATCH {
            return;
        }
        let count = self.passing[0].len();
        if self.sent.in_vain < IN_VAIN {
            for _ in 0..YIELDS {
                if self.mail.has_room(self.number, count) {
                    break;
                }
                std::thread::yield_now();
            }
        }
        let Self { heap, turns, .. } = self;
        let free = |block: Taken| {
            // SAFETY: taken in this form by a thread that gave it up.
            unsafe { block.free(*heap, turns.form) };
            Ok::<(), Infallible>(())
        };
        let Ok(went) = self.mail.exchange(self.number, &mut self.passing, free);
        self.sent.all += 1;
        self.sent.back += usize::from(!went);
        self.sent.in_vain = if went { 0 } else { self.sent.in_vain + 1 };
    }

    /// A block from its first size to the largest; the number of times that it grew.
    fn grow(&mut self, step: usize) -> anyhow::Result<usize> {
        let next = |bytes| match step {
            0 => bytes + bytes / 2,
            step => bytes + step,
        };
        let first = if step == 0 { FIRST } else { step };
        let mut block = self.take(first.min(self.turns.bytes))?;
        let mut calls = 0;
        while block.bytes < self.turns.bytes {
            let to = next(block.bytes).min(self.turns.bytes);
            // SAFETY: taken by `take` with its size, and used by its new address only.
            let Some(at) = (unsafe { self.heap.realloc(block.at, block.bytes, to) }) else {
                // SAFETY: it stays as it was.
                unsafe { self.heap.free(block.at, block.bytes) };
                return Err(refused(to));
            };
            let at = black_box(at);
            // SAFETY: within the block; what it had was written when it was taken or grew.
            let kept = unsafe { at.read_volatile() & at.add(block.bytes - 1).read_volatile() };
            // The rest of what is new, and its last byte, as a program fills what it asked for.
            for offset in (block.bytes..to).step_by(PAGE).chain([to - 1]) {
                // SAFETY: within the block.
                unsafe { at.add(offset).write_volatile(1) };
            }
            block = Taken { at, bytes: to };
            calls += 1;
            if kept != 1 {
                // SAFETY: taken above, and not used afterwards.
                unsafe { self.heap.free(block.at, block.bytes) };
                anyhow::bail!("a block that grew to {to} bytes lost what it had");
            }
        }
        // SAFETY: taken above, and not used afterwards.
        unsafe { self.heap.free(block.at, block.bytes) };
        Ok(calls)
    }
}

#[cold]
fn refused(bytes: usize) -> anyhow::Error {
    anyhow!("the allocator has no block of {bytes} bytes")
}

impl<H: Heap> Drop for Blocks<'_, H> {
    fn drop(&mut self) {
        for block in self.live.drain(..).chain(self.passing[0].drain(..)) {
            // SAFETY: taken in this form, and not freed since.
            unsafe { block.free(self.heap, self.turns.form) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Hands out at most this many blocks, and counts them.
    struct Few {
        left: usize,
        live: usize,
        calls: Cell<usize>,
    }

    impl Heap for &mut Few {
        fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
            self.left = self.left.checked_sub(1)?;
            self.live += 1;
            self.calls.set(self.calls.get() + 1);
            NonNull::new(Box::into_raw(vec![0_u8; bytes].into_boxed_slice()).cast())
        }

        unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
            self.live -= 1;
            let slice = std::ptr::slice_from_raw_parts_mut(block.as_ptr(), bytes);
            // SAFETY: made above from a boxed slice of this length.
            drop(unsafe { Box::from_raw(slice) });
        }
    }

    fn turns(more: &[(&str, i64)], fifo: bool) -> Turns {
        let params = [("bytes", 1000), ("live", 10), ("turns", 90)];
        let params = params.iter().chain(more);
        let params = params.fold(Params::new(), |p, (name, n)| p.with(name, *n));
        let params = if fifo {
            params.with_text("order", "fifo")
        } else {
            params
        };
        Turns::of(&params).expect("whole factors")
    }

    #[test]
    fn every_block_is_freed_once_with_its_size_also_when_memory_ends() {
        type Kind = (&'static [(&'static str, i64)], bool, usize);
        let kinds: [Kind; 6] = [
            (&[], false, 100),
            (&[], true, 100),
            (&[("zeroed", 1)], false, 100),
            (&[("align", 8)], true, 100),
            (&[("step", 100), ("live", 1), ("turns", 3)], false, 30),
            (&[("step", 0), ("bytes", 8192), ("turns", 3)], false, 9),
        ];
        for (more, fifo, calls) in kinds {
            let turns = turns(more, fifo);
            for left in [5, 20, calls, calls + 100] {
                let mut few = Few {
                    left,
                    live: 0,
                    calls: Cell::new(0),
                };
                let mut heap = &mut few;
                let mail = Mailboxes::new(1, BATCH);
                if let Ok(mut blocks) = Blocks::new(&mut heap, turns, 0, &mail) {
                    let sizes = turns.bytes / 2 + 1..=turns.bytes;
                    assert!(blocks.live.iter().all(|b| sizes.contains(&b.bytes)));
                    let ran = blocks.run(turns.turns);
                    assert_eq!(ran.is_ok(), left >= calls, "{more:?} {left}");
                    drop(blocks);
                }
                assert_eq!(few.live, 0, "{more:?} {left}");
                assert_eq!(few.calls.get(), left.min(calls), "{more:?}");
            }
        }
    }

    #[test]
    fn mixed_sizes_are_of_every_doubling_and_the_first_blocks_are_written_whole() {
        let mut few = Few {
            left: usize::MAX,
            live: 0,
            calls: Cell::new(0),
        };
        let mut heap = &mut few;
        let mail = Mailboxes::new(1, BATCH);
        let turns = Turns {
            mixed: true,
            bytes: 40_000,
            live: 100,
            ..turns(&[], true)
        };
        let mut blocks = Blocks::new(&mut heap, turns, 0, &mail).expect("memory");
        blocks.write_all().expect("memory");
        let mut doublings = [0; 16];
        for block in &blocks.live {
            doublings[block.bytes.ilog2() as usize] += 1;
            for offset in (0..block.bytes).step_by(PAGE) {
                // SAFETY: within a live block.
                assert_eq!(unsafe { block.at.add(offset).read() }, 1);
            }
        }
        // 40,000 is 2,500 times 16: of eleven halvings the last ends at 19 bytes, and blocks have at least half of that.
        assert!(doublings[3..15].iter().all(|&n| n > 0), "{doublings:?}");
        assert_eq!(doublings[..3].iter().sum::<usize>(), 0, "{doublings:?}");
        drop(blocks);
        assert_eq!((few.live, few.calls.get()), (0, 200));
    }

    #[test]
    fn the_oldest_goes_first_and_other_threads_free() {
        let mut few = Few {
            left: usize::MAX,
            live: 0,
            calls: Cell::new(0),
        };
        let mut heap = &mut few;
        let mail = Mailboxes::new(1, BATCH);
        let turns = Turns {
            elsewhere: true,
            ..turns(&[], true)
        };
        let mut blocks = Blocks::new(&mut heap, turns, 0, &mail).expect("memory");
        let before: Vec<_> = blocks.live.iter().map(|block| block.at).collect();
        for turn in 1..=BATCH {
            blocks.turn().expect("memory");
            assert_eq!(blocks.passing[0].len(), turn % BATCH);
            if turn == 9 {
                let sent = blocks.passing[0].iter().map(|block| block.at);
                assert!(sent.eq(before[1..].iter().copied()));
            }
        }
        drop(blocks);
        assert_eq!((mail.rest().count(), few.live), (0, 0));
    }
}
