use std::sync::Arc;
use std::thread;

use larder::ids::{Allocate, IdError, MAX_DEPTH, Namespace, NestedId};

use super::support::{Failing, Shared, shared};

/// Spaces of so many levels, the innermost.
fn levels(count: u64) -> Arc<Namespace<Shared>> {
    let mut space = Namespace::outermost(shared(1, 99));
    for level in 1..count {
        space = space.inner(shared(1, 99 - level)).unwrap();
    }
    space
}

fn all<A: Allocate>(space: &Arc<Namespace<A>>) -> Vec<&Namespace<A>> {
    let mut spaces: Vec<&Namespace<A>> = vec![space];
    while let Some(outer) = spaces[spaces.len() - 1].outer() {
        spaces.push(outer);
    }
    spaces.reverse();
    spaces
}

fn counts<A: Allocate>(space: &Arc<Namespace<A>>) -> Vec<u64> {
    all(space)
        .iter()
        .map(|space| space.ids().allocated())
        .collect()
}

fn cause_at<A: Allocate>(result: Result<NestedId<A>, IdError>) -> (usize, IdError) {
    match result.unwrap_err() {
        IdError::Level { level, cause } => (level, *cause),
        other => panic!("{other}"),
    }
}

#[test]
fn one_thing_has_an_identifier_at_each_level() {
    let inner = levels(3);
    let middle = Arc::clone(inner.outer().unwrap());
    let other = middle.alloc().unwrap();
    assert_eq!(other.ids(), [1, 1]);
    let id = inner.alloc().unwrap();
    assert_eq!((id.ids(), id.id()), (&[2, 2, 1][..], 1));
    assert_eq!(
        (id.id_at(0), id.id_at(2), id.id_at(3)),
        (Some(2), Some(1), None)
    );
    assert_eq!(counts(&inner), [2, 2, 1]);
    drop(id);
    assert_eq!(counts(&inner), [1, 1, 0]);
    other.free().unwrap();
    assert_eq!(counts(&inner), [0, 0, 0]);
}

#[test]
fn a_full_level_gives_back_what_the_others_gave() {
    for full in 0..4 {
        let inner = levels(4);
        let spaces = all(&inner);
        while spaces[full].ids().alloc().is_ok() {}
        let before = counts(&inner);
        let (level, cause) = cause_at(inner.alloc());
        assert_eq!(level, full);
        assert!(matches!(cause, IdError::Full { .. }), "{cause}");
        assert_eq!(counts(&inner), before, "level {full} failed");
    }
}

#[test]
fn any_failure_at_any_level_gives_back_what_the_others_gave() {
    for failing in 0..5 {
        let mut space = Namespace::outermost(Failing::new(0, 9));
        for _ in 1..5 {
            space = space.inner(Failing::new(0, 9)).unwrap();
        }
        all(&space)[failing].ids().calls_left.set(0);
        let (level, cause) = cause_at(space.alloc());
        assert_eq!((level, cause), (failing, IdError::OutOfMemory));
        assert_eq!(counts(&space), [0; 5]);
        all(&space)[failing].ids().calls_left.set(u64::MAX);
        assert_eq!(space.alloc().unwrap().ids(), [0; 5]);
    }
}

#[test]
fn particular_identifiers_can_be_asked_for_at_some_levels() {
    let inner = levels(3);
    let id = inner.alloc_at(&[Some(40), None, Some(70)]).unwrap();
    assert_eq!(
        id.ids(),
        [70, 1, 40],
        "asked for from inside out, listed from outside in"
    );
    for (wanted, level) in [
        (vec![Some(40)], 2),
        (vec![None, Some(1)], 1),
        (vec![None, None, Some(70)], 0),
    ] {
        let (at, cause) = cause_at(inner.alloc_at(&wanted));
        assert_eq!(at, level);
        assert!(matches!(cause, IdError::Taken { .. }));
        assert_eq!(counts(&inner), [1, 1, 1]);
    }
    let (at, cause) = cause_at(inner.alloc_at(&[Some(0)]));
    assert!(at == 2 && matches!(cause, IdError::OutOfRange { id: 0, .. }));
    let deep = inner.alloc_at(&[None; 4]).unwrap_err();
    assert!(matches!(deep, IdError::Invalid { .. }));
}

#[test]
fn raw_numbers_stay_and_can_be_adopted() {
    let inner = levels(2);
    let raw = inner.alloc().unwrap().into_raw();
    assert_eq!(counts(&inner), [1, 1]);
    assert!(inner.adopt(vec![1]).is_err(), "a level is missing");
    assert_eq!(
        cause_at(inner.adopt(vec![1, 2])),
        (1, IdError::NotAllocated { id: 2 })
    );
    assert!(matches!(
        cause_at(inner.adopt(vec![0, 1])),
        (0, IdError::OutOfRange { .. })
    ));
    drop(inner.adopt(raw).unwrap());
    assert_eq!(counts(&inner), [0, 0]);
}

#[test]
fn freeing_goes_on_after_an_error_and_names_the_level() {
    let inner = levels(3);
    let id = inner.alloc().unwrap();
    all(&inner)[1].ids().free(1).unwrap();
    let error = id.free().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("at level 1: {}", IdError::NotAllocated { id: 1 })
    );
    assert_eq!(counts(&inner), [0, 0, 0]);
}

#[test]
fn there_is_an_end_to_nesting() {
    let space = levels(MAX_DEPTH as u64 + 1);
    assert_eq!(space.level(), MAX_DEPTH);
    assert!(matches!(
        space.inner(shared(0, 1)),
        Err(IdError::Invalid { .. })
    ));
    assert_eq!(space.alloc().unwrap().ids().len(), MAX_DEPTH + 1);
}

#[test]
fn threads_share_levels() {
    let outer = Namespace::outermost(shared(0, 19));
    let inner: Vec<_> = (0..3).map(|_| outer.inner(shared(0, 9)).unwrap()).collect();
    thread::scope(|scope| {
        for space in &inner {
            scope.spawn(move || {
                for round in 0..500 {
                    // Together they want more than the outer space has, so some fail half way.
                    let held: Vec<_> = (0..10).filter_map(|_| space.alloc().ok()).collect();
                    let mine: Vec<_> = held.iter().map(NestedId::id).collect();
                    assert!(
                        mine.windows(2).all(|pair| pair[0] < pair[1]),
                        "{round}: {mine:?}"
                    );
                }
            });
        }
    });
    assert_eq!(outer.ids().allocated(), 0);
    assert!(inner.iter().all(|space| space.ids().allocated() == 0));
}
