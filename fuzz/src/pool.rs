//! A page pool played against a model: who holds which page, and what was written on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use arbitrary::Arbitrary;
use larder::os::rseq::Mode;
use larder::os::testing::{Failing, Hooked};
use larder::os::{Decommit, Linux, page_size};
use larder::pages::{ClusterSize, PageBuf, PageHandle, PagePool, PageRun, PoolError};

/// Addresses of the pool, 4 MiB: small enough to run out of.
const RESERVE: usize = 4 << 20;
/// Most handles at a time.
const HANDLES: usize = 3;
/// Most operations of one case, to keep it fast.
const MOST_OPS: usize = 400;

/// A pool and what is done with it.
#[derive(Debug, Arbitrary)]
pub struct Case {
    locked: bool,
    lazy: bool,
    no_populate: bool,
    cluster: u8,
    limit: Option<u8>,
    magazine: (u8, u8),
    /// Number of the system call that is refused first, and how many are.
    refuse: Option<(u8, u8)>,
    pool_goes_first: bool,
    ops: Vec<Op>,
}

/// One operation. Indices are taken modulo what there is.
#[derive(Debug, Arbitrary)]
enum Op {
    Get,
    GetZeroed,
    GetSparse,
    GetMany(u8),
    GetRun(u8),
    GetRunZeroed(u8),
    Put(u8),
    PutMany(u8),
    PutRun(u8),
    NewHandle,
    HandleGet(u8),
    HandleGetZeroed(u8),
    HandlePut(u8, u8),
    DropHandle(u8),
    SetCluster(u16),
    SetLimit(u16),
    Maintain,
    Trim,
    Clone,
}

/// A page in hand, with the number that was written on it.
struct Held {
    page: PageBuf,
    mark: u64,
}

struct World {
    pool: PagePool,
    clones: Vec<PagePool>,
    handles: Vec<PageHandle>,
    held: Vec<Held>,
    runs: Vec<(PageRun, u64)>,
    addresses: BTreeSet<usize>,
    limit: usize,
    highest_limit: usize,
    marks: u64,
}

/// Plays a case; panics where pool and model disagree.
pub fn play(case: Case) {
    let page = page_size();
    let limit = case.limit.map(|n| (usize::from(n) + 1) * page);
    let (first, many) = case.refuse.unwrap_or((0, 0));
    let mut builder = PagePool::builder()
        .ignore_environment()
        .reserve_bytes(RESERVE)
        .populate(!case.no_populate)
        .give_back(if case.lazy {
            Decommit::Free
        } else {
            Decommit::DontNeed
        })
        .magazine(case.magazine.0.into(), case.magazine.1.into())
        .system(Arc::new(Hooked::new(
            Linux,
            Failing::from(first.into(), many.into()),
        )));
    if let Ok(size) = ClusterSize::pages(case.cluster.into()) {
        builder = builder.cluster(size);
    }
    if let Some(bytes) = limit {
        builder = builder.limit_bytes(bytes);
    }
    if case.locked {
        builder = builder.mode(Mode::Locked("the fuzzer wants it"));
    }
    let pool = match builder.build() {
        Ok(pool) => pool,
        Err(error) => {
            assert!(case.refuse.is_some(), "nothing was refused: {error}");
            return;
        }
    };
    let limit = limit.unwrap_or(usize::MAX);
    let mut world = World {
        pool,
        clones: Vec::new(),
        handles: Vec::new(),
        held: Vec::new(),
        runs: Vec::new(),
        addresses: BTreeSet::new(),
        limit,
        highest_limit: limit,
        marks: 0,
    };
    for op in case.ops.into_iter().take(MOST_OPS) {
        world.step(op);
        world.check_stats();
    }
    world.end(case.pool_goes_first);
}

impl World {
    fn step(&mut self, op: Op) {
        match op {
            Op::Get => self.got(self.pool.get(), false),
            Op::GetZeroed => self.got(self.pool.get_zeroed(), true),
            Op::GetSparse => self.got(self.pool.get_zeroed_sparse(), true),
            Op::GetMany(n) => {
                let mut pages = Vec::new();
                match self.pool.get_many(&mut pages, n.into()) {
                    Ok(()) => {
                        assert_eq!(pages.len(), usize::from(n));
                        for page in pages {
                            self.take(page, false);
                        }
                    }
                    Err(_) => assert!(pages.is_empty(), "all or none"),
                }
            }
            Op::GetRun(n) => self.got_run(self.pool.get_run(n.into()), n, false),
            Op::GetRunZeroed(n) => self.got_run(self.pool.get_run_zeroed(n.into()), n, true),
            Op::Put(i) => drop(self.give(i)),
            Op::PutMany(n) => {
                let pages: Vec<_> = (0..n).map_while(|_| self.give(n)).collect();
                self.pool.put_many(pages);
            }
            Op::PutRun(i) => self.put_run(i.into()),
            Op::NewHandle => {
                if self.handles.len() < HANDLES
                    && let Ok(handle) = self.pool.handle()
                {
                    self.handles.push(handle);
                }
            }
            Op::HandleGet(h) => {
                if let Some(handle) = pick(&mut self.handles, h) {
                    let result = handle.get();
                    self.got(result, false);
                }
            }
            Op::HandleGetZeroed(h) => {
                if let Some(handle) = pick(&mut self.handles, h) {
                    let result = handle.get_zeroed();
                    self.got(result, true);
                }
            }
            Op::HandlePut(h, i) => {
                if self.handles.is_empty() {
                    return;
                }
                if let Some(page) = self.give(i)
                    && let Some(handle) = pick(&mut self.handles, h)
                {
                    handle.put(page);
                }
            }
            Op::DropHandle(h) => {
                if !self.handles.is_empty() {
                    let h = usize::from(h) % self.handles.len();
                    self.handles.swap_remove(h);
                }
            }
            Op::SetCluster(n) => match ClusterSize::pages(n.into()) {
                Ok(size) => {
                    self.pool.set_cluster(size);
                    assert_eq!(self.pool.cluster_pages(), usize::from(n));
                }
                Err(_) => assert_eq!(n, 0),
            },
            Op::SetLimit(pages) => {
                self.limit = usize::from(pages) * page_size();
                self.highest_limit = self.highest_limit.max(self.limit);
                self.pool.set_limit_bytes(self.limit);
            }
            Op::Maintain => drop(self.pool.maintain()),
            Op::Trim => drop(self.pool.trim()),
            Op::Clone => {
                if self.clones.pop().is_none() {
                    self.clones.push(self.pool.clone());
                }
            }
        }
    }

