//! Objects that are runs of pages by themselves.

use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use super::error::{Misuse, ObjectError};
use super::family::{Family, Inner};
use super::map::LARGE;
use crate::os::{coarse_now, page_size};
use crate::pages::PoolError;

impl Family {
    /// A run of at least `bytes` bytes, in whole pages, aligned to `align` (a power of two; the run is aligned to a
    /// page in any case), with whatever a former user left. [`owner`](Self::owner) says [`Large`](super::Owner::Large)
    /// of its first page, and `None` of the others. It comes from the pool under a lock: not for a fast path.
    ///
    /// ```
    /// use larder::objects::{Family, Owner};
    /// let family = Family::new()?;
    /// let run = family.get_large(3 << 20, 1 << 21)?;
    /// assert_eq!(run.as_ptr() as usize % (1 << 21), 0);
    /// assert_eq!(family.owner(run.as_ptr()), Some(Owner::Large));
    /// // SAFETY: taken above, put once.
    /// unsafe { family.put_large(run) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No bytes, an alignment that is none, or no such run.
    pub fn get_large(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, ObjectError> {
        self.take_large(bytes, align, true).map(|(at, _)| at)
    }

    /// As [`get_large`](Self::get_large), for a caller that a shorter run serves, too: nothing is reclaimed for it.
    pub(crate) fn try_get_large(
        &self,
        bytes: usize,
        align: usize,
    ) -> Result<NonNull<u8>, ObjectError> {
        self.take_large(bytes, align, false).map(|(at, _)| at)
    }

    /// As [`get_large`](Self::get_large), with all bytes zero; what the system has just given is not written again,
    /// and of a long run of which its last user wrote little the pages go back to the system instead.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// let run = family.get_large_zeroed(100_000, 1)?;
    /// // SAFETY: taken above with so many bytes, put once.
    /// unsafe {
    ///     assert!(std::slice::from_raw_parts(run.as_ptr(), 100_000).iter().all(|&byte| byte == 0));
    ///     family.put_large(run)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`get_large`](Self::get_large).
    pub fn get_large_zeroed(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, ObjectError> {
        let (at, zero) = self.take_large(bytes, align, true)?;
        if !zero {
            // SAFETY: just taken, with at least this many bytes, in whole pages.
            unsafe { self.make_zero(at, bytes) };
        }
        Ok(at)
    }

    /// A run, and whether all of it is zero. Where memory is short, it is reclaimed for a run that is `needed`.
    fn take_large(
        &self,
        bytes: usize,
        align: usize,
        needed: bool,
    ) -> Result<(NonNull<u8>, bool), ObjectError> {
        let inner = &*self.inner;
        let pages = bytes.div_ceil(page_size());
        if bytes == 0 || !align.is_power_of_two() {
            return Err(ObjectError::Pages(PoolError::EmptyRun));
        }
        // To reclaim memory for more would be in vain. No pool has more pages than 32 bits count.
        inner.pool.could_hold(pages)?;
        let take = || inner.pool.take_large(pages, align);
        let (at, zero) = if needed {
            inner.patiently(take, |_| true)?
        } else {
            inner.upkeep_if_due();
            take()?
        };
        let first = inner.map.page(at);
        if pages > 1 {
            // On no list.
            inner.map.set_entry(first + 1, 0);
        }
        inner.map.set(first, 1, LARGE, pages as u32);
        inner.large_pages.fetch_add(pages, Ordering::Relaxed);
        Ok((super::raw::object(at), zero))
    }

    /// Puts a run back that [`get_large`](Self::get_large) gave.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// let run = family.get_large(100_000, 1)?;
    /// // SAFETY: taken above, and not used afterwards; what is put again is no large object any more.
    /// unsafe {
    ///     family.put_large(run)?;
    ///     assert!(family.put_large(run).is_err());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no large object begins there; then nothing was put.
    ///
    /// # Safety
    /// If one does, no other caller uses it, and it is not used afterwards.
    pub unsafe fn put_large(&self, at: NonNull<u8>) -> Result<(), Misuse> {
        let now = coarse_now();
        let pages = self.inner.release_large(at.as_ptr() as usize, now)?;
        self.inner.upkeep_if_due_at(now);
        self.inner.put_pages(pages * page_size());
        Ok(())
    }

    /// Gives a run back that was [taken away](crate::objects::View::end_large) from a large object of so many bytes.
    ///
    /// # Safety
    /// The run is the caller's, and not used afterwards.
    pub(crate) unsafe fn put_run(&self, addr: usize, bytes: usize) {
        let (inner, pages) = (&*self.inner, bytes / page_size());
        let now = coarse_now();
        inner.large_pages.fetch_sub(pages, Ordering::Relaxed);
        inner.pool.put_spans(core::iter::once((addr, pages)), now);
        inner.upkeep_if_due_at(now);
        inner.put_pages(bytes);
    }

    /// Lets a heap keep runs of `more` bytes more than so far. False where all heaps together would keep more than the family does
    /// beside as much as is in use: a thread that rests takes no notice of time.
    pub(crate) fn let_keep(&self, more: usize) -> bool {
        self.inner.bound.let_keep(more)
    }

    /// A heap keeps so many bytes less.
    pub(crate) fn keep_less(&self, bytes: usize) {
        self.inner.bound.keep_less(bytes);
    }

    /// Lets a heap have up to `rounds` objects of so many bytes more in its magazines than so far, and says how many: none where all heaps
    /// together would have too much. A thread that rests takes no notice of time.
    pub(crate) fn lend(&self, rounds: usize, bytes: usize) -> usize {
        self.inner.lend(rounds, bytes)
    }

    /// A heap may have so many bytes less in its magazines.
    pub(crate) fn take_back(&self, bytes: usize) {
        self.inner.bound.take_back(bytes);
    }

    /// Makes the first bytes of a run of pages zero, or of a large object; of many in which little was written the pages go back to the
    /// system instead.
    ///
    /// # Safety
    /// Whole pages with so many bytes are the caller's.
    pub(crate) unsafe fn make_zero(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.inner.pool.renew(at, bytes.div_ceil(page_size())) {
                at.write_bytes(0, bytes);
            }
        }
    }

    /// Bytes of the large object that begins at `at`.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// let run = family.get_large(100_000, 1)?;
    /// assert_eq!(family.large_bytes(run)?, 100_000_usize.next_multiple_of(larder::os::page_size()));
    /// # // SAFETY: taken above, put once.
    /// # unsafe { family.put_large(run)? };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When none does.
    pub fn large_bytes(&self, at: NonNull<u8>) -> Result<usize, Misuse> {
        let pages = self.inner.large_at(at.as_ptr() as usize)?;
        Ok(pages * page_size())
    }

    /// Makes a large object larger or smaller where it is: at least `bytes` bytes, in whole pages. False when it stays as it
    /// was, because the pages behind it are in use or there are none.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// let run = family.get_large(1 << 20, 1)?;
    /// // SAFETY: taken above, and used by nothing else.
    /// unsafe {
    ///     assert!(family.resize_large(run, 3 << 20)?, "nothing lies behind it");
    ///     assert_eq!(family.large_bytes(run)?, 3 << 20);
    ///     assert!(family.resize_large(run, 2 << 20)?, "what is over goes back");
    ///     assert_eq!(family.large_bytes(run)?, 2 << 20);
    ///     family.put_large(run)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no large object begins there.
    ///
    /// # Safety
    /// If one does, it is the caller's alone, and nothing beyond `bytes` is used afterwards.
    pub unsafe fn resize_large(&self, at: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let (inner, addr) = (&*self.inner, at.as_ptr() as usize);
        let has = inner.large_at(addr)?;
        // The second page's entry is the object's place on a list, which one page would lose.
        let least = has.min(2);
        let wanted = bytes.div_ceil(page_size()).max(least);
        let end = addr + has * page_size();
        if wanted > has {
            if u32::try_from(wanted).is_err() || !inner.pool.take_span_at(end, wanted - has) {
                return Ok(false);
            }
            inner.large_pages.fetch_add(wanted - has, Ordering::Relaxed);
        }
        let first = inner.map.page(addr);
        if has == 1 && wanted > 1 {
            // On no list.
            inner.map.set_entry(first + 1, 0);
        }
        inner.map.set_entry(first, wanted as u32);
        if wanted < has {
            let over = has - wanted;
            inner.large_pages.fetch_sub(over, Ordering::Relaxed);
            let rest = addr + wanted * page_size();
            let rest = core::iter::once((rest, over));
            inner.pool.put_spans(rest, coarse_now());
            inner.put_pages(over * page_size());
        }
        Ok(true)
    }

    /// Bytes in large objects, and in runs that heaps keep for the next one.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// let run = family.get_large(100_000, 1)?;
    /// assert_eq!(family.large_held_bytes(), family.large_bytes(run)?);
    /// # // SAFETY: taken above, put once.
    /// # unsafe { family.put_large(run)? };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn large_held_bytes(&self) -> usize {
        self.inner.large_pages.load(Ordering::Relaxed) * page_size()
    }
}

impl Inner {
    /// Gives the run back that begins at an address, and says how many pages it had. No caller uses it any more.
    pub(super) fn release_large(&self, addr: usize, now: u64) -> Result<usize, Misuse> {
        let pages = self.large_at(addr)?;
        let page = self.map.page(addr);
        if !self.map.release(page, LARGE) {
            return Err(Misuse::Twice { addr });
        }
        self.forget_large(page, pages);
        self.large_pages.fetch_sub(pages, Ordering::Relaxed);
        self.pool.put_spans(core::iter::once((addr, pages)), now);
        Ok(pages)
    }

    fn large_at(&self, addr: usize) -> Result<usize, Misuse> {
        if self.map.owner(addr) != LARGE {
            return Err(Misuse::Foreign { addr });
        }
        if !addr.is_multiple_of(page_size()) {
            return Err(Misuse::Misaligned { addr });
        }
        Ok(self.map.entry(addr) as usize)
    }
}
