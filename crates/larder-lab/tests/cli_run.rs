//! `larder run`: another program on larder's malloc.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

mod cli_common;

use std::path::{Path, PathBuf};
use std::process::Command;

use cli_common::{Home, finish};

/// The library, built as the message of `larder run` says.
fn library() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "-p",
            "larder-malloc",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let at = text.find("liblarder_malloc.so\"").unwrap() + "liblarder_malloc.so".len();
    let from = text[..at].rfind('"').unwrap() + 1;
    PathBuf::from(&text[from..at])
}

fn run(home: &Home, library: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = home.larder(&["run", "--library"]);
    finish(command.arg(library).args(words))
}

#[test]
fn the_program_is_as_it_was_and_says_what_it_allocated() {
    let (home, library) = (Home::new(), library());
    let (code, out, err) = run(
        &home,
        &library,
        &["--stats", "--mode", "locked", "--", "ls", "-d", "/"],
    );
    assert_eq!((code, out.as_str()), (0, "/\n"), "{err}");
    assert!(
        err.starts_with("larder: locked; resident at most "),
        "{err}"
    );
    assert!(err.contains("out of slabs"), "{err}");
    // Its arguments are its own, also those that look like ours.
    let (code, out, _) = run(&home, &library, &["--", "echo", "--stats", "--help"]);
    assert_eq!((code, out.as_str()), (0, "--stats --help\n"));

    let file = home.path().join("stats.json");
    let words = [
        "--json",
        "--out",
        file.to_str().unwrap(),
        "--",
        "ls",
        "/no/such/place",
    ];
    let (code, out, _) = run(&home, &library, &words);
    assert_eq!((code, out.as_str()), (2, ""), "the program's own code");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["exit_code"], 2);
    assert_eq!(json["allocated"]["mode"], "per-thread");
    assert!(
        json["allocated"]["held_bytes"]
            .as_u64()
            .is_some_and(|n| n > 0),
        "{json}"
    );
}

