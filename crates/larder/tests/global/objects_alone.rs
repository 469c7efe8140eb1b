//! Caches of raw objects never use the global allocator once their family exists, since they may be what is under it.

use std::ptr::NonNull;
use std::time::Duration;

use crate::common::objects::*;
use crate::common::*;
use crate::watched::allocations;
use larder::objects::RawCache;

#[test]
fn nothing_is_allocated_once_the_family_exists() {
    for mode in modes() {
        let family = family_builder(mode)
            .interval(Duration::ZERO)
            .pages(pages(mode).decay(Duration::ZERO).limit_bytes(8 << 20))
            .build()
            .unwrap();
        let mut held = [NonNull::<u8>::dangling(); 1000];
        let before = allocations();
        for size in [8, 64, 1000, 5000, 100_000] {
            let cache = RawCache::builder(layout(size, 8))
                .name("alone")
                .build(&family)
                .unwrap();
            let n = cache.get_many(&mut held).unwrap();
            // SAFETY: taken above.
            unsafe { cache.put_many(&held[..n]) };
            let mut handle = cache.handle();
            // The larger ones meet the pool's limit, and so everything that is done when memory is short.
            let n = (0..1000).find(|&i| {
                let got = if i % 2 == 0 {
                    handle.get()
                } else {
                    cache.get()
                };
                got.map(|object| held[i] = object).is_err()
            });
            for (i, &object) in held[..n.unwrap_or(1000)].iter().enumerate() {
                if i % 3 == 0 {
                    // SAFETY: taken above.
                    unsafe { handle.put(object) };
                } else {
                    put(&cache, object);
                }
            }
            let large = family.get_large(size * 3, 1 << 14).unwrap();
            // SAFETY: taken above.
            unsafe { family.put_large(large) }.unwrap();
            cache.maintain();
            family.maintain();
            drop(handle);
            cache.trim();
            assert_eq!(cache.stats().out, 0);
            drop(cache);
            family.trim();
        }
        assert_eq!(allocations() - before, 0, "mode {mode}");
        let canary = Box::new(1);
        assert!(allocations() > before, "nothing is counted: {canary}");
    }
}
