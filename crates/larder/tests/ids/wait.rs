//! Waiting for identifiers, and the reports that they become scarce.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::common::{Rng, modes, stress};
use crate::spaces::*;
use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, NearFull, Random, Rested};
use larder::ids::{Crossing, IdError, IdSpace, Rule};
use larder::os::rseq::Mode;

/// More threads than identifiers: each waits for one, takes it, and frees it. If a wake-up were lost, the test would hang.
fn queue<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode, len: u64, threads: u8) {
    let ids = space(rule, 0, len, mode);
    let owners = Owners::new(0, len);
    let end = Instant::now() + stress(mode, 0.3);
    let waited = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for me in 1..=threads {
            let (ids, owners, waited) = (&ids, &owners, &waited);
            s.spawn(move || {
                let mut rng = Rng(u64::from(me));
                while Instant::now() < end {
                    // Often a thread wants more than its share.
                    let want = 1 + rng.below(len as usize / usize::from(threads) + 2);
                    let mut held = Vec::new();
                    for i in 0..want {
                        let id = match rng.below(4) {
                            // A thread that holds some does not wait for ever, or all would wait for each other.
                            _ if i > 0 => ids.alloc_timeout(Duration::from_micros(50)),
                            0 => ids.alloc_timeout(Duration::from_secs(60)),
                            1 => ids.alloc(),
                            _ => ids.alloc_wait(),
                        };
                        match id {
                            Ok(id) => {
                                owners.take(id, me);
                                held.push(id);
                            }
                            Err(error) => {
                                assert!(matches!(error, IdError::Full { .. }), "{error}");
                                waited.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                    if rng.below(3) == 0 {
                        std::thread::yield_now();
                    }
                    for &id in &held {
                        owners.put(id, me);
                    }
                    if rng.below(2) == 0 {
                        ids.free_many(&held).unwrap();
                    } else {
                        held.into_iter().for_each(|id| ids.free(id).unwrap());
                    }
                }
            });
        }
    });
    assert_eq!(ids.stats().waiting, 0);
    assert_holds(&ids, len);
}

#[test]
fn whoever_waits_is_served() {
    for_all!(queue(3, 6));
    for_all!(queue(100, 6));
}

fn wake<R: Rule<Order: Send> + Sync>(rule: R, mode: Mode) {
    const LEN: u64 = 130;
    let ids = space(rule, 0, LEN, mode);
    for _ in 0..LEN {
        ids.alloc().unwrap();
    }
    // Served in the order in which they came.
    let order = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for me in 0..4 {
            let (ids, order) = (&ids, &order);
            s.spawn(move || {
                let id = ids.alloc_wait().unwrap();
                order.lock().unwrap().push((me, id));
            });
            while ids.stats().waiting <= me {
                std::thread::yield_now();
            }
        }
        for me in 0..4_usize {
            ids.free(100 + me as u64).unwrap();
            assert!(
                ids.alloc().is_err(),
                "nobody comes before those who wait, and what they got is theirs"
            );
            while order.lock().unwrap().len() <= me {
                std::thread::yield_now();
            }
        }
    });
    let order = order.into_inner().unwrap();
    assert_eq!(order, [(0, 100), (1, 101), (2, 102), (3, 103)]);
    // No identifier is freed.
    let begin = Instant::now();
    assert_eq!(
        ids.alloc_timeout(Duration::from_millis(5)),
        Err(IdError::Full { allocated: LEN })
    );
    assert!(begin.elapsed() >= Duration::from_millis(5), "it waited");
    assert_eq!(
        ids.alloc_timeout(Duration::ZERO),
        Err(IdError::Full { allocated: LEN })
    );
    assert_eq!(ids.stats().waiting, 0);
    for id in 0..LEN {
        ids.free(id).unwrap();
    }
    assert!(ids.alloc_timeout(Duration::MAX).is_ok());
}

#[test]
fn the_longest_waits_no_longer() {
    for_all!(wake());
}

/// A space, and a list of the crossings that it reports.
fn watched<R: Rule<Order: Send>>(
    rule: R,
    mode: Mode,
    len: u64,
    marks: &[u64],
) -> (IdSpace<R>, Arc<Mutex<Vec<Crossing>>>) {
    let mut ids = space(rule, 0, len, mode);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for &mark in marks {
        let seen = seen.clone();
        ids.on_crossing(mark, Box::new(move |c| seen.lock().unwrap().push(c)))
            .unwrap();
    }
    (ids, seen)
}

