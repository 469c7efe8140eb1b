//! Caches of raw objects: what a get gives, what a put takes back, what goes where.

use std::collections::HashMap;
use std::ptr::NonNull;

use crate::common::objects::*;
use crate::common::*;
use larder::objects::{MAX_OBJECT, Misuse, ObjectError, Owner, RawCache};
use larder::os::rseq::Mode;
use proptest::prelude::*;

#[test]
fn objects_of_every_size_and_alignment_are_apart_and_aligned() {
    for mode in modes() {
        let family = family(mode);
        for size in [1, 7, 8, 24, 64, 100, 1000, 4096, 5000, 40_000, MAX_OBJECT] {
            for align in [1, 8, 64, 512, 4096] {
                let cache = RawCache::new(&family, layout(size, align)).unwrap();
                let n = if size > 10_000 { 5 } else { 300 };
                let objects: Vec<_> = (0..n).map(|_| cache.get().unwrap()).collect();
                for (i, &o) in objects.iter().enumerate() {
                    assert_eq!(o.as_ptr() as usize % align, 0, "{size} {align}");
                    fill(o, size, i as u8);
                    let owner = family.owner(o.as_ptr());
                    assert_eq!(owner, Some(Owner::Cache(cache.number())));
                }
                for (i, &o) in objects.iter().enumerate() {
                    assert!(
                        is_filled(o, size, i as u8),
                        "{size} {align}: {i} overwritten"
                    );
                    // SAFETY: taken above, put once.
                    unsafe { cache.put(o) };
                }
                let stats = cache.stats();
                assert!(stats.out + stats.in_slabs == stats.slabs * stats.objects_per_slab);
                cache.trim();
                let stats = cache.stats();
                assert_eq!((stats.slabs, stats.out, stats.held_bytes), (0, 0, 0));
            }
        }
        family.trim();
        assert_eq!(family.pool().stats().out_bytes, 0, "pages are missing");
        assert_eq!(family.metadata_bytes(), 0);
    }
}

#[test]
fn what_no_cache_can_hold_is_an_error_that_says_so() {
    let family = family(modes()[0]);
    for (size, align) in [
        (0, 1),
        (MAX_OBJECT + 1, 8),
        (64, 8192),
        (isize::MAX as usize - 7, 8),
    ] {
        let error = RawCache::new(&family, layout(size, align)).unwrap_err();
        assert_eq!(error, ObjectError::Layout { size, align });
        assert!(error.to_string().contains(&size.to_string()), "{error}");
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Get,
    Put(usize),
    HandleGet,
    HandlePut(usize),
    GetMany(usize),
    PutMany(usize),
    Reap,
    Drain,
    DropHandle,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => Just(Op::Get),
        6 => any::<usize>().prop_map(Op::Put),
        6 => Just(Op::HandleGet),
        6 => any::<usize>().prop_map(Op::HandlePut),
        2 => (0..200_usize).prop_map(Op::GetMany),
        2 => (0..300_usize).prop_map(Op::PutMany),
        1 => Just(Op::Reap),
        1 => Just(Op::Drain),
        1 => Just(Op::DropHandle),
    ];
    proptest::collection::vec(op, 1..200)
}

