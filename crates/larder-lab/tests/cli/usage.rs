//! Help, usage errors, exit codes, pipes.

use std::fs::File;
use std::process::Stdio;

use crate::home::{Home, finish};

const COMMANDS: [&str; 13] = [
    "measure",
    "list",
    "report",
    "compare",
    "rerun",
    "machine",
    "export",
    "import",
    "calc",
    "settings",
    "completions",
    "man",
    "help",
];

#[test]
fn help_shows_every_command_with_examples_and_hides_the_worker() {
    let home = Home::new();
    let (code, out, _) = home.run(&["--help"]);
    assert_eq!(code, 0);
    for command in COMMANDS {
        assert!(out.contains(&format!("\n  {command}")), "{command}: {out}");
    }
    assert!(!out.contains("worker"));
    assert!(out.contains("Exit codes"));
    for command in &COMMANDS[..12] {
        let (code, out, _) = home.run(&[command, "--help"]);
        assert_eq!(code, 0, "{command}");
        assert!(
            out.contains("Examples:") && out.contains("larder"),
            "{command}: {out}"
        );
    }
    let (code, out, _) = home.run(&["--version"]);
    assert_eq!(
        (code, out.as_str()),
        (0, concat!("larder ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

#[test]
fn wrong_usage_is_2_with_a_reason_on_stderr() {
    let home = Home::new();
    for (words, part) in [
        (vec![], "Usage"),
        (vec!["mesure"], "measure"),
        (vec!["measure", "nonsense"], "page-buffers"),
        (vec!["measure", "--quick", "--full"], "cannot be used"),
        (vec!["measure", "--time-cap", "soon"], "is not a time"),
        (vec!["measure", "--time-cap", "0"], "more than zero"),
        (vec!["measure", "--rounds", "0"], "--rounds"),
        (vec!["measure", "--seed", "-1"], "-1"),
        (vec!["measure", "--seed", "x"], "--seed"),
        (vec!["list", "nonsense"], "there is no experiment"),
        (vec!["compare", "latest"], "RUN"),
        (vec!["report", "--format", "xml"], "markdown"),
        (vec!["completions", "cmd"], "bash"),
        (vec!["--color", "sometimes", "list"], "always"),
    ] {
        let (code, out, err) = home.run(&words);
        assert_eq!(code, 2, "{words:?}: {err}");
        assert!(err.contains(part), "{words:?}: {err}");
        assert!(out.is_empty(), "{words:?}: {out}");
    }
}

/// Every word that selects nothing is named, with what there is, and nothing is measured or written.
#[test]
fn a_filter_that_matches_nothing_is_2_and_names_the_word() {
    let home = Home::new();
    for (filters, parts) in [
        (
            &["--contestant", "quantm"][..],
            &["'quantm'", "the nearest is 'quantum'", "there are: "][..],
        ),
        (&["--group", "par"], &["'par'", "'pair'", "churn"]),
        (&["--where", "foo=bar"], &["factor 'foo'", "live"]),
        (&["--where", "live=7"], &["'7'", "factor 'live'", "100, "]),
        (&["--where", "live=100,7"], &["'7'"]),
        // Known one by one: the best fit runs with few ranges only.
        (
            &["--contestant", "best", "--where", "live=100000"],
            &["--contestant 'best'", "together"],
        ),
    ] {
        for more in [
            &["--no-save"][..],
            &["--plan"],
            &["--json"],
            &["--plan", "--json"],
        ] {
            let words = [&["measure", "arenas"], filters, more].concat();
            let (code, out, err) = home.run(&words);
            assert_eq!(code, 2, "{words:?}: {err}");
            for part in parts {
                assert!(err.contains(part), "{words:?}: {err}");
            }
            assert!(out.is_empty(), "{words:?}: {out}");
        }
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    let (code, _, err) = home.run(&["list", "page-pol"]);
    assert_eq!(code, 2);
    assert!(err.contains("the nearest is 'page-pool'"), "{err}");
}

#[test]
fn a_word_must_match_in_one_of_the_experiments() {
    let home = Home::new();
    let plans = |words: &[&str]| {
        let plan = home.json(&[&["measure", "--plan", "--json"], words].concat());
        let plans = plan["plans"].as_array().unwrap().clone();
        plans
            .iter()
            .map(|p| p["experiment"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // Experiments of which nothing is selected are left out.
    let both = ["arenas", "page-pool"];
    let with = |words: &[&'static str]| [&both[..], words].concat();
    assert_eq!(plans(&with(&["--contestant", "quantum"])), ["arenas"]);
    assert_eq!(plans(&with(&["--group", "handover"])), ["page-pool"]);
    assert_eq!(
        plans(&with(&[
            "--contestant",
            "quantum",
            "--contestant",
            "array-stack"
        ])),
        both
    );
    // A factor says nothing about cells that lack it.
    assert_eq!(plans(&with(&["--where", "live=100"])), both);
    assert_eq!(plans(&["--group", "handover"]), ["page-pool"]);
    let words = with(&["--contestant", "quantum", "--group", "handover", "--plan"]);
    let (code, _, err) = home.run(&[&["measure"], &words[..]].concat());
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("together"), "{err}");
}

#[test]
fn a_name_that_is_not_text_is_no_panic() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe.sqlite");
    let (code, _, err) = finish(home.larder(&["list", "--runs", "--db"]).arg(odd));
    assert_eq!(code, 4, "{err}");
    let (code, _, err) = finish(home.larder(&["measure"]).arg(odd));
    assert_eq!(code, 2, "{err}");
}

#[test]
fn without_a_database_there_is_a_remedy() {
    let home = Home::new();
    for words in [
        vec!["report"],
        vec!["list", "--runs"],
        vec!["compare", "latest", "latest"],
        vec!["rerun", "latest"],
        vec!["export"],
        vec!["settings"],
    ] {
        let (code, out, err) = home.run(&words);
        assert_eq!(code, 4, "{words:?}: {err}");
        assert!(
            err.starts_with("larder: ") && err.contains("larder measure"),
            "{err}"
        );
        assert!(out.is_empty());
    }
}

#[test]
fn json_can_be_parsed_and_has_a_schema() {
    let home = Home::new();
    for words in [
        vec!["list", "--json"],
        vec!["list", "page-pool", "--json"],
        vec!["machine", "--json"],
        vec!["measure", "--plan", "--json"],
        vec!["calc", "--list", "--json"],
        vec!["--json", "calc", "11.2", "24.0", "11.5", "33.6"],
    ] {
        assert_eq!(home.json(&words)["schema"], 1, "{words:?}");
    }
}

#[test]
fn the_plan_measures_nothing_and_writes_nothing() {
    let home = Home::new();
    let (code, out, err) = home.run(&["measure", "--plan", "--time-cap", "3s"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for part in [
        "page-buffers:",
        "page-pool:",
        "zero-fill:",
        "cut to 3 s by the time cap",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_machine_record_names_nobody() {
    let home = Home::new();
    let (_, out, _) = home.run(&["machine", "--json"]);
    assert!(!out.contains(home.path().to_str().unwrap()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // A short name such as `a` is in every text.
    if host.trim().len() > 5 {
        assert!(!out.contains(host.trim()), "{out}");
    }
}

#[test]
fn a_closed_pipe_is_success() {
    let home = Home::new();
    for words in [
        vec!["--help"],
        vec!["list"],
        vec!["list", "page-pool"],
        vec!["machine"],
        vec!["machine", "--json"],
        vec!["measure", "--plan"],
        vec!["measure", "--plan", "--json"],
        vec!["calc", "--list"],
        vec!["completions", "bash"],
        vec!["man"],
    ] {
        let mut child = home
            .larder(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {err}");
        assert_eq!(err, "", "{words:?}");
    }
}

#[test]
fn a_full_disk_is_5() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full");
        return;
    }
    let home = Home::new();
    for words in [
        vec!["list"],
        vec!["machine", "--json"],
        vec!["completions", "zsh"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, _, err) = finish_to(home.larder(&words), full);
        assert_eq!(code, 5, "{words:?}: {err}");
        assert!(err.starts_with("larder: standard output"), "{err}");
    }
}

fn finish_to(mut command: std::process::Command, out: File) -> (i32, (), String) {
    let output = command
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    (
        output.status.code().unwrap_or(-1),
        (),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn completions_and_manual_exist() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = home.run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(
            out.contains("page-buffers") || out.contains("measure"),
            "{shell}"
        );
        assert!(!out.contains("--contestant SECRET"));
    }
    let (code, out, _) = home.run(&["man"]);
    assert_eq!(code, 0);
    assert!(out.contains(".TH larder"), "{out}");
    let (code, _, err) = home.run(&["man", "pages/man1"]);
    assert_eq!(code, 0, "{err}");
    let page = std::fs::read_to_string(home.path().join("pages/man1/larder-measure.1")).unwrap();
    assert!(
        page.contains(".TH larder-measure") && page.contains("Ctrl\\-C"),
        "{page}"
    );
    assert!(!home.path().join("pages/man1/larder-worker.1").exists());
}

#[test]
fn settings_by_hand_can_be_checked() {
    let home = Home::new();
    let file = home.path().join("s.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        home.run(&["settings", "--check", "s.toml"])
    };
    assert_eq!(check("version = 1\n[pages]\ncluster_pages = 64\n").0, 0);
    for (text, part) in [
        ("version = 1\n[pages]\ncluster_pages = 0\n", "cluster_pages"),
        ("version = 1\n[pages]\nzeroing = \"magic\"\n", "zeroing"),
        ("version = 1\n[heap]\nx = 1\n", "heap"),
        ("\u{0}", "s.toml"),
    ] {
        let (code, _, err) = check(text);
        assert_eq!(code, 5, "{text}");
        assert!(err.contains(part) && err.contains("s.toml"), "{err}");
    }
    let (code, _, err) = home.run(&["settings", "--check", "none.toml"]);
    assert_eq!(code, 5);
    assert!(err.contains("none.toml"), "{err}");
}
