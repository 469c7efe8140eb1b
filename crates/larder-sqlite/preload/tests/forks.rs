//! A program with the library preloaded, which forks.

#![allow(clippy::unwrap_used)] // Also in the helpers of the test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// It uses SQLite, and forks a process that does not and ends as a program does.
const PROGRAM: &str = r#"
    #include <dlfcn.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void) {
      void *db, *library = dlopen("libsqlite3.so.0", RTLD_NOW);
      if (!library) return 77;
      int (*open)(const char *, void **) = dlsym(library, "sqlite3_open");
      int (*exec)(void *, const char *, void *, void *, void *) = dlsym(library, "sqlite3_exec");
      if (open("", &db) || exec(db, "CREATE TABLE t (x); INSERT INTO t VALUES (1)", 0, 0, 0)) return 1;
      int child = fork(), status = 1;
      if (child == 0) return 0;
      return child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }"#;

/// The library, built by itself: a test of this package does not build it.
fn library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "-p", "larder-sqlite-preload"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split('"');
    let file = words.find(|word| word.ends_with("/liblarder_sqlite_preload.so"));
    PathBuf::from(file.unwrap())
}

/// The program, or `None` with a line where there is no compiler.
fn compiled(folder: &Path, name: &str) -> Option<PathBuf> {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-o"]).args([&program, &source]);
    if !compiler.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler");
        return None;
    }
    Some(program)
}

/// The program with the library, which the caller's environment tells nothing.
fn preloaded(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library()).stderr(Stdio::piped());
    for name in ["LARDER_SQLITE", "LARDER_SQLITE_BUDGET", "LARDER_SETTINGS"] {
        command.env_remove(name);
    }
    command
}

#[test]
fn a_settings_file_says_what_the_environment_does_not() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(program) = compiled(folder, "settings") else {
        return;
    };
    let file = folder.join("larder.toml");
    std::fs::write(&file, "version = 1\n[cache]\npolicy = \"best\"\n").unwrap();
    let said = |settings: &Path, rule: Option<&str>| {
        let mut command = preloaded(&program);
        command.env("LARDER_SETTINGS", settings);
        command.envs(rule.map(|rule| ("LARDER_SQLITE", rule)));
        let output = command.output().unwrap();
        match output.status.code() {
            Some(77) => None,
            code => {
                assert_eq!(code, Some(0));
                Some(String::from_utf8(output.stderr).unwrap())
            }
        }
    };
    let Some(unknown) = said(&file, None) else {
        eprintln!("skipped: there is no libsqlite3.so.0");
        return;
    };
    assert!(unknown.contains("there is no rule \"best\""), "{unknown}");
    assert_eq!(said(&file, Some("lru")).as_deref(), Some(""));
    let missing = said(&folder.join("none.toml"), Some("lru")).unwrap();
    assert!(missing.contains("none.toml"), "{missing}");
}

#[test]
fn what_a_fork_makes_does_not_write_its_parents_counts() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(program) = compiled(folder, "forks") else {
        return;
    };
    let lines = folder.join("forks.json");
    let _ = std::fs::remove_file(&lines);
    let started = preloaded(&program)
        .env("LARDER_SQLITE_STATS", &lines)
        .spawn()
        .unwrap();
    let pid = format!("{{\"pid\":{},", started.id());
    let status = started.wait_with_output().unwrap().status;
    if status.code() == Some(77) {
        eprintln!("skipped: there is no libsqlite3.so.0");
        return;
    }
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(&lines).unwrap();
    assert!(
        text.lines().count() == 1 && text.starts_with(&pid),
        "{text}"
    );
}
