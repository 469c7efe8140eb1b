//! A cache: a stock of objects over slabs. What its owners and handles share.

use core::alloc::Layout;
use core::num::NonZeroU16;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::error::{Misuse, ObjectError};
use super::family::{self, Family};
use super::map::MOST_CACHES;
use super::meta::BlockNumber;
use super::shape::Shape;
use super::slabs::{Ground, Slabs};
use super::stats::{CacheStats, Name};
use crate::magazine::{MAX_ROUNDS, Stock, Supply};
use crate::os::lock::order::{Rank, Ranked, calls};
use crate::os::lock::{Lock, RawLock};

/// Bytes of objects in a magazine at first, and at most, as long as it has a few rounds.
const MAGAZINE_BYTES: usize = 32 << 10;
const MOST_MAGAZINE_BYTES: usize = 64 << 10;
/// Fewest rounds that a magazine has even so: with fewer, a thread that frees and allocates in turn would go to the
/// depot all the time.
const FEW_ROUNDS: usize = 8;
/// Bytes beyond which it has fewer.
const FEW_ROUNDS_BYTES: usize = 1 << 20;
/// Objects that are brought back to their slabs at a time.
const TOGETHER: usize = 16;

/// Rounds of a magazine for objects of `stride` bytes.
fn rounds(stride: usize, bytes: usize) -> usize {
    let few = FEW_ROUNDS.min(FEW_ROUNDS_BYTES / stride);
    (bytes / stride).max(few).clamp(1, MAX_ROUNDS)
}

/// What a cache calls, beside the constructor. The functions get `data`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hooks {
    pub(super) data: *mut (),
    /// Objects are constructed.
    pub(super) constructs: bool,
    pub(super) destroy: Option<unsafe fn(NonNull<u8>, *mut ())>,
    pub(super) reclaim: Option<unsafe fn(*mut ())>,
    /// Ends `data` itself, after the last object.
    pub(super) end: Option<unsafe fn(*mut ())>,
}

impl Hooks {
    pub(super) const NONE: Self = Self {
        data: core::ptr::null_mut(),
        constructs: false,
        destroy: None,
        reclaim: None,
        end: None,
    };
}

// SAFETY: the code that makes a cache with hooks promises that they may be called from any thread.
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

/// Settings that [`RawCache`](super::RawCache) and [`ObjectCache`](super::ObjectCache) have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Config {
    pub(super) layout: Layout,
    pub(super) name: Name,
    pub(super) limit_bytes: usize,
    pub(super) type_stable: bool,
    pub(super) slab_pages: usize,
    pub(super) colour: bool,
    pub(super) rounds: Option<(usize, usize)>,
    pub(super) hooks: Hooks,
    /// A kept number that it is to have, if that is free.
    pub(super) number: Option<u16>,
}

impl Config {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            name: Name::new(""),
            limit_bytes: usize::MAX,
            type_stable: false,
            slab_pages: 1,
            colour: true,
            rounds: None,
            hooks: Hooks::NONE,
            number: None,
        }
    }
}

/// What becomes of rounds whose cache goes: nothing, since their slabs go as they are.
struct Forget;

impl Supply for Forget {
    type Error = ();
    fn fetch(&self, _: &mut [usize]) -> Result<usize, ()> {
        Err(())
    }
    fn accept(&self, _: &[usize]) {}
}

impl Ranked for Slabs {
    const RANK: Rank = Rank::Slabs;
}

#[derive(Debug)]
#[repr(C)]
pub(super) struct Cache {
    pub(super) stock: Stock,
    pub(super) number: NonZeroU16,
    pub(super) shape: Shape,
    pub(super) hooks: Hooks,
    pub(super) family: Family,
    pub(super) config: Config,
    slabs: Lock<Slabs>,
    /// Bytes of slabs, with those that are just being made.
    pub(super) held: AtomicUsize,
    owners: AtomicUsize,
    pub(super) constructed: AtomicU64,
    pub(super) destroyed: AtomicU64,
    refused: AtomicU64,
    /// Slabs made so far, for their colours.
    pub(super) slabs_made: AtomicUsize,
    /// Bytes that were in use when the depot was last emptied in vain; see [`bound`](super::bound).
    pub(super) barren: AtomicUsize,
    /// CPUs may have magazines: set whenever one may have got them.
    on_shelf: AtomicBool,
    block: BlockNumber,
}

