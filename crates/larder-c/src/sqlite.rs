//! SQLite's page cache, for a program in C: it hands in its SQLite's `sqlite3_config`, so the library links to no SQLite.

use core::ffi::{c_char, c_int};

use larder_sqlite::{Config, Stats};

use crate::call::{caught, guard};
use crate::error::{Failed, larder_error, larder_status};
use crate::numbers::{self, numbers};
use crate::options::{SizeFirst, blank, init, read_sized, settings, text};

/// The type of `sqlite3_config`.
pub type larder_sqlite3_config_fn = Option<unsafe extern "C" fn(c_int, ...) -> c_int>;

/// Settings of SQLite's page cache. `larder_sqlite_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_sqlite_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_sqlite_options)`.
    pub size: usize,
    /// The replacement rule; NULL is `adaptive`. Each cache has its own.
    pub policy: *const c_char,
    /// Most bytes that the pages of all caches may have together; UINT64_MAX is no limit, and the default. `PRAGMA cache_size` bounds
    /// each cache as before.
    pub limit_bytes: u64,
    /// NULL, or the path of a settings file (`larder sim --settings`): the policy and the bytes that it has for a block cache count in
    /// place of `policy` and `limit_bytes`.
    pub settings: *const c_char,
}

// SAFETY: the size, then pointers that may be NULL, and a number.
unsafe impl SizeFirst for larder_sqlite_options {}

impl Default for larder_sqlite_options {
    fn default() -> Self {
        Self {
            limit_bytes: u64::MAX,
            ..blank()
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_sqlite_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_sqlite_options_init(
    options: *mut larder_sqlite_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

/// Makes larder's the page cache of a SQLite, for all connections to come. `config` is its `sqlite3_config`; `options` may be NULL for
/// the defaults. Call it before anything else of SQLite, or after `sqlite3_shutdown`: else it is LARDER_BUSY. A second call is, too,
/// unless `sqlite3_initialize` and `sqlite3_shutdown` came between. The library must stay loaded while SQLite is in use.
///
/// # Safety
/// `config` is NULL or `sqlite3_config`, and no other thread is in a function of this SQLite; `options` is NULL or has as many bytes as
/// its first field says, with texts that are NULL or end with a zero byte; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_sqlite_install(
    config: larder_sqlite3_config_fn,
    options: *const larder_sqlite_options,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            let config = config.ok_or_else(|| Failed::null("config"))?;
            let options = read_sized(options)?;
            let mut made = Config::new();
            if let Some(policy) = text(options.policy, "options.policy")? {
                made = made.rule(policy);
            }
            if let Ok(limit) = usize::try_from(options.limit_bytes)
                && limit != usize::MAX
            {
                made = made.budget_bytes(limit);
            }
            if let Some(settings) = settings(options.settings)? {
                made = made.settings(&settings);
            }
            larder_sqlite::install_into(&made, config).map_err(Failed::from)
        })
    }
}

/// Numbers of all page caches of the process, read while threads go on: they belong to slightly different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_sqlite_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Caches that there are: a connection has one for each of its databases.
    pub caches: u64,
    /// Bytes of the pages that are in them.
    pub bytes: u64,
    /// Bytes of memory for them: with what each page has besides, and free memory that was not given back.
    pub held_bytes: u64,
    /// Most bytes that the pages may have; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Pages that are in use or dirty.
    pub pinned: u64,
    /// Pages that SQLite found in a cache.
    pub hits: u64,
    /// Pages that it did not find, and that came in.
    pub misses: u64,
    /// Pages that left to make room.
    pub evictions: u64,
}

numbers!(larder_sqlite_stats, |given: &Stats| stats = given;
    caches = stats.caches.len() as u64,
    bytes, held_bytes,
    limit_bytes = stats.budget_bytes.map_or(u64::MAX, |bytes| bytes as u64),
    pinned = stats.caches.iter().map(|cache| cache.pinned as u64).sum(),
    hits, misses, evictions,
);

/// Reads the numbers; as larder_pool_stats_read. Where the cache was not installed, `limit_bytes` is UINT64_MAX and all others are 0.
///
/// # Safety
/// `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_sqlite_stats_read(
    stats: *mut larder_sqlite_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            numbers::write(stats, || Ok((&larder_sqlite::stats()).into()))
        })
    }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_sqlite_stats_json(
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            let stats = larder_sqlite_stats::from(&larder_sqlite::stats());
            numbers::write_json(&stats, (buffer, bytes, needed))
        })
    }
}

/// Gives memory that no page cache uses back to the system now; returns the bytes. What a connection's cache holds goes by
/// `sqlite3_db_release_memory` on that connection.
#[unsafe(no_mangle)]
pub extern "C" fn larder_sqlite_trim() -> usize {
    caught(|| Ok(larder_sqlite::trim())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;
    use crate::error::LARDER_ERROR_BYTES;
    use crate::error::larder_status::{LARDER_ARGUMENT, LARDER_OK};

    #[test]
    fn a_policy_that_is_no_text_is_refused_by_the_name_of_its_field() {
        let options = larder_sqlite_options {
            policy: c"\xff".as_ptr(),
            ..Default::default()
        };
        let mut error = larder_error {
            status: LARDER_OK,
            os_errno: 0,
            message: [0; LARDER_ERROR_BYTES],
        };
        let config: larder_sqlite3_config_fn = Some(rusqlite::ffi::sqlite3_config);
        // SAFETY: the function is what it says, which no call gets to, and both structs are live.
        let status = unsafe { larder_sqlite_install(config, &raw const options, &raw mut error) };
        // SAFETY: the message ends with a zero byte.
        let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
        assert_eq!(status, LARDER_ARGUMENT, "{message:?}");
        let message = message.to_string_lossy();
        assert!(message.contains("options.policy is no UTF-8"), "{message}");
    }

    #[test]
    fn numbers_of_a_cache_that_is_not_installed_are_0_but_the_limit() {
        let numbers = larder_sqlite_stats::from(&larder_sqlite::stats());
        let none = larder_sqlite_stats {
            size: numbers.size,
            limit_bytes: u64::MAX,
            ..Default::default()
        };
        assert_eq!(numbers, none);
    }
}
