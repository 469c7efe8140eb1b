//! SQLite's page cache with larder's replacement rules and object caches.
//!
//! ```
//! # use rusqlite as _;
//! use larder_sqlite::Config;
//!
//! // First of all, before anything opens a database.
//! // SAFETY: no other thread uses SQLite yet.
//! unsafe { larder_sqlite::install(&Config::new().budget_bytes(64 << 20))? };
//!
//! let db = rusqlite::Connection::open_in_memory()?;
//! db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)")?;
//! assert!(larder_sqlite::stats().bytes > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it changes:
//!
//! - no lock: SQLite built with `SQLITE_ENABLE_MEMORY_MANAGEMENT` takes a lock of the process for each page that a connection looks
//!   at;
//! - one [budget](Config::budget_bytes) for the caches of all connections;
//! - memory that goes back to the system when a connection shrinks (`PRAGMA shrink_memory`), or closes and more than some 8 MiB are
//!   free;
//! - any rule of `larder-policy`, where SQLite has LRU;
//! - [`stats`].
//!
//! The crate links to no SQLite and works with any that the program has, by `rusqlite`, `sqlx`, `diesel` or C. SQLite takes a page
//! cache once, at its start, for the whole process. The guide, `docs/sqlite.md`, says what is lost.
//!
//! An error in a rule ends the process: no panic goes through SQLite's frames.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cache;
mod ffi;
mod frames;
mod methods;
mod process;
mod rule;
mod state;
mod stats;
mod table;
#[cfg(test)]
mod tests;

pub use stats::{CacheStats, Stats};

/// Which rule, and how much memory.
///
/// ```
/// use larder_sqlite::Config;
/// let config = Config::new().rule("s3-fifo").budget_bytes(256 << 20);
/// assert_ne!(config, Config::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    rule: String,
    budget_bytes: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The rule `adaptive`, and no budget: each cache has the pages that its `PRAGMA cache_size` allows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            rule: "adaptive".to_owned(),
            budget_bytes: None,
        }
    }

    /// Takes what a settings file says about block caches in place of what was said before: its rule, and its bytes as the budget. What is
    /// said later counts.
    ///
    /// ```
    /// use larder::settings::Settings;
    /// use larder_sqlite::Config;
    /// let settings: Settings = "version = 1\n[cache]\npolicy = \"lirs\"\nbytes = 1048576\n".parse()?;
    /// let config = Config::new().settings(&settings);
    /// assert_eq!(config, Config::new().rule("lirs").budget_bytes(1 << 20));
    /// # Ok::<(), larder::settings::SettingsError>(())
    /// ```
    #[cfg(feature = "settings")]
    #[must_use]
    pub fn settings(mut self, settings: &larder::settings::Settings) -> Self {
        let cache = settings.cache();
        self.budget_bytes = cache.bytes.or(self.budget_bytes);
        match &cache.policy {
            Some(name) => self.rule(name),
            None => self,
        }
    }

    /// The replacement rule, by its name in `larder-policy`. Each cache has its own.
    #[must_use]
    pub fn rule(mut self, name: &str) -> Self {
        name.clone_into(&mut self.rule);
        self
    }

    /// Most bytes that the pages of all caches may have together. `PRAGMA cache_size` bounds each cache as before.
    ///
    /// A cache with less than an equal share gets pages from those that have more, when these next miss a page: an idle connection
    /// keeps its pages until it is used, shrunk or closed. Each cache may have 16 pages whatever the budget says, and pages in use or
    /// dirty stay. What a transaction had beyond the budget goes as its connection misses pages. Databases in memory do not count.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: usize) -> Self {
        self.budget_bytes = Some(bytes);
        self
    }
}

/// Why the cache could not be installed.
///
/// ```
/// use larder_sqlite::{Config, InstallError};
/// # use rusqlite as _;
/// // SAFETY: no other thread uses SQLite.
/// let error = unsafe { larder_sqlite::install(&Config::new().rule("best")) };
/// assert!(matches!(error, Err(InstallError::Rule(_))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// There is no such rule, or no memory for it.
    #[error(transparent)]
    Rule(#[from] larder_policy::PolicyError),
    /// There is no memory for the pool.
    #[error(transparent)]
    Pool(#[from] larder::pages::PoolError),
    /// SQLite is in use.
    #[error(
        "SQLite is in use already, and takes a page cache only before: install it first of all in main, \
         or call sqlite3_shutdown when no connection is open"
    )]
    TooLate,
    /// The cache is installed. A SQLite that has not begun does not say when it is shut down, so it must begin first.
    #[error(
        "larder's page cache is installed already: install it once in a process, \
         or call sqlite3_initialize and sqlite3_shutdown before you install it with another rule"
    )]
    Twice,
    /// SQLite said otherwise.
    #[error(
        "sqlite3_config refused the page cache with code {code}: see https://sqlite.org/rescode.html"
    )]
    Refused {
        /// SQLite's code.
        code: i32,
    },
}

/// Makes larder's the page cache of the SQLite that the program is linked with, for all connections to come.
///
/// # Errors
/// [`InstallError`]; SQLite has its own cache then.
///
/// # Safety
/// No other thread is in a function of SQLite: `sqlite3_config` takes no lock.
#[inline] // Only a program that calls it must have `sqlite3_config`.
pub unsafe fn install(config: &Config) -> Result<(), InstallError> {
    // SAFETY: the caller's word.
    unsafe { state::install(config, ffi::sqlite3_config) }
}

/// [`install`] for a SQLite whose function is handed in: for the C interface and the library to preload.
///
/// # Errors
/// As [`install`].
///
/// # Safety
/// As [`install`], and `sqlite3_config` is the function of this name.
#[doc(hidden)]
pub unsafe fn install_into(
    config: &Config,
    sqlite3_config: unsafe extern "C" fn(core::ffi::c_int, ...) -> core::ffi::c_int,
) -> Result<(), InstallError> {
    // SAFETY: the caller's word.
    unsafe { state::install(config, sqlite3_config) }
}

/// Numbers of all caches, from any thread.
#[must_use]
pub fn stats() -> Stats {
    methods::PROCESS.stats()
}

/// Gives memory that no cache uses back to the system now. Returns bytes given back. What a connection's cache holds goes by
/// `PRAGMA shrink_memory` or `sqlite3_db_release_memory` on that connection, which give it back, too.
///
/// ```
/// assert_eq!(larder_sqlite::trim(), 0); // nothing is installed
/// ```
pub fn trim() -> usize {
    methods::PROCESS.trim()
}