/// A pointer to a [`Cache`] that its owners copy; the count says how many they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheRef(NonNull<Cache>);

// SAFETY: everything in a cache may be used from all threads at once, and how long it lives is decided by a count.
unsafe impl Send for CacheRef {}
// SAFETY: as above.
unsafe impl Sync for CacheRef {}

const fn assert_sync<T: Send + Sync>() {}
const _: () = assert_sync::<Cache>();

impl core::ops::Deref for CacheRef {
    type Target = Cache;
    #[inline]
    fn deref(&self) -> &Cache {
        // SAFETY: alive as long as it has an owner; holders of the pointer are one.
        unsafe { self.0.as_ref() }
    }
}

impl CacheRef {
    /// A cache with one owner.
    pub(super) fn new(family: &Family, config: Config) -> Result<Self, ObjectError> {
        let shape = Shape::new(config.layout, config.slab_pages)?;
        let inner = &*family.inner;
        let (rounds, most) = config.rounds.unwrap_or((
            rounds(shape.stride, MAGAZINE_BYTES),
            rounds(shape.stride, MOST_MAGAZINE_BYTES),
        ));
        let stock = Stock::sharing(
            inner.magazines.clone(),
            inner.system.clone(),
            inner.stock_config(rounds, most),
        );
        let block = inner.meta.take(size_of::<Cache>())?;
        let kept = config.number.filter(|n| inner.table.take_kept(*n));
        let number = kept.or_else(|| inner.table.take());
        let Some(number) = number.and_then(NonZeroU16::new) else {
            // SAFETY: taken above, and not used.
            unsafe { inner.meta.put(block, size_of::<Cache>()) };
            return Err(ObjectError::TooMany { most: MOST_CACHES });
        };
        let at = inner.meta.at(block).cast::<Cache>();
        debug_assert!(at.is_aligned());
        // SAFETY: the block has room for a cache, is aligned to its own size, and belongs to this call alone.
        unsafe {
            at.write(Cache {
                stock,
                number,
                shape,
                hooks: config.hooks,
                family: family.clone(),
                config,
                slabs: Lock::new(Slabs::default()),
                held: AtomicUsize::new(0),
                owners: AtomicUsize::new(1),
                constructed: AtomicU64::new(0),
                destroyed: AtomicU64::new(0),
                refused: AtomicU64::new(0),
                slabs_made: AtomicUsize::new(0),
                barren: AtomicUsize::new(usize::MAX),
                on_shelf: AtomicBool::new(false),
                block,
            });
        }
        inner.table.fill(number.get(), block);
        Ok(Self(at))
    }

    /// Whether both are the same cache.
    #[inline]
    pub(super) fn is(self, other: Self) -> bool {
        self.0 == other.0
    }

    pub(super) fn as_ptr(self) -> NonNull<()> {
        self.0.cast()
    }

    /// # Safety
    /// The pointer came from [`as_ptr`](Self::as_ptr), and the cache has an owner.
    #[inline(always)]
    pub(super) unsafe fn from_ptr(at: NonNull<()>) -> Self {
        Self(at.cast())
    }

