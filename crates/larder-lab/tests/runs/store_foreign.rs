//! What comes from another database is checked, marked, never the latest, and no source of settings.

use std::io::Cursor;
use std::path::Path;

use crate::home::Home;
use crate::stored::{fresh, run};
use larder_lab::calc::{Submission, Timings};
use larder_lab::model::{Measures, RunRecord};
use larder_lab::store::{Selector, Store, StoreError, export, id_of};

const DAY: &str = "2026-01-01T00:00:00Z";

/// A run whose content was changed, under the name that its new content has.
fn forged(change: impl FnOnce(&mut RunRecord)) -> RunRecord {
    let mut run = run("e", DAY, &[1.0, 2.0]);
    change(&mut run);
    run.id = id_of(&run);
    run
}

fn lines(runs: &[RunRecord], rows: &[Submission]) -> String {
    let mut text = Vec::new();
    export(runs.to_vec(), rows.to_vec(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn import(store: &mut Store, text: &str) -> Result<(), StoreError> {
    store
        .import_from(Cursor::new(text.to_owned()), Path::new("f.jsonl"))
        .map(drop)
}

#[test]
fn a_field_that_the_lab_cannot_have_written_is_refused_with_its_name_and_value() {
    let (_dir, mut store) = fresh();
    let started = |text: &'static str| forged(move |r| r.started = text.to_owned());
    let measure = |v: f64| forged(move |r| r.samples[1].measures = Measures::new().with("ns", v));
    for (bad, field, value) in [
        (
            started("9999-99-99T99:99:99Z<script>"),
            "started",
            "9999-99-99",
        ),
        (started("9999-01-01T00:00:00Z"), "started", "in the future"),
        (started("2026-02-29T00:00:00Z"), "started", "2026-02-29"),
        (started("2026-01-01T24:00:00Z"), "started", "T24"),
        (started("2026-1-1T00:00:00Z"), "started", "2026-1-1"),
        (started("2026-01-01T00:00:00+01:00"), "started", "+01:00"),
        (started("2026-01-01T00:00:00Z\n"), "started", "\\n"),
        (started(" 2026-01-01T00:00:00Z"), "started", "' 2026"),
        (started(""), "started", "''"),
        (forged(|r| r.seconds = -1.0), "seconds", "-1"),
        (forged(|r| r.seconds = 1e308), "seconds", "1e308"),
        (forged(|r| r.depth = "deep".into()), "depth", "deep"),
        (forged(|r| r.experiment = "<b>".into()), "experiment", "<b>"),
        (forged(|r| r.experiment = String::new()), "experiment", "''"),
        (
            forged(|r| r.noise.steal_percent = Some(-3.0)),
            "noise.steal_percent",
            "-3",
        ),
        (
            forged(|r| r.noise.load = Some((0.0, -1.0))),
            "noise.load[1]",
            "-1",
        ),
        (
            forged(|r| r.samples[1].at_us = 1 << 60),
            "samples[1].at_us",
            "1.152921504606847e18",
        ),
        (measure(-1e308), "samples[1].measures.ns", "-1e308"),
        (measure(-0.5), "samples[1].measures.ns", "-0.5"),
        (measure(1.7e308), "samples[1].measures.ns", "1.7e308"),
        (
            forged(|r| r.samples.push(r.samples[1].clone())),
            "samples[2]",
            "already",
        ),
        (
            forged(|r| r.samples[1].slot = r.samples[0].slot),
            "samples[1]",
            "already",
        ),
        (
            forged(|r| r.samples[1].cell.twin = false),
            "samples[1]",
            "already",
        ),
    ] {
        let text = lines(&[run("e", DAY, &[7.0]), bad], &[]);
        let said = import(&mut store, &text).unwrap_err().to_string();
        assert!(
            said.contains("f.jsonl, line 3") && said.contains(&format!("'{field}'")),
            "{field}: {said}"
        );
        assert!(said.contains(value) && said.contains("expected"), "{said}");
        assert!(store.list().unwrap().is_empty());
    }
    // The lab's own runs have differences below zero.
    let difference = forged(|r| {
        r.samples[0].cell.contestant = "step-zeroing".to_owned();
        r.samples[0].measures = Measures::new().with("ns_per_op", -2.5);
    });
    let shrunk = forged(|r| {
        r.samples[0].measures = Measures::new().with("growth_bytes_per_s", -1e-22);
    });
    import(&mut store, &lines(&[difference, shrunk], &[])).unwrap();
}

#[test]
fn a_row_of_a_machine_has_a_day_that_exists() {
    let (_dir, mut store) = fresh();
    let row = |date: &str| Submission {
        machine: "CPU".to_owned(),
        os: "Linux".to_owned(),
        timings: Timings::new(1.0, 2.0, None, 3.0).unwrap(),
        date: date.to_owned(),
    };
    for bad in [
        "",
        "2026-02-30",
        "9999-12-31",
        "2026-01-01T00:00:00Z",
        "<i>",
    ] {
        let said = import(&mut store, &lines(&[], &[row(bad)]))
            .unwrap_err()
            .to_string();
        assert!(said.contains("line 2: 'date' is"), "{bad}: {said}");
    }
    import(&mut store, &lines(&[], &[row("2026-01-01")])).unwrap();
    assert_eq!(store.submissions().unwrap().len(), 1);
}

#[test]
fn an_imported_run_is_marked_and_never_the_latest() {
    let (_dir, mut store) = fresh();
    let own = run("e", "2026-01-01T00:00:00Z", &[1.0]);
    let foreign = run("e", "2026-01-02T00:00:00Z", &[1.0]);
    let latest = |store: &Store| store.resolve(&Selector::Latest(None));
    import(&mut store, &lines(std::slice::from_ref(&foreign), &[])).unwrap();
    let said = latest(&store).unwrap_err().to_string();
    assert!(
        said.contains("1 imported runs are never the latest"),
        "{said}"
    );
    store.put(&own).unwrap();
    // Back from an export of this database: known, and still an own run.
    import(&mut store, &lines(&[own.clone(), foreign.clone()], &[])).unwrap();
    assert_eq!(latest(&store).unwrap(), own.id);
    let list = store.list().unwrap();
    let marks: Vec<_> = list.iter().map(|r| (r.id.as_str(), r.imported)).collect();
    assert_eq!(
        marks,
        [(foreign.id.as_str(), true), (own.id.as_str(), false)]
    );
    assert_eq!(store.get(&foreign.id).unwrap(), foreign);
}

#[test]
fn the_error_of_a_changed_run_does_not_say_the_name_that_would_pass() {
    let (_dir, mut store) = fresh();
    let mut changed = run("e", DAY, &[1.0]);
    changed.seconds = 7.0;
    let said = import(&mut store, &lines(&[changed.clone()], &[]))
        .unwrap_err()
        .to_string();
    assert!(said.contains("changed after it was taken"), "{said}");
    assert!(!said.contains(&id_of(&changed)), "{said}");
}

/// A database as layout 1 had it.
fn layout_1(store: &Store) {
    let raw = rusqlite::Connection::open(store.path()).unwrap();
    raw.execute_batch(
        "DROP VIEW samples; ALTER TABLE run DROP COLUMN imported; CREATE VIEW samples AS SELECT 1; PRAGMA user_version = 1",
    )
    .unwrap();
}

#[test]
fn a_database_of_the_layout_before_opens_and_what_has_an_impossible_date_is_imported() {
    let (_dir, mut store) = fresh();
    let own = run("e", DAY, &[1.0]);
    let planted = run("e", "9999-99-99T99:99:99Z<script>", &[2.0]);
    store.put(&own).unwrap();
    store.put(&planted).unwrap();
    layout_1(&store);
    let path = store.path().to_owned();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.latest(None).unwrap(), Some(own.id.clone()));
    assert_eq!(
        store.imported().unwrap().into_iter().collect::<Vec<_>>(),
        [planted.id]
    );
    assert_eq!(store.get(&own.id).unwrap(), own);
}

#[test]
fn a_database_of_the_layout_before_opens_where_nothing_can_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, mut store) = fresh();
    let own = run("e", DAY, &[1.0]);
    store.put(&own).unwrap();
    layout_1(&store);
    let path = store.path().to_owned();
    drop(store);
    let parent = path.parent().unwrap();
    for (place, mode) in [(path.as_path(), 0o444), (parent, 0o555)] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
    assert_eq!(store.get(&own.id).unwrap(), own);
    drop(store);
    std::fs::set_permissions(parent, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(dir);
}

#[test]
fn a_run_that_only_the_index_has_lost_is_damage_and_no_wrong_name() {
    let (_dir, mut store) = fresh();
    let lost = run("e", DAY, &[1.0]);
    store.put(&lost).unwrap();
    let path = store.path().to_owned();
    drop(store);
    // In the table the experiment follows the id, in the record a quote, in the index neither.
    let mut bytes = std::fs::read(&path).unwrap();
    let id = lost.id.as_bytes();
    let row = [id, b"e", DAY.as_bytes()].concat();
    let at: Vec<usize> = (0..bytes.len() - row.len())
        .filter(|at| bytes[*at..].starts_with(id) && bytes[at + 32] != b'"')
        .filter(|at| !bytes[*at..].starts_with(&row))
        .collect();
    assert_eq!(at.len(), 1);
    bytes[at[0]..][..32].fill(b'x');
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
    for asked in [&lost.id, &lost.id[..12]] {
        let said = store
            .resolve(&Selector::Prefix(asked.to_owned()))
            .and_then(|id| store.get(&id))
            .unwrap_err();
        assert!(matches!(said, StoreError::Damaged { .. }), "{said}");
        assert!(said.to_string().contains(".recover"), "{said}");
    }
}

#[test]
fn a_report_of_imported_runs_and_rows_alone_is_one_and_no_settings_follow() {
    let home = Home::new();
    std::fs::write(
        home.path().join("run.jsonl"),
        lines(&[run("zero-fill", DAY, &[1.0])], &[]),
    )
    .unwrap();
    let row = Submission {
        machine: "qx<b>7".to_owned(),
        os: "Linux".to_owned(),
        timings: Timings::new(1.0, 2.0, None, 3.0).unwrap(),
        date: "2026-01-01".to_owned(),
    };
    std::fs::write(home.path().join("row.jsonl"), lines(&[], &[row])).unwrap();
    assert_eq!(home.run(&["import", "row.jsonl"]).0, 0);
    let (code, out, err) = home.run(&["report"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("qx<b>7"), "{out}");

    assert_eq!(home.run(&["import", "run.jsonl"]).0, 0);
    let (code, out, err) = home.run(&["report"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("This run was imported"), "{out}");
    let json = home.json(&["report", "--json"]);
    assert_eq!(json["runs"][0]["imported"], true);
    let runs = home.json(&["list", "--runs", "--json"]);
    assert_eq!(runs["runs"][0]["imported"], true);
    assert!(home.run(&["list", "--runs"]).1.contains("imported"));

    let id = runs["runs"][0]["id"].as_str().unwrap();
    let (code, _, err) = home.run(&["settings", id]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("was imported"), "{err}");
    for words in [
        ["settings", "--json"],
        ["report", "latest"],
        ["rerun", "latest"],
    ] {
        let (code, _, err) = home.run(&words);
        assert_eq!(code, 2, "{words:?}: {err}");
        assert!(err.contains("imported runs are never the latest"), "{err}");
    }
}
