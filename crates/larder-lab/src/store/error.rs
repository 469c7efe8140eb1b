//! What can go wrong with the results, with the file's name and what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why results could not be read or written. Nothing that was stored before is lost by any of them.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum StoreError {
    #[error("no data directory is known because HOME is not set; name a database with --db FILE")]
    NoHome,
    #[error("there is no database at {}; take a run with `larder measure`, or name another with --db FILE", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not a database; it was left as it is. Name another file with --db FILE", path.display())]
    NotADatabase { path: PathBuf },
    #[error("{} is a database of another program; it was left as it is. Name another file with --db FILE", path.display())]
    Foreign { path: PathBuf },
    #[error("{} was written by a newer larder (layout {found}, this one knows up to {known}); install that version, or name another file with --db FILE", path.display())]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("{} is damaged ({why}); nothing was written to it. Keep a copy, try `sqlite3 FILE .recover`, and use another file with --db FILE until then", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("{} cannot be written ({why}); change its rights or those of its directory, make room, or name another file with --db FILE", path.display())]
    NotWritable { path: PathBuf, why: String },
    #[error("{} is in use by another program for more than {seconds} s; try again when that has ended", path.display())]
    Busy { path: PathBuf, seconds: u64 },
    #[error("{} cannot be opened: {why}; check its rights, or name another file with --db FILE", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{}: {why}", path.display())]
    Database { path: PathBuf, why: String },
    #[error("there is no run '{asked}' in {}; `larder list --runs` shows what there is", path.display())]
    NoRun { asked: String, path: PathBuf },
    #[error("there is no run '{asked}' that was taken with {}: its {imported} imported runs are never the latest; name one of them (`larder list --runs`), or take a run with `larder measure`", path.display())]
    OnlyImported {
        asked: String,
        imported: usize,
        path: PathBuf,
    },
    #[error("'{asked}' begins the names of {} runs; write more of it: {}", ids.len(), ids.join(", "))]
    Ambiguous { asked: String, ids: Vec<String> },
    #[error(
        "'{asked}' names no run; write the beginning of a run's name (hexadecimal digits), `latest`, or `latest:EXPERIMENT`"
    )]
    BadSelector { asked: String },
    #[error("the run cannot be stored: {why}")]
    BadRecord { why: String },
    #[error("{} is not an export of larder: {why}. Nothing was imported", path.display())]
    NotAnExport { path: PathBuf, why: String },
    #[error("{}, line {line}: {why}. Nothing was imported; export again where the file came from, or take the line out", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        why: String,
    },
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// How long another writer is waited for.
pub(super) const BUSY_SECONDS: u64 = 10;

/// Converts an error of SQLite.
pub(super) fn of(path: &Path, e: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let why = e.to_string();
    match e.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, why },
        Some(ErrorCode::ReadOnly | ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            StoreError::NotWritable { path, why }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
            path,
            seconds: BUSY_SECONDS,
        },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::Unreadable { path, why }
        }
        // A column whose content no longer has its type: another program wrote to the file.
        None if matches!(
            e,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
        ) =>
        {
            StoreError::Damaged { path, why }
        }
        _ => StoreError::Database { path, why },
    }
}
