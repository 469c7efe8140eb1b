//! The frames: for each one 16 bytes that say which block it holds, which threads have it, and where its page is. The
//! cache's `unsafe` code is here, since the page of a frame belongs to the holder of the frame's latch; but for one
//! look of the table, the pin of a handle, and io_uring.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;

use super::epoch::{CurrentEpochs, Epoch};
use super::latch::{Latch, TooMany};
use super::pins::{Pin, Pins};
use crate::error::CacheError;
use crate::key::Key;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use larder::internal::{reservation, want_huge_pages};
use larder::os::page_size;
use larder::pages::{PagePool, PoolError};
use larder_policy::Frame;

/// Bytes of a block. x86-64 has pages of no other size, and a constant saves a hit two instructions.
#[inline]
fn block_bytes() -> usize {
    if cfg!(all(target_arch = "x86_64", not(miri))) {
        4096
    } else {
        page_size()
    }
}

/// One frame. A hit touches its one cache line, the table's and those of the rule. The latch comes first: a guard's is where the
/// slot is.
#[derive(Debug)]
#[cfg_attr(not(any(loom, shuttle)), repr(C, align(16)))]
pub(crate) struct Slot {
    latch: Latch,
    /// Number of its page in the pool's reservation plus one, 0 without. Changed by the thread that holds the frame for
    /// writing.
    page: AtomicU32,
    /// Changed under the cache's lock, and while the frame is held for writing.
    key: AtomicU64,
}

/// A hit that has no block to give, or not at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missed {
    /// The table said nothing of it.
    Absent,
    /// The pin is not free.
    Taken,
    /// There is a trace of it in the frame that is pinned, and must be [unpinned](Frames::unpin).
    Pinned,
}

/// All frames of a cache, and the pool of their pages.
pub(crate) struct Frames {
    slots: Box<[Slot]>,
    pins: Pins,
    pool: PagePool,
    /// The pool's reservation.
    base: NonNull<u8>,
    /// A page before it, where none is: pages are numbered from 1.
    before: *mut u8,
}

// SAFETY: `base` and `before` are numbers here; the pages behind it are reached through guards only, which follow the latches.
unsafe impl Send for Frames {}
// SAFETY: as above; the rest is atomics, locks and a pool, which are `Sync`.
unsafe impl Sync for Frames {}

impl Frames {
    pub(crate) fn new(frames: usize, pool: PagePool) -> Result<Self, CacheError> {
        let reserved = reservation(&pool);
        if reserved.len / block_bytes() >= u32::MAX as usize {
            return Err(CacheError::Pool(format!(
                "the pool has reserved {} bytes; a cache can number the pages of 16 TiB, so reserve less when building the pool",
                reserved.len
            )));
        }
        let mut slots = Vec::new();
        slots
            .try_reserve_exact(frames)
            .map_err(|_| CacheError::Memory { frames })?;
        want_huge_pages(slots.spare_capacity_mut());
        slots.extend((0..frames).map(|_| Slot {
            key: AtomicU64::new(Key::NONE.0),
            latch: Latch::default(),
            page: AtomicU32::new(0),
        }));
        Ok(Self {
            slots: slots.into_boxed_slice(),
            pins: Pins::new(),
            base: reserved.at,
            before: reserved.at.as_ptr().wrapping_sub(block_bytes()),
            pool,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.pins.bytes()
    }

    /// The pins of all handles.
    pub(crate) fn pins(&self) -> &Pins {
        &self.pins
    }

    pub(crate) fn block_size(&self) -> usize {
        self.pool.page_size()
    }

    /// The block in a frame.
    #[inline]
    pub(crate) fn key(&self, frame: Frame) -> Key {
        Key(self.slots[frame as usize].key.load(Ordering::Acquire))
    }

    /// The frame holds this block from now on. Under the cache's lock, by the thread that holds the frame for writing. It may hold it
    /// for long: threads that wait for the block that was there before look elsewhere at once.
    pub(crate) fn give(&self, frame: Frame, key: Key) {
        self.set_key(frame, key);
        self.slots[frame as usize].latch.changed();
    }

    /// Under the cache's lock, by the thread that holds the frame for writing.
    pub(crate) fn set_key(&self, frame: Frame, key: Key) {
        self.slots[frame as usize]
            .key
            .store(key.0, Ordering::Release);
    }

    /// The frame has a page. That changes under the cache's lock only.
    pub(crate) fn has_page(&self, frame: Frame) -> bool {
        self.slots[frame as usize].page.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The block, if it is in this slot and saturated in the current epoch, and no thread changes it. Else the pin must be
    /// [freed](Self::unpin).
    #[inline(always)]
    pub(crate) fn pin<'c>(
        &'c self,
        slot: &'c Slot,
        key: Key,
        pin: &'c Pin,
        epochs: &CurrentEpochs,
    ) -> Option<BlockRef<'c>> {
        let latch = &slot.latch;
        // Held: the key stays.
        if !pin.enter(latch, epochs) || slot.key.load(Ordering::Relaxed) != key.0 {
            return None;
        }
        // It has a page: blocks get their page before they are in the lookup, and are marked after that.
        let at = self.at(slot.page.load(Ordering::Relaxed));
        let pin = Some(pin);
        Some(BlockRef { at, latch, pin })
    }

    /// After [`pin`](Self::pin) found nothing. Returns the frame that was pinned.
    pub(crate) fn unpin(&self, pin: &Pin) -> Frame {
        let frame = (pin.latch() - self.slots.as_ptr().addr()) / size_of::<Slot>();
        pin.leave(&self.slots[frame].latch);
        frame as Frame
    }

    /// The block, if it is in this frame and no thread changes it, and whether it is saturated. 2 atomic additions with
    /// the guard's end.
    pub(crate) fn counted(
        &self,
        frame: Frame,
        key: Key,
        epochs: &CurrentEpochs,
    ) -> Option<(BlockRef<'_>, bool)> {
        let slot = &self.slots[frame as usize];
        let entry = slot.latch.enter();
        if !slot.latch.entered(&entry) {
            return None;
        }
        let saturated = entry.is_saturated(epochs.counted()) || entry.is_saturated(epochs.pinned());
        Some((self.reading(slot, key)?, saturated))
    }

    /// The block, if it is in this frame and no thread changes it, for a caller that does not mean to use it.
    pub(crate) fn try_read(&self, frame: Frame, key: Key) -> Option<BlockRef<'_>> {
        let slot = &self.slots[frame as usize];
        slot.latch
            .try_read()
            .then(|| self.reading(slot, key))
            .flatten()
    }

