//! larder's page cache for a program that uses `libsqlite3.so` and knows nothing of larder:
//!
//! ```text
//! LD_PRELOAD=liblarder_sqlite_preload.so LARDER_SQLITE=s3-fifo LARDER_SQLITE_BUDGET=256M sqlite3 big.db
//! ```
//!
//! `LARDER_SQLITE` names the rule, and `off` leaves SQLite alone. `LARDER_SQLITE_BUDGET` is the budget of all connections in bytes, or
//! with K, M or G. What they do not say is what the settings file that `LARDER_SETTINGS` names has for a block cache. A program that has
//! SQLite linked in keeps SQLite's own cache.
//!
//! `LARDER_SQLITE_STATS=FILE` asks for a line of JSON at the end of each program that used the cache. `larder run --sqlite` reads it.

use core::ffi::{c_int, c_void};
use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use larder::settings::Settings;
use larder_sqlite::Config;

type ConfigFn = unsafe extern "C" fn(c_int, ...) -> c_int;

/// The dynamic loader calls this before `main`, when all libraries of the program are there.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// And this after it, and after what the program registered for its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// Where the line goes, and the process that writes it. Kept from the start: a program may change its environment, and a process that it
/// forks has its counts, too.
static STATS: OnceLock<(PathBuf, u32)> = OnceLock::new();

extern "C" fn start() {
    if let Err(why) = install() {
        eprintln!("liblarder_sqlite_preload.so: {why}");
    }
}

fn install() -> Result<(), String> {
    let rule = env::var("LARDER_SQLITE").unwrap_or_default();
    if rule == "off" {
        return Ok(());
    }
    let config = sqlite3_config();
    if config.is_null() {
        return Ok(());
    }
    // SAFETY: what has this name is SQLite's function.
    let config: ConfigFn = unsafe { core::mem::transmute(config) };
    let mut made = Config::new();
    // A program with more rights than its caller reads and writes no file that the caller names.
    // SAFETY: no pointers.
    let trusted = unsafe { libc::getauxval(libc::AT_SECURE) } == 0;
    if let Some(file) = env::var_os("LARDER_SETTINGS").filter(|_| trusted) {
        let settings = Settings::read(file.as_ref()).map_err(|why| why.to_string())?;
        made = made.settings(&settings);
    }
    if !rule.is_empty() {
        made = made.rule(&rule);
    }
    if let Ok(budget) = env::var("LARDER_SQLITE_BUDGET") {
        let bytes = bytes(&budget).ok_or_else(|| {
            format!("LARDER_SQLITE_BUDGET is {budget:?}, which is no number of bytes: write 268435456, 256M or 1G")
        })?;
        made = made.budget_bytes(bytes);
    }
    // SAFETY: `main` has not begun, so there is one thread, which is not in SQLite.
    unsafe { larder_sqlite::install_into(&made, config) }.map_err(|why| why.to_string())?;
    if trusted && let Some(path) = env::var_os("LARDER_SQLITE_STATS") {
        let _ = STATS.set((path.into(), std::process::id()));
    }
    Ok(())
}

/// SQLite's function; null where there is no SQLite.
fn sqlite3_config() -> *mut c_void {
    let name = c"sqlite3_config".as_ptr();
    // SAFETY: the name ends in a zero byte.
    let linked = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) };
    if !linked.is_null() {
        return linked;
    }
    // A module that the program loads later, such as Python's, gets the library that is there by then. It lends its names to no other.
    // SAFETY: the names end in zero bytes, and the library stays.
    unsafe {
        match libc::dlopen(
            c"libsqlite3.so.0".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_LOCAL,
        ) {
            library if library.is_null() => library,
            library => libc::dlsym(library, name),
        }
    }
}

extern "C" fn end() {
    let stats = larder_sqlite::stats();
    if let Some((path, process)) = STATS.get()
        && *process == std::process::id()
        && stats.hits + stats.misses > 0
        && let Ok(mut file) = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
    {
        let line = format!(
            "{{\"pid\":{process},\"hits\":{},\"misses\":{},\"evictions\":{}}}\n",
            stats.hits, stats.misses, stats.evictions
        );
        // One call, so that the lines of several processes do not mix. At the program's end no caller hears of a failure.
        let _ = file.write_all(line.as_bytes());
    }
}

fn bytes(text: &str) -> Option<usize> {
    let (digits, shift) = match text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']) {
        Some(digits) => match text.as_bytes()[digits.len()].to_ascii_lowercase() {
            b'k' => (digits, 10),
            b'm' => (digits, 20),
            _ => (digits, 30),
        },
        None => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}