#[test]
fn marks_of_an_exact_space_are_exact() {
    for mode in modes() {
        let (ids, seen) = watched(Lowest, mode, 100, &[20, 10, 1, 500]);
        let crossing = |mark, below, free| Crossing { mark, below, free };
        for _ in 0..80 {
            ids.alloc().unwrap();
        }
        assert_eq!(*seen.lock().unwrap(), [], "20 are not fewer than 20");
        ids.alloc().unwrap();
        ids.alloc().unwrap();
        assert_eq!(*seen.lock().unwrap(), [crossing(20, true, 19)]);
        seen.lock().unwrap().clear();
        ids.free_many(&[3, 4, 5]).unwrap();
        assert_eq!(*seen.lock().unwrap(), [crossing(20, false, 21)]);
        seen.lock().unwrap().clear();
        let mut out = [0; 21];
        ids.alloc_many(&mut out).unwrap();
        assert_eq!(
            *seen.lock().unwrap(),
            [
                crossing(20, true, 0),
                crossing(10, true, 0),
                crossing(1, true, 0)
            ]
        );
    }
}

fn scarce<R: Rule<Order: Send>>(rule: R, mode: Mode) {
    let len = 4000;
    let (ids, seen) = watched(rule, mode, len, &[1000]);
    let mut held = Vec::new();
    for turn in 0..3 {
        let mut told = 0;
        while let Ok(id) = ids.alloc() {
            held.push(id);
            let now = seen.lock().unwrap().len();
            if now > told {
                told = now;
                assert_eq!((told, held.len() >= 2000), (1, true), "turn {turn}");
            }
            assert!(
                told == 1 || len - held.len() as u64 >= 1000,
                "never late: {} are held",
                held.len()
            );
        }
        assert!(seen.lock().unwrap()[0].below);
        seen.lock().unwrap().clear();
        for id in held.drain(..) {
            ids.free(id).unwrap();
        }
        let seen = core::mem::take(&mut *seen.lock().unwrap());
        assert!(
            matches!(seen[..], [Crossing { below: false, .. }]),
            "{seen:?}"
        );
    }
}

#[test]
fn marks_are_told_once_and_never_late() {
    for_all!(scarce());
}

/// A callback may use the space: here it frees what the program can do without.
#[test]
fn a_callback_may_use_its_space() {
    for mode in modes() {
        let spare = Arc::new(Mutex::new(Vec::new()));
        let ids = Arc::new(std::sync::OnceLock::<IdSpace<Lifo>>::new());
        let mut space = space(Lifo, 0, 1000, mode);
        {
            let (spare, ids) = (spare.clone(), ids.clone());
            space
                .on_crossing(
                    200,
                    Box::new(move |c| {
                        if c.below {
                            let list = core::mem::take(&mut *spare.lock().unwrap());
                            ids.get().unwrap().free_many(&list).unwrap();
                        }
                    }),
                )
                .unwrap();
        }
        let ids = ids.get_or_init(|| space);
        for _ in 0..500 {
            let id = ids.alloc().unwrap();
            spare.lock().unwrap().push(id);
        }
        for _ in 0..1000 {
            ids.alloc().expect("the callback made room");
        }
        assert!(ids.alloc().is_err());
    }
}

#[test]
fn too_many_marks_are_refused() {
    let mut ids = IdSpace::new(0u64..=9, Lowest).unwrap();
    for _ in 0..64 {
        ids.on_crossing(3, Box::new(|_| {})).unwrap();
    }
    let error = ids.on_crossing(3, Box::new(|_| {})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a water mark beside 64 others is not possible; use one mark and look at the numbers when it calls"
    );
}

/// Many threads around a mark: the space reports as many crossings up as down, to within one.
#[test]
fn crossings_come_in_pairs() {
    for mode in modes() {
        let (below, above) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut ids = space(Cyclic, 0, 2000, mode);
        {
            let (below, above) = (below.clone(), above.clone());
            ids.on_crossing(
                900,
                Box::new(move |c| {
                    let count = if c.below { &below } else { &above };
                    count.fetch_add(1, Ordering::Relaxed);
                }),
            )
            .unwrap();
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let held: Vec<_> = (0..600).map_while(|_| ids.alloc().ok()).collect();
                        held.into_iter().for_each(|id| ids.free(id).unwrap());
                    }
                });
            }
            while below.load(Ordering::Relaxed) < 20 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let (below, above) = (below.load(Ordering::Relaxed), above.load(Ordering::Relaxed));
        assert!(below.abs_diff(above) <= 1, "{below} down, {above} up");
    }
}

