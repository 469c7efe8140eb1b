//! Opening the file, for reading or for writing.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::error::{BUSY_SECONDS, of};
use super::schema::{self, State};

/// The database of results.
///
/// Several programs may use it at once: writers wait for each other, readers do not wait.
///
/// ```
/// use larder_lab::store::Store;
/// let dir = tempfile::tempdir()?;
/// let store = Store::create(&dir.path().join("results.sqlite"))?;
/// assert!(store.list()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
}

impl Store {
    /// Opens a database for reading and writing; makes it, and its directory, where it is missing.
    ///
    /// The whole file is checked first, so that nothing is written into a damaged one.
    ///
    /// # Errors
    /// Another program's file, a newer layout, a damaged file, no right to write: see [`StoreError`].
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            fs::create_dir_all(dir).map_err(|e| StoreError::NotWritable {
                path: path.to_owned(),
                why: format!("its directory: {e}"),
            })?;
        }
        ours(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).map_err(|e| match of(path, e) {
            // A file that can be read but not made or written.
            StoreError::Unreadable { path, why } => StoreError::NotWritable { path, why },
            other => other,
        })?;
        let mut store = Self::with(conn, path)?;
        let state = schema::state(&store.conn, path)?;
        if store.conn.is_readonly("main").map_err(|e| of(path, e))? {
            return Err(StoreError::NotWritable {
                path: path.to_owned(),
                why: "it is read-only".to_owned(),
            });
        }
        if !matches!(state, State::Empty) {
            store.check()?;
        }
        // The answer is the mode that was set; a file system without shared memory keeps the old one, which works.
        store
            .conn
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .map_err(|e| of(path, e))?;
        if !matches!(state, State::Current) {
            schema::migrate(&mut store.conn, path)?;
        }
        Ok(store)
    }

    /// Opens an existing database for reading. A read-only file in a read-only directory will do.
    ///
    /// # Errors
    /// [`StoreError::Missing`] where there is none, and those of a file that cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing {
                path: path.to_owned(),
            });
        }
        ours(path)?;
        match Self::read_only(path, false) {
            // Reading a file in WAL mode makes two small files beside it. Where that is not allowed no other
            // process writes either, and SQLite can open the file as immutable.
            Err(StoreError::Unreadable { .. } | StoreError::NotWritable { .. }) => {
                Self::read_only(path, true)
            }
            other => other,
        }
    }

    fn read_only(path: &Path, immutable: bool) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = if immutable {
            let uri = format!("file:{}?immutable=1", percent(path));
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            Connection::open_with_flags(path, flags)
        };
        let store = Self::with(conn.map_err(|e| of(path, e))?, path)?;
        match schema::state(&store.conn, path)? {
            State::Current => Ok(store),
            State::Empty => Err(StoreError::Missing {
                path: path.to_owned(),
            }),
            // A writer brings the older file up to date; where there is no right to write, a view stands in.
            State::Older => match Self::create(path) {
                Err(StoreError::NotWritable { .. }) => {
                    schema::read_older(&store.conn, path)?;
                    Ok(store)
                }
                other => other,
            },
        }
    }

    fn with(conn: Connection, path: &Path) -> Result<Self, StoreError> {
        let store = Self {
            conn,
            path: path.to_owned(),
        };
        store
            .conn
            .busy_timeout(Duration::from_secs(BUSY_SECONDS))
            .and_then(|()| store.conn.execute_batch("PRAGMA foreign_keys = ON"))
            .map_err(|e| of(path, e))?;
        Ok(store)
    }

    fn check(&self) -> Result<(), StoreError> {
        self.pragma_says_ok("PRAGMA quick_check(1)")
    }

    /// The error for a run that was not found: where an index disagrees with its table, that is the reason.
    pub(super) fn no_run(&self, asked: String) -> StoreError {
        match self.pragma_says_ok("PRAGMA integrity_check(1)") {
            Err(damaged) => damaged,
            Ok(()) => StoreError::NoRun {
                asked,
                path: self.path.clone(),
            },
        }
    }

    fn pragma_says_ok(&self, check: &str) -> Result<(), StoreError> {
        let said: String = self
            .conn
            .query_row(check, [], |row| row.get(0))
            .map_err(|e| self.error(e))?;
        if said == "ok" {
            Ok(())
        } else {
            Err(StoreError::Damaged {
                path: self.path.clone(),
                why: said.lines().next_back().unwrap_or_default().to_owned(),
            })
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn error(&self, e: rusqlite::Error) -> StoreError {
        of(&self.path, e)
    }
}

/// SQLite takes any file of less than a page for an empty database and writes over it; a user's short text file must
/// not be lost so. For a file that cannot be read, SQLite reports the error.
fn ours(path: &Path) -> Result<(), StoreError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut begin = Vec::new();
    let read =
        fs::File::open(path).and_then(|f| f.take(MAGIC.len() as u64).read_to_end(&mut begin));
    if read.is_ok() && !begin.is_empty() && begin != MAGIC {
        return Err(StoreError::NotADatabase {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// A path as part of a URI: everything that is not plainly a letter of a path is escaped.
fn percent(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                text.push(char::from(*byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}
