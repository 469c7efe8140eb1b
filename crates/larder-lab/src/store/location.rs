//! Where results lie when nobody says otherwise.

use std::path::PathBuf;

use super::StoreError;

/// larder's directory under the XDG data directory, for instance `~/.local/share/larder`.
///
/// # Errors
/// When there is no home directory.
pub fn data_directory() -> Result<PathBuf, StoreError> {
    directories::ProjectDirs::from("", "", "larder")
        .map(|d| d.data_dir().to_owned())
        .ok_or(StoreError::NoHome)
}

/// The database that is used without `--db` and `LARDER_DB`.
///
/// # Errors
/// When there is no home directory.
pub fn default_path() -> Result<PathBuf, StoreError> {
    Ok(data_directory()?.join("larder.sqlite"))
}
