//! The pool over the heap, where tools that watch the allocator or interpret the program see every access:
//! `cargo +nightly miri test -p larder --lib`.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::os::page_size;
use crate::os::rseq::Mode;
use crate::os::testing::HeapSystem;
use crate::os::zero::Zeroing;

/// A pool of 256 pages in which everything happens early.
fn small() -> (Arc<HeapSystem>, PagePool) {
    let system = Arc::new(HeapSystem::default());
    let pool = PagePool::builder()
        .ignore_environment()
        .system(system.clone())
        .mode(Mode::Locked("test"))
        .zeroing(Zeroing::Portable)
        .reserve_bytes(256 * page_size())
        .limit_bytes(200 * page_size())
        .cluster(ClusterSize::pages(16).unwrap())
        .magazine(2, 4)
        .decay(Duration::from_secs(3600))
        .build()
        .unwrap();
    (system, pool)
}

#[test]
fn pages_go_round_and_the_heap_gets_all_back() {
    let (system, pool) = small();
    let mut handle = pool.handle().unwrap();
    let mut pages = Vec::new();
    for i in 0..40_u8 {
        let mut page = match i % 4 {
            0 => pool.get(),
            1 => pool.get_zeroed(),
            2 => pool.get_zeroed_sparse(),
            _ => handle.get(),
        }
        .unwrap();
        page[usize::from(i)] = i;
        pages.push(page);
    }
    let mut run = pool.get_run_zeroed(3).unwrap();
    run[2 * page_size()] = 1;
    for (i, page) in pages.drain(..20).enumerate() {
        assert_eq!(usize::from(page[i]), i);
        handle.put(page);
    }
    pool.put_many(pages.drain(..10));
    drop(handle);
    pool.trim();
    assert_eq!(pool.stats().out_bytes, 13 * page_size());
    drop(pool);
    assert!(system.reserved() > 0, "buffers are out");
    drop(pages);
    drop(run);
    assert_eq!(system.reserved(), 0);
}

#[test]
fn threads_share_the_pool_and_the_last_put_frees_it() {
    let (system, pool) = small();
    let turns: u8 = if cfg!(miri) { 6 } else { 100 };
    let (sender, receiver) = channel::<PageBuf>();
    std::thread::scope(|s| {
        for me in 1..4_u8 {
            let (pool, sender) = (&pool, sender.clone());
            s.spawn(move || {
                for turn in 0..turns {
                    let mut page = pool.get().unwrap();
                    page[0] = me;
                    page[1] = turn;
                    if turn % 2 == 0 {
                        sender.send(page).unwrap();
                    }
                }
            });
        }
        s.spawn(|| {
            for _ in 0..turns {
                pool.trim();
                std::thread::yield_now();
            }
        });
        drop(sender);
        let mut kept = Vec::new();
        for page in receiver {
            assert!((1..4).contains(&page[0]) && page[1] % 2 == 0);
            if kept.len() < 5 {
                kept.push(page);
            }
        }
        let halves = kept.split_off(2);
        s.spawn(move || drop(halves));
        drop(kept);
    });
    let late = pool.get().unwrap();
    std::thread::scope(|s| {
        s.spawn(move || drop(late));
        drop(pool);
    });
    assert_eq!(system.reserved(), 0);
}
