//! What a pool has done and holds.

/// Numbers of a pool. They are read while other threads go on, so they belong to slightly different moments, and a
/// restarted section may count one get twice.
///
/// ```
/// let pool = larder::pages::PagePool::new()?;
/// let page = pool.get()?;
/// let stats = pool.stats();
/// assert!(page.len() <= stats.out_bytes && stats.out_bytes <= stats.held_bytes);
/// println!("{} of {} gets came from a CPU's magazines", stats.hits, stats.hits + stats.misses);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Pages taken from a CPU's magazines: gets that met no lock, no atomic and no system call. Handles count apart:
    /// what they take from their own magazines is not seen here.
    pub hits: u64,
    /// Gets that found their CPU's magazines empty and went to the depot or the clusters, in magazines.
    pub misses: u64,
    /// Pages put onto a CPU's magazines.
    pub puts: u64,
    /// Bytes backed by memory: in use, in stock and free.
    pub held_bytes: usize,
    /// Bytes in use or in stock (a magazine of a CPU, a handle or the depot).
    pub out_bytes: usize,
    /// Most that may be held; `usize::MAX` without a limit.
    pub limit_bytes: usize,
    /// Calls that made addresses accessible.
    pub commit_calls: u64,
    /// Calls that populated a cluster.
    pub populate_calls: u64,
    /// Calls that gave memory back.
    pub decommit_calls: u64,
    /// Page faults that no consumer took, because the page was populated before it was handed out.
    pub faults_avoided: u64,
    /// Bytes given back to the kernel.
    pub released_bytes: u64,
    /// Bytes that a get zeroed on the caller's thread. Racy: increments of two threads at once may be lost.
    pub zeroed_by_caller_bytes: u64,
    /// Bytes that were known to be zero when they were taken, so that the get did not zero them. Racy likewise.
    pub zeroing_avoided_bytes: u64,
    /// Bytes that the helper zeroed.
    pub zeroed_by_helper_bytes: u64,
    /// Bytes that the helper populated ahead of need.
    pub fault_ahead_bytes: u64,
    /// CPU time that the helper used, in nanoseconds: part of what the pool costs.
    pub helper_cpu_ns: u64,
    /// Bytes in the pre-zeroed stock's depot, at least.
    pub prezeroed_bytes: usize,
    /// Pages that a magazine may hold now; grows under contention.
    pub magazine_pages: usize,
    /// Magazines that exist.
    pub magazines: usize,
}

impl PoolStats {
    /// All system calls that the pool made for memory.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let _page = pool.get()?;
    /// assert!(pool.stats().system_calls() >= 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn system_calls(&self) -> u64 {
        self.commit_calls + self.populate_calls + self.decommit_calls
    }
}
