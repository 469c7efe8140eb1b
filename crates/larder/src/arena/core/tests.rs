//! The core beside a naive one: spans, and what is allocated in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Core, CoreError, Extent, Fit};
use crate::os::testing::{Base, Failing, Hooked, system};
use crate::os::{OsError, System};

/// All sizes are multiples of this.
const QUANTUM: u64 = 4;

/// A core and its model.
struct World {
    core: Core,
    /// Where the spans end, by where they begin.
    spans: BTreeMap<u64, u64>,
    /// Sizes of what is allocated.
    live: BTreeMap<u64, u64>,
}

/// One operation: its kind and two numbers.
type Step = (u8, u16, u16);

impl World {
    fn new(system: Arc<dyn System>, most: u32) -> Result<Self, OsError> {
        Ok(Self {
            core: Core::new(system, QUANTUM, most)?,
            spans: BTreeMap::new(),
            live: BTreeMap::new(),
        })
    }

    /// The free segments by address, joined within each span.
    fn free(&self) -> Vec<Extent> {
        let mut free = Vec::new();
        for (&start, &end) in &self.spans {
            let mut from = start;
            for (&addr, &size) in self.live.range(start..end) {
                if addr > from {
                    free.push((from, addr));
                }
                from = addr + size;
            }
            if end > from {
                free.push((from, end));
            }
        }
        let extent = |(from, to)| Extent {
            addr: from,
            size: to - from,
        };
        free.into_iter().map(extent).collect()
    }

    /// The allocation whose number is `n`, modulo how many there are.
    fn pick(&self, n: u16) -> Option<(u64, u64)> {
        let many = self.live.len().max(1);
        let picked = self.live.iter().nth(n as usize % many)?;
        Some((*picked.0, *picked.1))
    }

    /// Does one operation on both and compares. What the system refused is the error, and has changed nothing.
    fn step(&mut self, (kind, a, b): Step) -> Result<(), OsError> {
        let result = self.change(kind, a, b);
        let seen: Vec<_> = self.core.free_segments().collect();
        assert_eq!(seen, self.free());
        let total: u64 = self.spans.iter().map(|(start, end)| end - start).sum();
        let counts = self.core.state.counts;
        assert_eq!(counts.total, total);
        assert_eq!(counts.free, seen.iter().map(|s| s.size).sum::<u64>());
        assert_eq!(counts.spans, self.spans.len() as u64);
        result
    }

    fn change(&mut self, kind: u8, a: u16, b: u16) -> Result<(), OsError> {
        let size = (u64::from(b) % 12 + 1) * QUANTUM;
        match (kind % 10, self.pick(a)) {
            (0, _) => {
                let (addr, size) = (u64::from(a) * QUANTUM, 8 * size);
                let mut other = self.spans.iter().map(|(&s, &e)| (s, e));
                let other = other.rfind(|&(s, e)| s < addr + size && addr < e);
                let added = self.core.add(addr, size);
                match added {
                    Err(CoreError::Memory(error)) => return Err(error),
                    Ok(()) => assert_eq!(other, None),
                    Err(error) => {
                        let (s, e) = other.expect("an overlap");
                        let other = Extent {
                            addr: s,
                            size: e - s,
                        };
                        assert_eq!(error, CoreError::Overlap(other));
                    }
                }
                if added.is_ok() {
                    self.spans.insert(addr, addr + size);
                }
            }
            (1, _) => match self.core.grow(size) {
                Ok(()) => {
                    let mut last = self.spans.last_entry().expect("a span");
                    *last.get_mut() += size;
                }
                Err(CoreError::Memory(error)) => return Err(error),
                Err(error) => {
                    assert_eq!(error, CoreError::Span);
                    assert!(self.spans.is_empty());
                }
            },
            (2..=5, _) => return self.alloc(size, 1 << (a % 7), kind),
            (6, Some((addr, size))) => {
                self.core.free(addr, size).unwrap();
                self.live.remove(&addr);
                assert_eq!(self.core.free(addr, size), Err(CoreError::NotAllocated));
            }
            (7, Some((addr, old))) => {
                let new = old + size;
                let extended = self.core.try_extend(addr, old, new).unwrap();
                let free = self.free();
                let next = free.iter().find(|next| next.addr == addr + old);
                assert_eq!(extended, next.is_some_and(|next| next.size >= size));
                if extended {
                    self.live.insert(addr, new);
                }
            }
            (8, Some((addr, old))) if old > size => match self.core.shrink(addr, old, size) {
                Err(CoreError::Memory(error)) => return Err(error),
                shrunk => {
                    shrunk.unwrap();
                    self.live.insert(addr, size);
                }
            },
            (9, Some((addr, old))) => self.misuse(addr, old),
            _ => {}
        }
        Ok(())
    }

