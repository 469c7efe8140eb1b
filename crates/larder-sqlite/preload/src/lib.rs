//! larder's page cache for a program that links to `libsqlite3.so` and knows nothing of larder:
//!
//! ```text
//! LD_PRELOAD=liblarder_sqlite_preload.so LARDER_SQLITE=s3-fifo LARDER_SQLITE_BUDGET=256M sqlite3 big.db
//! ```
//!
//! `LARDER_SQLITE` names the rule, and `off` leaves SQLite alone. `LARDER_SQLITE_BUDGET` is the budget of all connections in bytes, or
//! with K, M or G. A program that loads SQLite while it runs, or has it linked in, keeps SQLite's own cache.

use core::ffi::{c_int, c_void};
use std::env;

use larder_sqlite::Config;

type ConfigFn = unsafe extern "C" fn(c_int, ...) -> c_int;

/// The dynamic loader calls this before `main`, when all libraries of the program are there.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

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
    // SAFETY: the name ends in a zero byte.
    let config: *mut c_void =
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"sqlite3_config".as_ptr()) };
    if config.is_null() {
        return Ok(());
    }
    // SAFETY: what has this name is SQLite's function.
    let config: ConfigFn = unsafe { core::mem::transmute(config) };
    let mut settings = Config::new();
    if !rule.is_empty() {
        settings = settings.rule(&rule);
    }
    if let Ok(budget) = env::var("LARDER_SQLITE_BUDGET") {
        let bytes = bytes(&budget).ok_or_else(|| {
            format!("LARDER_SQLITE_BUDGET is {budget:?}, which is no number of bytes: write 268435456, 256M or 1G")
        })?;
        settings = settings.budget_bytes(bytes);
    }
    // SAFETY: `main` has not begun, so there is one thread, which is not in SQLite.
    unsafe { larder_sqlite::install_into(&settings, config) }.map_err(|why| why.to_string())
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
