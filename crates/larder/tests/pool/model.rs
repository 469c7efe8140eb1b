//! The pool against a model: a map of pages to what must be in them.

use std::collections::HashSet;

use crate::common::*;
use larder::os::page_size;
use larder::pages::{PageBuf, PageHandle, PagePool, PageRun, PoolError};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Get,
    GetZeroed,
    GetSparse,
    GetMany(usize),
    GetRun { pages: usize, zeroed: bool },
    HandleGet { zeroed: bool },
    Put(usize),
    PutMany(usize),
    PutRun(usize),
    HandlePut(usize),
    HandleDrop,
    PutRaw(usize),
    Trim,
    Maintain,
    SetCluster(usize),
    SetLimit(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Get),
        3 => Just(Op::GetZeroed),
        2 => Just(Op::GetSparse),
        2 => (0_usize..80).prop_map(Op::GetMany),
        2 => (0_usize..140, any::<bool>()).prop_map(|(pages, zeroed)| Op::GetRun { pages, zeroed }),
        3 => any::<bool>().prop_map(|zeroed| Op::HandleGet { zeroed }),
        4 => any::<usize>().prop_map(Op::Put),
        2 => (0_usize..80).prop_map(Op::PutMany),
        2 => any::<usize>().prop_map(Op::PutRun),
        3 => any::<usize>().prop_map(Op::HandlePut),
        1 => Just(Op::HandleDrop),
        1 => any::<usize>().prop_map(Op::PutRaw),
        1 => Just(Op::Trim),
        1 => Just(Op::Maintain),
        1 => prop_oneof![1_usize..200, Just(1 << 20)].prop_map(Op::SetCluster),
        1 => (0_usize..300).prop_map(Op::SetLimit),
    ]
}

/// What is out, with the stamp that must be found when it comes back.
struct World<'p> {
    pool: &'p PagePool,
    handle: Option<PageHandle>,
    pages: Vec<(PageBuf, u64)>,
    runs: Vec<(PageRun, u64)>,
    out: HashSet<usize>,
    number: u64,
    limit: usize,
}