    fn alloc(&mut self, size: u64, align: u64, kind: u8) -> Result<(), OsError> {
        let fit = [Fit::Instant, Fit::Best, Fit::Next][kind as usize % 3];
        let align = align.max(QUANTUM);
        let place = |free: &Extent| {
            let addr = free.addr.next_multiple_of(align);
            (addr + size <= free.addr + free.size).then_some(addr)
        };
        let free = self.free();
        match self.core.alloc(size, align, fit) {
            Ok(addr) => {
                let is_in = |free: &&Extent| free.addr <= addr && addr < free.addr + free.size;
                let from = free.iter().find(is_in).expect("what is taken was free");
                assert!(addr % align == 0 && addr + size <= from.addr + from.size);
                if fit != Fit::Next {
                    assert_eq!(place(from), Some(addr), "the lowest place in its segment");
                }
                if fit == Fit::Best {
                    let fits = free.iter().filter(|free| place(free).is_some());
                    assert_eq!(fits.map(|free| free.size).min(), Some(from.size));
                }
                self.live.insert(addr, size);
            }
            Err(CoreError::Memory(error)) => return Err(error),
            Err(error) => {
                assert_eq!(error, CoreError::NoSpace);
                assert_eq!(free.iter().find_map(place), None);
            }
        }
        Ok(())
    }

    /// What makes no sense changes nothing.
    fn misuse(&mut self, addr: u64, size: u64) {
        let core = &mut self.core;
        assert_eq!(core.free(addr, size + 4), Err(CoreError::WrongSize(size)));
        assert_eq!(core.free(addr + 1, size), Err(CoreError::NotAllocated));
        assert_eq!(core.try_extend(addr, size, size), Err(CoreError::Span));
        assert_eq!(core.try_extend(addr, size, size + 1), Err(CoreError::Span));
        assert_eq!(core.shrink(addr, size, size), Err(CoreError::Span));
        assert_eq!(core.shrink(addr, size, 0), Err(CoreError::Span));
        assert_eq!(core.alloc(size, 3, Fit::Best), Err(CoreError::Span));
        assert_eq!(core.alloc(0, 4, Fit::Best), Err(CoreError::Span));
        assert_eq!(core.grow(2), Err(CoreError::Span));
        assert_eq!(core.grow(0), Err(CoreError::Span));
        assert_eq!(core.grow(u64::MAX - 3), Err(CoreError::Span));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_core_does_what_its_model_does(
        steps in prop::collection::vec(any::<Step>(), 1..300)
    ) {
        let mut world = World::new(system(), 1 << 16).unwrap();
        for step in steps {
            world.step(step).unwrap();
        }
        world.core.segments().audit().unwrap();
    }
}

/// Steps that need several pages of tags, and more than one of buckets where there are many.
fn steps(many: u64) -> impl Iterator<Item = Step> {
    let mut x = 88_172_645_463_325_252_u64;
    core::iter::once((0, 0, 11)).chain((0..many).map(move |n| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        // Mostly growth and allocation of little, so that there is much.
        let kind = [1, 2, 3, 4, 1, 5, 2, 3, 6, 7, 8, 9][(x >> 32) as usize % 12];
        let size = if kind == 1 { 11 } else { (n % 2) as u16 };
        (kind, x as u16, size)
    }))
}

