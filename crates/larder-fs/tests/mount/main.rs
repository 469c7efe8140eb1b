//! The file system, mounted. Where that is not possible each test says so in a line and passes.

#![allow(clippy::unwrap_used)]

mod budget;
mod bypass;
mod coherence;
mod directories;
mod folders;
mod killed;
mod lists;
mod many;
mod model;
mod power;
mod promises;
mod recorder;
mod slow;
mod source;
mod uring;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use larder_fs::{Coherence, FsError, Mode, Mount, MountOptions};
use tempfile::TempDir;

/// A source, a mountpoint, and the mount between them, which goes first.
struct Mounted {
    mount: Mount,
    source: PathBuf,
    at: PathBuf,
    _source: TempDir,
    _at: TempDir,
}

/// None, and a line that says why, where nothing can be mounted.
fn mounted(with: impl FnOnce(MountOptions) -> MountOptions) -> Option<Mounted> {
    let (source, at) = (directory(), directory());
    let options = with(MountOptions::new(source.path(), at.path()).cache_bytes(4 << 20));
    match options.mount() {
        Ok(mount) => Some(Mounted {
            mount,
            source: source.path().to_owned(),
            at: at.path().to_owned(),
            _source: source,
            _at: at,
        }),
        Err(FsError::Fuse { what, error }) => {
            eprintln!("skipped: {what}: {error}");
            None
        }
        Err(FsError::Mode { what, .. }) => {
            eprintln!("skipped: {what}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Nothing is to be looked at or written when a file is opened or closed, so the kernel does not ask.
fn opened_by_the_kernel(options: MountOptions) -> MountOptions {
    options
        .mode(Mode::Shared)
        .coherence(Coherence::Exclusive)
        .close_to_open(false)
}

fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("larder-fs-")
        .tempdir()
        .expect("a directory")
}

/// Waits for what other threads do soon.
fn soon(mut done: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Mounted {
    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.at.join(name), content).expect("writing");
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.at.join(name)).expect("reading")
    }

    /// What the source has under a name.
    fn behind(&self, name: &str) -> Vec<u8> {
        fs::read(self.source.join(name)).expect("reading the source")
    }
}
