//! An arena beside a naive one: maps of spans and of what is allocated, in which every search tries every address.
//!
//! The fuzz target uses this file as well, so its operations are plain numbers.

// Public for the fuzz target's crate.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::Arc;

use larder::arena::{Arena, ArenaError, Fit, SegmentKind};
use larder::os::rseq::Mode;

use super::source::{Event, Source};
use super::wish::{Wish, policy};

/// One operation: its kind, and what it needs.
pub type Step = (u8, u16, u16, u16);

/// An arena and its model.
pub struct World {
    arena: Arena,
    source: Option<Arc<Source>>,
    quantum: u64,
    caches: bool,
    policy: Fit,
    base: u64,
    limit: u64,
    /// Size, and whether it was imported.
    spans: BTreeMap<u64, (u64, bool)>,
    /// Size as it was asked for.
    live: BTreeMap<u64, u64>,
    /// Last address of the last allocation.
    rotor: Option<u64>,
}

impl World {
    /// `setup` chooses the quantum, the policy, caches, a source, and where addresses begin.
    pub fn new(setup: [u8; 5], mode: Mode) -> Self {
        let quantum = 1 << (setup[0] % 4);
        let policy = policy(setup[1].into());
        let caches = u64::from(setup[2] % 4);
        let source = (setup[3] % 2 == 1).then(|| Arc::new(Source::new(2048 * quantum)));
        // At the end of all numbers, in the middle, at the beginning.
        let base = [0, 1 << 63, u64::MAX - 4096 * quantum + 1][setup[4] as usize % 3];
        let mut builder = Arena::builder("model")
            .quantum(quantum)
            .fit(policy)
            .mode(mode)
            .magazine(3, 7)
            .import_unit(64 * quantum)
            .quantum_max(caches * quantum);
        if let Some(source) = &source {
            builder = builder.source(source.clone());
        }
        Self {
            arena: builder.build().unwrap(),
            source,
            quantum,
            caches: caches > 0,
            policy,
            base,
            limit: u64::MAX,
            spans: BTreeMap::new(),
            live: BTreeMap::new(),
            rotor: None,
        }
    }

    fn round(&self, size: u64) -> u64 {
        size.next_multiple_of(self.quantum)
    }

    /// First and last address of each maximal free range, by span.
    fn free(&self) -> Vec<(u64, u64)> {
        let mut free = Vec::new();
        for (&start, &(size, _)) in &self.spans {
            let last = start + (size - 1);
            let mut from = Some(start);
            for (&a, &s) in self.live.range(start..=last) {
                let f = from.unwrap();
                if a > f {
                    free.push((f, a - 1));
                }
                from = a.checked_add(self.round(s));
            }
            if let Some(from) = from.filter(|&f| f <= last) {
                free.push((from, last));
            }
        }
        free
    }

    /// The lowest address for a request in a range, by trying all.
    fn fit(&self, want: &Wish, (start, last): (u64, u64)) -> Option<u64> {
        let size = self.round(want.size);
        let mut a = start;
        loop {
            let end = a.checked_add(size - 1).filter(|&e| e <= last)?;
            if a % want.align.max(self.quantum) == want.phase
                && (want.nocross == 0 || a / want.nocross == end / want.nocross)
                && a >= want.min
                && end <= want.max
            {
                return Some(a);
            }
            a = a.checked_add(self.quantum)?;
        }
    }

    fn overlaps(&self, addr: u64, size: u64) -> bool {
        let last = addr + (size - 1);
        self.spans
            .range(..=last)
            .next_back()
            .is_some_and(|(&a, &(s, _))| a + (s - 1) >= addr)
    }

    fn total(&self) -> u64 {
        self.spans.values().map(|s| s.0).sum()
    }

    /// Learns what the source did.
    fn learn(&mut self) {
        let Some(source) = &self.source else { return };
        for event in source.events() {
            match event {
                Event::Import(span) => {
                    assert!(!self.overlaps(span.addr, span.size));
                    self.spans.insert(span.addr, (span.size, true));
                    assert!(self.total() <= self.limit, "the limit was passed");
                }
                Event::Release(span) => {
                    assert_eq!(self.spans.remove(&span.addr), Some((span.size, true)));
                    let last = span.addr + (span.size - 1);
                    assert_eq!(
                        self.live.range(span.addr..=last).next(),
                        None,
                        "a span went with an allocation in it"
                    );
                }
            }
        }
    }

