//! SQLite's page cache over the C interface. This process uses SQLite here alone.

use core::ptr::{null, null_mut};
use std::ffi::CString;

use larder_c::larder_status::*;
use larder_c::*;
use rusqlite::{Connection, ffi};

use crate::c::{json, refused};

fn stats() -> larder_sqlite_stats {
    let mut stats = larder_sqlite_stats {
        size: size_of::<larder_sqlite_stats>(),
        ..Default::default()
    };
    // SAFETY: a live struct that says its size.
    let status = unsafe { larder_sqlite_stats_read(&raw mut stats, null_mut()) };
    assert_eq!(status, LARDER_OK);
    stats
}

#[test]
fn a_program_installs_it_first_and_reads_its_numbers() {
    let own: larder_sqlite3_config_fn = Some(ffi::sqlite3_config);
    let mut options = larder_sqlite_options {
        policy: c"no-rule".as_ptr(),
        ..Default::default()
    };
    // SAFETY: the function is what it says, the options are live, and no other test uses SQLite: so for all calls below.
    let install = |config, options: &larder_sqlite_options, error| unsafe {
        larder_sqlite_install(config, options, error)
    };
    refused(LARDER_NULL, "config is NULL", |e| {
        install(None, &options, e)
    });
    refused(LARDER_ARGUMENT, "there is no rule \"no-rule\"", |e| {
        install(own, &options, e)
    });
    options.settings = c"/none/larder.toml".as_ptr();
    refused(LARDER_SETTING, "/none/larder.toml", |e| {
        install(own, &options, e)
    });
    // What the file says counts.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("larder.toml");
    let text = "version = 1\n[cache]\npolicy = \"lirs\"\nbytes = 1048576\n";
    std::fs::write(&file, text).unwrap();
    let file = CString::new(file.to_str().unwrap()).unwrap();
    options.settings = file.as_ptr();
    let db = Connection::open_in_memory().unwrap();
    refused(LARDER_BUSY, "SQLite is in use already", |e| {
        install(own, &options, e)
    });
    drop(db);
    // SAFETY: no connection is open.
    assert_eq!(unsafe { ffi::sqlite3_shutdown() }, 0);
    assert_eq!(install(own, &options, null_mut()), LARDER_OK);
    refused(LARDER_BUSY, "installed already", |e| {
        install(own, &options, e)
    });

    let db = Connection::open(dir.path().join("db")).unwrap();
    db.execute_batch(
        "CREATE TABLE t (x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
           INSERT INTO t SELECT hex(zeroblob(500)) FROM n; SELECT count(*) FROM t WHERE x = 'y';",
    )
    .unwrap();
    let now = stats();
    assert!(
        now.caches >= 1 && now.hits > 0 && now.misses > 900 && now.evictions > 0,
        "{now:?}"
    );
    assert!(
        now.bytes <= now.limit_bytes && now.limit_bytes == 1 << 20,
        "{now:?}"
    );
    let json = json(|buffer, bytes, needed| {
        // SAFETY: the buffer has so many bytes.
        unsafe { larder_sqlite_stats_json(buffer, bytes, needed, null_mut()) }
    });
    assert_eq!(json["misses"], now.misses, "{json}");
    drop(db);
    larder_sqlite_trim();
    let after = stats();
    assert_eq!(
        (after.caches, after.held_bytes, after.misses),
        (0, 0, now.misses)
    );
    // SAFETY: no connection is open.
    assert_eq!(unsafe { ffi::sqlite3_shutdown() }, 0);
    // SAFETY: NULL is the defaults.
    let status = unsafe { larder_sqlite_install(own, null(), null_mut()) };
    assert_eq!(status, LARDER_OK);
    assert_eq!(stats().limit_bytes, u64::MAX);
}
