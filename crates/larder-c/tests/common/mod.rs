//! Builds and compilers for the tests that leave Rust.

#![allow(dead_code)] // Not every test file needs all of it.

use std::path::{Path, PathBuf};
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

/// Builds the library target of a package and returns the file of this ending.
pub(crate) fn library(package: &str, ending: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--lib", "-p", package]);
    cargo.arg("--message-format=json-render-diagnostics");
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let output = cargo.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{lines}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in lines.lines() {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        let ours = message["target"]["src_path"]
            .as_str()
            .is_some_and(|p| p.contains(env!("CARGO_MANIFEST_DIR")));
        for file in message["filenames"].as_array().into_iter().flatten() {
            let file = Path::new(file.as_str().unwrap());
            if ours && file.extension().is_some_and(|e| e == ending) {
                return file.to_owned();
            }
        }
    }
    panic!("cargo made no .{ending} of {package}: {lines}");
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
