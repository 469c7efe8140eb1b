//! Many values at once.

use std::alloc::Layout;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder::objects::{Family, ObjectCache, ObjectError, RawCache};

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
    cache.trim();
    assert_eq!(cache.stats().held_bytes, 0, "all was put back");
    let mut none = [const { None }; 3];
    assert_eq!(
        cache.get_many(&mut none),
        Err(ObjectError::Constructor("no fuel"))
    );
}

/// The same by a handle: of values whose constructor gives up, and panics in between.
#[test]
fn a_handle_takes_and_gives_many_values() {
    let family = Family::new().unwrap();
    let left = Arc::new(AtomicUsize::new(300));
    let fuel = Arc::clone(&left);
    let cache = ObjectCache::<usize, &str>::builder()
        .magazine(8, 8)
        .try_build(&family, move || {
            let n = fuel.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            assert_ne!(n, Ok(1000), "as meant");
            n.map_err(|_| "no fuel")
        })
        .unwrap();
    let mut handle = cache.handle();
    let mut values: Vec<_> = (0..200).map(|_| None).collect();
    values[7] = Some(cache.get().unwrap());
    assert_eq!(handle.get_many(&mut values), Ok(199));
    let mut seen: Vec<usize> = values.iter().flatten().map(|value| **value).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 200, "each value is in one hand");
    assert_eq!(handle.get_many(&mut values), Ok(0), "there is no place");
    let mut more: Vec<_> = (0..400).map(|_| None).collect();
    let filled = handle.get_many(&mut more).unwrap();
    assert!(filled > 0 && filled <= 100, "{filled}");
    assert_eq!(handle.put_many(&mut more), filled);
    // A constructor that panics leaves what was filled in its places.
    left.store(1000 + 5, Ordering::Relaxed);
    let panics = catch_unwind(AssertUnwindSafe(|| handle.get_many(&mut more)));
    assert!(panics.is_err());
    let kept = more.iter().flatten().count();
    assert!(kept >= filled, "{kept}");
    assert_eq!(handle.put_many(&mut more), kept);
    assert_eq!(handle.put_many(&mut values), 200);
    left.store(0, Ordering::Relaxed);
    drop((values, more));
    drop(handle);
    cache.trim();
    assert_eq!(cache.stats().held_bytes, 0, "all was put back");
    let mut handle = cache.handle();
    let mut none = [const { None }; 3];
    assert_eq!(
        handle.get_many(&mut none),
        Err(ObjectError::Constructor("no fuel"))
    );
}

/// Objects by a raw handle, past what its magazines hold, up to the cache's limit.
#[test]
fn a_raw_handle_takes_and_gives_many_objects() {
    let family = Family::new().unwrap();
    let layout = Layout::new::<[u64; 8]>();
    for rounds in [1, 7, 255] {
        let cache = RawCache::builder(layout)
            .magazine(rounds, rounds)
            .limit_bytes(16 << 10)
            .build(&family)
            .unwrap();
        let mut handle = cache.handle();
        assert_eq!(handle.get_many(&mut []), Ok(0));
        let mut all = [NonNull::<u8>::dangling(); 1000];
        let got = handle.get_many(&mut all).unwrap();
        assert_eq!(got, (16 << 10) / 64, "as many as the limit lets");
        assert!(matches!(
            handle.get_many(&mut all[got..]),
            Err(ObjectError::Limit { .. })
        ));
        let mut addrs: Vec<usize> = all[..got].iter().map(|o| o.as_ptr() as usize).collect();
        for (i, object) in all[..got].iter().enumerate() {
            // SAFETY: ours, 64 bytes.
            unsafe { object.cast::<u64>().write(i as u64) };
        }
        addrs.sort_unstable();
        addrs.dedup();
        assert_eq!(addrs.len(), got, "each object is in one hand");
        for (i, object) in all[..got].iter().enumerate() {
            // SAFETY: as above.
            assert_eq!(unsafe { object.cast::<u64>().read() }, i as u64);
        }
        // SAFETY: taken above, each put once: in pieces that are no multiple of a magazine, and one by one.
        unsafe {
            handle.put_many(&all[..100]);
            handle.put(all[100]);
            handle.put_many(&all[101..got]);
            handle.put_many(&[]);
        }
        assert_eq!(handle.get_many(&mut all), Ok(got), "none was lost");
        // SAFETY: as above.
        unsafe { handle.put_many(&all[..got]) };
        drop(handle);
        cache.trim();
        assert_eq!(cache.stats().held_bytes, 0, "all was put back");
    }
}
