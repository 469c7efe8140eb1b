//! Limits, links and places: each is said as what it is, and none ends the program by a signal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::home::{Home, finish, install};

/// The program under a shell's limits.
fn limited(home: &Home, limit: &str, words: &str) -> (i32, String, String) {
    let mut command = Command::new("bash");
    command
        .args([
            "-c",
            &format!("{limit}; exec \"$0\" {words}"),
            env!("CARGO_BIN_EXE_larder"),
        ])
        .current_dir(home.path())
        .env("HOME", home.path());
    finish(&mut command)
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_signal() {
    let home = Home::new();
    for words in [
        "list --json > out",
        "measure page-pool --group pair --contestant array-stack --rounds 1 --db new.sqlite > out",
        "trace convert scan:requests=1e5 x.txt",
    ] {
        let (code, _, err) = limited(&home, "ulimit -f 1", words);
        assert_eq!(code, 5, "{words}: {err}");
        assert!(
            err.contains("cannot be written") || err.contains("could not be written"),
            "{err}"
        );
    }
}

#[test]
fn a_stack_that_is_too_small_is_refused() {
    let home = Home::new();
    let (code, _, err) = limited(&home, "ulimit -s 64", "list");
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("64 KiB") && err.contains("ulimit -s"), "{err}");
    assert_eq!(limited(&home, "ulimit -s 512", "list").0, 0);
}

#[test]
fn a_trace_that_cannot_be_opened_is_said_as_what_it_is() {
    let home = Home::new();
    std::os::unix::fs::symlink("loop", home.path().join("loop")).unwrap();
    std::os::unix::fs::symlink("self", home.path().join("self")).unwrap();
    fs::create_dir(home.path().join("zipf")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    for (words, code, part) in [
        (["sim", "loop"], 5, "symbolic links"),
        (["sim", "self"], 5, "symbolic links"),
        (["sim", "zipf"], 2, "is a directory"),
        (["sim", "file/x"], 5, "Not a directory"),
        (["sim", "scan"], 5, "is written scan:"),
        (["sim", "none"], 5, "No such file"),
    ] {
        let (got, _, err) = home.run(&words);
        assert!(got == code && err.contains(part), "{words:?}: {got} {err}");
    }
    let closed = home.path().join("mixed");
    fs::write(&closed, "1\n").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&closed).is_err() {
        let (code, _, err) = home.run(&["sim", "mixed"]);
        assert!(code == 5 && err.contains("Permission denied"), "{err}");
    }
}

#[test]
fn no_directory_is_made_but_the_programs_own() {
    let home = Home::new();
    let import = home.path().join("in.jsonl");
    fs::write(&import, "{\"format\":\"larder results\",\"schema\":1}\n").unwrap();
    assert_eq!(home.run(&["import", "in.jsonl"]).0, 0);
    assert!(home.data("larder.sqlite").exists());
    for words in [
        &["export", "--out", "none/x.jsonl"][..],
        &["measure", "page-pool", "--out", "none/x.html"],
        &["import", "in.jsonl", "--db", "none/x.sqlite"],
        &["measure", "page-pool", "--db", "none/x.sqlite"],
        &["sim", "scan:requests=10", "--html", "none/x.html"],
        &[
            "sim",
            "run",
            "--shard",
            "1/1",
            "scan:requests=10",
            "--out",
            "none/x",
        ],
    ] {
        let (code, _, err) = home.run(words);
        assert_eq!(code, 5, "{words:?}: {err}");
        assert!(err.contains("no directory none"), "{words:?}: {err}");
        assert!(!home.path().join("none").exists(), "{words:?}");
    }
}

