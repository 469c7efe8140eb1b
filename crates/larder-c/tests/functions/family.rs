//! Families over the C interface: whose address it is, large objects, memory that goes back.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use crate::c::{family, json, made, refused};
use larder_c::larder_status::*;
use larder_c::*;

fn cache(family: *mut larder_family, bytes: usize) -> *mut larder_cache {
    // SAFETY: live pointers.
    made(|out, error| unsafe { larder_cache_new(family, bytes, 0, null(), out, error) })
}

/// # Safety
/// A live cache.
unsafe fn slabs(cache: *const larder_cache) -> u64 {
    let mut stats = larder_cache_stats {
        size: size_of::<larder_cache_stats>(),
        ..Default::default()
    };
    // SAFETY: the caller's promise.
    let status = unsafe { larder_cache_stats_read(cache, &raw mut stats, null_mut()) };
    assert_eq!(status, LARDER_OK);
    stats.slabs
}

#[test]
fn an_address_tells_its_owner() {
    let f = family(0);
    let c = cache(f, 100);
    let mut large = null_mut();
    // SAFETY: live pointers.
    unsafe {
        let mut object = null_mut::<c_void>();
        assert_eq!(larder_cache_get(c, &raw mut object, null_mut()), LARDER_OK);
        assert_eq!(larder_family_owner(f, object), larder_cache_number(c));
        assert_eq!(larder_family_owner(f, null()), 0);
        assert_eq!(larder_family_owner(f, (&raw const f).cast()), 0);
        let e = null_mut();
        let status = larder_family_get_large(f, 3 << 20, 1 << 21, true, &raw mut large, e);
        assert_eq!(status, LARDER_OK);
        assert_eq!(
            (large.addr() % (1 << 21), larder_family_owner(f, large)),
            (0, 65535)
        );
        assert_eq!(larder_family_large_bytes(f, large), 3 << 20);
        assert!(
            (0..3 << 20)
                .step_by(4096)
                .all(|i| large.cast::<u8>().add(i).read() == 0)
        );
        assert_eq!(larder_family_large_bytes(f, object), 0);
        let mut held = larder_family_stats {
            size: 40,
            ..Default::default()
        };
        assert_eq!(larder_family_stats_read(f, &raw mut held, e), LARDER_OK);
        assert_eq!((held.large_bytes, held.limit_bytes), (3 << 20, u64::MAX));
        assert!(held.held_bytes > held.large_bytes && held.metadata_bytes > 0);
        let told = json(|at, n, needed| larder_family_stats_json(f, at, n, needed, null_mut()));
        assert_eq!(told["large_bytes"], 3 << 20);
        assert_eq!(larder_family_put_large(f, object), LARDER_FOREIGN);
        assert_eq!(
            larder_family_put_large(f, large.byte_add(4096)),
            LARDER_FOREIGN
        );
        assert_eq!(larder_family_put_large(f, large), LARDER_OK);
        assert_eq!(larder_family_put_large(f, large), LARDER_FOREIGN);
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn memory_goes_back_when_asked_and_by_the_thread() {
    let f = family(0);
    let c = cache(f, 4096);
    let mut objects = vec![null_mut(); 1000];
    // SAFETY: live pointers.
    unsafe {
        let e = null_mut();
        assert_eq!(
            larder_cache_get_many(c, objects.as_mut_ptr(), 1000, e),
            LARDER_OK
        );
        assert_eq!(
            larder_cache_put_many(c, objects.as_ptr(), 1000, e),
            LARDER_OK
        );
        let mut bytes = 0;
        assert_eq!(larder_family_trim(f, &raw mut bytes), LARDER_OK);
        assert!(bytes >= 1000 * 4096, "{bytes}");
        assert_eq!(slabs(c), 0);
        assert_eq!(
            larder_cache_get_many(c, objects.as_mut_ptr(), 1000, e),
            LARDER_OK
        );
        assert_eq!(
            larder_cache_put_many(c, objects.as_ptr(), 1000, e),
            LARDER_OK
        );
        assert_eq!(larder_cache_maintain(c, &raw mut bytes), LARDER_OK);
        assert_eq!(larder_family_maintain(f, null_mut()), LARDER_OK);
        assert_eq!(larder_cache_trim(c, &raw mut bytes), LARDER_OK);
        assert_eq!(slabs(c), 0);
        refused(LARDER_ARGUMENT, "interval_ms is 0", |e| {
            larder_family_start_helper(f, 0, e)
        });
        assert_eq!(larder_family_start_helper(f, 1, e), LARDER_OK);
        assert_eq!(
            larder_cache_get_many(c, objects.as_mut_ptr(), 1000, e),
            LARDER_OK
        );
        assert_eq!(
            larder_cache_put_many(c, objects.as_ptr(), 1000, e),
            LARDER_OK
        );
        while slabs(c) > 0 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(larder_family_stop_helper(f), LARDER_OK);
        assert_eq!(larder_cache_destroy(c, e), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}
