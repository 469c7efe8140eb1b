//! Where results lie by default.

use std::path::PathBuf;

use super::StoreError;

/// The database that is used without `--db` and `LARDER_DB`: in larder's directory under the XDG data directory, for
/// instance `~/.local/share/larder`.
///
/// # Errors
/// When there is no home directory.
pub fn default_path() -> Result<PathBuf, StoreError> {
    let folders = directories::ProjectDirs::from("", "", "larder").ok_or(StoreError::NoHome)?;
    Ok(folders.data_dir().join("larder.sqlite"))
}
