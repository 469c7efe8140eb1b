//! The program in a home of its own.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A home directory with nothing in it.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The program with these words, in this home and with a clean environment.
    pub(crate) fn larder(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command
            .args(words)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path());
        command
    }

    /// Runs it and returns exit code, stdout, stderr.
    pub(crate) fn run(&self, words: &[&str]) -> (i32, String, String) {
        finish(&mut self.larder(words))
    }

    /// The JSON that it prints.
    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        let (code, out, err) = self.run(words);
        assert_eq!(code, 0, "{words:?}: {err}");
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{words:?}: {e}: {out}"))
    }

    /// Where the database lies by default.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.path().join(".local/share/larder").join(name)
    }
}

/// Puts a program at a path. Another process writes it: a child that another test starts meanwhile would inherit a file that
/// is open here, and what is open for writing cannot be run.
pub(crate) fn install(from: &Path, to: &Path) {
    let made = Command::new("install").args([from, to]).status().unwrap();
    assert!(made.success(), "{} to {}", from.display(), to.display());
}

/// Runs a command and returns exit code, stdout, stderr.
pub(crate) fn finish(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}
