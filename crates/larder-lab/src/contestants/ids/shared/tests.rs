//! Every shared source: no duplicate between threads, and 'full' when it is full.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use larder::ids::rule::Cyclic;
use larder::ids::{IdSpace, Ids};

use super::super::{Pidmap, Rng};
use super::*;

/// Threads free and take at random while a table of owners is kept; at the end the rest is counted.
fn agrees<S: SharedIds>(count: u64, threads: usize) {
    let source = &S::new(count).expect("made");
    let owned: &Vec<AtomicU64> = &(0..count).map(|_| AtomicU64::new(0)).collect();
    let left: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|index| {
                scope.spawn(move || {
                    let mut local = source.local(index, threads);
                    let mut rng = Rng::new(index as u64);
                    let mut own = Vec::new();
                    for _ in 0..20_000 {
                        let drain = rng.below(100) < 45;
                        if drain && !own.is_empty() {
                            let id: u64 = own.swap_remove(rng.below(own.len() as u64) as usize);
                            if S::BOUNDED {
                                owned[id as usize].store(0, Ordering::SeqCst);
                            }
                            assert!(local.free(id));
                        } else if let Some(id) = local.alloc() {
                            if S::BOUNDED {
                                let before = owned[id as usize].swap(1, Ordering::SeqCst);
                                assert_eq!(before, 0, "{id} has two owners");
                            }
                            own.push(id);
                        }
                    }
                    own
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("no panic"))
            .collect()
    });
    let mut all: HashSet<u64> = left.iter().copied().collect();
    assert_eq!(all.len(), left.len(), "different from each other");
    if S::BOUNDED {
        let mut local = source.local(0, threads);
        while let Some(id) = local.alloc() {
            assert!(all.insert(id), "{id} has two owners");
        }
        assert_eq!(all.len() as u64, count, "full only when full");
    }
}

fn everywhere<S: SharedIds>() {
    for count in [1, 63, 64, 65, 1000] {
        for threads in [1, 2, 4] {
            agrees::<S>(count, threads);
        }
    }
}

#[test]
fn no_two_threads_have_the_same_and_the_last_is_found() {
    everywhere::<IdSpace<Cyclic>>();
    everywhere::<Locked<Ids<Cyclic>>>();
    everywhere::<Sbitmap>();
    everywhere::<Locked<Pidmap>>();
}

#[cfg(feature = "peers")]
#[test]
fn the_crates_do_not_lose_any_either() {
    everywhere::<Queue>();
    everywhere::<ShardedSlab>();
}

#[test]
fn a_thread_alone_has_its_own() {
    agrees::<Alone>(1000, 2);
    let mut echo = Nothing.local(1, 2);
    let first = echo.alloc().expect("always");
    assert!(echo.free(first));
    assert_eq!(echo.alloc(), Some(first));
    assert_ne!(echo.alloc(), Some(first));
}
