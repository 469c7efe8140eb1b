//! Heaps and classes of one family in many threads: blocks go from hand to hand, and each is in one hand only.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use crate::common::{Rng, modes};
use larder::heap::{AllocError, Classes, Heap};
use larder::objects::{Family, ObjectError};
use larder::pages::PagePool;

/// A block on its way, with what was written into it.
struct Sent {
    at: NonNull<u8>,
    layout: Layout,
    token: u64,
}

// SAFETY: a block is plain memory; the owner of the value owns the block.
unsafe impl Send for Sent {}

const THREADS: usize = 4;
const TURNS: usize = if cfg!(miri) { 100 } else { 4000 };
/// Blocks that a channel holds.
const ROOM: usize = 8;
/// One block in so many may be large: of each thread's no more than one is on its way, 32 MiB of all threads.
const LARGE_EVERY: usize = 50;
const LARGEST: usize = 8 << 20;

const _: () = assert!(LARGE_EVERY > ROOM + 2);

/// Bytes of the block of a turn. Each doubling up to the largest is as likely as the others.
fn size_of_turn(turn: usize, rng: &mut Rng) -> usize {
    if turn % LARGE_EVERY == LARGE_EVERY - 1 {
        let most = LARGEST >> rng.below(8);
        return most - rng.below(most / 2);
    }
    16 + rng.below(if turn.is_multiple_of(64) { 60_000 } else { 600 })
}

/// Each thread takes by its heap or the CPUs' stocks, writes to both ends, and sends to the next; it looks at what it gets, and
/// gives it back by its own heap or the stocks. A block in two hands is a race, which ThreadSanitizer sees, and a wrong token.
///
/// Where refusals are counted, the pool may lack pages for a block; any other error fails the test.
fn hand_over(classes: &Classes, turns: usize, refused: Option<&AtomicUsize>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| sync_channel(ROOM)).unzip();
    std::thread::scope(|scope| {
        for (me, mine) in receivers.into_iter().enumerate() {
            let next = senders[(me + 1) % THREADS].clone();
            scope.spawn(move || {
                let heap = Heap::new(classes);
                let mut rng = Rng(me as u64 + 1);
                let take = |sent: Sent, by_heap: bool| {
                    let Sent { at, layout, token } = sent;
                    let last = layout.size() - 8;
                    // SAFETY: the block is this thread's now, with this layout, and it gives it back once.
                    unsafe {
                        assert_eq!(at.cast::<u64>().read(), token);
                        assert_eq!(at.add(last).cast::<u64>().read_unaligned(), token);
                        match by_heap {
                            true => heap.dealloc(at, layout),
                            false => classes.dealloc(at, layout),
                        }
                    }
                };
                for turn in 0..turns {
                    let size = size_of_turn(turn, &mut rng);
                    let layout = Layout::from_size_align(size, 16).unwrap();
                    let taken = match turn % 3 {
                        0 => classes.alloc(layout),
                        _ => heap.alloc(layout),
                    };
                    let taken = match (taken, refused) {
                        (Ok(at), _) => Some(at),
                        (Err(AllocError::Memory(ObjectError::Pages(_))), Some(refused)) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            let stats = classes.family().pool().stats();
                            assert!(stats.held_bytes <= stats.limit_bytes, "{stats:?}");
                            None
                        }
                        (Err(error), _) => panic!("{size} bytes: {error}"),
                    };
                    if let Some(at) = taken {
                        let token = (me * TURNS + turn) as u64;
                        // SAFETY: just taken, at least 16 bytes.
                        unsafe {
                            at.cast::<u64>().write(token);
                            at.add(size - 8).cast::<u64>().write_unaligned(token);
                        }
                        // A thread that waits for room in the next thread's channel takes from its own first, so that the ring
                        // never stands still.
                        let mut sent = Sent { at, layout, token };
                        while let Err(error) = next.try_send(sent) {
                            use std::sync::mpsc::TrySendError::{Disconnected, Full};
                            sent = match error {
                                Full(back) => back,
                                Disconnected(_) => panic!("the next thread is gone"),
                            };
                            match mine.try_recv() {
                                Ok(came) => take(came, turn % 2 == 0),
                                Err(_) => std::thread::yield_now(),
                            }
                        }
                    }
                    if let Ok(came) = mine.try_recv() {
                        take(came, turn % 2 == 1);
                    }
                }
                drop(next);
                for came in mine {
                    take(came, true);
                }
            });
        }
        drop(senders);
    });
}

#[test]
fn blocks_go_from_hand_to_hand_and_none_is_lost() {
    for mode in modes() {
        let family = Family::builder().mode(mode).build().unwrap();
        let classes = Classes::new(&family);
        hand_over(&classes, TURNS, None);
        // With all heaps gone nothing is in use, so all slabs go.
        family.trim();
        assert_eq!(family.pool().stats().out_bytes, 0, "{mode:?}");
    }
}

/// The same while another thread reaps all the time.
#[test]
fn blocks_go_from_hand_to_hand_while_memory_goes_back() {
    let family = Family::new().unwrap();
    family
        .start_helper(std::time::Duration::from_millis(1))
        .unwrap();
    let classes = Classes::new(&family);
    hand_over(&classes, TURNS, None);
    family.stop_helper();
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0);
}

/// The same in a pool with a limit that requests meet while other threads free: each gets a block or an error, and nothing is lost.
#[test]
fn blocks_go_from_hand_to_hand_at_a_limit() {
    const LIMIT: usize = 6 << 20;
    for mode in modes() {
        let pages = PagePool::builder().ignore_environment().mode(mode);
        let pages = pages.limit_bytes(LIMIT).reserve_bytes(64 << 20);
        let family = Family::builder().mode(mode).pages(pages).build().unwrap();
        let classes = Classes::new(&family);
        // For as long as the threads run, so that some requests are refused whatever they do.
        let half = Layout::from_size_align(LIMIT / 2, 16).unwrap();
        let held = classes.alloc(half).unwrap();
        let refused = AtomicUsize::new(0);
        hand_over(&classes, TURNS.min(1000), Some(&refused));
        assert!(refused.into_inner() > 0, "{mode:?}: nothing was refused");
        // SAFETY: taken above with this layout, put once.
        unsafe { classes.dealloc(held, half) };
        family.trim();
        let (used, large) = (family.pool().stats().out_bytes, family.large_held_bytes());
        assert_eq!((used, large), (0, 0), "{mode:?}");
        // All of the limit serves again.
        let whole = Layout::from_size_align(LIMIT, 16).unwrap();
        let again = classes.alloc(whole).unwrap();
        // SAFETY: as above.
        unsafe { classes.dealloc(again, whole) };
    }
}
