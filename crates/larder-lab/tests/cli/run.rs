//! `larder run`: another program on larder's malloc.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::home::{Home, finish, install};

/// The malloc, built as the message of `larder run` says.
fn library() -> PathBuf {
    built("larder-malloc")
}

/// The malloc that checks.
fn debug_library() -> PathBuf {
    built("larder-malloc-debug")
}

fn built(package: &str) -> PathBuf {
    let name = format!("lib{}.so", package.replace('-', "_"));
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "-p",
            package,
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
    let at = text.find(&format!("/{name}\"")).unwrap() + 1 + name.len();
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
    // The processes write through a temporary file, which must be gone afterwards, however they end.
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
    // Where cargo did not put the program, nothing is built.
    let program = home.path().join("larder");
    install(Path::new(env!("CARGO_BIN_EXE_larder")), &program);
    let mut command = Command::new(&program);
    command
        .args(["run", "--sqlite", "--library"])
        .arg(library());
    let (code, _, err) = finish(command.args(["--", "true"]));
    assert_eq!((code, err.lines().count()), (4, 1), "{err}");
    for part in [
        "liblarder_sqlite_preload.so is neither beside",
        "cargo build --release -p larder-sqlite-preload",
    ] {
        assert!(err.contains(part), "{err}");
    }
}

