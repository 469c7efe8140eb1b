//! The tree that /proc and /sys are read from: the real one, or a fake one in tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The running system.
    #[must_use]
    pub fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree with `proc` and `sys` below it.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// A file's text without surrounding white space.
    ///
    /// # Errors
    /// The reason as a short sentence, with the file's name.
    pub fn read(&self, path: &str) -> Result<String, String> {
        match fs::read(self.0.join(path)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(e) => Err(reason(path, &e)),
        }
    }

    /// A file's text, which is not empty.
    ///
    /// # Errors
    /// The reason as a short sentence, with the file's name.
    pub fn value(&self, path: &str) -> Result<String, String> {
        match self.read(path)? {
            text if text.is_empty() => Err(format!("/{path} is empty")),
            text => Ok(text),
        }
    }

    /// The names in a directory, sorted; none where it cannot be read.
    #[must_use]
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}

fn reason(path: &str, e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => format!("/{path} is not there"),
        io::ErrorKind::PermissionDenied => format!("/{path} may not be read by this user"),
        _ => format!("/{path}: {e}"),
    }
}

/// The value of `key` in lines of the form `key : value` of the file at `path`.
pub(super) fn line_value(text: &str, path: &str, key: &str) -> Result<String, String> {
    let value = text.lines().find_map(|line| {
        let (k, v) = line.split_once(':')?;
        (k.trim() == key).then(|| v.trim().to_owned())
    });
    value
        .filter(|v| !v.is_empty())
        .ok_or_else(|| format!("/{path} has no '{key}'"))
}

/// The choice in brackets of `always [madvise] never`, or the whole text.
pub(super) fn chosen(text: &str) -> String {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or_else(|| text.to_owned(), |(choice, _)| choice.to_owned())
}