impl World<'_> {
    fn took(&mut self, mut page: PageBuf, zeroed: bool) -> Result<(), TestCaseError> {
        self.enter(page.as_ptr() as usize, 1)?;
        prop_assert!(!zeroed || is_zero(&page), "a zeroed page is not zero");
        self.number += 1;
        stamp(&mut page, self.number);
        self.pages.push((page, self.number));
        Ok(())
    }

    fn enter(&mut self, addr: usize, pages: usize) -> Result<(), TestCaseError> {
        prop_assert_eq!(addr % page_size(), 0);
        for i in 0..pages {
            prop_assert!(
                self.out.insert(addr + i * page_size()),
                "a page was handed out twice"
            );
        }
        Ok(())
    }

    fn leave(&mut self, addr: usize, pages: usize) {
        for i in 0..pages {
            self.out.remove(&(addr + i * page_size()));
        }
    }

    fn pick(&mut self, nth: usize) -> Result<Option<PageBuf>, TestCaseError> {
        if self.pages.is_empty() {
            return Ok(None);
        }
        let (page, number) = self.pages.swap_remove(nth % self.pages.len());
        prop_assert!(
            is_stamped(&page, number),
            "somebody wrote into a page in use"
        );
        self.leave(page.as_ptr() as usize, 1);
        Ok(Some(page))
    }

    /// A refusal is right when the limit leaves no room for so many pages. Pages in a handle's magazines are out of
    /// the pool's reach, and blocks that are partly in use keep their free neighbours, so only the clear case is judged.
    fn refused(&self, error: PoolError, pages: usize) -> Result<(), TestCaseError> {
        prop_assert!(
            matches!(error, PoolError::Limit { .. } | PoolError::Exhausted { .. }),
            "{}",
            error
        );
        if pages == 1 {
            let kept = self.handle.as_ref().map_or(0, PageHandle::len);
            prop_assert!(
                self.out.len() + kept + 1 > self.limit,
                "{} pages out, {} in the handle, limit {}: {}",
                self.out.len(),
                kept,
                self.limit,
                error
            );
        }
        Ok(())
    }

    fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        let pool = self.pool;
        match op {
            Op::Get => match pool.get() {
                Ok(page) => self.took(page, false)?,
                Err(error) => self.refused(error, 1)?,
            },
            Op::GetZeroed => match pool.get_zeroed() {
                Ok(page) => self.took(page, true)?,
                Err(error) => self.refused(error, 1)?,
            },
            Op::GetSparse => match pool.get_zeroed_sparse() {
                Ok(page) => self.took(page, true)?,
                Err(error) => self.refused(error, 1)?,
            },
            Op::GetMany(n) => {
                let mut many = Vec::new();
                match pool.get_many(&mut many, n) {
                    Ok(()) => prop_assert_eq!(many.len(), n),
                    Err(error) => {
                        prop_assert!(many.is_empty(), "all or none");
                        self.refused(error, n)?;
                    }
                }
                for page in many {
                    self.took(page, false)?;
                }
            }
            Op::GetRun { pages, zeroed } => {
                let got = if zeroed {
                    pool.get_run_zeroed(pages)
                } else {
                    pool.get_run(pages)
                };
                match got {
                    Ok(mut run) => {
                        prop_assert_eq!(run.pages(), pages);
                        prop_assert_eq!(run.len(), pages * page_size());
                        prop_assert!(!zeroed || is_zero(&run), "a zeroed run is not zero");
                        self.enter(run.as_ptr() as usize, pages)?;
                        self.number += 1;
                        for page in run.chunks_mut(page_size()) {
                            stamp(page, self.number);
                        }
                        self.runs.push((run, self.number));
                    }
                    Err(PoolError::EmptyRun) => prop_assert_eq!(pages, 0),
                    Err(error) => self.refused(error, pages.max(2))?,
                }
            }
            Op::HandleGet { zeroed } => {
                if self.handle.is_none() {
                    self.handle = Some(pool.handle().unwrap());
                }
                let handle = self.handle.as_mut().unwrap();
                let got = if zeroed {
                    handle.get_zeroed()
                } else {
                    handle.get()
                };
                match got {
                    Ok(page) => self.took(page, zeroed)?,
                    Err(error) => self.refused(error, 1)?,
                }
            }
            Op::Put(nth) => drop(self.pick(nth)?),
            Op::PutMany(n) => {
                let mut many = Vec::new();
                while many.len() < n {
                    let Some(page) = self.pick(0)? else { break };
                    many.push(page);
                }
                pool.put_many(many);
            }
            Op::PutRun(nth) => {
                if !self.runs.is_empty() {
                    let (run, number) = self.runs.swap_remove(nth % self.runs.len());
                    prop_assert!(
                        run.chunks(page_size()).all(|page| is_stamped(page, number)),
                        "somebody wrote into a run in use"
                    );
                    self.leave(run.as_ptr() as usize, run.pages());
                }
            }
            Op::HandlePut(nth) => {
                if let Some(page) = self.pick(nth)? {
                    match &mut self.handle {
                        Some(handle) => handle.put(page),
                        None => drop(page),
                    }
                }
            }
            Op::HandleDrop => self.handle = None,
            Op::PutRaw(nth) => {
                if let Some(page) = self.pick(nth)? {
                    let page = page.into_raw();
                    // SAFETY: out of the buffer a line ago, and put once.
                    unsafe { pool.put_raw(page) };
                }
            }
            Op::Trim => {
                pool.trim();
            }
            Op::Maintain => {
                pool.maintain();
            }
            Op::SetCluster(n) => pool.set_cluster(cluster(n)),
            Op::SetLimit(pages) => {
                self.limit = pages;
                pool.set_limit_bytes(pages * page_size());
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 400 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn behaves_like_a_set_of_pages(ops in proptest::collection::vec(op(), 1..200), populate in any::<bool>()) {
        const LIMIT: usize = 250;
        for mode in modes() {
            let pool = builder(mode)
                .populate(populate)
                .cluster(cluster(32))
                .reserve_bytes(8 << 20)
                .limit_bytes(LIMIT * page_size())
                .decay(std::time::Duration::ZERO)
                .build()
                .unwrap();
            let mut world = World {
                pool: &pool,
                handle: None,
                pages: Vec::new(),
                runs: Vec::new(),
                out: HashSet::new(),
                number: 0,
                limit: LIMIT,
            };
            // The most that was ever allowed: lowering the limit does not take back what is held.
            let mut most = LIMIT;
            for op in ops.clone() {
                world.step(op)?;
                most = most.max(world.limit);
                let stats = pool.stats();
                prop_assert!(stats.held_bytes <= most * page_size(), "the limit is passed");
                prop_assert!(stats.out_bytes >= world.out.len() * page_size());
            }
            for (page, number) in &world.pages {
                prop_assert!(is_stamped(page, *number));
            }
            drop(world);
            pool.trim();
            prop_assert_eq!(pool.stats().out_bytes, 0);
            prop_assert_eq!(pool.stats().held_bytes, 0);
        }
    }
}