/// A program that stands for strace: it writes what a command did, and ends as that command does.
fn follower(home: &Home) {
    let script = "#!/bin/bash\n\
        while [ \"$1\" != -o ]; do shift; done\n\
        out=$2; shift 3\n\
        printf '%s\\n' '7 1700000000.000001 openat(AT_FDCWD</>, \"a\", O_RDONLY) = 3</a>' \
        '7 1700000000.000002 read(3</a>, \"x\"..., 4096) = 4096' \
        '7 1700009000.000003 read(3</a>, \"x\"..., 8192) = 8192' > \"$out\"\n\
        [ \"$1\" = nothing ] && { : > \"$out\"; exit 3; }\n\
        grep SigIgn /proc/$$/status > ignored\n\
        exec \"$@\"\n";
    let text = home.path().join("follow.sh");
    fs::write(&text, script).unwrap();
    install(&text, &home.path().join("follow"));
}

fn record(home: &Home, out: &str, command: &[&str]) -> (i32, String, String) {
    let words = ["trace", "record", "--strace", "./follow", "-o", out, "--"];
    home.run(&[&words[..], command].concat())
}

#[test]
fn a_recorded_commands_exit_status_is_passed_on_and_its_trace_is_written() {
    let home = Home::new();
    follower(&home);
    for (name, script, code) in [
        ("a.csv", "exit 0", 0),
        ("b.csv", "exit 7", 7),
        ("c.csv", "kill -TERM $$", 143),
    ] {
        let (got, _, err) = record(&home, name, &["bash", "-c", script]);
        assert_eq!(got, code, "{err}");
        assert_eq!(home.json(&["trace", "info", name, "--json"])["uses"], 3);
    }
    let (code, _, err) = record(&home, "d.csv", &["nothing"]);
    assert_eq!(code, 3);
    assert!(err.contains("has no request in it"), "{err}");
    // The handler of SIGXFSZ (25) is the program's own.
    let ignored = fs::read_to_string(home.path().join("ignored")).unwrap();
    let mask = u64::from_str_radix(ignored.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(mask >> 24 & 1, 0, "{ignored}");
}

#[test]
fn a_recording_converts_to_every_format_that_is_written() {
    let home = Home::new();
    follower(&home);
    let formats = home.json(&["trace", "formats", "--json"]);
    let written: Vec<_> = formats["formats"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["written"] == true)
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    assert_eq!(written.len(), 11);
    assert_eq!(record(&home, "r.csv", &["true"]).0, 0);
    for name in written {
        let (direct, later) = (format!("d.{name}"), format!("l.{name}"));
        let (code, _, err) = record(&home, &direct, &["true"]);
        assert_eq!(code, 0, "{name}: {err}");
        let dense = if name.contains("32") {
            "--dense"
        } else {
            "--quiet"
        };
        let (code, _, err) = home.run(&["trace", "convert", "r.csv", &later, dense]);
        assert_eq!(code, 0, "{name}: {err}");
        for file in [direct, later] {
            let info = home.json(&["trace", "info", &file, "--json"]);
            assert_eq!(
                (&info["uses"], &info["blocks"]),
                (&3.into(), &3.into()),
                "{file}"
            );
        }
    }
    // Of a table that does not say that these are microseconds, nine thousand seconds are more of them than 32 bits count: thousands of
    // them, from the first use on.
    let table = fs::read_to_string(home.path().join("r.csv")).unwrap();
    assert!(table.contains("time_us"), "{table}");
    let table = table.replace("time_us", "time");
    fs::write(home.path().join("plain.csv"), table).unwrap();
    let (_, _, err) = home.run(&["trace", "convert", "plain.csv", "x.oracleGeneral"]);
    assert!(
        err.contains("counted from the first one, and divided by 1000"),
        "{err}"
    );
    let info = home.json(&["trace", "info", "x.oracleGeneral", "--json"]);
    assert_eq!(
        (&info["begin"], &info["end"]),
        (&0.into(), &9_000_000.into())
    );
    for file in ["d.oracleGeneral", "l.oracleGeneral"] {
        let info = home.json(&["trace", "info", file, "--json"]);
        assert_eq!(
            (&info["begin"], &info["end"]),
            (&1_700_000_000.into(), &1_700_009_000.into()),
            "{file}"
        );
    }
}