    /// The result of a get of one page.
    fn got(&mut self, result: Result<PageBuf, PoolError>, zeroed: bool) {
        match result {
            Ok(page) => self.take(page, zeroed),
            Err(PoolError::Limit { .. }) => {
                // A limit may only be felt when no page of the pool is free.
                let stock: usize = self.handles.iter().map(PageHandle::len).sum();
                assert!(
                    (self.in_use() + stock) * page_size() >= self.limit,
                    "{} in use and {stock} in handles, yet the limit of {} is reached",
                    self.in_use(),
                    self.limit
                );
            }
            Err(_) => {}
        }
    }

    fn take(&mut self, mut page: PageBuf, zeroed: bool) {
        assert_eq!(page.len(), page_size());
        assert!(!zeroed || is_zero(&page), "a zeroed page is not zero");
        let at = page.as_ptr() as usize;
        assert!(at.is_multiple_of(page_size()));
        assert!(self.addresses.insert(at), "page {at:#x} has two owners");
        self.marks += 1;
        mark(&mut page, self.marks);
        self.held.push(Held {
            page,
            mark: self.marks,
        });
    }

    fn give(&mut self, i: u8) -> Option<PageBuf> {
        if self.held.is_empty() {
            return None;
        }
        let held = self.held.swap_remove(usize::from(i) % self.held.len());
        assert!(
            is_marked(&held.page, held.mark),
            "somebody wrote on a page in use"
        );
        self.addresses.remove(&(held.page.as_ptr() as usize));
        Some(held.page)
    }

    fn got_run(&mut self, result: Result<PageRun, PoolError>, n: u8, zeroed: bool) {
        let Ok(mut run) = result else { return };
        assert_eq!(run.pages(), usize::from(n));
        assert!(!zeroed || is_zero(&run), "a zeroed run is not zero");
        self.marks += 1;
        for page in run.chunks_mut(page_size()) {
            let at = page.as_ptr() as usize;
            assert!(self.addresses.insert(at), "page {at:#x} has two owners");
            mark(page, self.marks);
        }
        self.runs.push((run, self.marks));
    }

    fn put_run(&mut self, i: usize) {
        if self.runs.is_empty() {
            return;
        }
        let (run, number) = self.runs.swap_remove(i % self.runs.len());
        for page in run.chunks(page_size()) {
            assert!(is_marked(page, number), "somebody wrote on a run in use");
            self.addresses.remove(&(page.as_ptr() as usize));
        }
    }

    fn in_use(&self) -> usize {
        self.held.len() + self.runs.iter().map(|(run, _)| run.pages()).sum::<usize>()
    }

    fn check_stats(&self) {
        let stats = self.pool.stats();
        assert!(stats.out_bytes >= self.in_use() * page_size());
        assert!(stats.held_bytes >= stats.out_bytes);
        assert!(stats.held_bytes <= self.highest_limit.min(RESERVE));
    }

    fn end(mut self, pool_goes_first: bool) {
        if pool_goes_first {
            let Self {
                pool,
                clones,
                handles,
                held,
                runs,
                ..
            } = self;
            drop((pool, clones, handles));
            // Buffers outlive the pool, and so does what is written on them.
            for Held { page, mark } in held {
                assert!(is_marked(&page, mark));
            }
            for (run, number) in runs {
                assert!(run.chunks(page_size()).all(|page| is_marked(page, number)));
            }
            return;
        }
        while let Some(page) = self.give(0) {
            drop(page);
        }
        while !self.runs.is_empty() {
            self.put_run(0);
        }
        self.handles.clear();
        self.pool.trim();
        assert_eq!(
            self.pool.stats().out_bytes,
            0,
            "everything is back, yet pages are out"
        );
    }
}

fn pick(handles: &mut [PageHandle], h: u8) -> Option<&mut PageHandle> {
    let n = handles.len();
    handles.get_mut(usize::from(h).checked_rem(n)?)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0)
}

/// Writes the number on both ends of a page.
fn mark(page: &mut [u8], number: u64) {
    let end = page.len() - 8;
    page[..8].copy_from_slice(&number.to_ne_bytes());
    page[end..].copy_from_slice(&number.to_ne_bytes());
}

fn is_marked(page: &[u8], number: u64) -> bool {
    let number = number.to_ne_bytes();
    page.starts_with(&number) && page.ends_with(&number)
}
