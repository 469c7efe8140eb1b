//! Where the library that is preloaded lies.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Its name.
pub const NAME: &str = "liblarder_malloc.so";

/// The library: the one that was named, or the one beside this program.
///
/// # Errors
/// One line that says where it was looked for and how to build it, or why the loader would pass over it: the loader tells that
/// at best in a line among the program's own.
pub fn find(named: Option<&Path>) -> Result<PathBuf, String> {
    let found = match named {
        Some(path) => path.to_owned(),
        None => beside().ok_or_else(|| {
            format!("{NAME} is neither beside this program nor in ../lib from there; build it with `cargo build --release -p larder-malloc`, or name it with --library or LARDER_MALLOC")
        })?,
    };
    // The loader takes a name without a slash for one of its own, and a path from where the program is then.
    let whole = found.canonicalize().map_err(|e| {
        format!(
            "{} cannot be preloaded: {e}; build it with `cargo build --release -p larder-malloc`",
            found.display()
        )
    })?;
    match loadable(&whole) {
        Ok(()) => Ok(whole),
        Err(why) => Err(format!("{} cannot be preloaded: {why}", whole.display())),
    }
}

/// What the loader does not say itself.
fn loadable(path: &Path) -> Result<(), String> {
    if path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|b| b": \t\n".contains(b))
    {
        return Err("the loader splits LD_PRELOAD at colons and blanks, and this path has one; copy the library to a path without".to_owned());
    }
    let build = "build it with `cargo build --release -p larder-malloc`";
    let mut begin = [0; 18];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut begin))
        .map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => format!("it is no library; {build}"),
            _ => format!("{e}; {build}"),
        })?;
    // The type, in the byte order of the file: 3 is a shared object.
    let shared = match begin[5] {
        2 => u16::from_be_bytes([begin[16], begin[17]]),
        _ => u16::from_le_bytes([begin[16], begin[17]]),
    } == 3;
    if begin.starts_with(b"\x7fELF") && shared {
        Ok(())
    } else {
        Err(format!("it is no library; {build}"))
    }
}

/// The library beside this program, or where an installation puts it.
#[must_use]
pub fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    [
        folder.join(NAME),
        folder.join("../lib").join(NAME),
        folder.join("../lib/larder").join(NAME),
    ]
    .into_iter()
    .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unwrap_used)]
    fn what_the_loader_would_pass_over_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        // A shared object of this machine's byte order, as far as it is looked at.
        let mut good = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0";
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            find(Some(&path))
        };
        assert!(put("good.so", &good).is_ok());
        for name in ["a b.so", "a:b.so", "a\tb.so"] {
            let why = put(name, &good).unwrap_err();
            assert!(why.contains("colons and blanks"), "{why}");
        }
        // An executable, a text and nothing.
        good[16] = 2;
        for bytes in [
            good.as_slice(),
            b"#!/bin/sh\necho this is no library\n",
            b"",
        ] {
            let why = put("bad.so", bytes).unwrap_err();
            assert!(why.contains("it is no library"), "{why}");
        }
        let why = find(Some(folder.path())).unwrap_err();
        assert!(why.contains("cannot be preloaded"), "{why}");
    }
}
