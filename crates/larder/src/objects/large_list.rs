//! Large objects that end with their owner: a list of them, out of line.
//!
//! Each has a node in metadata. The map's entry of the run's second page is the node's number: so a thread that puts an
//! object finds its node, a thread that ends the list finds the objects, and neither touches their memory. The list is
//! a ring, so that a node is unlinked without knowing which list it is in.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use super::error::ObjectError;
use super::family::{Family, Inner};
use super::links::NODE;
use super::map::LARGE;
use super::meta::BlockNumber;

/// Runs that go back together.
const BATCH: usize = 64;

/// The objects of one owner. It goes with [`Family::end_large`]; until then they stay.
#[derive(Debug, Default)]
pub(crate) struct LargeList {
    /// The node of the list itself, made with the first object; 0 is none.
    head: AtomicU32,
}

impl Family {
    /// An object that `get` takes, [`get_large`](Self::get_large) or a relative, and that ends with `list`; it has two pages at least.
    pub(crate) fn get_large_in(
        &self,
        list: &LargeList,
        bytes: usize,
        align: usize,
        get: impl FnOnce(&Self, usize, usize) -> Result<NonNull<u8>, ObjectError>,
    ) -> Result<NonNull<u8>, ObjectError> {
        let inner = &*self.inner;
        let (meta, map) = (&inner.meta, &inner.map);
        let head = list.head(inner)?;
        let number = meta.take(NODE)?;
        // The node's number stands beside the second page.
        let bytes = bytes.max(crate::os::page_size() + 1);
        let at = get(self, bytes, align).inspect_err(|_| {
            // SAFETY: taken above, and not used.
            unsafe { meta.put(number, NODE) };
        })?;
        let page = map.page(at.as_ptr() as usize);
        inner.links.lock().link(meta, head, number, page);
        map.set_entry(page + 1, number);
        Ok(at)
    }

    /// Ends all objects of a list, in constant time for each. Neither the list nor an object of it is in use any more.
    pub(crate) fn end_large(&self, list: &mut LargeList) {
        let inner = &*self.inner;
        let (meta, map) = (&inner.meta, &inner.map);
        let head = core::mem::take(list.head.get_mut());
        if head == 0 {
            return;
        }
        let mut done = false;
        while !done {
            let mut runs = [(0, 0); BATCH];
            let mut nodes = [0; BATCH];
            let mut n = 0;
            {
                let mut links = inner.links.lock();
                while n < BATCH && !done {
                    let number = links.read(meta, head).next;
                    done = number == head;
                    if done {
                        break;
                    }
                    let page = links.read(meta, number).page;
                    links.unlink(meta, number);
                    // If it fails, another thread is just putting the object, and that thread has the node and the pages.
                    if map.release(page, LARGE) {
                        nodes[n] = number;
                        runs[n] = (map.addr(page), map.entry_of(page) as usize);
                        n += 1;
                    }
                }
            }
            for &number in &nodes[..n] {
                // SAFETY: unlinked, and the object has no owner, so no other thread comes to it.
                unsafe { meta.put(number, NODE) };
            }
            let pages: usize = runs[..n].iter().map(|&(_, pages)| pages).sum();
            inner.large_pages.fetch_sub(pages, Ordering::Relaxed);
            let runs = runs[..n].iter().copied();
            inner.pool.put_spans(runs, crate::os::coarse_now());
            inner.put_pages(pages * crate::os::page_size());
        }
        // SAFETY: the ring is empty, and the list knows it no more.
        unsafe { meta.put(head, NODE) };
    }
}

impl LargeList {
    /// The list's own node.
    fn head(&self, inner: &Inner) -> Result<BlockNumber, ObjectError> {
        let head = self.head.load(Ordering::Acquire);
        if head != 0 {
            return Ok(head);
        }
        let new = inner.meta.take(NODE)?;
        let mut links = inner.links.lock();
        // If two threads come at once, one of them has made it.
        let there = self.head.load(Ordering::Relaxed);
        if there != 0 {
            drop(links);
            // SAFETY: taken above, and not used.
            unsafe { inner.meta.put(new, NODE) };
            return Ok(there);
        }
        links.alone(&inner.meta, new, 0);
        self.head.store(new, Ordering::Release);
        Ok(new)
    }
}

impl Inner {
    /// The node of a large object that was released goes, if it has one.
    pub(super) fn forget_large(&self, page: u32, pages: usize) {
        if pages < 2 {
            return;
        }
        let number = self.map.entry_of(page + 1);
        if number != 0 {
            self.links.lock().unlink(&self.meta, number);
            // SAFETY: unlinked; the object was released by this thread, so no other thread has its node.
            unsafe { self.meta.put(number, NODE) };
        }
    }
}
