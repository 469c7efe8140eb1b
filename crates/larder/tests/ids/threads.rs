//! Identifiers between threads: no two owners, nothing lost, 'full' only when it is true.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use crate::common::cpus::{allowed_cpus, pin};
use crate::common::{Rng, modes, stress};
use crate::spaces::*;
use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, Random};
use larder::ids::{IdError, Rule};
use larder::os::rseq::Mode;

fn stress_owners<R: Rule<Order: Send> + Sync>(
    rule: R,
    mode: Mode,
    len: u64,
    threads: u8,
    seconds: f64,
) {
    let ids = space(rule, 1000, len, mode);
    let owners = Owners::new(1000, len);
    let end = Instant::now() + stress(mode, seconds);
    let full = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for me in 1..=threads {
            let (ids, owners, full) = (&ids, &owners, &full);
            s.spawn(move || {
                let mut rng = Rng(u64::from(me));
                let mut held = Vec::new();
                // Together a bit more than there are.
                let most = len as usize / usize::from(threads) + 8;
                while Instant::now() < end {
                    for _ in 0..200 {
                        if held.len() < most && rng.below(2) == 0 {
                            match ids.alloc() {
                                Ok(id) => {
                                    owners.take(id, me);
                                    held.push(id);
                                }
                                Err(IdError::Full { .. }) => {
                                    full.fetch_add(1, Ordering::Relaxed);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        } else if !held.is_empty() {
                            let id = held.swap_remove(rng.below(held.len()));
                            owners.put(id, me);
                            ids.free(id).unwrap();
                        }
                    }
                    // Now and then the thread frees all that it holds, or makes a less common call.
                    match rng.below(20) {
                        0 => {
                            for &id in &held {
                                owners.put(id, me);
                            }
                            ids.free_many(&held).unwrap();
                            held.clear();
                        }
                        1 => {
                            let mut out = [0; 40];
                            let n = ids.alloc_many(&mut out).unwrap_or(0);
                            for &id in &out[..n] {
                                owners.take(id, me);
                                held.push(id);
                            }
                        }
                        2 => {
                            let id = 1000 + rng.below(len as usize) as u64;
                            match ids.alloc_at(id) {
                                Ok(()) => {
                                    owners.take(id, me);
                                    held.push(id);
                                }
                                Err(error) => assert_eq!(error, IdError::Taken { id }),
                            }
                        }
                        3 => {
                            if let Ok(first) = ids.alloc_range(3, 2) {
                                assert_eq!(first % 2, 0);
                                for id in first..first + 3 {
                                    owners.take(id, me);
                                    held.push(id);
                                }
                            }
                        }
                        4 => {
                            // A run goes back as a whole if its freed identifier could be allocated again.
                            if let Ok(first) = ids.alloc_range(5, 1) {
                                (first..first + 5).for_each(|id| owners.take(id, me));
                                owners.put(first + 2, me);
                                ids.free(first + 2).unwrap();
                                if ids.alloc_at(first + 2).is_ok() {
                                    owners.take(first + 2, me);
                                    (first..first + 5).for_each(|id| owners.put(id, me));
                                    ids.free_range(first..first + 5).unwrap();
                                } else {
                                    held.extend([first, first + 1, first + 3, first + 4]);
                                }
                            }
                        }
                        5 => {
                            while held.len() < most
                                && let Ok(id) = ids.alloc()
                            {
                                owners.take(id, me);
                                held.push(id);
                            }
                        }
                        _ => {}
                    }
                }
                for id in held {
                    owners.put(id, me);
                    ids.free(id).unwrap();
                }
            });
        }
    });
    println!("{ids:?}, full {} times", full.into_inner());
    assert_holds(&ids, len);
}

#[test]
fn no_identifier_has_two_owners() {
    for_all!(stress_owners(1000, 4, 0.5));
}

#[test]
fn no_identifier_has_two_owners_where_there_are_few() {
    for_all!(stress_owners(70, 3, 0.5));
    for_all!(stress_owners(40, 3, 0.2));
}

