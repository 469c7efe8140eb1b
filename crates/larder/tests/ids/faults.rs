//! A system without memory: an error, nothing lost, and all is well when memory is there again.

use crate::common::cpus::{allowed_cpus, pin};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::modes;
use crate::spaces::*;
use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, Order, Random};
use larder::ids::{IdError, IdSpace, Rule, Shape};
use larder::os::Linux;
use larder::os::rseq::Mode;
use larder::os::testing::{Failing, Hooked};

fn starve<R: Rule<Order: Send>>(rule: R, mode: Mode, many: usize) {
    for first in 0..7 {
        let system = Arc::new(Hooked::new(Linux, Failing::from(first, many)));
        let ids = IdSpace::builder(0u64..1000, rule.clone())
            .mode(mode)
            .system(system.clone())
            .build()
            .unwrap();
        let mut held = Vec::new();
        for turn in 0..900_u64 {
            if turn % 3 < 2 && held.len() < 900 {
                match ids.alloc() {
                    Ok(id) => held.push(id),
                    Err(error) => {
                        assert_eq!(error, IdError::OutOfMemory);
                        assert_eq!(ids.allocated(), held.len() as u64);
                    }
                }
            } else if let Some(id) = held.pop() {
                ids.free(id).unwrap();
                assert!(ids.free(id).is_err());
            }
            assert_eq!(ids.alloc_at(1000), ids.free(1000));
        }
        assert_eq!(ids.allocated(), held.len() as u64);
        for id in held {
            ids.free(id).unwrap();
        }
        // Without magazines the space works on its map alone; where not even that was possible, nothing was handed out.
        if many < 100 || ids.alloc().map(|id| ids.free(id)).is_ok() {
            assert_holds(&ids, 1000);
        }
    }
}

#[test]
fn a_refusal_is_an_error_and_passes() {
    for_all!(starve(1));
    for_all!(starve(3));
}

#[test]
fn a_space_goes_on_without_memory_for_magazines() {
    for_all!(starve(usize::MAX / 2));
}

/// Identifiers of the spaces of [`Scripted`].
const LEN: u64 = 4096;

/// The lowest first, kept near each CPU, with a map that has no memory when its script says so.
#[derive(Debug, Clone)]
struct Scripted(Arc<Script>);

#[derive(Debug, Default)]
struct Script {
    /// The map takes nothing back.
    refuses: AtomicBool,
    /// When 3 is given to the map, it says so and waits until another thread has begun to free 5.
    pauses: AtomicBool,
    paused: AtomicBool,
    goes_on: AtomicBool,
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

#[derive(Debug)]
struct ScriptedOrder {
    order: <Lowest as Rule>::Order,
    script: Arc<Script>,
}

impl Rule for Scripted {
    type Order = ScriptedOrder;

    const SHAPE: Shape = Shape::Near;

    fn order(&self, last: u64) -> Result<ScriptedOrder, IdError> {
        Ok(ScriptedOrder {
            order: Lowest.order(last)?,
            script: self.0.clone(),
        })
    }
}

impl Order for ScriptedOrder {
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        self.order.take()
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.order.take_span(first, last)
    }

    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        if self.script.refuses.load(Ordering::SeqCst) {
            return Err(IdError::OutOfMemory);
        }
        if at == 3 && self.script.pauses.swap(false, Ordering::SeqCst) {
            self.script.paused.store(true, Ordering::SeqCst);
            wait_for(&self.script.goes_on);
        }
        self.order.give(at)
    }

    fn is_taken(&self, at: u64) -> bool {
        self.order.is_taken(at)
    }

    fn last(&self) -> u64 {
        self.order.last()
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        self.order.first_taken(first, last)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.order.next_free(from)
    }

    fn taken(&self) -> u64 {
        self.order.taken()
    }

    fn bytes(&self) -> usize {
        self.order.bytes()
    }
}

/// Takes all that is left.
fn take_all(ids: &IdSpace<Scripted>, held: &mut BTreeSet<u64>) {
    while let Ok(id) = ids.alloc() {
        assert!(held.insert(id), "{id} has two owners");
    }
}

#[test]
fn what_the_map_had_no_memory_for_is_not_mixed_up_with_what_is_freed_meanwhile() {
    for mode in modes() {
        let script = Arc::new(Script::default());
        let ids = space(Scripted(script.clone()), 0, LEN, mode);
        let mut held = BTreeSet::new();
        // On one CPU, whose magazine takes what is freed.
        let cpus = allowed_cpus();
        pin(0, &cpus[..1]);
        // The first ones come straight from the map; the others leave room in the magazine.
        for _ in 0..80 {
            assert!(held.insert(ids.alloc().unwrap()));
        }
        // The first one that is freed may go to the map itself.
        for id in [70, 71, 3, 9] {
            ids.free(id).unwrap();
            held.remove(&id);
        }
        pin(0, &cpus);
        // All that lies in magazines is sent to the map, which refuses it.
        script.refuses.store(true, Ordering::SeqCst);
        let run = ids.alloc_range(LEN, 1);
        assert!(matches!(run, Err(IdError::NoRun { .. })), "{run:?}");
        script.refuses.store(false, Ordering::SeqCst);
        assert!(ids.stats().orphans >= 2, "{:?}", ids.stats());

        // It is offered again when all others are taken. Then 5 is freed between 3 and 9: its owner waits for the lock.
        held.remove(&5);
        script.pauses.store(true, Ordering::SeqCst);
        std::thread::scope(|s| {
            s.spawn(|| {
                wait_for(&script.paused);
                ids.free(5).unwrap();
            });
            s.spawn(|| {
                wait_for(&script.paused);
                while ids.is_allocated(5) {
                    std::thread::yield_now();
                }
                script.goes_on.store(true, Ordering::SeqCst);
            });
            take_all(&ids, &mut held);
            // The threads end also where 3 was not offered, which the last line reports.
            script.paused.store(true, Ordering::SeqCst);
        });
        take_all(&ids, &mut held);
        assert_eq!((held.len() as u64, ids.stats().orphans), (LEN, 0));
        assert!(!script.pauses.load(Ordering::SeqCst), "not offered");
    }
}
