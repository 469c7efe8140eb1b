//! What SQLite's C interface has for a page cache. The crate links to no SQLite: the program's own is used, of whatever version.

use core::ffi::{c_int, c_uint, c_void};

pub(crate) const OK: c_int = 0;
pub(crate) const NO_MEMORY: c_int = 7;
pub(crate) const MISUSE: c_int = 21;
pub(crate) const CONFIG_PCACHE2: c_int = 18;

/// `sqlite3_pcache_page`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) buf: *mut c_void,
    pub(crate) extra: *mut c_void,
}

/// `sqlite3_pcache_methods2`, which `sqlite3_config` copies.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Methods {
    pub(crate) version: c_int,
    pub(crate) arg: *mut c_void,
    pub(crate) init: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) shutdown: unsafe extern "C" fn(*mut c_void),
    pub(crate) create: unsafe extern "C" fn(c_int, c_int, c_int) -> *mut c_void,
    pub(crate) cache_size: unsafe extern "C" fn(*mut c_void, c_int),
    pub(crate) page_count: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) fetch: unsafe extern "C" fn(*mut c_void, c_uint, c_int) -> *mut Page,
    pub(crate) unpin: unsafe extern "C" fn(*mut c_void, *mut Page, c_int),
    pub(crate) rekey: unsafe extern "C" fn(*mut c_void, *mut Page, c_uint, c_uint),
    pub(crate) truncate: unsafe extern "C" fn(*mut c_void, c_uint),
    pub(crate) destroy: unsafe extern "C" fn(*mut c_void),
    pub(crate) shrink: unsafe extern "C" fn(*mut c_void),
}

/// `sqlite3_config`.
pub(crate) type ConfigFn = unsafe extern "C" fn(c_int, ...) -> c_int;

unsafe extern "C" {
    pub(crate) fn sqlite3_config(op: c_int, ...) -> c_int;
}
