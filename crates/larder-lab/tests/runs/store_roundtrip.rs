//! Runs go into the database and come out as they were, by any way.

use std::io::Cursor;
use std::path::Path;

use crate::stored::{fresh, run};
use larder_lab::calc::{Submission, Timings};
use larder_lab::model::Measures;
use larder_lab::store::{Selector, Store, StoreError, export, id_of};
use proptest::prelude::*;

#[test]
fn a_run_comes_back_exactly_and_storing_it_twice_changes_nothing() {
    let (_dir, mut store) = fresh();
    let a = run(
        "e",
        "2026-01-01T00:00:00Z",
        &[1.0, 0.1, f64::MIN_POSITIVE, 1e300, 0.0],
    );
    assert!(store.put(&a).unwrap());
    assert!(!store.put(&a).unwrap());
    assert_eq!(store.get(&a.id).unwrap(), a);
    let list = store.list().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].samples, list[0].machine.as_str()), (5, "f"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_finite_number_survives_the_database_and_the_interchange(
        values in prop_oneof![
            proptest::collection::vec(proptest::num::f64::ANY, 0..12),
            proptest::collection::vec(0.0..1e20_f64, 0..12),
        ]
    ) {
        let (_dir, mut store) = fresh();
        // The helper stores twice the value too.
        let values: Vec<f64> = values.into_iter().filter(|v| (2.0 * v).is_finite()).collect();
        let a = run("e", "2026-01-01T00:00:00Z", &values);
        store.put(&a).unwrap();
        let back = store.get(&a.id).unwrap();
        prop_assert_eq!(&back, &a);
        prop_assert_eq!(id_of(&back), a.id.clone());
        // The lab's measures are counts and times; an import takes no others.
        if values.iter().any(|v| !(0.0..1e20).contains(v)) {
            return Ok(());
        }
        let mut lines = Vec::new();
        export([back], [], &mut lines).unwrap();
        let (_dir, mut other) = fresh();
        other.import_from(Cursor::new(lines), Path::new("x")).unwrap();
        prop_assert_eq!(other.get(&a.id).unwrap(), a);
    }
}

#[test]
fn numbers_that_are_not_finite_and_changed_records_are_refused() {
    let (_dir, mut store) = fresh();
    let bad = run("e", "2026-01-01T00:00:00Z", &[f64::INFINITY]);
    assert!(matches!(store.put(&bad), Err(StoreError::BadRecord { .. })));
    let mut changed = run("e", "2026-01-01T00:00:00Z", &[1.0]);
    changed.samples[0].measures = Measures::new().with("ns", 0.5);
    let said = store.put(&changed).unwrap_err().to_string();
    assert!(said.contains("changed after it was taken"), "{said}");
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn runs_are_found_by_prefix_and_by_time() {
    let (_dir, mut store) = fresh();
    let a = run("one", "2026-01-01T00:00:00Z", &[1.0]);
    let b = run("two", "2026-01-03T00:00:00Z", &[1.0]);
    let c = run("one", "2026-01-02T00:00:00Z", &[1.0]);
    for r in [&a, &b, &c] {
        store.put(r).unwrap();
    }
    let find = |s: &str| s.parse::<Selector>().and_then(|s| store.resolve(&s));
    assert_eq!(find("latest").unwrap(), b.id);
    assert_eq!(find("latest:one").unwrap(), c.id);
    assert_eq!(find(&a.id[..20].to_uppercase()).unwrap(), a.id);
    assert_eq!(store.list().unwrap()[0].id, b.id);
    assert!(matches!(find("latest:none"), Err(StoreError::NoRun { .. })));
    assert!(matches!(
        find(&"0".repeat(32)),
        Err(StoreError::NoRun { .. })
    ));
    for bad in ["", "latest:", "no hex", "%", "a:b"] {
        assert!(
            matches!(find(bad), Err(StoreError::BadSelector { .. })),
            "{bad}"
        );
    }
}

#[test]
fn a_prefix_of_several_runs_lists_them() {
    let (_dir, mut store) = fresh();
    for i in 0..40 {
        store
            .put(&run("e", "2026-01-01T00:00:00Z", &[f64::from(i)]))
            .unwrap();
    }
    // Names begin with one of 16 digits, so two of 40 share their first.
    let ambiguous = "0123456789abcdef"
        .chars()
        .filter_map(|d| store.resolve(&Selector::Prefix(d.to_string())).err())
        .find(|e| matches!(e, StoreError::Ambiguous { .. }));
    assert!(ambiguous.unwrap().to_string().contains("write more of it"));
}

#[test]
fn a_deleted_run_takes_its_samples_and_machine_along() {
    let (_dir, mut store) = fresh();
    let a = run("e", "2026-01-01T00:00:00Z", &[1.0, 2.0]);
    store.put(&a).unwrap();
    assert!(store.delete(&a.id).unwrap());
    assert!(!store.delete(&a.id).unwrap());
    let raw = rusqlite::Connection::open(store.path()).unwrap();
    for table in ["run", "sample", "measure", "machine"] {
        let n: i64 = raw
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0))
            .unwrap();
        assert_eq!(n, 0, "{table}");
    }
}

#[test]
fn samples_can_be_queried_by_sql() {
    let (_dir, mut store) = fresh();
    store
        .put(&run("e", "2026-01-01T00:00:00Z", &[1.0, 3.0]))
        .unwrap();
    let raw = rusqlite::Connection::open(store.path()).unwrap();
    let (n, mean): (i64, f64) = raw
        .query_row(
            "SELECT count(*), avg(value) FROM samples WHERE experiment = 'e' AND metric = 'ns'
             AND json_extract(params, '$.n') = -3",
            [],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .unwrap();
    assert_eq!((n, mean), (2, 2.0));
}

#[test]
fn import_is_idempotent_and_carries_machines() {
    let (_dir, mut store) = fresh();
    let a = run("e", "2026-01-01T00:00:00Z", &[1.0]);
    let row = Submission {
        machine: "CPU".to_owned(),
        os: "Linux".to_owned(),
        timings: Timings::new(1.0, 2.0, None, 3.0).unwrap(),
        date: "2026-01-01".to_owned(),
    };
    let mut lines = Vec::new();
    export([a.clone()], [row.clone()], &mut lines).unwrap();
    let first = store
        .import_from(Cursor::new(&lines), Path::new("x"))
        .unwrap();
    assert_eq!((first.runs, first.submissions, first.known), (1, 1, 0));
    let again = store
        .import_from(Cursor::new(&lines), Path::new("x"))
        .unwrap();
    assert_eq!((again.runs, again.submissions, again.known), (0, 0, 2));
    assert_eq!(store.get(&a.id).unwrap(), a);
    assert_eq!(store.submissions().unwrap(), [row]);
}

#[test]
fn writers_take_turns() {
    let (_dir, store) = fresh();
    let path = store.path().to_owned();
    drop(store);
    let writers: Vec<_> = (0..4)
        .map(|w| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::create(&path).unwrap();
                for i in 0..10 {
                    let v = f64::from(w * 100 + i);
                    store.put(&run("e", "2026-01-01T00:00:00Z", &[v])).unwrap();
                }
            })
        })
        .collect();
    for w in writers {
        w.join().unwrap();
    }
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 40);
}