    /// Adds an owner.
    pub(super) fn own(self) -> Self {
        self.owners.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// Removes an owner. When the last owner goes, all slabs go, even if some of their objects are in use: now, or when
    /// the last visitor of the cache leaves it, which may be this thread further up its stack.
    pub(super) fn disown(self) {
        if self.owners.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // A visitor that leaves may end the cache from here on, so this thread does not look at the cache any more.
        let (family, number) = (self.family.clone(), self.number.get());
        if family.inner.table.leave(number) {
            self.end();
        }
    }

    /// The cache in a block.
    ///
    /// # Safety
    /// There is one, and it is used only as long as it has an owner or is visited.
    pub(super) unsafe fn in_block(inner: &family::Inner, block: BlockNumber) -> Self {
        Self(inner.meta.at(block).cast())
    }

    /// Ends a cache without owners and visitors, which the table has let go of.
    pub(super) fn end(self) {
        let family = self.family.clone();
        let inner = &*family.inner;
        let (block, hooks, number) = (self.block, self.hooks, self.number.get());
        // The magazines are the family's; no round is looked at.
        self.stock.close(&Forget);
        let bytes = self.held.load(Ordering::Relaxed);
        let panic = self.release_all();
        // SAFETY: no owner, no visitor: this thread is the last. The block was taken with this size.
        unsafe {
            self.0.drop_in_place();
            inner.meta.put(block, size_of::<Cache>());
        }
        inner.table.give_back(number);
        if let Some(end) = hooks.end {
            let _outside = calls("what ends a cache's calls", Rank::Reaper);
            // SAFETY: called once, after everything else that gets `data`.
            unsafe { end(hooks.data) };
        }
        inner.put_pages(bytes);
        drop(family);
        if let Some(payload) = panic
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(payload);
        }
    }
}

impl Cache {
    pub(super) fn raw_lock(&self) -> &RawLock {
        self.slabs.raw()
    }

    pub(super) fn inner(&self) -> &family::Inner {
        &self.family.inner
    }

