//! Many values at once.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder::objects::{Family, ObjectCache, ObjectError};

/// Many by one call, past what a magazine holds, with places that are full already, and of a constructor that gives up.
#[test]
fn many_values_come_and_go_at_once() {
    let family = Family::new().unwrap();
    let left = Arc::new(AtomicUsize::new(300));
    let fuel = Arc::clone(&left);
    let cache = ObjectCache::<usize, &str>::builder()
        .magazine(8, 8)
        .try_build(&family, move || {
            fuel.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .map_err(|_| "no fuel")
        })
        .unwrap();
    let mut values: Vec<_> = (0..200).map(|_| None).collect();
    values[7] = Some(cache.get().unwrap());
    assert_eq!(cache.get_many(&mut values), Ok(199));
    let mut seen: Vec<usize> = values.iter().flatten().map(|value| **value).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 200, "each value is in one hand");
    assert_eq!(
        cache.get_many(&mut values),
        Ok(0),
        "there is no empty place"
    );
    // Some are left out of what comes, and none is lost.
    let mut more: Vec<_> = (0..400).map(|_| None).collect();
    let filled = cache.get_many(&mut more).unwrap();
    assert!(filled > 0 && filled <= 100, "{filled}");
    assert_eq!(more.iter().flatten().count(), filled);
    assert_eq!(cache.put_many(&mut more), filled);
    assert_eq!(cache.put_many(&mut values), 200);
    assert!(values.iter().chain(&more).all(Option::is_none));
    left.store(0, Ordering::Relaxed);
    drop((values, more));
    cache.drain();
    assert_eq!(cache.stats().held_bytes, 0, "all was put back");
    let mut none = [const { None }; 3];
    assert_eq!(
        cache.get_many(&mut none),
        Err(ObjectError::Constructor("no fuel"))
    );
}