/// Threads together take everything and get the error 'full' exactly then. One identifier is freed, and another thread gets
/// it.
fn exhaust<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode, len: u64, threads: usize) {
    let ids = space(rule, 5, len, mode);
    let lists: Vec<Vec<u64>> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                s.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        match ids.alloc() {
                            Ok(id) => mine.push(id),
                            Err(IdError::Full { allocated }) => {
                                assert_eq!(allocated, len);
                                break mine;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let all: BTreeSet<u64> = lists.iter().flatten().copied().collect();
    assert_eq!(lists.iter().map(Vec::len).sum::<usize>() as u64, len);
    assert!(all.into_iter().eq(5..5 + len));
    for id in [5, 5 + len / 2, 4 + len] {
        std::thread::scope(|s| s.spawn(|| ids.free(id).unwrap()).join().unwrap());
        assert_eq!(ids.alloc(), Ok(id), "the only one");
        assert_eq!(ids.alloc(), Err(IdError::Full { allocated: len }));
    }
    // Freed by many at once, taken by many at once.
    std::thread::scope(|s| {
        for list in &lists {
            s.spawn(|| list.iter().for_each(|&id| ids.free(id).unwrap()));
        }
    });
    assert_holds(&ids, len);
}

#[test]
fn all_are_had_and_no_more() {
    for len in [1, 2, 63, 64, 65, 66, 500, 5000] {
        for_all!(exhaust(len, 3));
    }
}

/// The last ones lie in another CPU's magazines: they are found.
#[test]
fn the_last_ones_of_another_cpu_are_found() {
    let cpus = allowed_cpus();
    for mode in modes() {
        let ids = space(Lifo, 0, 1000, mode);
        let mut held: Vec<_> = (0..1000).map(|_| ids.alloc().unwrap()).collect();
        assert!(ids.alloc().is_err());
        // Back to magazines, which are not used as long as identifiers are scarce.
        for id in held.drain(..500) {
            ids.free(id).unwrap();
        }
        assert!(!ids.stats().scarce);
        let rest: Vec<u64> = std::iter::from_fn(|| ids.alloc().ok()).collect();
        assert_eq!(rest.len(), 500);
        for id in rest {
            ids.free(id).unwrap();
        }
        std::thread::scope(|s| {
            for &cpu in cpus.iter().take(2) {
                let ids = &ids;
                s.spawn(move || {
                    pin(0, &[cpu]);
                    for _ in 0..200 {
                        let id = ids.alloc().unwrap();
                        ids.free(id).unwrap();
                    }
                })
                .join()
                .unwrap();
            }
        });
        // Those threads are gone; what lay ready for their CPUs is not.
        pin(0, &cpus[..1]);
        let rest: BTreeSet<u64> = std::iter::from_fn(|| ids.alloc().ok()).collect();
        assert_eq!(rest.len(), 500);
        for &cpu in &cpus {
            pin(0, &[cpu]);
            assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 1000 }));
        }
        pin(0, &cpus);
    }
}

/// While one thread frees and takes one and the same identifier, another gets the error 'full' at times, but finds every
/// identifier that is free when it asks, and stays so.
fn full_is_true<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode, len: u64) {
    let ids = space(rule, 0, len, mode);
    for _ in 0..len {
        ids.alloc().unwrap();
    }
    let turns = 300;
    let (free, found) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut rng = Rng(9);
            for _ in 0..turns {
                free.wait();
                // Any number, any of them.
                let mut freed = BTreeSet::new();
                for _ in 0..1 + rng.below(30) {
                    let id = rng.below(len as usize) as u64;
                    if freed.insert(id) {
                        ids.free(id).unwrap();
                    }
                }
                found.wait();
                // The other takes exactly these.
                free.wait();
                found.wait();
                assert_eq!(ids.allocated(), len);
            }
        });
        for _ in 0..turns {
            free.wait();
            let mut busy = Vec::new();
            for _ in 0..5 {
                // Races with the frees: success and failure are both right.
                busy.extend(ids.alloc().ok());
            }
            found.wait();
            free.wait();
            let missing = len - ids.allocated();
            for _ in 0..missing {
                ids.alloc().expect("one is free, and nobody else takes it");
            }
            assert!(ids.alloc().is_err());
            found.wait();
        }
    });
}

#[test]
fn full_is_said_only_when_it_is_true() {
    for_all!(full_is_true(50));
    for_all!(full_is_true(300));
}

/// Two threads free the same identifiers at the same moment: for each, one of the two gets an error.
fn free_twice<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode) {
    const LEN: u64 = 400;
    let ids = space(rule, 7, LEN, mode);
    let start = Barrier::new(2);
    for turn in 0..20 {
        let mut held: Vec<u64> = (0..LEN - 20).map(|_| ids.alloc().unwrap()).collect();
        let again = held.clone();
        if turn % 2 == 0 {
            held.reverse();
        }
        let freed = |list: &[u64]| {
            start.wait();
            list.iter()
                .filter(|&&id| match ids.free(id) {
                    Ok(()) => true,
                    Err(error) => {
                        assert_eq!(error, IdError::NotAllocated { id });
                        false
                    }
                })
                .count()
        };
        let sum = std::thread::scope(|s| {
            let other = s.spawn(|| freed(&again));
            freed(&held) + other.join().unwrap()
        });
        assert_eq!(sum as u64, LEN - 20, "each was freed once");
    }
    assert_holds(&ids, LEN);
}

#[test]
fn of_two_who_free_the_same_one_is_told() {
    for_all!(free_twice());
}

