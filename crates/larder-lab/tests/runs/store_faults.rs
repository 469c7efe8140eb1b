//! What is wrong with a file is said with its name, nothing is lost, and nothing panics.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::stored::{fresh, run};
use larder_lab::store::{Store, StoreError, export};

/// Root may write read-only files, so tests of rights would say nothing.
fn rights_count(dir: &Path) -> bool {
    let probe = dir.join("probe");
    fs::write(&probe, "").unwrap();
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o400)).unwrap();
    fs::OpenOptions::new().write(true).open(&probe).is_err()
}

#[test]
fn a_bad_line_is_named_and_nothing_is_imported() {
    let (_dir, mut store) = fresh();
    let mut lines = Vec::new();
    let runs = [1.0, 2.0].map(|v| run("e", "2026-01-01T00:00:00Z", &[v]));
    export(runs, [], &mut lines).unwrap();
    let text = String::from_utf8(lines).unwrap();
    let mut import = |text: &str| {
        store
            .import_from(Cursor::new(text.to_owned()), Path::new("some.jsonl"))
            .unwrap_err()
            .to_string()
    };
    // Cut at any place of the last line: only the whole line is a run.
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    for cut in [last + 1, last + 40, text.len() - 3] {
        let e = import(&text[..cut]);
        assert!(e.contains("some.jsonl, line 3"), "{e}");
    }
    let newer = text.replacen("{\"run\":{\"schema\":1", "{\"run\":{\"schema\":9", 1);
    let e = import(&newer);
    assert!(e.contains("line 2") && e.contains("newer"), "{e}");
    let forged = text.replacen("\"depth\":\"quick\"", "\"depth\":\"full\"", 1);
    let e = import(&forged);
    assert!(e.contains("line 2") && e.contains("changed"), "{e}");
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn what_is_no_export_is_said_to_be_none() {
    let (_dir, mut store) = fresh();
    let other = "{\"format\":\"other\",\"schema\":1}\n";
    for text in ["", "\n", "hello\n", other, "\u{0}\u{1}", "[1"] {
        let e = store
            .import_from(Cursor::new(text), Path::new("x"))
            .unwrap_err();
        assert!(matches!(e, StoreError::NotAnExport { .. }), "{text:?}: {e}");
    }
    let newer = "{\"format\":\"larder results\",\"schema\":7}\n";
    let e = store
        .import_from(Cursor::new(newer), Path::new("x"))
        .unwrap_err();
    assert!(e.to_string().contains("newer larder"), "{e}");
    let e = store.import(Path::new("/no/such/file")).unwrap_err();
    assert!(matches!(e, StoreError::Read { .. }));
    let e = store.import(Path::new("/")).unwrap_err();
    assert!(matches!(e, StoreError::Read { .. }));
}

#[test]
fn files_of_others_are_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "dear diary, ".repeat(100)).unwrap();
    let note = dir.path().join("note");
    fs::write(&note, "x").unwrap();
    let foreign = dir.path().join("foreign.sqlite");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        .unwrap();
    for path in [&text, &note, &foreign] {
        let before = fs::read(path).unwrap();
        let e = Store::create(path).unwrap_err();
        assert!(
            matches!(
                e,
                StoreError::NotADatabase { .. } | StoreError::Foreign { .. }
            ),
            "{e}"
        );
        assert!(e.to_string().contains(path.to_str().unwrap()));
        assert!(Store::open(path).is_err());
        assert_eq!(fs::read(path).unwrap(), before);
    }
}

#[test]
fn a_newer_layout_is_refused() {
    let (_dir, store) = fresh();
    let path = store.path().to_owned();
    drop(store);
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    for e in [
        Store::create(&path).unwrap_err(),
        Store::open(&path).unwrap_err(),
    ] {
        assert!(matches!(e, StoreError::Newer { found: 99, .. }), "{e}");
    }
}

#[test]
fn damage_is_found_before_anything_is_written() {
    let (_dir, mut store) = fresh();
    for i in 0..30 {
        store
            .put(&run("e", "2026-01-01T00:00:00Z", &[f64::from(i); 40]))
            .unwrap();
    }
    let path = store.path().to_owned();
    drop(store);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() > 100_000, "{}", whole.len());
    // Cut short, and with a hole of noise.
    let mut holed = whole.clone();
    holed[8192..60_000].fill(0x5a);
    for broken in [&whole[..whole.len() / 2], &whole[..50], &holed] {
        fs::write(&path, broken).unwrap();
        let e = Store::create(&path).unwrap_err();
        assert!(
            matches!(
                e,
                StoreError::Damaged { .. } | StoreError::NotADatabase { .. }
            ),
            "{e}"
        );
        assert_eq!(fs::read(&path).unwrap(), broken);
        // Reading must not panic; some of it may still be readable.
        let Ok(store) = Store::open(&path) else {
            continue;
        };
        for r in store.list().unwrap_or_default() {
            let _ = store.get(&r.id);
        }
    }
}

#[test]
fn a_stored_record_that_is_no_record_is_an_error() {
    let (_dir, mut store) = fresh();
    let a = run("e", "2026-01-01T00:00:00Z", &[1.0]);
    store.put(&a).unwrap();
    let raw = rusqlite::Connection::open(store.path()).unwrap();
    raw.execute_batch("UPDATE sample SET at_us = -1").unwrap();
    assert!(matches!(store.get(&a.id), Err(StoreError::Damaged { .. })));
    raw.execute_batch("UPDATE sample SET at_us = 1; UPDATE run SET record = '{}'")
        .unwrap();
    assert!(matches!(store.get(&a.id), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_missing_database_is_missing_for_readers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none.sqlite");
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Missing { .. })
    ));
    assert!(!path.exists());
    // A file that was only touched holds nothing either.
    fs::write(&path, "").unwrap();
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Missing { .. })
    ));
    assert!(Store::create(&path).unwrap().list().unwrap().is_empty());
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    // A file where a directory should be fails for root too.
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [
        &file.join("results.sqlite"),
        dir.path(),
        Path::new("/proc/larder/results.sqlite"),
    ] {
        let e = Store::create(path).unwrap_err();
        assert!(matches!(e, StoreError::NotWritable { .. }), "{e}");
        assert!(e.to_string().contains(path.to_str().unwrap()), "{e}");
    }
}

#[test]
fn a_read_only_database_can_be_read_and_not_written() {
    let (dir, mut store) = fresh();
    let a = run("e", "2026-01-01T00:00:00Z", &[1.0]);
    store.put(&a).unwrap();
    let path = store.path().to_owned();
    drop(store);
    if !rights_count(dir.path()) {
        eprintln!("skipped: this user may write read-only files");
        return;
    }
    let parent = path.parent().unwrap().to_owned();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(Store::open(&path).unwrap().get(&a.id).unwrap(), a);
    let e = Store::create(&path).unwrap_err();
    assert!(matches!(e, StoreError::NotWritable { .. }), "{e}");
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
}