    /// Checks an answer to a request against all free ranges.
    fn check(&mut self, wish: &Wish, result: Result<u64, ArenaError>) {
        let was_free = self.free();
        self.learn();
        let free = self.free();
        let policy = wish.policy.unwrap_or(self.policy);
        match result {
            Ok(addr) => {
                let size = self.round(wish.size);
                let end = addr + (size - 1);
                let (start, last) = *free
                    .iter()
                    .find(|(s, l)| *s <= addr && end <= *l)
                    .expect("what was handed out was not free");
                assert_eq!(
                    self.fit(wish, (addr, end)),
                    Some(addr),
                    "{addr} does not satisfy {wish:?}"
                );
                // What is in magazines is not known here, so only an arena without them is held to its policy.
                let imported = was_free != free;
                if !self.caches && !imported {
                    match policy {
                        Fit::Instant => {
                            assert_eq!(self.fit(wish, (start, last)), Some(addr), "{wish:?}");
                        }
                        Fit::Best => {
                            let best = free
                                .iter()
                                .filter(|r| self.fit(wish, **r).is_some())
                                .map(|(s, l)| l - s)
                                .min();
                            assert_eq!(best, Some(last - start), "not the best fit for {wish:?}");
                            assert_eq!(self.fit(wish, (start, last)), Some(addr), "{wish:?}");
                        }
                        Fit::Next => {
                            assert_eq!(self.next(wish, &free), Some(addr), "{wish:?}");
                        }
                    }
                }
                self.live.insert(addr, wish.size);
                self.rotor = Some(end);
            }
            Err(ArenaError::NoSpace { .. }) => {
                assert!(self.source.is_none() || wish.is_bounded());
                self.none_fits(wish, &free);
            }
            Err(ArenaError::Limit { limit, total, .. }) => {
                assert_eq!((limit, total), (self.limit, self.total()));
                self.none_fits(wish, &free);
            }
            Err(ArenaError::Source { .. }) => {
                assert!(self.source.is_some() && !wish.is_bounded());
                self.none_fits(wish, &free);
            }
            Err(error) => panic!("{error} for {wish:?}"),
        }
    }

    fn none_fits(&self, wish: &Wish, free: &[(u64, u64)]) {
        for &range in free {
            assert_eq!(
                self.fit(wish, range),
                None,
                "{wish:?} was refused, but fits in {range:?}"
            );
        }
    }

    /// Next fit: after the end of the last allocation, then from the beginning.
    fn next(&self, wish: &Wish, free: &[(u64, u64)]) -> Option<u64> {
        let from = self.rotor.map_or(0, |last| last.wrapping_add(1));
        let later = (self.rotor != Some(u64::MAX))
            .then(|| {
                free.iter()
                    .filter(|r| r.1 >= from)
                    .find_map(|r| self.fit(wish, (r.0.max(from), r.1)))
            })
            .flatten();
        later.or_else(|| free.iter().find_map(|r| self.fit(wish, *r)))
    }

    /// Does one operation on both.
    pub fn step(&mut self, (kind, a, b, c): Step) {
        match kind % 16 {
            0..=3 => {
                let wish = Wish::plain(u64::from(a % 24 + 1));
                let result = self.arena.alloc(wish.size);
                self.check(&wish, result);
            }
            4..=6 => self.xalloc(a, b, c),
            7..=11 => self.free_one(a),
            12 => self.free_wrong(a, b),
            13 => self.add(a, b),
            14 => {
                self.limit = match a % 4 {
                    0 => u64::MAX,
                    _ => u64::from(b % 4096) * self.quantum,
                };
                self.arena.set_limit(self.limit);
                assert_eq!(self.arena.limit(), self.limit);
            }
            _ => {
                if a % 2 == 0 {
                    self.arena.maintain();
                } else {
                    self.arena.trim();
                    self.learn();
                    assert_eq!(
                        self.arena.stats().allocated,
                        self.live.values().map(|s| self.round(*s)).sum::<u64>()
                    );
                    assert_eq!(self.arena.stats().idle, 0);
                }
                self.learn();
            }
        }
        self.agree();
    }

    fn xalloc(&mut self, a: u16, b: u16, c: u16) {
        let wish = Wish {
            size: u64::from(a % 32) * (1 + u64::from(a >> 14)),
            align: match b % 8 {
                7 => u64::from(b >> 8),
                n => 1 << n,
            },
            phase: u64::from(b >> 3) % 16 * self.quantum.min(1 << (b >> 14)),
            nocross: match c % 8 {
                0..=3 => 0,
                4 => u64::from(c >> 4) % 512,
                n => 1 << n,
            },
            min: 0,
            max: u64::MAX,
            policy: (b & 0x80 != 0).then(|| policy(b >> 9)),
        }
        .bounded(self.base, c);
        let result = self.arena.xalloc(&wish.request());
        // What makes no sense, in the words of the documentation.
        let align = wish.align.max(self.quantum);
        let sensible = wish.size > 0
            && wish.align.is_power_of_two()
            && wish.phase < align
            && wish.phase.is_multiple_of(self.quantum)
            && (wish.nocross == 0
                || wish.nocross.is_power_of_two()
                    && wish.phase % wish.nocross + self.round(wish.size) <= wish.nocross)
            && wish.min <= wish.max;
        if sensible {
            self.check(&wish, result);
            return;
        }
        let named = match result.unwrap_err() {
            ArenaError::Empty { .. } => wish.size == 0,
            ArenaError::Align { align, .. } => align == wish.align,
            ArenaError::Phase { phase, .. } => phase == wish.phase,
            ArenaError::Nocross { nocross, .. } => nocross == wish.nocross,
            ArenaError::Bounds { min, max, .. } => (min, max) == (wish.min, wish.max),
            other => panic!("{other}"),
        };
        assert!(named, "{wish:?}");
    }

