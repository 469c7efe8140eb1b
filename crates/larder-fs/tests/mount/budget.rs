//! The budget, when the cache is made larger or smaller.

use larder_fs::{FsError, MountOptions, Tune};

use crate::{directory, mounted};

/// Tables for a much larger cache would take more than this one has.
#[test]
fn a_size_to_grow_to_that_takes_too_many_tables_is_refused() {
    let (source, at) = (directory(), directory());
    let options = MountOptions::new(source.path(), at.path()).cache_bytes(64 << 20);
    let refused = options.most_bytes(16 << 30).mount();
    let Err(error @ FsError::Budget { .. }) = refused else {
        panic!("mounted, or another error");
    };
    let text = error.to_string();
    assert!(
        text.contains("67108864") && text.contains("--most-cache"),
        "{text}"
    );
}

#[test]
fn a_cache_of_another_size_has_room_for_other_numbers_of_inodes() {
    let Some(mounted) = mounted(|options| options.cache_bytes(8 << 20).most_bytes(16 << 20)) else {
        return;
    };
    let most = |bytes| {
        let cache_bytes = Some(bytes);
        let tune = Tune {
            cache_bytes,
            ..Tune::default()
        };
        mounted.mount.tune(&tune).unwrap();
        mounted.mount.stats().most_inodes
    };
    let first = mounted.mount.stats().most_inodes;
    assert!(most(16 << 20) > first);
    assert!(most(5 << 20) < first);
    assert_eq!(most(8 << 20), first);
    // What stays needs more than this.
    let tune = Tune {
        cache_bytes: Some(1 << 20),
        ..Tune::default()
    };
    let refused = mounted.mount.tune(&tune);
    assert!(matches!(refused, Err(FsError::Budget { .. })));
    assert_eq!(mounted.mount.stats().most_inodes, first);
}