#[test]
fn how_a_program_ends_is_passed_on() {
    let (home, library) = (Home::new(), library());
    let (code, _, err) = run(&home, &library, &["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(code, 137);
    assert!(err.contains("did not say what it allocated"), "{err}");
    let (code, _, err) = run(&home, &library, &["--", "/no/such/program"]);
    assert_eq!(code, 4);
    assert!(err.contains("/no/such/program cannot be run: "), "{err}");
    // What the processes write goes through a file that nobody shall find afterwards, however they end.
    let folder = home.path().join("tmp");
    std::fs::create_dir(&folder).unwrap();
    let mut command = home.larder(&["run", "--library"]);
    command.arg(&library).args(["--", "ls", "/no/such/place"]);
    let (code, _, err) = finish(command.env("TMPDIR", &folder));
    assert_eq!(code, 2);
    assert!(err.contains("larder: per-thread"), "{err}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_missing_library_is_one_line_that_says_what_to_do() {
    let home = Home::new();
    let (code, out, err) = run(&home, Path::new("/no/such/library.so"), &["--", "true"]);
    assert_eq!((code, out.as_str()), (4, ""));
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(
        err.contains("/no/such/library.so cannot be preloaded"),
        "{err}"
    );
    assert!(
        err.contains("cargo build --release -p larder-malloc"),
        "{err}"
    );
    let (code, _, err) = home.run(&["run"]);
    assert_eq!(code, 2);
    assert!(err.contains("PROGRAM"), "{err}");
}

/// A program in C, or `None` with a line where there is no compiler.
fn compiled(home: &Home, name: &str, text: &str) -> Option<String> {
    let (source, program) = (
        home.path().join(format!("{name}.c")),
        home.path().join(name),
    );
    std::fs::write(&source, text).unwrap();
    let made = Command::new("cc")
        .args(["-O0", "-w", "-rdynamic", "-fno-builtin", "-o"])
        .args([&program, &source])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler");
        return None;
    }
    Some(program.to_str().unwrap().to_owned())
}

#[test]
fn a_misuse_is_told_and_ends_the_program() {
    let (home, library) = (Home::new(), library());
    let text =
        "#include <stdlib.h>\nint main(void) { char *p = malloc(10); free(p); free(p); return 0; }";
    let Some(twice) = compiled(&home, "twice", text) else {
        return;
    };
    let (code, _, err) = run(&home, &library, &["--debug", "on", "--", &twice]);
    assert_eq!(code, 134, "{err}");
    assert!(err.starts_with("larder: double free: free(0x"), "{err}");
    assert!(err.contains("\n    main+0x"), "{err}");
    let (code, _, err) = run(&home, &library, &["--debug", "on,keep-going", "--", &twice]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("larder: double free: free(0x"), "{err}");
    assert!(
        err.contains("\nlarder: per-thread; resident at most "),
        "{err}"
    );
}

#[test]
fn leaks_are_told_and_become_the_exit_code() {
    let (home, library) = (Home::new(), library());
    let text = "#include <stdlib.h>\nint main(void) { malloc(4321); return 0; }";
    let Some(leaks) = compiled(&home, "leaks", text) else {
        return;
    };
    let (code, _, err) = run(&home, &library, &["--debug", "leaks=7", "--", &leaks]);
    assert_eq!(code, 7, "{err}");
    assert!(
        err.contains("larder: leak: 4321 bytes in 1 block, by malloc:\n    main+0x"),
        "{err}"
    );
    // Also what the program allocated is told, although its exit code was changed.
    assert!(err.contains("resident at most"), "{err}");
}

#[test]
fn debug_options_that_mean_nothing_are_refused() {
    let (home, library) = (Home::new(), library());
    for (words, needle) in [
        (
            "onn",
            "no debug option \"onn\"; there are on, off, redzone=BYTES",
        ),
        ("on,redzone=3", "a number from 16 to 4096"),
        ("", "say `on`, or what to check"),
    ] {
        let (code, out, err) = run(&home, &library, &["--debug", words, "--", "echo", "ran"]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(needle), "{err}");
    }
    let (code, out, _) = run(&home, &library, &["--debug", "off", "--", "echo", "ran"]);
    assert_eq!((code, out.as_str()), (0, "ran\n"));
    let (_, help, _) = home.run(&["run", "--help"]);
    for word in ["redzone=BYTES", "keep-going", "leaks=3", "code 134"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

/// Takes and frees 2000 blocks of 4096 bytes, and says how many threads it then has, and what the environment asked for.
const BURST: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *blocks[2000];
int main(void) {
  for (int i = 0; i < 2000; i++) memset(blocks[i] = malloc(4096), 1, 4096);
  for (int i = 0; i < 2000; i++) free(blocks[i]);
  char line[256];
  int threads = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file)) sscanf(line, "Threads: %d", &threads);
  printf("threads %d, %s\n", threads, getenv("LARDER_MALLOC_REAPER") ? getenv("LARDER_MALLOC_REAPER") : "none");
  return 0;
}"#;

#[test]
fn a_thread_gives_memory_back_where_it_is_asked_for() {
    let (home, library) = (Home::new(), library());
    let Some(burst) = compiled(&home, "burst", BURST) else {
        return;
    };
    let (code, out, err) = run(&home, &library, &["--reap", "0.05", "--", &burst]);
    assert_eq!((code, out.as_str()), (0, "threads 2, 0.05\n"), "{err}");
    let (code, out, err) = run(&home, &library, &["--", &burst]);
    assert_eq!((code, out.as_str()), (0, "threads 1, none\n"), "{err}");
}

#[test]
fn seconds_between_rounds_that_mean_nothing_are_refused() {
    let (home, library) = (Home::new(), library());
    for word in ["", "0", "0.001", "86401", "1s", "1e3", "-1", "NaN", "1.2.3"] {
        let words = [&format!("--reap={word}"), "--", "echo", "ran"];
        let (code, out, err) = run(&home, &library, &words);
        assert_eq!((code, out.as_str()), (2, ""), "{word:?}: {err}");
        assert!(
            err.contains("--reap <SECONDS>")
                && err.contains("a number of seconds from 0.01 to 86400"),
            "{word:?}: {err}"
        );
    }
    let (code, out, err) = run(&home, &library, &["--reap", "86400", "--", "echo", "ran"]);
    assert_eq!((code, out.as_str()), (0, "ran\n"), "{err}");
}
