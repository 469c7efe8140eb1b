//! `measure --continue`: what Ctrl-C left is taken later, into the same record.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::home::Home;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A measurement of two experiments that is interrupted in the first, after a complete round; what it said.
fn interrupted(home: &Home) -> String {
    let words = "measure page-pool id-space --group pair --group last-freed --loop --rounds 5 --time-cap 10m --seed 7";
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = home.larder(&words);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A round has eight workers.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let (begin, mut seen) = (Instant::now(), BTreeSet::new());
    while seen.len() < 20 {
        let now = std::fs::read_to_string(&children).unwrap_or_default();
        seen.extend(now.split_whitespace().map(str::to_owned));
        assert!(begin.elapsed() < Duration::from_secs(240), "{seen:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{err}");
    err
}

fn runs(home: &Home) -> Vec<Value> {
    let list = home.json(&["list", "--runs", "--json"]);
    list["runs"].as_array().unwrap().clone()
}

fn run(home: &Home, name: &str) -> Value {
    home.json(&["report", name, "--json"])["runs"][0]["run"].clone()
}

/// Changes what the database says of the interrupted measurement while `then` runs.
fn with_changed(home: &Home, field: &str, then: impl Fn() -> (i32, String, String)) -> String {
    let database = Connection::open(home.data("larder.sqlite")).unwrap();
    let ask = "SELECT record FROM unfinished";
    let text: String = database.query_row(ask, [], |r| r.get(0)).unwrap();
    let set = |text: &str| {
        let changed = database.execute("UPDATE unfinished SET record = ?1", [text]);
        assert_eq!(changed.unwrap(), 1);
    };
    let mut record: Value = serde_json::from_str(&text).unwrap();
    let value = record.pointer_mut(field).unwrap();
    assert!(value.is_string(), "{field}: {value}");
    *value = "another".into();
    set(&record.to_string());
    let (code, out, err) = then();
    set(&text);
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    err
}

#[test]
fn what_ctrl_c_left_is_taken_later_into_the_same_record() {
    let home = Home::new();
    let (code, _, err) = home.run(&["measure", "--continue"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("no interrupted measurement"), "{err}");

    let err = interrupted(&home);
    assert!(err.contains("larder measure --continue"), "{err}");
    let part = run(&home, "latest:page-pool");
    assert_eq!(part["groups"][0]["stopped"], "interrupted");

    let go = || home.run(&["measure", "--continue"]);
    for (field, told) in [
        ("/program", "another build"),
        (
            "/machine/fields/thp.enabled/known",
            "thp.enabled was another",
        ),
        ("/broken/plan", "the plan of 'page-pool'"),
    ] {
        let err = with_changed(&home, field, go);
        assert!(err.contains(told) && err.contains("--seed=7"), "{err}");
    }
    assert_eq!(runs(&home).len(), 1);
    assert_eq!(run(&home, "latest"), part);

    let (code, out, err) = go();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("2 of 2, id-space"), "{err}");
    assert!(out.contains("larder-report.html"), "{out}");
    assert_eq!(runs(&home).len(), 2, "the record grew, and one came");
    let whole = run(&home, "latest:page-pool");
    for field in ["started", "seed", "argv", "depth", "machine"] {
        assert_eq!(whole[field], part[field], "{field}");
    }
    assert_ne!(whole["groups"][0]["stopped"], "interrupted");
    let rounds = |run: &Value| run["groups"][0]["rounds"].as_u64().unwrap();
    assert!(rounds(&whole) > rounds(&part), "{}", rounds(&part));
    let places = |run: &Value| -> BTreeSet<String> {
        let samples = run["samples"].as_array().unwrap();
        let place = |s: &Value| format!("{} {} {}", s["round"], s["slot"], s["cell"]);
        let places: BTreeSet<String> = samples.iter().map(place).collect();
        assert_eq!(places.len(), samples.len(), "a place is taken twice");
        places
    };
    assert!(places(&whole).is_superset(&places(&part)));
    assert_eq!(places(&whole).len() as u64, rounds(&whole) * 8);
    let warnings = whole["noise"]["warnings"].to_string();
    assert!(warnings.contains("interrupted and continued"), "{warnings}");

    let (code, _, err) = go();
    assert_eq!(code, 4, "{err}");
}