    /// Another use of the frame's block tells the rule nothing in this epoch. Under the cache's lock.
    pub(crate) fn mark(&self, frame: Frame, epoch: Epoch) {
        self.slots[frame as usize].latch.mark(epoch);
    }

    /// Takes the mark of any epoch away. Under the cache's lock.
    pub(crate) fn unmark(&self, frame: Frame) {
        self.slots[frame as usize].latch.unmark();
    }

    /// The block, for a thread that waits for the one that changes it, as long as it is in this frame.
    ///
    /// # Errors
    /// There are too many guards of the block.
    #[cold]
    pub(crate) fn read(&self, frame: Frame, key: Key) -> Result<Option<BlockRef<'_>>, TooMany> {
        let slot = &self.slots[frame as usize];
        let is_in = slot.latch.read(|| self.key(frame) == key)?;
        Ok(is_in.then(|| self.reading(slot, key)).flatten())
    }

    /// The block, if it is in this frame and nothing changes it just now, for a thread that passes writers that wait.
    pub(crate) fn push(&self, frame: Frame, key: Key) -> Option<BlockRef<'_>> {
        let slot = &self.slots[frame as usize];
        slot.latch.push().then(|| self.reading(slot, key)).flatten()
    }

    /// Waits until nothing changes the block. False if it is not in this frame any more.
    pub(crate) fn wait_for_writer(&self, frame: Frame, key: Key) -> bool {
        let latch = &self.slots[frame as usize].latch;
        latch.wait_for_writer(|| self.key(frame) == key)
    }

    /// The guard of a reader that has entered.
    fn reading<'c>(&'c self, slot: &'c Slot, key: Key) -> Option<BlockRef<'c>> {
        let Some(at) = self.page_of(slot, key) else {
            slot.latch.end_read();
            return None;
        };
        Some(BlockRef::counted(at, &slot.latch))
    }

    /// The page of a block, if it is in this frame, for a reader that has entered.
    #[inline(always)]
    fn page_of(&self, slot: &Slot, key: Key) -> Option<NonNull<u8>> {
        let page = slot.page.load(Ordering::Relaxed);
        // Held: the key stays.
        let here = slot.key.load(Ordering::Relaxed) == key.0 && page != 0;
        here.then(|| self.at(page))
    }

    /// Where a page is, by its number plus one.
    #[inline]
    fn at(&self, page: u32) -> NonNull<u8> {
        let at = self.before.wrapping_add(page as usize * block_bytes());
        // SAFETY: such a number is not 0 and comes from a page inside the reservation, which begins one page behind `before`; no
        // page of a reservation is at address 0.
        unsafe { NonNull::new_unchecked(at) }
    }

    fn claimed(&self, frame: Frame) -> Claimed<'_> {
        Claimed {
            frames: self,
            frame,
        }
    }

    /// A block for its holder alone, which waits for others to let go. None if the frame does not hold it, or no more.
    pub(crate) fn claim(&self, frame: Frame, key: Key) -> Option<Claimed<'_>> {
        let latch = &self.slots[frame as usize].latch;
        let here = || self.key(frame) == key;
        let alone = self.pins.write(latch, here);
        alone.then(|| self.claimed(frame)).filter(|_| here())
    }

    /// The frame for its holder alone, unless another thread has it.
    pub(crate) fn try_claim(&self, frame: Frame) -> Option<Claimed<'_>> {
        let latch = &self.slots[frame as usize].latch;
        let free = self.pins.try_write(latch);
        free.then(|| self.claimed(frame))
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // One barrier for all frames.
        self.pins.close();
        for frame in 0..self.slots.len() as Frame {
            // Guards that were forgotten keep their pages.
            if let Some(mut claimed) = self.try_claim(frame) {
                claimed.give_back();
            }
        }
    }
}

