//! A folder for the files of one measurement, gone at its end; and programs that may be installed.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Such a folder.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A fresh folder, whose name says what it is for.
    ///
    /// # Errors
    /// Nothing can be written where temporary files go.
    pub(super) fn open(what: &str) -> anyhow::Result<Self> {
        Self::open_in(&std::env::temp_dir(), what)
    }

    /// The same in memory, where there is `/dev/shm`: the speed of a disk is not measured.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn in_memory(what: &str) -> anyhow::Result<Self> {
        Self::open_in(Path::new("/dev/shm"), what).or_else(|_| Self::open(what))
    }

    /// The same in another folder.
    pub(super) fn open_in(place: &Path, what: &str) -> anyhow::Result<Self> {
        for turn in 0..100_u32 {
            let folder = place.join(format!("larder-{what}-{}-{turn}", std::process::id()));
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Self { folder }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).with_context(|| Self::no_room(place)),
            }
        }
        anyhow::bail!(Self::no_room(place))
    }

    fn no_room(place: &Path) -> String {
        format!(
            "no folder can be made in {}; TMPDIR names another one",
            place.display()
        )
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, text)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An executable file of this name in PATH.
pub(super) fn which(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| {
            path.metadata()
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

/// The same, or the sentence that a run is refused with.
///
/// # Errors
/// It is not there.
pub(super) fn tool(name: &str) -> anyhow::Result<PathBuf> {
    which(name).with_context(|| format!("{name} is not installed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gone_when_it_is_dropped() {
        let one = Scratch::open("test").expect("room");
        let other = Scratch::open("test").expect("room");
        assert_ne!(one.folder(), other.folder());
        let file = one.write("a.txt", "text").expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "text");
        let folder = one.folder().to_owned();
        drop(one);
        assert!(!folder.exists());
        assert!(other.folder().exists());
    }

    #[test]
    fn tools_are_found_or_a_sentence() {
        assert!(which("sh").is_some());
        let error = tool("no-such-program-of-larder").expect_err("not there");
        assert!(error.to_string().contains("is not installed"), "{error}");
    }
}
