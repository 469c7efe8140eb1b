//! A small measurement from the command line to its files and back.

use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::home::{Home, finish};
use rustix::process::{Pid, Signal, kill_process};

/// Words for a measurement that takes little time: two contestants, two rounds.
const SMALL: [&str; 10] = [
    "measure",
    "page-pool",
    "--group",
    "pair",
    "--contestant",
    "array-stack",
    "--rounds",
    "2",
    "--seed",
    "7",
];

/// A home with two small runs, taken once for all tests of this file. They must leave it as it is.
fn measured() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = Home::new();
        for _ in 0..2 {
            let (code, _, err) = home.run(&SMALL);
            assert_eq!(code, 0, "{err}");
        }
        home
    })
}

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

#[test]
fn a_measurement_leaves_database_and_page_and_prints_where() {
    let home = measured();
    assert!(home.data("larder.sqlite").exists());
    let page = std::fs::read_to_string(home.data("larder-report.html")).unwrap();
    assert!(
        page.starts_with("<!") || page.starts_with("<html"),
        "{}",
        &page[..40]
    );
    let runs = home.json(&["list", "--runs", "--json"]);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2));
    let (_, out, _) = home.run(&["list", "--runs"]);
    assert_eq!(out.lines().count(), 2, "{out}");
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let home = measured();
    let runs = home.json(&["list", "--runs", "--json"]);
    let ids: Vec<&str> = [0, 1]
        .iter()
        .filter_map(|i| runs["runs"][*i]["id"].as_str())
        .collect();
    let order = |id: &str| {
        let report = home.json(&["report", id, "--json"]);
        let run = &report["runs"][0]["run"];
        assert_eq!(run["seed"], 7);
        let samples = run["samples"].as_array().unwrap().clone();
        // The reference, its twin and the chosen contestant, twice.
        assert_eq!(samples.len(), 6);
        samples
            .iter()
            .map(|s| (s["round"].clone(), s["slot"].clone(), s["cell"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(ids[0]), order(ids[1]));
}

#[test]
fn every_sample_knows_its_process() {
    let home = measured();
    let report = home.json(&["report", "latest", "--json"]);
    for s in report["runs"][0]["run"]["samples"].as_array().unwrap() {
        for name in [
            "user_seconds",
            "minor_faults",
            "voluntary_switches",
            "max_rss_bytes",
        ] {
            let value = &s["measures"][format!("proc.{name}")];
            assert!(value.as_f64().is_some_and(|v| v >= 0.0), "{name}: {s}");
        }
    }
}

#[test]
fn every_format_of_the_report_is_printed() {
    let home = measured();
    for (format, part) in [
        ("table", "page-pool"),
        ("html", "<html"),
        ("markdown", "#"),
        ("json", "\"schema\""),
    ] {
        let (code, out, err) = home.run(&["report", "--format", format]);
        assert_eq!(code, 0, "{format}: {err}");
        assert!(out.contains(part), "{format}: {out}");
    }
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("page.html");
    let (code, out, err) = home.run(&["report", "latest", "--html", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.trim(), file.to_str().unwrap());
    assert!(file.exists());
}

#[test]
fn colours_are_asked_for_or_not_there() {
    let home = measured();
    let escape = "\u{1b}[";
    let has = |words: &[&str], vars: &[(&str, &str)]| {
        let mut command = home.larder(words);
        command.envs(vars.iter().copied());
        finish(&mut command).1.contains(escape)
    };
    assert!(!has(&["report"], &[]));
    assert!(has(&["report", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(has(&["report"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!has(
        &["report"],
        &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]
    ));
    assert!(!has(
        &["report", "--color", "never"],
        &[("CLICOLOR_FORCE", "1")]
    ));
}

#[test]
fn two_runs_are_compared_by_ratios() {
    let home = measured();
    let runs = home.json(&["list", "--runs", "--json"]);
    let (a, b) = (
        runs["runs"][1]["id"].as_str().unwrap(),
        runs["runs"][0]["id"].as_str().unwrap(),
    );
    let compared = home.json(&["compare", a, b, "--json"]);
    assert_eq!(compared["compared"]["no_times"], serde_json::Value::Null);
    let changes = compared["compared"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1);
    // Two rounds make no interval, so nothing may be claimed, and a gate must not pass.
    assert_eq!(changes[0]["verdict"]["verdict"], "refused");
    let (code, out, err) = home.run(&["compare", &a[..10], "latest", "--fail-on", "slower"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        out.contains("refused") && out.contains("array-stack"),
        "{out}"
    );
    let (code, _, err) = home.run(&["compare", a, "latest:zero-fill"]);
    assert_eq!(code, 2);
    assert!(err.contains("latest:zero-fill"), "{err}");
}

#[test]
fn runs_go_to_another_home_and_times_do_not() {
    let home = measured();
    let (code, lines, err) = home.run(&["export"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(lines.lines().count(), 3);
    let other = Home::new();
    std::fs::write(other.path().join("in.jsonl"), &lines).unwrap();
    let (code, out, err) = other.run(&["import", "in.jsonl"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("2 runs"), "{out}");
    assert_eq!(
        other.json(&["import", "in.jsonl", "--json"])["imported"]["known"],
        2
    );
    assert_eq!(other.run(&["export"]).1, lines);
    let cut = &lines[..lines.len() - 10];
    std::fs::write(other.path().join("cut.jsonl"), cut).unwrap();
    let (code, _, err) = other.run(&["import", "cut.jsonl"]);
    assert_eq!(code, 5);
    assert!(err.contains("cut.jsonl, line 3"), "{err}");
    let (code, _, err) = other.run(&["import", "none.jsonl"]);
    assert_eq!(code, 5, "{err}");
    let (code, _, err) = home.run(&["export", "--submission", "latest"]);
    assert_eq!(code, 4);
    assert!(err.contains("larder measure zero-fill"), "{err}");
}

#[test]
fn a_closed_pipe_loses_no_run() {
    let home = Home::new();
    let mut child = home
        .larder(&with(&SMALL, &["--json"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let runs = home.json(&["list", "--runs", "--json"]);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn json_holds_everything_and_no_save_saves_nothing() {
    let home = Home::new();
    let json = home.json(&with(&SMALL, &["--json", "--no-save"]));
    assert_eq!(json["schema"], 1);
    assert_eq!(json["runs"][0]["run"]["experiment"], "page-pool");
    assert_eq!(json["runs"][0]["analysis"]["experiment"], "page-pool");
    assert_eq!(json["files"]["page"], serde_json::Value::Null);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_run_is_repeated_from_its_record() {
    let home = Home::new();
    let db = home.path().join("own.sqlite");
    let db = db.to_str().unwrap();
    let (code, _, err) = home.run(&with(&SMALL, &["--db", db]));
    assert_eq!(code, 0, "{err}");
    let mut command = home.larder(&["rerun", "latest", "--json"]);
    let (code, out, err) = finish(command.env("LARDER_DB", db));
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["runs"][0]["run"]["seed"], 7);
    assert_eq!(json["runs"][0]["run"]["groups"][0]["rounds"], 2);
    let runs = home.json(&["list", "--runs", "--json", "--db", db]);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2));
}

/// What one experiment does not know is no part of the command line that its run keeps.
#[test]
fn each_of_several_experiments_is_repeated_with_its_own_words() {
    let home = Home::new();
    let (code, _, err) = home.run(&[
        "measure",
        "arenas",
        "page-pool",
        "--group=pair",
        "--contestant=quantum",
        "--contestant=array-stack",
        "--where=live=100",
        "--rounds=1",
    ]);
    assert_eq!(code, 0, "{err}");
    for run in ["latest:arenas", "latest:page-pool"] {
        let (code, _, err) = home.run(&["rerun", run]);
        assert_eq!(code, 0, "{run}: {err}");
    }
    // A record of another version may name what is gone.
    let (_, lines, _) = home.run(&["export", "latest:arenas"]);
    let lines = lines.replace("--contestant=quantum", "--contestant=quanta");
    std::fs::write(home.path().join("other.jsonl"), lines).unwrap();
    let (code, _, err) = home.run(&["import", "other.jsonl", "--db", "other.sqlite"]);
    if code == 0 {
        let (code, _, err) = home.run(&["rerun", "latest", "--db", "other.sqlite"]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("the nearest is 'quantum'"), "{err}");
    } else {
        // The id is a hash of the content.
        assert_eq!(code, 5, "{err}");
    }
}

#[test]
fn every_format_tells_what_the_twins_showed() {
    let home = measured();
    for format in ["table", "html", "markdown", "json"] {
        let (_, out, _) = home.run(&["report", "latest", "--format", format]);
        let text = out.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("{format}: no '{part}' in {text}"))
        };
        // Two rounds have no floor, and say so before the first table.
        let (floor, warning) = (at("A/A: no floor"), at("6 common rounds"));
        if format == "table" {
            assert!(floor < warning && warning < at("Goals ─"), "{out}");
        }
    }
}

#[test]
fn places_that_cannot_be_written_are_told_before_the_measurement() {
    let home = Home::new();
    std::fs::write(home.path().join("file"), "x").unwrap();
    let (code, out, err) = home.run(&with(&SMALL, &["--db", "file/db.sqlite"]));
    assert_eq!(code, 5, "{err}");
    assert!(
        err.contains("file/db.sqlite") && err.contains("--db"),
        "{err}"
    );
    assert!(out.is_empty());
    let (code, _, err) = home.run(&with(&SMALL, &["--db", "file"]));
    assert_eq!(code, 5, "{err}");
    assert_eq!(
        std::fs::read_to_string(home.path().join("file")).unwrap(),
        "x"
    );
}

#[test]
fn no_time_for_a_single_round_is_4_and_stores_nothing() {
    let home = Home::new();
    let (code, out, err) = home.run(&with(&SMALL, &["--time-cap", "1ms"]));
    assert_eq!(code, 4, "{err}");
    assert!(out.contains("--time-cap"), "{out}");
    let runs = home.json(&["list", "--runs", "--json"]);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn quiet_is_quiet() {
    let home = Home::new();
    let (code, _, err) = home.run(&with(&SMALL, &["--quiet", "--no-save"]));
    assert_eq!((code, err.as_str()), (0, ""));
}

/// Starts a measurement that would take long and waits until it is on its way.
fn long(home: &Home) -> std::process::Child {
    let child = home
        .larder(&[
            "measure",
            "page-pool",
            "--group",
            "pair",
            "--loop",
            "--rounds",
            "75",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first worker exists when the handler of Ctrl-C does.
    let begin = Instant::now();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    while std::fs::read_to_string(&children)
        .unwrap_or_default()
        .is_empty()
    {
        assert!(begin.elapsed() < Duration::from_secs(120), "no worker came");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn interrupt(child: &std::process::Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn ctrl_c_keeps_complete_rounds_and_reports_them() {
    let home = Home::new();
    let child = long(&home);
    // A few rounds, so that some cells are complete, but too few for the group to be precise and end by itself.
    std::thread::sleep(Duration::from_secs(1));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("complete rounds are kept"), "{err}");
    let runs = home.json(&["list", "--runs", "--json"]);
    if runs["runs"].as_array().is_some_and(Vec::is_empty) {
        // A slow machine: nothing was complete, which is said.
        assert_eq!(output.status.code(), Some(4), "{err}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{err}");
    let report = home.json(&["report", "latest", "--json"]);
    let run = &report["runs"][0]["run"];
    assert_eq!(run["groups"][0]["stopped"], "interrupted");
    let rounds = run["groups"][0]["rounds"].as_u64().unwrap();
    let samples = run["samples"].as_array().unwrap().len() as u64;
    assert_eq!(samples % rounds, 0, "{samples} samples in {rounds} rounds");
}

#[test]
fn a_second_ctrl_c_quits_at_once_and_takes_the_worker_along() {
    let home = Home::new();
    let mut child = long(&home);
    let deadline = Instant::now() + Duration::from_secs(60);
    // The second one must come while the first cell is being finished, so they are sent until it ends.
    let status = loop {
        interrupt(&child);
        std::thread::sleep(Duration::from_millis(2));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end");
    };
    assert_eq!(status.code(), Some(130));
}
