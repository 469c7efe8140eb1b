//! Many pages at once.

use core::mem::MaybeUninit;

use super::inner::PoolRef;
use super::{PageBuf, PagePool, PoolError, round};

/// Rounds that `get_many` and `put_many` move at a time, on the stack.
const BATCH: usize = 64;

impl PagePool {
    /// Adds `n` pages to `out`: all of them, or none and an error.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let mut pages = Vec::new();
    /// pool.get_many(&mut pages, 100)?;
    /// pool.put_many(pages.drain(50..));
    /// assert_eq!(pages.len(), 50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`get`](Self::get); also when the list cannot grow.
    pub fn get_many(&self, out: &mut Vec<PageBuf>, n: usize) -> Result<(), PoolError> {
        out.try_reserve(n)
            .map_err(|_| PoolError::List { pages: n })?;
        let before = out.len();
        let mut rounds = [0; BATCH];
        while out.len() - before < n {
            let want = BATCH.min(n - (out.len() - before));
            match self.inner.get_rounds(&mut rounds[..want]) {
                // SAFETY: as in `get`.
                Ok(got) => out.extend(
                    rounds[..got]
                        .iter()
                        .map(|&r| unsafe { PageBuf::new(round::page(r), self.inner) }),
                ),
                Err(error) => {
                    self.put_many(out.drain(before..));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Puts many pages back with few operations. Pages of another pool go back to that pool.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let pages = [pool.get()?, pool.get()?];
    /// pool.put_many(pages);
    /// pool.trim();
    /// assert_eq!(pool.stats().out_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_many(&self, pages: impl IntoIterator<Item = PageBuf>) {
        let mut batch = Batch {
            pool: self.inner,
            rounds: [const { MaybeUninit::uninit() }; BATCH],
            len: 0,
        };
        for page in pages {
            if page.pool() == self.inner {
                batch.add(page);
            }
        }
    }
}

/// Pages on their way back. Dropping it puts them back, also when the caller's iterator panics.
struct Batch {
    pool: PoolRef,
    rounds: [MaybeUninit<usize>; BATCH],
    /// Rounds written, from the front.
    len: usize,
}

impl Batch {
    fn add(&mut self, page: PageBuf) {
        self.rounds[self.len].write(round::pack(page.into_raw().as_ptr() as usize, false));
        self.len += 1;
        if self.len == BATCH {
            self.put();
        }
    }

    fn put(&mut self) {
        let n = core::mem::take(&mut self.len);
        // SAFETY: the first `len` rounds are written.
        let rounds =
            unsafe { core::slice::from_raw_parts(self.rounds.as_ptr().cast::<usize>(), n) };
        self.pool.stock.put_many(rounds, &self.pool.clusters);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.put();
    }
}