/// A frame that one holder has alone, which may change its block and its page.
pub(crate) struct Claimed<'c> {
    frames: &'c Frames,
    frame: Frame,
}

impl<'c> Claimed<'c> {
    fn slot(&self) -> &'c Slot {
        &self.frames.slots[self.frame as usize]
    }

    #[inline]
    pub(crate) fn frame(&self) -> Frame {
        self.frame
    }

    pub(crate) fn has_page(&self) -> bool {
        self.frames.has_page(self.frame)
    }

    /// Takes a page from the pool, if there is none.
    #[inline]
    pub(crate) fn take_page(&mut self) -> Result<(), PoolError> {
        if self.has_page() {
            return Ok(());
        }
        self.new_page()
    }

    #[cold]
    #[inline(never)]
    fn new_page(&mut self) -> Result<(), PoolError> {
        let at = self.frames.pool.get_raw()?.as_ptr() as usize;
        let page = (at - self.frames.base.as_ptr() as usize) / block_bytes() + 1;
        self.slot().page.store(page as u32, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the page back to the pool.
    pub(crate) fn give_back(&mut self) {
        let page = self.slot().page.swap(0, Ordering::Relaxed);
        if page != 0 {
            // SAFETY: the page came from this pool, its only mark was just taken out, and no guard of it is there: the frame
            // is held by this claim alone.
            unsafe { self.frames.pool.put_raw(self.frames.at(page)) };
        }
    }

    /// Others may read from now on.
    pub(crate) fn downgrade(self) -> BlockRef<'c> {
        let slot = self.slot();
        let at = self.frames.at(slot.page.load(Ordering::Relaxed));
        core::mem::forget(self);
        slot.latch.downgrade();
        BlockRef::counted(at, &slot.latch)
    }
}

impl Deref for Claimed<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self.slot().page.load(Ordering::Relaxed) {
            0 => &[],
            // SAFETY: the page is the frame's and has this many bytes, which the kernel or a former owner initialised; a
            // claim has its frame alone, and the page stays until the claim gives it back, which takes the claim exclusively.
            page => unsafe { slice::from_raw_parts(self.frames.at(page).as_ptr(), block_bytes()) },
        }
    }
}

impl DerefMut for Claimed<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self.slot().page.load(Ordering::Relaxed) {
            0 => &mut [],
            // SAFETY: as above, and borrowed exclusively.
            page => unsafe {
                slice::from_raw_parts_mut(self.frames.at(page).as_ptr(), block_bytes())
            },
        }
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.slot().latch.end_write();
    }
}

/// A block to be read. While this is there, the block stays in memory and no thread writes it. May be handed to another thread.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// # let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// let one = handle.read(&file, 1)?;
/// let two = handle.read(&file, 2)?;
/// assert_eq!(one[..], two[..]);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
pub struct BlockRef<'c> {
    at: NonNull<u8>,
    latch: &'c Latch,
    /// That of a handle which holds the block; without one the latch counts this reader.
    pin: Option<&'c Pin>,
}

impl<'c> BlockRef<'c> {
    fn counted(at: NonNull<u8>, latch: &'c Latch) -> Self {
        let pin = None;
        Self { at, latch, pin }
    }
}

// SAFETY: a pin, or a count in a latch, that any thread may end, and bytes that no thread writes while it is there.
unsafe impl Send for BlockRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for BlockRef<'_> {}

impl Deref for BlockRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: a page has this many bytes, initialised by the kernel or a former owner. The latch counts this reader
        // or the pin names the frame, so no thread claims it, and only a claim writes the page or gives it back.
        unsafe { slice::from_raw_parts(self.at.as_ptr(), block_bytes()) }
    }
}

impl Drop for BlockRef<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.pin {
            Some(pin) => pin.leave(self.latch),
            None => self.latch.end_read(),
        }
    }
}

impl core::fmt::Debug for BlockRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlockRef")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// A block to be written, or as much of it as its file has. While this is there, the block stays in memory and no other
/// thread reads or writes it; it is written back at some time after. If its holder panics, what was written until then stays.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// # let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// handle.overwrite(&file, 1)?.fill(7);
/// assert_eq!(handle.read(&file, 1)?[9], 7);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
pub struct BlockMut<'c> {
    page: Claimed<'c>,
    /// As many bytes as the file has of the block: what lies behind them stays zeroes.
    len: usize,
}

impl<'c> BlockMut<'c> {
    /// The frame has a page: it holds a block, which is dirty.
    pub(crate) fn new(page: Claimed<'c>, len: usize) -> Self {
        debug_assert!(page.has_page() && len <= block_bytes());
        Self { page, len }
    }
}

impl core::fmt::Debug for BlockMut<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlockMut").finish_non_exhaustive()
    }
}

impl Deref for BlockMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.page.get(..self.len).unwrap_or(&[])
    }
}

impl DerefMut for BlockMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.page.get_mut(..self.len).unwrap_or(&mut [])
    }
}
