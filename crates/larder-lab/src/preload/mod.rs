//! Libraries that are preloaded: where they lie, and how those that are missing are built.
//!
//! [`larder`] is this project's malloc, built by cargo from the source of this program. [`snmalloc`] is a peer whose source
//! cargo may have, built by a C++ compiler. Both are built when a run begins, before its clock starts; a plan only looks.

pub mod larder;
pub mod snmalloc;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders in which a distribution puts libraries.
#[must_use]
pub fn usual_folders() -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let mut folders = Vec::new();
    for root in ["/usr/local", "/usr"] {
        for lib in ["lib", "lib64"] {
            let folder = Path::new(root).join(lib);
            folders.push(folder.join(&triplet));
            folders.push(folder);
        }
    }
    folders
}

/// Refuses a path that the loader would split in `LD_PRELOAD`.
pub(crate) fn splits(path: &Path) -> Result<(), String> {
    use std::os::unix::ffi::OsStrExt;
    match path.as_os_str().as_bytes().iter().any(|b| b": \t\n".contains(b)) {
        false => Ok(()),
        true => Err("the loader splits LD_PRELOAD at colons and blanks, and this path has one; copy the library to a path without".to_owned()),
    }
}

/// Cargo's folder: the environment's, or that of the build.
fn cargo_home() -> PathBuf {
    match std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty()) {
        Some(home) => home.into(),
        None => env!("LARDER_CARGO_HOME").into(),
    }
}

/// Runs a compiler in silence.
///
/// # Errors
/// It cannot be started, or its first line that names an error.
fn compile(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(|e| format!("{name} cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().find(|line| line.contains("error"));
    let line = first.or_else(|| lines.next()).unwrap_or("it says nothing");
    Err(line.chars().filter(|c| !c.is_control()).take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_compiler_is_its_first_error() {
        let of = |script: &str| compile(Command::new("sh").args(["-c", script]));
        assert_eq!(of("exit 0"), Ok(()));
        let text =
            "echo; echo a note >&2; echo '  error: no such thing' >&2; echo error: two >&2; exit 1";
        assert_eq!(of(text).unwrap_err(), "error: no such thing");
        assert_eq!(of("echo hm >&2; exit 1").unwrap_err(), "hm");
        assert_eq!(of("exit 1").unwrap_err(), "it says nothing");
        let why = compile(&mut Command::new("/no/such/compiler")).unwrap_err();
        assert!(why.contains("/no/such/compiler cannot be run"), "{why}");
    }
}
