//! Where the library that is preloaded lies.

use std::path::{Path, PathBuf};

/// Its name.
pub const NAME: &str = "liblarder_malloc.so";

/// The library: the one that was named, or the one beside this program.
///
/// # Errors
/// One line that says where it was looked for and how to build it.
pub fn find(named: Option<&Path>) -> Result<PathBuf, String> {
    let found = match named {
        Some(path) => path.to_owned(),
        None => beside().ok_or_else(|| {
            format!("{NAME} is not beside this program; build it with `cargo build --release -p larder-malloc`, or name it with --library or LARDER_MALLOC")
        })?,
    };
    // The loader takes a name without a slash for one of its own, and a path from where the program is then.
    found.canonicalize().map_err(|e| {
        format!(
            "{} cannot be preloaded: {e}; build it with `cargo build --release -p larder-malloc`",
            found.display()
        )
    })
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