/// Runs a program of operations against a model: every object in hand carries a token of its own.
fn program(mode: Mode, size: usize, constructs: bool, ops: &[Op]) -> Result<(), TestCaseError> {
    let family = family(mode);
    let count = Count::default();
    let cache = if constructs {
        counted(&family, size, &count)
    } else {
        options(size).build(&family).unwrap()
    };
    let mut handle = Some(cache.handle());
    let mut held: Vec<NonNull<u8>> = Vec::new();
    let mut tokens: HashMap<NonNull<u8>, u8> = HashMap::new();
    let mut next = 0_u8;
    let mut take = |o: NonNull<u8>, held: &mut Vec<_>, tokens: &mut HashMap<_, _>| {
        if constructs {
            prop_assert_eq!(marked(o), MARK);
        }
        next = next.wrapping_add(1);
        // The mark stays.
        if size > 8 {
            // SAFETY: the bytes behind the mark are ours.
            fill(unsafe { o.add(8) }, size - 8, next);
        }
        prop_assert!(tokens.insert(o, next).is_none(), "given out twice");
        held.push(o);
        Ok(())
    };
    let give = |i: usize, held: &mut Vec<NonNull<u8>>, tokens: &mut HashMap<_, u8>| {
        let o = held.swap_remove(i % held.len());
        let token = tokens.remove(&o).unwrap();
        if size > 8 {
            // SAFETY: as above.
            let rest = unsafe { o.add(8) };
            assert!(is_filled(rest, size - 8, token), "overwritten");
        }
        o
    };
    for &op in ops {
        match op {
            Op::Get => take(cache.get().unwrap(), &mut held, &mut tokens)?,
            Op::HandleGet => {
                let handle = handle.get_or_insert_with(|| cache.handle());
                take(handle.get().unwrap(), &mut held, &mut tokens)?;
            }
            Op::Put(i) if !held.is_empty() => {
                let o = give(i, &mut held, &mut tokens);
                // SAFETY: taken from this cache, put once.
                unsafe { cache.put(o) };
            }
            Op::HandlePut(i) if !held.is_empty() => {
                let o = give(i, &mut held, &mut tokens);
                let handle = handle.get_or_insert_with(|| cache.handle());
                // SAFETY: as above.
                unsafe { handle.put(o) };
            }
            Op::GetMany(n) => {
                let mut out = vec![NonNull::dangling(); n];
                let got = cache.get_many(&mut out).unwrap();
                prop_assert_eq!(got, n);
                for o in out {
                    take(o, &mut held, &mut tokens)?;
                }
            }
            Op::PutMany(n) => {
                let n = n.min(held.len());
                let out: Vec<_> = (0..n).map(|i| give(i, &mut held, &mut tokens)).collect();
                // SAFETY: as above.
                unsafe { cache.put_many(&out) };
            }
            Op::Reap => {
                cache.maintain();
            }
            Op::Drain => {
                cache.trim();
            }
            Op::DropHandle => handle = None,
            Op::Put(_) | Op::HandlePut(_) => {}
        }
        let stats = cache.stats();
        prop_assert!(stats.out >= held.len());
        prop_assert_eq!(
            stats.out + stats.in_slabs,
            stats.slabs * stats.objects_per_slab
        );
        prop_assert_eq!(stats.refused, 0);
    }
    while !held.is_empty() {
        let o = give(0, &mut held, &mut tokens);
        // SAFETY: as above.
        unsafe { cache.put(o) };
    }
    drop(handle);
    cache.trim();
    let stats = cache.stats();
    prop_assert_eq!((stats.slabs, stats.out), (0, 0));
    prop_assert_eq!(stats.constructed, stats.destroyed);
    drop(cache);
    let (made, ended) = count.both();
    prop_assert_eq!(made, ended);
    prop_assert_eq!(made > 0, constructs && stats.constructed > 0);
    family.trim();
    prop_assert_eq!(family.pool().stats().out_bytes, 0);
    prop_assert_eq!(family.metadata_bytes(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn programs_do_what_the_model_says(
        ops in ops(),
        size in prop_oneof![Just(8_usize), Just(40), Just(64), Just(500), Just(3000), Just(9000)],
        constructs in any::<bool>(),
        mode in 0..modes().len(),
    ) {
        program(modes()[mode], size, constructs, &ops)?;
    }
}

#[test]
fn slabs_begin_at_different_places_where_something_is_left_over() {
    let family = family(modes()[0]);
    for (size, align, places) in [
        (1500, 4, 5),
        (1700, 256, 2),
        (1500, 4096, 1),
        (64, 8, 1),
        (3000, 8, 5),
    ] {
        for colour in [true, false] {
            let cache = RawCache::builder(layout(size, align))
                .colour(colour)
                .build(&family)
                .unwrap();
            let n = 40 * cache.stats().objects_per_slab;
            let objects: Vec<_> = (0..n).map(|_| cache.get().unwrap()).collect();
            for (i, &object) in objects.iter().enumerate() {
                assert_eq!(object.as_ptr() as usize % align, 0);
                fill(object, size, i as u8);
            }
            let stride = cache.stride();
            let first: std::collections::BTreeSet<_> = objects
                .iter()
                .map(|o| o.as_ptr() as usize)
                .filter(|&at| !objects.iter().any(|o| o.as_ptr() as usize == at - stride))
                .map(|at| at % 4096)
                .collect();
            assert_eq!(
                first.len(),
                if colour { places } else { 1 },
                "{size} {align}"
            );
            for (i, object) in objects.into_iter().enumerate() {
                assert!(is_filled(object, size, i as u8), "overwritten");
                put(&cache, object);
            }
            cache.trim();
            assert_eq!((cache.stats().out, cache.stats().refused), (0, 0));
        }
    }
}

#[test]
fn a_limit_is_kept_and_said() {
    for mode in modes() {
        let family = family(mode);
        let cache = RawCache::builder(layout(64, 8))
            .limit_bytes(16 << 10)
            .build(&family)
            .unwrap();
        let mut held = Vec::new();
        let error = loop {
            match cache.get() {
                Ok(o) => held.push(o),
                Err(error) => break error,
            }
        };
        assert_eq!(
            error,
            ObjectError::Limit {
                bytes: 4096,
                limit: 16 << 10
            }
        );
        assert_eq!(held.len(), 256, "all that fits the limit is given");
        assert_eq!(cache.stats().held_bytes, 16 << 10);
        // SAFETY: taken above, put once.
        unsafe { cache.put(held.pop().unwrap()) };
        assert!(cache.get().is_ok(), "what was put can be had");
    }
}

/// The misuses that the family reported.
static TOLD: std::sync::Mutex<Vec<Misuse>> = std::sync::Mutex::new(Vec::new());

#[test]
fn pointers_that_do_not_belong_are_refused() {
    let family = family_builder(modes()[0])
        .on_misuse(|m| TOLD.lock().unwrap().push(*m))
        .build()
        .unwrap();
    let cache = RawCache::builder(layout(64, 8))
        .magazine(1, 1)
        .build(&family)
        .unwrap();
    let other = RawCache::new(&family, layout(64, 8)).unwrap();
    let (mine, its) = (cache.get().unwrap(), other.get().unwrap());
    let stack = 0_u64;
    let foreign = [its, NonNull::from(&stack).cast()];
    // SAFETY: a pointer into an object; it is not used.
    let inside = unsafe { mine.add(8) };
    for o in foreign {
        let addr = o.as_ptr() as usize;
        // SAFETY: they are looked at as addresses only, since they are no objects of this cache.
        let put = unsafe { cache.put_checked(o) };
        assert_eq!(put, Err(Misuse::Foreign { addr }));
    }
    let addr = inside.as_ptr() as usize;
    // SAFETY: as above.
    let put = unsafe { cache.put_checked(inside) };
    assert_eq!(put, Err(Misuse::Misaligned { addr }));
    assert!(TOLD.lock().unwrap().is_empty());
    if cfg!(debug_assertions) {
        // SAFETY: debug builds look at every pointer.
        unsafe { cache.put(inside) };
        assert_eq!(*TOLD.lock().unwrap(), [Misuse::Misaligned { addr }]);
    }
    // SAFETY: once is right; the second time is what is tested, and no thread gets objects in between.
    unsafe {
        cache.put(mine);
        cache.put(mine);
    }
    cache.trim();
    let addr = mine.as_ptr() as usize;
    let last = *TOLD.lock().unwrap().last().unwrap();
    // The slab may have gone by then, and then nothing begins there.
    assert!(
        [Misuse::Twice { addr }, Misuse::Foreign { addr }].contains(&last),
        "{last}"
    );
    assert_eq!(cache.stats().refused as usize, TOLD.lock().unwrap().len());
    // SAFETY: taken from that cache, put once.
    unsafe { other.put(its) };
}
