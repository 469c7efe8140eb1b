//! Heaps and classes of one family in many threads: blocks go from hand to hand, and each is in one hand only.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::mpsc::sync_channel;

use crate::common::{Rng, modes};
use larder::heap::{Classes, Heap};
use larder::objects::Family;

/// A block on its way, with what was written into it.
struct Sent {
    at: NonNull<u8>,
    layout: Layout,
    token: u64,
}

// SAFETY: a block is plain memory; the owner of the value owns the block.
unsafe impl Send for Sent {}

const THREADS: usize = 4;
const TURNS: usize = 4000;

/// Each thread takes by its heap or the CPUs' stocks, writes to both ends, and sends to the next; it looks at what it gets, and
/// gives it back by its own heap or the stocks. A block in two hands is a race, which ThreadSanitizer sees, and a wrong token.
fn hand_over(classes: &Classes) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| sync_channel(8)).unzip();
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
                for turn in 0..TURNS {
                    let size = 16 + rng.below(if turn % 64 == 0 { 60_000 } else { 600 });
                    let layout = Layout::from_size_align(size, 16).unwrap();
                    let at = match turn % 3 {
                        0 => classes.alloc(layout).unwrap(),
                        _ => heap.alloc(layout).unwrap(),
                    };
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
        hand_over(&classes);
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
    hand_over(&classes);
    family.stop_helper();
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0);
}