#[test]
fn each_refusal_of_the_system_is_an_error_and_changes_nothing() {
    let many = if cfg!(miri) { 300 } else { 3000 };
    for first in 0.. {
        let system = Arc::new(Hooked::new(Base::default(), Failing::from(first, 1)));
        let mut refused = 0;
        let Ok(mut world) = World::new(system.clone(), 1 << 16) else {
            continue;
        };
        for step in steps(many) {
            if world.step(step).is_err() {
                refused += 1;
                // The refusal is over.
                world.step(step).unwrap();
            }
        }
        assert!(refused <= 1);
        if system.hook().seen() <= first {
            assert_eq!(refused, 0);
            // Two arrays are reserved and begun, and tags grow.
            assert!(first > 4, "only {first} calls were refused");
            break;
        }
    }
}

#[test]
fn a_core_without_room_for_tags_refuses_and_goes_on() {
    let mut world = World::new(system(), 1).unwrap();
    let mut steps = steps(u64::MAX);
    let full = steps.find(|&step| world.step(step).is_err());
    assert!(full.is_some());
    // What needs no tag still works.
    for _ in 0..50 {
        let (addr, size) = world.pick(7).unwrap();
        world.step((6, 7, 0)).unwrap();
        assert_eq!(world.live.get(&addr), None, "{size} units are free");
    }
    world.core.segments().audit().unwrap();
}

#[test]
fn an_allocation_changes_its_size_in_place() {
    let mut core = Core::new(system(), 1, 1 << 10).unwrap();
    assert_eq!(core.grow(10), Err(CoreError::Span), "there is no span");
    core.add(0, 10).unwrap();
    let first = core.alloc(4, 1, Fit::Best).unwrap();
    let second = core.alloc(4, 1, Fit::Best).unwrap();
    assert_eq!((first, second), (0, 4));
    assert_eq!(
        core.try_extend(first, 4, 5),
        Ok(false),
        "its neighbour is taken"
    );
    assert_eq!(
        core.try_extend(second, 4, 7),
        Ok(false),
        "its neighbour has 2"
    );
    core.grow(1).unwrap();
    assert_eq!(core.try_extend(second, 4, 7), Ok(true));
    assert_eq!(core.free_segments().next(), None);
    core.shrink(first, 4, 1).unwrap();
    core.shrink(second, 7, 2).unwrap();
    let free: Vec<_> = core.free_segments().map(|s| (s.addr, s.size)).collect();
    assert_eq!(free, [(1, 3), (6, 5)]);
    assert_eq!(core.try_extend(first, 1, 4), Ok(true));
    core.free(first, 4).unwrap();
    core.free(second, 2).unwrap();
    core.grow(5).unwrap();
    let free: Vec<_> = core.free_segments().map(|s| (s.addr, s.size)).collect();
    assert_eq!(free, [(0, 16)]);
    core.add(100, 5).unwrap();
    core.grow(5).unwrap();
    assert_eq!(core.alloc(10, 1, Fit::Best), Ok(100), "the last span grew");
}

/// What needs one tag finds it, however many there are.
#[test]
fn a_span_grows_when_all_tags_are_used() {
    for shrunk in 0..100 {
        let mut core = Core::new(system(), 1, 1 << 10).unwrap();
        core.add(0, 200).unwrap();
        let held: Vec<_> = (0..100)
            .map(|_| core.alloc(2, 1, Fit::Best).unwrap())
            .collect();
        for &addr in &held[..shrunk] {
            core.shrink(addr, 2, 1).unwrap();
        }
        core.grow(1).unwrap();
        assert_eq!(core.free_segments().last().map(|last| last.addr), Some(200));
    }
}
