//! Cells that go through the parts of a trace in their order, each on whichever thread is free.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::super::SimError;

/// Parts in the queue at most. One more is being read.
const MOST: usize = 3;

struct Queue<T, C> {
    parts: VecDeque<Arc<T>>,
    /// The number of the first of them.
    first: usize,
    /// None: a thread runs it.
    cells: Vec<Option<C>>,
    /// The number of the part that each cell needs next.
    next: Vec<usize>,
    /// No more parts come.
    ended: bool,
    /// A cell has failed, or a thread has panicked.
    stopped: bool,
    failure: Option<SimError>,
}

impl<T, C> Queue<T, C> {
    /// The cell that is furthest behind, of those that no thread runs and that have a part to go through.
    fn take(&mut self) -> Option<(usize, C, Arc<T>)> {
        let end = self.first + self.parts.len();
        let ready = |&n: &usize| self.cells[n].is_some() && self.next[n] < end;
        let all = 0..self.cells.len();
        let n = all.filter(ready).min_by_key(|&n| self.next[n])?;
        let part = Arc::clone(&self.parts[self.next[n] - self.first]);
        Some((n, self.cells[n].take()?, part))
    }

    /// A cell has gone through its part. Forgets parts that all have gone through, and returns whether there was one.
    fn put(&mut self, n: usize, cell: C) -> bool {
        self.cells[n] = Some(cell);
        self.next[n] += 1;
        let least = self.next.iter().min().copied().unwrap_or(self.first);
        let passed = least - self.first;
        self.parts.drain(..passed);
        self.first = least;
        passed > 0
    }
}

struct Shared<T, C> {
    queue: Mutex<Queue<T, C>>,
    /// A part came, or the last one has come.
    not_empty: Condvar,
    not_full: Condvar,
}

impl<T, C> Shared<T, C> {
    fn lock(&self) -> MutexGuard<'_, Queue<T, C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue, and wakes all who wait for it.
    fn update(&self, change: impl FnOnce(&mut Queue<T, C>)) {
        change(&mut self.lock());
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }

    fn fail(&self, why: SimError) {
        self.update(|queue| {
            queue.stopped = true;
            queue.failure.get_or_insert(why);
        });
    }

    /// False: no more parts are wanted.
    fn send(&self, part: T) -> bool {
        let full = |queue: &mut Queue<T, C>| queue.parts.len() >= MOST && !queue.stopped;
        let queue = self.not_full.wait_while(self.lock(), full);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        if !queue.stopped && !queue.cells.is_empty() {
            queue.parts.push_back(Arc::new(part));
            self.not_empty.notify_all();
        }
        !queue.stopped
    }

    fn work(&self, run: impl Fn(usize, &mut C, &T) -> Result<(), SimError>) {
        let _guard = PanicGuard(self);
        let mut queue = self.lock();
        while !queue.stopped {
            let Some((n, mut cell, part)) = queue.take() else {
                if queue.ended {
                    return;
                }
                let woken = self.not_empty.wait(queue);
                queue = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            if let Err(why) = run(n, &mut cell, &part) {
                return self.fail(why);
            }
            drop(part);
            queue = self.lock();
            if queue.put(n, cell) {
                self.not_full.notify_one();
            }
        }
    }
}

/// Stops the other threads when this one panics: they would wait for its cell, or for its parts.
struct PanicGuard<'s, T, C>(&'s Shared<T, C>);

impl<T, C> Drop for PanicGuard<'_, T, C> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.update(|queue| queue.stopped = true);
        }
    }
}