    fn free_one(&mut self, a: u16) {
        let Some((&addr, &size)) = self.live.iter().nth(a as usize % self.live.len().max(1)) else {
            return;
        };
        // As it was asked for, or rounded up.
        let said = if a & 0x8000 == 0 {
            size
        } else {
            self.round(size)
        };
        self.arena.free(addr, said).unwrap();
        self.live.remove(&addr);
        assert!(matches!(
            self.arena.free(addr, said),
            Err(ArenaError::NotAllocated { addr: a, .. }) if a == addr
        ));
        self.learn();
    }

    fn free_wrong(&mut self, a: u16, b: u16) {
        let size = u64::from(b % 40);
        let addr = match self.live.iter().nth(a as usize % self.live.len().max(1)) {
            Some((&addr, _)) if b & 0x100 != 0 => addr,
            _ => self.base.wrapping_add(u64::from(a)),
        };
        let result = self.arena.free(addr, size);
        match self.live.get(&addr).map(|s| self.round(*s)) {
            _ if size == 0 => assert!(matches!(result, Err(ArenaError::Empty { .. }))),
            None => assert!(matches!(result, Err(ArenaError::NotAllocated { .. }))),
            Some(right) if right == self.round(size) => {
                result.unwrap();
                self.live.remove(&addr);
                self.learn();
            }
            Some(right) => assert!(
                matches!(result, Err(ArenaError::WrongSize { allocated, .. }) if allocated == right)
            ),
        }
    }

    fn add(&mut self, a: u16, b: u16) {
        let mut addr = self
            .base
            .wrapping_add(u64::from(a % 4096 / 16 * 16) * self.quantum);
        let mut size = u64::from(b % 512) * self.quantum;
        if a & 0x8000 != 0 && b & 0x8000 != 0 {
            (addr, size) = (addr.wrapping_add(1), size + 1);
        }
        let result = self.arena.add(addr, size);
        let is_span = size > 0
            && addr.checked_add(size - 1).is_some()
            && addr.is_multiple_of(self.quantum)
            && size.is_multiple_of(self.quantum);
        if self
            .total()
            .checked_add(size)
            .is_none_or(|t| t > self.limit)
        {
            assert!(matches!(result, Err(ArenaError::Limit { .. })));
        } else if !is_span {
            assert!(matches!(result, Err(ArenaError::Span { .. })));
        } else if self.overlaps(addr, size) {
            assert!(matches!(result, Err(ArenaError::Overlap { .. })));
        } else {
            result.unwrap();
            self.spans.insert(addr, (size, false));
        }
    }

    /// Everything that can be asked agrees.
    fn agree(&self) {
        self.arena.audit().unwrap();
        let live: u64 = self.live.values().map(|s| self.round(*s)).sum();
        assert_eq!(self.arena.in_use(), live);
        let stats = self.arena.stats();
        assert_eq!(stats.total, self.total());
        assert_eq!(stats.free + stats.allocated, stats.total);
        assert_eq!(stats.spans, self.spans.len() as u64);
        let idle_or_used: u64 = self.spans.values().filter(|s| s.1).map(|s| s.0).sum();
        assert_eq!(stats.imported, idle_or_used);

        let mut spans = BTreeMap::new();
        let mut free = Vec::new();
        let mut taken = BTreeMap::new();
        for s in self.arena.walk() {
            match s.kind {
                SegmentKind::AddedSpan => drop(spans.insert(s.addr, (s.size, false))),
                SegmentKind::ImportedSpan => drop(spans.insert(s.addr, (s.size, true))),
                SegmentKind::Free => free.push((s.addr, s.addr + (s.size - 1))),
                SegmentKind::Allocated => drop(taken.insert(s.addr, s.size)),
                SegmentKind::Cached => assert!(self.caches),
            }
        }
        assert_eq!(spans, self.spans);
        assert!(
            taken.iter().eq(self
                .live
                .iter()
                .map(|(a, s)| (*a, self.round(*s)))
                .collect::<BTreeMap<_, _>>()
                .iter())
        );
        if !self.caches {
            assert_eq!(free, self.free());
            assert_eq!(stats.allocated, live);
        }
        for (&addr, &(size, _)) in &self.spans {
            let last = addr + (size - 1);
            assert!(self.arena.contains(addr) && self.arena.contains(last));
            if let Some(after) = last.checked_add(1) {
                assert_eq!(
                    self.arena.contains(after),
                    self.spans.contains_key(&after),
                    "{after}"
                );
            }
        }
    }

    /// Frees everything; then it must all be free, and the source must have its own.
    pub fn finish(mut self) {
        while let Some((addr, size)) = self.live.pop_first() {
            self.arena.free(addr, size).unwrap();
            self.learn();
        }
        self.arena.trim();
        self.learn();
        assert!(self.spans.values().all(|s| !s.1), "an idle span was kept");
        let stats = self.arena.stats();
        assert_eq!((stats.free, stats.allocated), (self.total(), 0));
        self.caches = false;
        self.agree();
        let Self { arena, source, .. } = self;
        drop(arena);
        if let Some(source) = source {
            assert!(source.is_whole());
        }
    }
}
