//! Pages handed out of one mapping, unmapped one by one.

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::{Mapper, Supplier, page_of_clusters};

/// Program 2 of Walfield 2001: `get` takes the next page of a preallocated cluster and maps a new cluster when it is
/// used up; `put` unmaps the page at once. Nothing is ever recycled.
///
/// The mutex around `get` stays, although one thread runs: it is part of the cost that was measured in 2001.
#[derive(Debug)]
pub struct Cluster {
    page: usize,
    pages: usize,
    free: Mutex<Free>,
    mapper: Mapper,
}

/// What is left of the current cluster.
#[derive(Debug)]
struct Free {
    next: Option<NonNull<u8>>,
    left: usize,
}

// The pointer is the only owner of the pages that it points to.
// SAFETY: `Free` lives behind the mutex and is owned by the cluster.
unsafe impl Send for Free {}

impl Cluster {
    /// Clusters of `pages` pages.
    ///
    /// # Errors
    /// A cluster of no pages, or of more bytes than there are addresses.
    pub fn new(pages: usize) -> anyhow::Result<Self> {
        Ok(Self {
            page: page_of_clusters(pages)?,
            pages,
            free: Mutex::new(Free {
                next: None,
                left: 0,
            }),
            mapper: Mapper::new(),
        })
    }
}

impl Supplier for Cluster {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.left == 0 {
            free.next = Some(self.mapper.map(self.page * self.pages, false)?);
            free.left = self.pages;
        }
        let page = free.next?;
        free.left -= 1;
        // SAFETY: at least one page of the cluster follows this one.
        free.next = (free.left > 0).then(|| unsafe { page.add(self.page) });
        Some(page)
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        self.get()
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        // SAFETY: the page was handed out by `get` and the caller gives it up.
        unsafe { self.mapper.unmap(page, self.page) };
    }

    fn system_calls(&self) -> Option<u64> {
        Some(self.mapper.calls())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(page), true) = (free.next, free.left > 0) {
            // SAFETY: the rest of the last cluster was never handed out.
            unsafe { self.mapper.unmap(page, self.page * free.left) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::page_size;

    #[test]
    fn maps_once_per_cluster_and_unmaps_every_page() {
        let mut cluster = Cluster::new(4).expect("a cluster");
        let pages: Vec<_> = (0..9).map(|_| cluster.get().expect("a page")).collect();
        assert_eq!(cluster.system_calls(), Some(3));
        for pair in pages[..4].windows(2) {
            assert_eq!(
                pair[1].as_ptr() as usize - pair[0].as_ptr() as usize,
                page_size()
            );
        }
        for page in pages {
            // SAFETY: each page is put back once.
            unsafe { cluster.put(page) };
        }
        assert_eq!(cluster.system_calls(), Some(12));
    }

    #[test]
    fn refuses_an_empty_or_absurd_cluster() {
        assert!(Cluster::new(0).is_err());
        assert!(Cluster::new(usize::MAX).is_err());
    }
}
