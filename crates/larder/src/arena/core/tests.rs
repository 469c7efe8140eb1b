//! The core beside a naive one: spans, and what is allocated in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Core, CoreError, Effort, Extent, Fit, Kind, NONE, Segments, Want};
use crate::os::testing::{Base, Failing, Hooked, system};
use crate::os::{OsError, System};

/// All sizes are multiples of this.
const QUANTUM: u64 = 4;

/// What an arena does with a core, for an owner without a lock.
impl Core {
    fn segments(&mut self) -> Segments<'_> {
        Segments::new(&self.table, &mut self.state)
    }

    fn add(&mut self, addr: u64, size: u64) -> Result<(), CoreError> {
        let mut segments = self.segments();
        segments.reserve(2)?;
        segments.add_span(Extent { addr, size }, Kind::Added)?;
        #[cfg(debug_assertions)]
        segments.audit_when_due();
        Ok(())
    }

    fn alloc(&mut self, size: u64, align: u64, fit: Fit) -> Result<Option<u64>, CoreError> {
        let want = Want::aligned(size, align);
        let mut segments = self.segments();
        segments.reserve(2)?;
        let place = segments.find(&want, fit, Effort::Full);
        if let Some((tag, addr)) = place {
            segments.cut(tag, addr, size, Kind::Allocated);
        }
        #[cfg(debug_assertions)]
        segments.audit_when_due();
        Ok(place.map(|(_, addr)| addr))
    }

    /// False when no allocation begins there.
    fn free(&mut self, addr: u64) -> bool {
        let mut segments = self.segments();
        let tag = segments.taken_at(addr);
        if tag != NONE {
            segments.free(tag);
        }
        #[cfg(debug_assertions)]
        segments.audit_when_due();
        tag != NONE
    }

    /// The free segments by address.
    fn free_segments(&mut self) -> Vec<Extent> {
        let segments = self.segments();
        let mut free = Vec::new();
        let mut at = segments.span_from(0);
        while at != NONE {
            let tag = segments.tags.get(at);
            if tag.kind() == Kind::Free {
                free.push(Extent {
                    addr: tag.start(),
                    size: tag.size(),
                });
            }
            at = segments.following(at);
        }
        free
    }
}

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
        let seen = self.core.free_segments();
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
        match (kind % 8, self.pick(a)) {
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
            (1..=5, _) => return self.alloc(size, 1 << (a % 7), kind),
            (6 | 7, Some((addr, _))) => {
                assert!(self.core.free(addr));
                self.live.remove(&addr);
                assert!(!self.core.free(addr));
                assert!(!self.core.free(addr + 1));
            }
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
            Ok(Some(addr)) => {
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
            Ok(None) => assert_eq!(free.iter().find_map(place), None),
            Err(CoreError::Memory(error)) => return Err(error),
            Err(error) => panic!("{error:?}"),
        }
        Ok(())
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
        // Mostly new spans and allocation of little, so that there is much.
        let kind = [0, 1, 2, 3, 0, 4, 5, 3, 6, 2, 1][(x >> 32) as usize % 11];
        let size = if kind == 0 { 0 } else { (n % 2) as u16 };
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