/// SQLite as a shared library, in the program itself or loaded while it runs.
#[test]
fn sqlite_gets_the_page_cache() {
    let (home, malloc) = (Home::new(), library());
    built("larder-sqlite-preload");
    let program = "
        #include <dlfcn.h>
        int main(void) {
          void *db, *library = dlopen(\"libsqlite3.so.0\", RTLD_NOW);
          if (!library) return 77;
          int (*open)(const char *, void **) = dlsym(library, \"sqlite3_open\");
          int (*exec)(void *, const char *, void *, void *, void *) = dlsym(library, \"sqlite3_exec\");
          if (open(\"\", &db)) return 1;
          return exec(db, \"PRAGMA cache_size = 16; CREATE TABLE t (x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \"
            \"WHERE i < 9000) INSERT INTO t SELECT hex(zeroblob(200)) FROM n; SELECT count(*) FROM t WHERE x = 'y'\", 0, 0, 0);
        }";
    let Some(program) = compiled(&home, "sqlite", program) else {
        return;
    };
    let (code, _, err) = run(&home, &malloc, &["--sqlite=1M,lru", "--", &program]);
    if code == 77 {
        eprintln!("skipped: there is no libsqlite3.so.0");
        return;
    }
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("larder: SQLite's page cache, lru: "), "{err}");
    let (code, _, err) = run(&home, &malloc, &["--json", "--sqlite", "--", &program]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&err).unwrap();
    let pages = &json["sqlite"];
    assert_eq!(
        (&pages["rule"], &pages["processes"]),
        (&"adaptive".into(), &1.into()),
        "{err}"
    );
    for count in ["hits", "misses", "evictions"] {
        assert!(pages[count].as_u64().is_some_and(|n| n > 900), "{err}");
    }
    // What is measured, and what is said otherwise.
    let file = home.path().join("larder.toml");
    let file = file.to_str().unwrap();
    let said = |text: &str, sqlite: &str| {
        std::fs::write(file, format!("version = 1\n{text}")).unwrap();
        run(
            &home,
            &malloc,
            &["--settings", file, sqlite, "--", &program],
        )
    };
    let measured = "[cache]\npolicy = \"lirs\"\nbytes = 1048576\n";
    for (asked, rule) in [("--sqlite", "lirs"), ("--sqlite=lru", "lru")] {
        let (code, _, err) = said(measured, asked);
        let told = format!("larder: SQLite's page cache, {rule}: ");
        assert!(code == 0 && err.contains(&told), "{err}");
    }
    let (code, _, err) = said("[cache]\npolicy = \"best\"\n", "--sqlite");
    assert!(code == 5 && err.contains("'best' is no rule"), "{err}");
    let (code, _, err) = run(&home, &malloc, &["--sqlite", "--", "true"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("SQLite's page cache was not used"), "{err}");
    let (code, _, err) = run(&home, &malloc, &["--sqlite=best", "--", "true"]);
    assert!(code == 2 && err.contains("'best' is no rule"), "{err}");
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
    let (home, library) = (Home::new(), debug_library());
    let text =
        "#include <stdlib.h>\nint main(void) { char *p = malloc(10); free(p); free(p); return 0; }";
    let Some(twice) = compiled(&home, "twice", text) else {
        return;
    };
    let (code, _, err) = run(&home, &library, &["--debug", "on", "--", &twice]);
    assert_eq!(code, 134, "{err}");
    assert!(err.starts_with("larder: double free: free(0x"), "{err}");
    assert!(err.contains("\n    main "), "{err}");
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
    let (home, library) = (Home::new(), debug_library());
    let text = "#include <stdlib.h>\nint main(void) { malloc(4321); return 0; }";
    let Some(leaks) = compiled(&home, "leaks", text) else {
        return;
    };
    let (code, _, err) = run(&home, &library, &["--debug", "leaks=7", "--", &leaks]);
    assert_eq!(code, 7, "{err}");
    assert!(
        err.contains("larder: leak: 4321 bytes in 1 block, by malloc:\n    main "),
        "{err}"
    );
    // Also what the program allocated is told, although its exit code was changed.
    assert!(err.contains("resident at most"), "{err}");
}

#[test]
fn debug_options_that_mean_nothing_are_refused() {
    let (home, library) = (Home::new(), debug_library());
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
    for word in ["--decay=soon", "--decay=1.5", "--cache=1MB", "--cache=-1"] {
        let (code, out, err) = run(&home, &library, &[word, "--", "echo", "ran"]);
        assert_eq!((code, out.as_str()), (2, ""), "{word}: {err}");
        assert!(err.contains("say a number of "), "{word}: {err}");
    }
    let kept = [
        "--decay",
        "never",
        "--cache",
        "1M",
        "--",
        "sh",
        "-c",
        "echo $LARDER_MALLOC_DECAY $LARDER_MALLOC_CACHE",
    ];
    let (code, out, err) = run(&home, &library, &kept);
    assert_eq!((code, out.as_str()), (0, "never 1M\n"), "{err}");
    let (code, out, err) = run(&home, &library, &["--reap", "86400", "--", "echo", "ran"]);
    assert_eq!((code, out.as_str()), (0, "ran\n"), "{err}");
}

#[test]
fn settings_reach_the_malloc_where_nothing_else_says_otherwise() {
    let (home, library) = (Home::new(), library());
    let file = home.path().join("s.toml");
    let text = "version = 1\n[malloc]\nmode = \"locked\"\ndecay_ms = 250\ncache_bytes = 4096\n";
    std::fs::write(&file, text).unwrap();
    let echo =
        "echo $LARDER_MALLOC_MODE $LARDER_MALLOC_DECAY $LARDER_MALLOC_CACHE $LARDER_SETTINGS";
    let with = |variable: (&str, &str), words: &[&str]| {
        let mut command = home.larder(&["run", "--library"]);
        let command = command.arg(&library).args(words);
        finish(
            command
                .args(["--", "sh", "-c", echo])
                .env(variable.0, variable.1),
        )
    };
    let words = ["--settings", "s.toml", "--decay", "7"];
    let (code, out, err) = with(("LARDER_MALLOC_CACHE", "9"), &words);
    assert_eq!((code, out.as_str()), (0, "locked 7 9 s.toml\n"), "{err}");
    let words = ["--settings", "s.toml", "--", "ls", "-d", "/"];
    let (code, _, err) = run(&home, &library, &words);
    assert!(code == 0 && err.starts_with("larder: locked; "), "{err}");
    let (code, out, err) = with(("LARDER_SETTINGS", "s.toml"), &[]);
    assert_eq!(
        (code, out.as_str()),
        (0, "locked 250 4096 s.toml\n"),
        "{err}"
    );
    std::fs::write(&file, "version = 1\n[malloc]\ndecay = 7\n").unwrap();
    let (code, out, err) = with(("LARDER_SETTINGS", "s.toml"), &[]);
    assert_eq!((code, out.as_str()), (5, ""), "{err}");
    assert!(err.contains("s.toml") && err.contains("decay"), "{err}");
}

#[test]
fn hardened_mode_and_guarded_blocks_are_asked_for_by_a_word() {
    let (home, library) = (Home::new(), library());
    let text = r#"
#include <stdlib.h>
int main(int argc, char **argv) {
  volatile char *p = malloc(100);
  if (argc > 1) p[100] = 1;
  free((void *)p);
  return p[0] & 0;
}"#;
    let Some(misuse) = compiled(&home, "misuse", text) else {
        return;
    };
    // It only reads what is free.
    let (code, _, err) = run(&home, &library, &["--hardened", "--", &misuse]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(&home, &library, &["--hardened", "--", &misuse, "write"]);
    assert!(code == 134 && err.contains("larder: overflow"), "{err}");
    let (code, _, err) = run(&home, &library, &["--guard-samples=1", "--", &misuse]);
    assert!(
        code == 139 && err.contains("larder: use after free"),
        "{err}"
    );
    // Without a number the next word is not taken for one.
    let echo = ["--guard-samples", "sh", "-c", "echo $LARDER_GUARD_SAMPLES"];
    let (code, out, err) = run(&home, &library, &echo);
    assert_eq!((code, out.as_str()), (0, "on\n"), "{err}");
    for words in [
        ["--guard-samples=0", "true"],
        ["--guard-samples=1K", "true"],
    ] {
        let (code, _, err) = run(&home, &library, &words);
        assert!(code == 2 && err.contains("say a number of bytes"), "{err}");
    }
    // Hardened mode has no samples.
    for samples in ["--leaks", "--heap-profile=x", "--guard-samples"] {
        let (code, _, err) = run(&home, &library, &["--hardened", samples, "true"]);
        assert!(code == 2 && err.contains("cannot be used with"), "{err}");
    }
}

/// The program in a folder as cargo makes it, in which there is no library.
fn in_a_cargo_folder(home: &Home) -> PathBuf {
    let folder = home.path().join("target/debug");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(".cargo-lock"), "").unwrap();
    let program = folder.join("larder");
    install(Path::new(env!("CARGO_BIN_EXE_larder")), &program);
    program
}

/// A program that stands for cargo.
fn cargo(home: &Home, script: &str) -> PathBuf {
    let (text, path) = (home.path().join("cargo.sh"), home.path().join("cargo"));
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    install(&text, &path);
    path
}

fn started(home: &Home, program: &Path, cargo: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.args(words).current_dir(home.path()).env_clear();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let command = command.env("PATH", path).env("HOME", home.path());
    finish(command.env("CARGO", cargo))
}

#[test]
fn a_missing_library_is_built_once_where_cargo_put_the_program() {
    let (home, library) = (Home::new(), library());
    let program = in_a_cargo_folder(&home);
    let beside = program.with_file_name("liblarder_malloc.so");
    let script = format!(
        "echo \"$@\" >>{0}/words; cp {1} {2}",
        home.path().display(),
        library.display(),
        beside.display()
    );
    let cargo = cargo(&home, &script);
    let words = ["run", "--", "ls", "-d", "/"];
    let (code, out, err) = started(&home, &program, &cargo, &words);
    assert_eq!((code, out.as_str()), (0, "/\n"), "{err}");
    assert!(
        err.starts_with(
            "larder: builds liblarder_malloc.so, once: cargo build -p larder-malloc\nlarder: per-thread; "
        ),
        "{err}"
    );
    let (code, _, err) = started(&home, &program, &cargo, &words);
    assert_eq!(code, 0, "{err}");
    assert!(err.starts_with("larder: per-thread; "), "{err}");
    let called = std::fs::read_to_string(home.path().join("words")).unwrap();
    assert_eq!(called.lines().count(), 1, "{called}");
    let target = format!("--target-dir {}/target", home.path().display());
    assert!(
        called.starts_with("build -p larder-malloc ") && called.contains(&target),
        "{called}"
    );
}

#[test]
fn a_build_that_fails_is_one_line_and_a_measurement_goes_on() {
    let home = Home::new();
    let program = in_a_cargo_folder(&home);
    let cargo = cargo(&home, "echo 'error: no linker' >&2; exit 101");
    let (code, out, err) = started(&home, &program, &cargo, &["run", "-q", "--", "true"]);
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    for part in ["error: no linker", "run `cargo build -p larder-malloc`"] {
        assert!(err.contains(part), "{err}");
    }
    let words = ["measure", "object-caches", "--group=destroy", "--rounds=1"];
    let (code, _, err) = started(
        &home,
        &program,
        &cargo,
        &[&words[..], &["--no-save"]].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let said = err
        .lines()
        .filter(|l| l.contains("could not be built: error: no linker"));
    assert_eq!(said.count(), 1, "{err}");
}

#[test]
fn an_installed_program_finds_its_library() {
    let home = Home::new();
    // In an empty home cargo could not build what is missing.
    library();
    debug_library();
    built("larder-sqlite-preload");
    let json = home.json(&["install", "--prefix", "made/here", "--json"]);
    let at = |name: &str| PathBuf::from(json["installed"][name].as_str().unwrap());
    let here = home.path().canonicalize().unwrap().join("made/here");
    assert_eq!(
        at("program").canonicalize().unwrap(),
        here.join("bin/larder")
    );
    assert_eq!(
        at("library").canonicalize().unwrap(),
        here.join("lib/liblarder_malloc.so")
    );
    assert_eq!(
        at("debug_library").canonicalize().unwrap(),
        here.join("lib/liblarder_malloc_debug.so")
    );
    assert_eq!(
        at("sqlite_library").canonicalize().unwrap(),
        here.join("lib/liblarder_sqlite_preload.so")
    );
    let no_cargo = Path::new("/no/such/cargo");
    let words = ["run", "--", "ls", "-d", "/"];
    let (code, out, err) = started(&home, &at("program"), no_cargo, &words);
    assert_eq!((code, out.as_str()), (0, "/\n"), "{err}");
    assert!(err.starts_with("larder: per-thread; "), "{err}");
    // Over itself, too.
    let again = ["install", "--prefix", "made/here"];
    let (code, _, err) = started(&home, &at("program"), no_cargo, &again);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("made/here/bin is not in PATH"), "{err}");

    std::fs::write(home.path().join("file"), "").unwrap();
    let (code, _, err) = home.run(&["install", "--prefix", "file"]);
    assert_eq!(code, 5, "{err}");
    let (code, _, err) = home.run(&["install", "--prefix", "a b"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("colons and blanks"), "{err}");
    assert!(!home.path().join("a b").exists());
}

#[test]
fn what_is_missing_is_one_line_with_what_brings_it() {
    let home = Home::new();
    let program = home.path().join("larder");
    install(Path::new(env!("CARGO_BIN_EXE_larder")), &program);
    let missing = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["list", "--missing"]).args(words).env_clear();
        let command = command.env("PATH", "/no/such").env("HOME", home.path());
        let (code, out, err) = finish(command.env("CARGO_HOME", home.path()));
        assert_eq!(code, 0, "{err}");
        out
    };
    let text = missing(&[]);
    for part in [
        "snmalloc: its source is not here; run `cargo fetch` in larder's source",
        "larder: liblarder_malloc.so is neither beside this program nor in ../lib",
        "instructions: valgrind is not installed; install it (Debian: apt install valgrind)",
        "public traces: LARDER_TRACES names no folder",
        "libcachesim: python3 cannot be run",
        "strace: strace is not installed; install it",
        "Chromium: Chromium is not installed; install it",
        "redis: redis-server and redis-benchmark and redis-cli are not installed; install them",
        "git: git is not installed; install it",
        "sqlite, sqlite-file: neither sqlite3 nor python3 is installed; install one",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // It is looked for in its package's folder, whatever the environment.
    let has = Path::new("/usr/share/dbench/client.txt").exists();
    let said = text.contains("dbench's own load file: client.txt is not here; install");
    assert_eq!(said, !has, "{text}");
    let json: serde_json::Value = serde_json::from_str(&missing(&["--json"])).unwrap();
    let all = json["missing"].as_array().unwrap();
    assert_eq!(all.len(), text.lines().count(), "{text}");
    let whys: std::collections::BTreeSet<_> = all.iter().map(|m| m["why"].as_str()).collect();
    assert_eq!(whys.len(), all.len(), "no reason twice");
    let wants = |what: &str| {
        let one = all.iter().find(|m| m["what"] == what).unwrap();
        one["wanted_by"].as_array().unwrap().len()
    };
    assert_eq!((wants("larder"), wants("snmalloc")), (4, 5));
    let one = missing(&["simulator"]);
    assert!(
        one.starts_with("libcachesim: ") && one.lines().count() == 1,
        "{one}"
    );
}

/// With a sample for each byte every allocation is one.
#[test]
fn a_profile_is_written_and_what_lives_is_listed() {
    let (home, library) = (Home::new(), library());
    let file = home.path().join("heap.pb.gz");
    let named = file.to_str().unwrap();
    let sampled = [
        "--heap-profile-interval",
        "1",
        "--leaks",
        "--json",
        "--heap-profile",
        named,
    ];
    // A child of another program, and the program itself.
    let words = ["--", "sh", "-c", "ls -d /; exec ls -d /"];
    let (code, out, err) = run(&home, &library, &[&sampled[..], &words].concat());
    assert_eq!((code, out.as_str()), (0, "/\n/\n"), "{err}");
    let json: serde_json::Value = serde_json::from_str(&err).unwrap();
    let alive = &json["alive"];
    assert!(alive["bytes"].as_u64().unwrap() > 0 && alive["stacks"].as_u64().unwrap() > 0);
    let frames = &alive["largest"][0]["frames"];
    assert!(frames.to_string().contains("__libc_start_main"), "{frames}");
    let profiles: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().starts_with(named))
        .collect();
    assert_eq!(profiles.len(), 2, "{profiles:?}");
    for path in profiles {
        let mut text = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap());
        std::io::Read::read_to_end(&mut reader, &mut text).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(
            text.contains("inuse_space") && text.contains("bin/ls"),
            "{path:?}"
        );
    }
    let mut left = std::fs::read_dir(std::env::temp_dir()).unwrap();
    let ours = format!("larder-heap-{}-", std::process::id());
    assert!(!left.any(|e| e.unwrap().file_name().to_string_lossy().starts_with(&ours)));

    let both = ["--debug", "on", "--leaks", "--", "true"];
    assert_eq!(run(&home, &library, &both).0, 2);
    // `kill` is the shell's own.
    let killed = ["--leaks", "--", "sh", "-c", "kill -9 $$"];
    let (code, _, err) = run(&home, &library, &killed);
    assert!(
        code == 137 && err.contains("wrote no heap profile"),
        "{err}"
    );
}
