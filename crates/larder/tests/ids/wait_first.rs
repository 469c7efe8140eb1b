//! A caller that does not wait gets no identifier before the callers that wait, in whatever way it asks: not even one that
//! has rested without any thread noticing it yet.

use std::cell::Cell;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use larder::ids::rule::{Clock, Lowest, NearFull, Rested, Rule};
use larder::ids::{IdError, IdSpace, Shape};

thread_local! {
    /// How often the clock is read by this thread before it ticks.
    static READS: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// A clock that ticks once, and only for threads that say when. For the threads that wait it never ticks, so they get what
/// has rested through another thread or not at all.
#[derive(Debug, Clone)]
struct Ticks;

impl Clock for Ticks {
    fn now(&self, _: u64) -> u64 {
        let left = READS.get();
        READS.set(left.saturating_sub(1));
        u64::from(left == 0)
    }
}

/// `Rested`, but shared in another way: all goes to the map when nearly nothing is free, so it keeps the rest then.
macro_rules! shared {
    ($name:ident, $shape:ident) => {
        #[derive(Debug, Clone)]
        struct $name(Rested<Lowest, Ticks>);

        impl Rule for $name {
            type Order = <Rested<Lowest, Ticks> as Rule>::Order;
            const SHAPE: Shape = Shape::$shape;

            fn order(&self, last: u64) -> Result<Self::Order, IdError> {
                self.0.order(last)
            }
        }
    };
}
shared!(Exact, Exact);
shared!(Near, Near);
shared!(InOrder, InOrder);
shared!(InPlace, InPlace);

type Ask<R> = fn(&IdSpace<R>) -> Result<u64, IdError>;

/// Every way to ask for identifier 2 or for any, and the error for a caller that may not have it.
fn asks<R: Rule<Order: Send>>(len: u64) -> [(Ask<R>, IdError); 7] {
    fn some<R: Rule<Order: Send>, const N: usize>(ids: &IdSpace<R>) -> Result<u64, IdError> {
        ids.alloc_many(&mut [0; N]).map(|n| n as u64)
    }
    let full = IdError::Full { allocated: len };
    [
        (|ids| ids.alloc(), full.clone()),
        (some::<R, 3>, full.clone()),
        (some::<R, 64>, full.clone()),
        (|ids| ids.alloc_timeout(Duration::ZERO), full),
        (|ids| ids.alloc_at(2).map(|()| 2), IdError::Taken { id: 2 }),
        (
            |ids| ids.alloc_range(1, 1),
            IdError::NoRun { count: 1, align: 1 },
        ),
        (
            |ids| ids.reserve(2_u64..=2).map(|()| 2),
            IdError::Taken { id: 2 },
        ),
    ]
}

/// `late` is how often the clock is read before it ticks: 0 has ticked, 1 ticks between two looks of one call.
fn nobody_before<R>(rule: fn(Rested<Lowest, Ticks>) -> R, len: u64, late: u32)
where
    R: Rule<Order: Send> + Sync + Send + 'static,
{
    let waits: [Ask<R>; 2] = [
        |ids| ids.alloc_wait(),
        |ids| ids.alloc_timeout(Duration::from_secs(3600)),
    ];
    for wait in waits {
        for (i, (ask, verdict)) in asks::<R>(len).into_iter().enumerate() {
            READS.set(u32::MAX);
            let rested = Rested::by_clock(Lowest, 1, NearFull::Fail, Ticks);
            let ids = Arc::new(IdSpace::new(0..len, rule(rested)).unwrap());
            for _ in 0..len {
                ids.alloc().unwrap();
            }
            let (send, receive) = mpsc::channel();
            let waiter = ids.clone();
            std::thread::spawn(move || send.send(wait(&waiter)));
            while ids.stats().waiting == 0 {
                std::thread::yield_now();
            }
            ids.free(2).unwrap();
            assert_eq!(ids.alloc(), Err(IdError::Resting { resting: 1 }));
            READS.set(late);
            let first = ask(&ids);
            assert!(first.is_err(), "way {i}, {late} late: got {first:?}");
            if late == 0 {
                assert_eq!(first, Err(verdict), "way {i}");
            }
            READS.set(0);
            assert!(ask(&ids).is_err(), "way {i}, {late} late");
            // With a limit, so that a lost identifier is a failure and not a test without end.
            let got = receive.recv_timeout(Duration::from_secs(60));
            assert_eq!(got, Ok(Ok(2)), "way {i}, {late} late");
        }
    }
}

#[test]
fn who_waits_comes_first() {
    for late in 0..4 {
        // The real one; and as far as all comes from the map before there are cells, and with cells.
        nobody_before(|rested| rested, 3, late);
        for len in [3, 300] {
            nobody_before(Exact, len, late);
            nobody_before(Near, len, late);
            nobody_before(InOrder, len, late);
            nobody_before(InPlace, len, late);
        }
    }
}