/// Runs cells on threads over the parts that `feed` sends. It sends until no more are wanted: then a cell has failed, and its error is
/// returned.
pub(super) fn run_over_parts<T: Send + Sync, C: Send, F>(
    cells: Vec<C>,
    threads: usize,
    run: impl Fn(usize, &mut C, &T) -> Result<(), SimError> + Sync,
    feed: impl FnOnce(&mut dyn FnMut(T) -> bool) -> Result<F, SimError>,
) -> Result<(Vec<C>, F), SimError> {
    let threads = threads.clamp(1, cells.len().max(1));
    let shared = Shared {
        queue: Mutex::new(Queue {
            parts: VecDeque::with_capacity(MOST),
            first: 0,
            next: vec![0; cells.len()],
            cells: cells.into_iter().map(Some).collect(),
            ended: false,
            stopped: false,
            failure: None,
        }),
        not_empty: Condvar::new(),
        not_full: Condvar::new(),
    };
    let fed = thread::scope(|scope| {
        let _guard = PanicGuard(&shared);
        let mut workers = Vec::new();
        let mut fed = None;
        for _ in 0..threads {
            match thread::Builder::new().spawn_scoped(scope, || shared.work(&run)) {
                Ok(worker) => workers.push(worker),
                Err(why) => fed = Some(Err(SimError::Thread(why))),
            }
        }
        let fed = fed.unwrap_or_else(|| feed(&mut |part| shared.send(part)));
        shared.update(|queue| {
            queue.ended = true;
            queue.stopped |= fed.is_err();
        });
        for worker in workers {
            if let Err(panic) = worker.join() {
                resume_unwind(panic);
            }
        }
        fed
    });
    let queue = shared.queue.into_inner();
    let queue = queue.unwrap_or_else(PoisonError::into_inner);
    match queue.failure {
        Some(why) => Err(why),
        None => Ok((queue.cells.into_iter().flatten().collect(), fed?)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A part that counts how many there are.
    struct Counted<'c>(usize, &'c AtomicUsize);

    impl<'c> Counted<'c> {
        fn new(number: usize, there: &'c AtomicUsize) -> Self {
            let before = there.fetch_add(1, Ordering::Relaxed);
            assert!(before <= MOST, "{before}");
            Self(number, there)
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn all(send: &mut dyn FnMut(usize) -> bool) -> Result<usize, SimError> {
        Ok((0..1000).take_while(|&part| send(part)).count())
    }

    #[test]
    fn each_cell_goes_through_all_parts_in_order_and_few_are_in_memory() {
        for cells in 0..7 {
            for threads in [1, 2, 5] {
                let there = AtomicUsize::new(0);
                let run = |n: usize, seen: &mut Vec<usize>, part: &Counted<'_>| {
                    // Some cells are slow.
                    if (n + part.0).is_multiple_of(50) {
                        thread::yield_now();
                    }
                    seen.push(part.0);
                    Ok(())
                };
                let (seen, fed) = run_over_parts(vec![Vec::new(); cells], threads, run, |send| {
                    all(&mut |part| send(Counted::new(part, &there)))
                })
                .unwrap();
                assert_eq!(fed, 1000);
                assert_eq!(seen, vec![(0..1000).collect::<Vec<_>>(); cells]);
                assert_eq!(there.into_inner(), 0);
            }
        }
    }

    #[test]
    fn a_cell_that_fails_ends_all() {
        let run = |n: usize, seen: &mut usize, _: &usize| {
            *seen += 1;
            match (n, *seen) {
                (2, 10) => Err(SimError::Future {
                    policy: String::new(),
                }),
                _ => Ok(()),
            }
        };
        let mut fed = 0;
        let failed = run_over_parts(vec![0; 4], 2, run, |send| {
            fed = all(send)?;
            Ok(())
        });
        assert!(matches!(failed, Err(SimError::Future { .. })));
        assert!((9..20).contains(&fed), "{fed}");
    }

    #[test]
    #[should_panic(expected = "left != right")]
    fn a_cell_that_panics_ends_all() {
        let run = |n: usize, (): &mut (), part: &usize| {
            assert_ne!((n, *part), (1, 20));
            Ok(())
        };
        let _ = run_over_parts(vec![(); 3], 2, run, all);
    }

    #[test]
    fn a_slow_cell_holds_up_no_other_one() {
        let (passed, rest) = (Mutex::new(0), Condvar::new());
        let run = |n: usize, (): &mut (), _: &usize| {
            let mut passed = passed.lock().unwrap();
            if n == 0 {
                // Both others go through all parts in the queue on the other thread.
                let few = |passed: &mut usize| *passed < 2 * MOST;
                let minute = std::time::Duration::from_mins(1);
                let waited = rest.wait_timeout_while(passed, minute, few).unwrap();
                assert!(!waited.1.timed_out());
            } else {
                *passed += 1;
                rest.notify_all();
            }
            Ok(())
        };
        let (cells, _) = run_over_parts(vec![(); 3], 2, run, all).unwrap();
        assert_eq!((cells.len(), passed.into_inner().unwrap()), (3, 2000));
    }

    #[test]
    fn the_cell_that_is_furthest_behind_comes_next() {
        let mut queue = Queue {
            parts: (10..13).map(Arc::new).collect(),
            first: 10,
            cells: vec![Some('a'), Some('b'), Some('c')],
            next: vec![12, 10, 11],
            ended: false,
            stopped: false,
            failure: None,
        };
        let (n, cell, part) = queue.take().unwrap();
        assert_eq!((n, cell, *part), (1, 'b', 10));
        assert_eq!(queue.take().unwrap().1, 'c');
        assert!(!queue.put(2, 'c'));
        assert!(queue.put(1, 'b'));
        assert_eq!((queue.first, queue.parts.len()), (11, 2));
    }
}
