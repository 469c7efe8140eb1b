//! Libraries and compilers for the tests that leave Rust.

#![allow(dead_code)] // Not every test file needs all of it.

use std::path::PathBuf;
use std::process::Command;

/// Whether a program can be started here. A line on stderr says so when not.
pub(crate) fn has(program: &str) -> bool {
    let there = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: there is no {program}");
    }
    there
}

/// The file of this ending that cargo made of this package's library for its tests: it lies beside their programs.
pub(crate) fn library(ending: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let file = program.with_file_name(format!("liblarder_c.{ending}"));
    assert!(file.exists(), "cargo made no {}", file.display());
    file
}

/// Runs a command that must succeed; returns what it printed.
pub(crate) fn must(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}{err}",
        output.status
    );
    out
}
