//! Pages handed out of one mapping that is unmapped when the last of them is back.

use std::collections::VecDeque;
use std::ptr::NonNull;

use super::{Mapper, Supplier, page_of_clusters};

/// Walfield's cluster with one change: `put` only counts, and the cluster is unmapped in one call when all of its
/// pages are back. Optionally the whole cluster is populated by the call that maps it.
///
/// The change separates two costs that the program of 2001 pays together: how many pages a call supplies, and how many pages
/// a call gives back.
#[derive(Debug)]
pub struct ClusterWhole {
    page: usize,
    pages: usize,
    populate: bool,
    live: VecDeque<Live>,
    /// Where the last page was put back: the next one is nearly always of the same cluster.
    hint: usize,
    mapper: Mapper,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    base: NonNull<u8>,
    handed: usize,
    back: usize,
}

impl ClusterWhole {
    /// Clusters of `pages` pages.
    ///
    /// # Errors
    /// A cluster of no pages, or of more bytes than there are addresses.
    pub fn new(pages: usize, populate: bool) -> anyhow::Result<Self> {
        Ok(Self {
            page: page_of_clusters(pages)?,
            pages,
            populate,
            live: VecDeque::with_capacity(256),
            hint: 0,
            mapper: Mapper::new(),
        })
    }

    #[inline]
    fn holds(&self, index: usize, page: NonNull<u8>) -> bool {
        self.live.get(index).is_some_and(|live| {
            (page.as_ptr() as usize).wrapping_sub(live.base.as_ptr() as usize)
                < self.page * self.pages
        })
    }
}

impl Supplier for ClusterWhole {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        if let Some(last) = self.live.back_mut()
            && last.handed < self.pages
        {
            // SAFETY: `handed` counts whole pages inside the cluster.
            let page = unsafe { last.base.add(last.handed * self.page) };
            last.handed += 1;
            return Some(page);
        }
        let base = self.mapper.map(self.page * self.pages, self.populate)?;
        self.live.push_back(Live {
            base,
            handed: 1,
            back: 0,
        });
        Some(base)
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        self.get()
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        let index = if self.holds(self.hint, page) {
            self.hint
        } else if self.holds(self.hint + 1, page) {
            self.hint + 1
        } else {
            match (0..self.live.len()).find(|&i| self.holds(i, page)) {
                Some(i) => i,
                None => return,
            }
        };
        self.hint = index;
        let live = &mut self.live[index];
        live.back += 1;
        if live.back == self.pages {
            let base = live.base;
            self.live.remove(index);
            // SAFETY: every page of the cluster has been handed out and is back.
            unsafe { self.mapper.unmap(base, self.page * self.pages) };
        }
    }

    fn system_calls(&self) -> Option<u64> {
        Some(self.mapper.calls())
    }
}

impl Drop for ClusterWhole {
    fn drop(&mut self) {
        for live in self.live.drain(..) {
            // A cluster with pages still out leaks: its pages may be in use.
            if live.handed == live.back {
                // SAFETY: all that was handed out is back.
                unsafe { self.mapper.unmap(live.base, self.page * self.pages) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmaps_a_cluster_when_its_last_page_is_back_and_not_before() {
        let mut cluster = ClusterWhole::new(3, false).expect("a cluster");
        let pages: Vec<_> = (0..6).map(|_| cluster.get().expect("a page")).collect();
        assert_eq!(cluster.system_calls(), Some(2));
        for &i in &[4, 0, 2] {
            // SAFETY: each page is put back once.
            unsafe { cluster.put(pages[i]) };
        }
        assert_eq!(cluster.system_calls(), Some(2));
        for &i in &[1, 5, 3] {
            // SAFETY: as above.
            unsafe { cluster.put(pages[i]) };
        }
        assert_eq!(cluster.system_calls(), Some(4));
        assert!(cluster.live.is_empty());
    }

    #[test]
    fn a_cluster_that_is_not_handed_out_whole_stays() {
        let mut cluster = ClusterWhole::new(3, false).expect("a cluster");
        for _ in 0..2 {
            let page = cluster.get().expect("a page");
            // SAFETY: put back once.
            unsafe { cluster.put(page) };
        }
        assert_eq!(cluster.system_calls(), Some(1));
        let last = cluster.get().expect("the third page");
        // SAFETY: as above.
        unsafe { cluster.put(last) };
        assert_eq!(cluster.system_calls(), Some(2));
    }
}