/// No call marks the end of an identifier's rest: a thread that waits finds it out by itself.
#[test]
fn what_rests_is_waited_for() {
    let rule = Rested::time(Lowest, Duration::from_millis(20), NearFull::Fail);
    let ids = IdSpace::new(0u64..4, rule).unwrap();
    let held: Vec<_> = (0..4).map(|_| ids.alloc().unwrap()).collect();
    ids.free_many(&held[..2]).unwrap();
    assert_eq!(
        ids.alloc_timeout(Duration::ZERO),
        Err(IdError::Resting { resting: 2 })
    );
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| assert!(ids.alloc_wait().unwrap() < 2));
        }
    });
    assert_eq!(ids.alloc(), Err(IdError::Full { allocated: 4 }));
    // A rest that is longer than any wait here.
    let rule = Rested::time(Lowest, Duration::from_secs(3600), NearFull::Fail);
    let ids = IdSpace::new(0u64..1, rule).unwrap();
    ids.free(ids.alloc().unwrap()).unwrap();
    assert_eq!(
        ids.alloc_timeout(Duration::from_millis(3)),
        Err(IdError::Resting { resting: 1 })
    );
}

/// A rest that ends soon, and one that does not within a test.
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);

/// A space without a free identifier.
fn all_taken(rest: Duration, len: u64) -> Arc<IdSpace<impl Rule<Order: Send>>> {
    let rule = Rested::time(Lowest, rest, NearFull::Fail);
    let ids = IdSpace::new(0..len, rule).unwrap();
    for _ in 0..len {
        ids.alloc().unwrap();
    }
    Arc::new(ids)
}

/// Waits in threads of their own, and returns when all of them do. What they get comes by the channel.
fn wait_in_threads<R: Rule<Order: Send> + 'static>(
    ids: &Arc<IdSpace<R>>,
    threads: u64,
    wait: impl Fn(&IdSpace<R>) -> Result<u64, IdError> + Copy + Send + 'static,
) -> mpsc::Receiver<Result<u64, IdError>>
where
    IdSpace<R>: Send + Sync,
{
    let (send, receive) = mpsc::channel();
    for _ in 0..threads {
        let (ids, send) = (ids.clone(), send.clone());
        std::thread::spawn(move || send.send(wait(&ids)));
    }
    while ids.stats().waiting < threads {
        std::thread::yield_now();
    }
    receive
}

/// A thread that began to wait when everything was allocated learns that an identifier freed meanwhile has rested.
#[test]
fn what_begins_to_rest_is_waited_for() {
    // With a limit, so that a lost wake-up is a failure and not a test without end.
    let soon = |receive: &mpsc::Receiver<_>| receive.recv_timeout(Duration::from_secs(60));
    for len in [3, 300] {
        let waits: [fn(&IdSpace<_>) -> _; 2] =
            [|ids| ids.alloc_wait(), |ids| ids.alloc_timeout(LONG)];
        for wait in waits {
            let ids = all_taken(SHORT, len);
            let receive = wait_in_threads(&ids, 1, wait);
            ids.free(2).unwrap();
            assert_eq!(soon(&receive), Ok(Ok(2)));
            // The second looks when the first has got its own.
            let receive = wait_in_threads(&ids, 2, wait);
            ids.free(1).unwrap();
            ids.free(0).unwrap();
            let got = [soon(&receive), soon(&receive)];
            assert!(
                got == [Ok(Ok(1)), Ok(Ok(0))] || got == [Ok(Ok(0)), Ok(Ok(1))],
                "{got:?}"
            );
            assert_eq!(ids.stats().waiting, 0);
        }
    }
}

/// The error of a timeout describes the state at its end, not at the beginning of the wait.
#[test]
fn the_verdict_is_of_the_end() {
    loop {
        let ids = all_taken(LONG, 3);
        let (send, receive) = mpsc::channel();
        let waiter = ids.clone();
        std::thread::spawn(move || send.send(waiter.alloc_timeout(Duration::from_millis(300))));
        let mut early = false;
        while ids.stats().waiting == 0 && !early {
            early = receive.try_recv().is_ok();
        }
        ids.free(1).unwrap();
        // Only a thread that still waits has seen the freed identifier.
        if !early && ids.stats().waiting == 1 {
            assert_eq!(
                receive.recv().unwrap(),
                Err(IdError::Resting { resting: 1 })
            );
            return;
        }
    }
}
