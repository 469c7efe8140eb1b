//! The public traces, read just well enough for these tests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the traces are; none: the tests over them are skipped with a line.
pub(crate) fn directory() -> Option<PathBuf> {
    let directory = std::env::var_os("LARDER_TRACES").map(PathBuf::from);
    if directory.is_none() {
        eprintln!("skipped: LARDER_TRACES names no directory with traces");
    }
    directory
}

/// A sequence of blocks, numbered from 0 in the order of their first use.
pub(crate) struct Trace {
    pub(crate) accesses: Vec<u32>,
    pub(crate) blocks: usize,
}

impl Trace {
    pub(crate) fn of(ids: impl IntoIterator<Item = u64>) -> Self {
        let mut numbers = HashMap::new();
        let accesses = ids
            .into_iter()
            .map(|id| {
                let next = numbers.len() as u32;
                *numbers.entry(id).or_insert(next)
            })
            .collect();
        Self {
            accesses,
            blocks: numbers.len(),
        }
    }

    pub(crate) fn read(directory: &Path, file: &str) -> Self {
        let bytes = unpacked(&directory.join(file));
        let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        match file {
            _ if file.contains(".lis") => Self::of(text(&bytes).flat_map(|line| {
                let mut words = line
                    .split_whitespace()
                    .map(|word| word.parse::<u64>().unwrap());
                let (start, count) = (words.next().unwrap(), words.next().unwrap());
                start..start + count
            })),
            _ if file.contains(".txt") => Self::of(
                text(&bytes)
                    .filter(|line| *line != "*")
                    .map(|line| line.parse().unwrap()),
            ),
            _ if file.contains("32be") => {
                Self::of(bytes.chunks_exact(4).map(|at| u64::from(word(at))))
            }
            _ => Self::of(
                bytes
                    .chunks_exact(24)
                    .map(|at| u64::from_le_bytes(at[4..12].try_into().unwrap())),
            ),
        }
    }
}

fn text(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn unpacked(path: &Path) -> Vec<u8> {
    let program = match path.extension().and_then(|end| end.to_str()) {
        Some("zst") => "zstd",
        Some("xz") => "xz",
        Some("gz") => "gzip",
        _ => return std::fs::read(path).unwrap(),
    };
    let output = Command::new(program).arg("-dc").arg(path).output().unwrap();
    assert!(output.status.success(), "{program} -dc {}", path.display());
    output.stdout
}