/// The promise of a shared rule: see `Shape::InOrder`. One thread, so that the order of things is known; the scheduler may
/// move it.
fn distances<R: Rule<Order: Send>>(rule: R, mode: Mode, promise: impl Fn(u64) -> u64) {
    const LEN: u64 = 8000;
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    for live in [1000, 6000, 7900, 7990] {
        let ids = space(rule.clone(), 0, LEN, mode);
        let free = LEN - live;
        let least =
            promise(free.saturating_sub(128 * cpus)).saturating_sub((64 * cpus).min(free / 4));
        let mut held: Vec<u64> = (0..live).map(|_| ids.alloc().unwrap()).collect();
        let mut freed = vec![None; LEN as usize];
        let mut rng = Rng(live);
        let mut shortest = u64::MAX;
        for now in 0..40_000 {
            let i = rng.below(held.len());
            ids.free(held[i]).unwrap();
            freed[held[i] as usize] = Some(now);
            held[i] = ids.alloc().unwrap();
            if let Some(then) = freed[held[i] as usize].take() {
                shortest = shortest.min(now - then);
            }
        }
        println!("{rule:?}, {live} live: {shortest}, promised {least}");
        assert!(shortest >= least, "{rule:?}: {shortest} < {least}");
        assert!(shortest < LEN, "something was used again");
    }
}

#[test]
fn the_distance_of_reuse_is_as_promised() {
    for mode in modes() {
        distances(Fifo, mode, |free| free);
    }
}

/// What was never handed out is refused, wherever it lies.
fn foreign<R: Rule<Order: Send>>(rule: R, mode: Mode) {
    let ids = space(rule, 100, 1000, mode);
    assert_eq!(ids.free(100), Err(IdError::NotAllocated { id: 100 }));
    let mine = ids.alloc().unwrap();
    for id in 100..1100 {
        if id != mine {
            assert_eq!(ids.free(id), Err(IdError::NotAllocated { id }));
            assert_eq!(
                ids.free_many(&[mine, id]),
                Err(IdError::NotAllocated { id })
            );
            assert!(ids.is_allocated(mine), "nothing has changed");
        }
    }
    assert_eq!(
        ids.free_many(&[mine, mine]),
        Err(IdError::NotAllocated { id: mine })
    );
    for id in [0, 99, 1100, u64::MAX] {
        assert!(matches!(ids.free(id), Err(IdError::OutOfRange { .. })));
        assert!(matches!(
            ids.free_many(&[mine, id]),
            Err(IdError::OutOfRange { .. })
        ));
        assert!(matches!(ids.alloc_at(id), Err(IdError::OutOfRange { .. })));
        assert!(!ids.is_allocated(id));
    }
    assert!(ids.is_allocated(mine));
    ids.free(mine).unwrap();
    assert_eq!(ids.free(mine), Err(IdError::NotAllocated { id: mine }));
    assert_holds(&ids, 1000);
}

#[test]
fn what_is_not_allocated_is_not_freed() {
    for_all!(foreign());
}

thread_local! {
    static KEPT: std::cell::RefCell<Vec<Kept>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Freed by the destructor of a thread's locals.
struct Kept(Box<dyn FnMut()>);

impl Drop for Kept {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn die<R: Rule<Order: Send> + Send + Sync + 'static>(rule: R, mode: Mode) {
    let ids = Arc::new(space(rule, 0, 300, mode));
    for _ in 0..30 {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let ids = ids.clone();
                std::thread::spawn(move || {
                    let held: Vec<_> = (0..40).map(|_| ids.alloc().unwrap()).collect();
                    for &id in &held[..20] {
                        ids.free(id).unwrap();
                    }
                    KEPT.with_borrow_mut(|kept| {
                        kept.push(Kept(Box::new(move || {
                            for &id in &held[20..] {
                                ids.free(id).unwrap();
                            }
                        })));
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
    assert_holds(&ids, 300);
}

#[test]
fn threads_that_end_lose_nothing() {
    for_all!(die());
}

fn moved<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode, cpus: &[usize]) {
    const LEN: u64 = 600;
    let ids = space(rule, 0, LEN, mode);
    let owners = Owners::new(0, LEN);
    let end = Instant::now() + stress(mode, 0.5);
    std::thread::scope(|s| {
        let (sender, receiver) = std::sync::mpsc::channel();
        for me in 1..=3_u8 {
            let (ids, owners, sender) = (&ids, &owners, sender.clone());
            s.spawn(move || {
                // SAFETY: only asks for the own number.
                sender.send(unsafe { libc::gettid() }).unwrap();
                drop(sender);
                let mut rng = Rng(u64::from(me));
                let mut held = Vec::new();
                while Instant::now() < end {
                    for _ in 0..100 {
                        if held.len() < 190 && rng.below(2) == 0 {
                            let id = ids.alloc().unwrap();
                            owners.take(id, me);
                            held.push(id);
                        } else if !held.is_empty() {
                            let id = held.swap_remove(rng.below(held.len()));
                            owners.put(id, me);
                            ids.free(id).unwrap();
                        }
                    }
                }
                held.iter().for_each(|&id| owners.put(id, me));
                ids.free_many(&held).unwrap();
            });
        }
        drop(sender);
        let tids: Vec<_> = receiver.iter().collect();
        let mut rng = Rng(3);
        while Instant::now() < end {
            pin(tids[rng.below(tids.len())], &[cpus[rng.below(cpus.len())]]);
        }
    });
    assert_holds(&ids, LEN);
}

#[test]
fn threads_are_moved_from_cpu_to_cpu() {
    let cpus = allowed_cpus();
    if cpus.len() < 2 {
        println!("one CPU only: nothing to move between");
        return;
    }
    for_all!(moved(&cpus));
}
