//! A system or a source that refuses, at every call in turn: an error that says so, and nothing lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::modes;
use larder::arena::{Arena, ArenaError, Extent, Import, Refusal, Request};
use larder::os::rseq::Mode;
use larder::os::testing::{Failing, Hooked};
use larder::os::{Linux, page_size};

const UNITS: u64 = 1 << 20;

/// Takes and frees until tags, buckets and magazines had to grow. Says how many operations were refused.
fn exercise(arena: &Arena, live: usize) -> usize {
    let mut held: BTreeMap<u64, u64> = BTreeMap::new();
    let mut refused = 0;
    let mut rng = crate::common::Rng(5);
    for turn in 0..4 * live as u64 {
        if held.len() < live && turn % 4 < 3 {
            let size = rng.below(9) as u64 + 1;
            let taken = match turn % 8 {
                0 => arena.xalloc(&Request::new(size).align(4).phase(1)),
                _ => arena.alloc(size),
            };
            match taken {
                Ok(addr) => assert_eq!(held.insert(addr, size), None),
                Err(ArenaError::Memory { cause, .. }) => {
                    assert_eq!(cause.call(), "injected failure");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        } else if let Some((addr, size)) = held.pop_last() {
            // Giving back needs no memory.
            arena.free(addr, size).unwrap();
            assert!(arena.free(addr, size).is_err());
        }
        if turn % 256 == 0 {
            arena.audit().unwrap();
            assert_eq!(arena.in_use(), held.values().sum::<u64>());
        }
    }
    arena.audit().unwrap();
    assert_eq!(arena.in_use(), held.values().sum::<u64>());
    for (addr, size) in held {
        arena.free(addr, size).unwrap();
    }
    arena.trim();
    assert_eq!(arena.stats().free, UNITS);
    refused
}

/// Refuses call number `first` and the `many` that follow. False when nothing was left to refuse.
fn starve(mode: Mode, caches: u64, first: usize, many: usize) -> bool {
    let system = Arc::new(Hooked::new(Linux, Failing::from(first, many)));
    let built = Arena::builder("starved")
        .system(system.clone())
        .mode(mode)
        .magazine(3, 7)
        .quantum_max(caches)
        .build();
    let arena = match built {
        Ok(arena) => arena,
        Err(error) => {
            assert!(matches!(error, ArenaError::Memory { .. }), "{error}");
            return true;
        }
    };
    match arena.add(0, UNITS) {
        Ok(()) => {}
        Err(error) => {
            assert!(matches!(error, ArenaError::Memory { .. }), "{error}");
            arena.audit().unwrap();
            assert_eq!(arena.stats().total, 0);
            if many == 1 {
                arena.add(0, UNITS).unwrap();
            } else {
                return true;
            }
        }
    }
    exercise(&arena, 1500);
    if many == 1 {
        // It was one refusal, and all is well again.
        assert_eq!(exercise(&arena, 1500), 0);
    }
    system.hook().seen() > first
}

#[test]
fn each_refusal_of_the_system_is_an_error_and_passes() {
    for mode in modes() {
        for caches in [0, 3] {
            for many in [1, 4, usize::MAX / 2] {
                let mut first = 0;
                while starve(mode, caches, first, many) {
                    first += 1;
                    assert!(first < 300);
                }
                // Two arrays are reserved and begun, and tags grow; with other attempts where addresses are refused.
                assert!(first >= 8, "only {first} calls were refused");
            }
        }
    }
}

/// Without memory for tags an arena hands out what it has tags for, and says why not more.
#[test]
fn without_tags_there_is_an_error_that_says_so() {
    // The buckets' and the first tags' memory, and then none.
    let system = Arc::new(Hooked::new(Linux, Failing::from(4, usize::MAX / 2)));
    let arena = Arena::builder("few tags").system(system).build().unwrap();
    arena.add(0, UNITS).unwrap();
    let mut held = Vec::new();
    let error = loop {
        match arena.alloc(1) {
            Ok(addr) => held.push(addr),
            Err(error) => break error,
        }
    };
    // A page of tags, without those of the span and of what one more allocation may need.
    let page = page_size() / 32;
    assert!(
        held.len() > page - 14 && held.len() < page,
        "{}",
        held.len()
    );
    let text = error.to_string();
    assert!(
        text.starts_with("arena few tags: no memory for its tags: injected failure"),
        "{text}"
    );
    assert_eq!(arena.stats().fails, 1);
    arena.free(held.pop().unwrap(), 1).unwrap();
    arena.audit().unwrap();
}

/// A source that refuses some of its calls, and knows what it gave.
#[derive(Debug, Default)]
struct Moody {
    calls: AtomicUsize,
    refuse: AtomicUsize,
    out: Mutex<BTreeMap<u64, u64>>,
}

impl Import for Moody {
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call == self.refuse.load(Ordering::Relaxed) {
            return Err(Refusal {
                by: "moody",
                why: "not today",
                cause: None,
            });
        }
        let mut out = self.out.lock().unwrap();
        let end = out.last_key_value().map_or(0, |(a, s)| a + s);
        let addr = end.next_multiple_of(align);
        out.insert(addr, size);
        Ok(Extent { addr, size })
    }

    fn release(&self, span: Extent) {
        let size = self.out.lock().unwrap().remove(&span.addr);
        assert_eq!(size, Some(span.size));
    }
}

#[test]
fn each_refusal_of_the_source_is_an_error_and_passes() {
    for mode in modes() {
        for caches in [0, 3] {
            for refuse in 0..40 {
                let source = Arc::new(Moody::default());
                source.refuse.store(refuse, Ordering::Relaxed);
                let arena = Arena::builder("moody's")
                    .source(source.clone())
                    .import_unit(16)
                    .mode(mode)
                    .magazine(3, 7)
                    .quantum_max(caches)
                    .build()
                    .unwrap();
                let mut held = BTreeMap::new();
                for turn in 0..200_u64 {
                    match arena.alloc(1 + turn % 20) {
                        Ok(addr) => assert_eq!(held.insert(addr, 1 + turn % 20), None),
                        Err(error) => {
                            let text = error.to_string();
                            assert!(text.contains("moody: not today"), "{text}");
                        }
                    }
                    if turn % 3 == 0
                        && let Some((addr, size)) = held.pop_first()
                    {
                        arena.free(addr, size).unwrap();
                    }
                    arena.audit().unwrap();
                }
                for (addr, size) in held {
                    arena.free(addr, size).unwrap();
                }
                arena.trim();
                assert_eq!(arena.stats().total, 0);
                assert!(source.out.lock().unwrap().is_empty());
            }
        }
    }
}

/// A source that keeps no promise.
#[derive(Debug)]
struct Liar(Extent, AtomicUsize);

impl Import for Liar {
    fn import(&self, _: u64, _: u64) -> Result<Extent, Refusal> {
        Ok(self.0)
    }
    fn release(&self, span: Extent) {
        assert_eq!(span, self.0);
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_source_that_lies_is_found_out() {
    let liar = |addr, size| {
        let source = Arc::new(Liar(Extent { addr, size }, AtomicUsize::new(0)));
        let arena = Arena::builder("believer")
            .quantum(8)
            .source(source.clone())
            .build()
            .unwrap();
        arena.add(0, 64).unwrap();
        let error = arena.alloc(128).unwrap_err();
        arena.audit().unwrap();
        assert_eq!(arena.stats().total, 64);
        let back = source.1.load(Ordering::Relaxed);
        assert!(back > 0, "what is not used is given back");
        error
    };
    assert!(
        matches!(liar(1024, 120), ArenaError::Source { .. }),
        "too small"
    );
    assert!(matches!(liar(1024, 0), ArenaError::Source { .. }), "empty");
    assert!(
        matches!(liar(1028, 136), ArenaError::Span { .. }),
        "not aligned"
    );
    assert!(
        matches!(liar(0, 128), ArenaError::Overlap { .. }),
        "there already"
    );
    assert!(
        matches!(liar(u64::MAX - 7, 128), ArenaError::Source { .. }),
        "no number"
    );
}