    pub(super) fn ground(&self) -> Ground<'_> {
        let inner = self.inner();
        Ground {
            meta: &inner.meta,
            map: &inner.map,
            shape: &self.shape,
            constructs: self.hooks.constructs,
        }
    }

    pub(super) fn slabs(&self) -> crate::os::lock::Guard<'_, Slabs> {
        self.slabs.lock()
    }

    /// Bytes of the objects of a magazine.
    pub(super) fn magazine_bytes(&self) -> usize {
        self.stock.rounds() * self.shape.stride
    }

    pub(super) fn is_type_stable(&self) -> bool {
        self.config.type_stable
    }

    /// Says that this thread's CPU may have magazines now. Called after the CPU got them, so that the thread that takes
    /// the flag back sees them.
    pub(super) fn shelved(&self) {
        if !self.on_shelf.load(Ordering::Relaxed) {
            self.on_shelf.store(true, Ordering::Release);
        }
    }

    /// Whether CPUs may have got magazines since the last call.
    pub(super) fn take_shelved(&self) -> bool {
        self.on_shelf.swap(false, Ordering::Acquire)
    }

    /// Puts an object that this CPU's magazines had no room for.
    pub(super) fn put_slow(&self, addr: usize) {
        self.inner().upkeep_of_put(self.magazine_bytes());
        self.stock.put(addr, &self.as_supply());
        self.shelved();
    }

    /// Puts an object back into its slab after its value was moved out.
    pub(super) fn put_unmade(&self, addr: usize) {
        self.destroyed.fetch_add(1, Ordering::Relaxed);
        self.bring_home(&[addr], false);
    }

    /// The slab and index of an object; the lock is held.
    pub(super) fn locate(&self, addr: usize) -> Result<(BlockNumber, usize), Misuse> {
        let slab = self.slab_at(addr).ok_or(Misuse::Foreign { addr })?;
        // SAFETY: a slab of this cache, and the lock is held.
        let start = unsafe { self.ground().start_of(slab) };
        Ok((slab, self.index(addr, start)?))
    }

    /// The slab of an object of this cache; the lock is held.
    fn slab_at(&self, addr: usize) -> Option<BlockNumber> {
        let map = &self.inner().map;
        (map.owner(addr) == self.number.get()).then(|| map.entry(addr))
    }

    /// The index of the object that begins at an address, in the slab whose first one begins at `start`.
    fn index(&self, addr: usize, start: usize) -> Result<usize, Misuse> {
        addr.checked_sub(start)
            .and_then(|offset| self.shape.index(offset))
            .ok_or(Misuse::Misaligned { addr })
    }

    /// Where the object begins that an address of this cache's slabs lies in.
    pub(super) fn object_around(&self, addr: usize) -> Option<usize> {
        let _slabs = self.slabs();
        let map = &self.inner().map;
        if map.owner(addr) != self.number.get() {
            return None;
        }
        // SAFETY: as in `locate`.
        let start = unsafe { self.ground().start_of(map.entry(addr)) };
        let number = addr.checked_sub(start)? / self.shape.stride;
        (number < self.shape.objects).then_some(start + number * self.shape.stride)
    }

    /// Whether an object of this cache begins at `addr`.
    pub(super) fn check(&self, addr: usize) -> Result<(), Misuse> {
        let _slabs = self.slabs();
        self.locate(addr).map(|_| ())
    }

    /// Brings objects back to their slabs.
    pub(super) fn bring_home(&self, objects: &[usize], constructed: bool) {
        let mut rest = objects;
        while !rest.is_empty() {
            let some = &rest[..rest.len().min(TOGETHER)];
            let mut bad = None;
            let mut done = 0;
            {
                let mut slabs = self.slabs();
                // The objects may be anywhere. So the CPU waits for the entries of all pages at once, and then for all slabs: one after
                // the other, each object would wait for both.
                let mut homes = [(None, 0); TOGETHER];
                for (home, &addr) in homes.iter_mut().zip(some) {
                    home.0 = self.slab_at(addr);
                }
                for home in &mut homes[..some.len()] {
                    // SAFETY: a slab of this cache, and the lock is held.
                    let start = |slab| unsafe { self.ground().start_of(slab) };
                    home.1 = home.0.map_or(0, start);
                }
                for (&(slab, start), &addr) in homes.iter().zip(some) {
                    done += 1;
                    let put = slab.ok_or(Misuse::Foreign { addr }).and_then(|slab| {
                        let index = self.index(addr, start)?;
                        slabs
                            .put(self.ground(), slab, index, constructed)
                            .then_some(())
                            .ok_or(Misuse::Twice { addr })
                    });
                    if let Err(misuse) = put {
                        bad = Some(misuse);
                        break;
                    }
                }
            }
            rest = &rest[done..];
            if let Some(misuse) = bad {
                self.refuse(&misuse);
            }
        }
    }

    /// Objects in the caller's hands are constructed from now on. Says how many.
    pub(super) fn set_constructed(&self, objects: impl Iterator<Item = usize>) -> u64 {
        let mut n = 0;
        let _slabs = self.slabs();
        for addr in objects {
            if let Ok((slab, index)) = self.locate(addr) {
                // SAFETY: a slab of this cache; the lock is held, and the value is gone at once.
                unsafe { self.ground().slab(slab) }.set_constructed(index);
                n += 1;
            }
        }
        n
    }

    /// Reports a pointer that is not taken.
    #[cold]
    pub(super) fn refuse(&self, misuse: &Misuse) {
        if self.inner().bring_outgrown(misuse) {
            return;
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.inner().misuse(misuse);
    }

    /// Asks the cache's user to put objects back.
    pub(super) fn ask_users(&self) {
        if let Some(reclaim) = self.hooks.reclaim {
            let _outside = calls("a cache's reclaim", Rank::Reaper);
            // SAFETY: the code that made the cache promised that it may be called from any thread; no lock is held.
            unsafe { reclaim(self.hooks.data) };
        }
    }

    pub(super) fn stats(&self) -> CacheStats {
        let (slabs, free) = {
            let slabs = self.slabs();
            (slabs.slabs(), slabs.free())
        };
        let stock = self.stock.stats();
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        CacheStats {
            name: self.config.name,
            size: self.config.layout.size(),
            stride: self.shape.stride,
            objects_per_slab: self.shape.objects,
            slabs,
            held_bytes: slabs * self.shape.bytes(),
            limit_bytes: self.config.limit_bytes,
            in_slabs: free,
            out: slabs * self.shape.objects - free,
            hits: stock.pops,
            misses: stock.misses,
            constructed: get(&self.constructed),
            destroyed: get(&self.destroyed),
            refused: get(&self.refused),
            magazine_rounds: stock.rounds,
            magazines: stock.magazines,
        }
    }
}
