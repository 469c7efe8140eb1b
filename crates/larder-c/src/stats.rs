//! What a pool has done and holds.

use core::ffi::c_char;
use core::fmt::{self, Write};

use larder::pages::{PagePool, PoolStats};

use crate::buffer;
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::guard;
use crate::mark::shared;
use crate::pool::larder_pool;

/// Beyond any machine: the library's way to say that there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// The fields are named once for the filling and the JSON; the struct is spelled out for the header.
macro_rules! stats {
    ($($name:ident),+ $(,)?) => {
        fn fields(stats: &larder_pool_stats) -> impl Iterator<Item = (&'static str, u64)> {
            [$((stringify!($name), stats.$name)),+].into_iter()
        }

        fn filled(from: &PoolStats) -> larder_pool_stats {
            larder_pool_stats {
                size: size_of::<larder_pool_stats>(),
                // Counts and bytes of a 64-bit machine; wider types do not exist here.
                $($name: from.$name as u64),+
            }
        }
    };
}

/// Numbers of a pool, read without stopping anybody: they belong to slightly different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_pool_stats {
    /// Bytes of this struct; set it before the call to what the program knows.
    pub size: usize,
    /// Pages taken from a CPU's magazines.
    pub hits: u64,
    /// Gets that found their CPU's magazines empty, in magazines.
    pub misses: u64,
    /// Pages put onto a CPU's magazines.
    pub puts: u64,
    /// Bytes backed by memory: in use, in stock and free.
    pub held_bytes: u64,
    /// Bytes in use or in stock.
    pub out_bytes: u64,
    /// Most that may be held; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Calls that made addresses accessible.
    pub commit_calls: u64,
    /// Calls that populated a cluster.
    pub populate_calls: u64,
    /// Calls that gave memory back.
    pub decommit_calls: u64,
    /// Page faults that no consumer took.
    pub faults_avoided: u64,
    /// Bytes given back to the kernel.
    pub released_bytes: u64,
    /// Bytes that a get zeroed on the caller's thread.
    pub zeroed_by_caller_bytes: u64,
    /// Bytes that were zero when they were taken.
    pub zeroing_avoided_bytes: u64,
    /// Bytes that the helper zeroed.
    pub zeroed_by_helper_bytes: u64,
    /// Bytes that the helper populated ahead of need.
    pub fault_ahead_bytes: u64,
    /// CPU time of the helper in nanoseconds.
    pub helper_cpu_ns: u64,
    /// Bytes in the pre-zeroed stock's depot, at least.
    pub prezeroed_bytes: u64,
    /// Pages that a magazine may hold now.
    pub magazine_pages: u64,
    /// Magazines that exist.
    pub magazines: u64,
}

stats! {
    hits, misses, puts, held_bytes, out_bytes, limit_bytes, commit_calls, populate_calls, decommit_calls,
    faults_avoided, released_bytes, zeroed_by_caller_bytes, zeroing_avoided_bytes, zeroed_by_helper_bytes,
    fault_ahead_bytes, helper_cpu_ns, prezeroed_bytes, magazine_pages, magazines,
}

fn read(pool: &PagePool) -> larder_pool_stats {
    let mut stats = filled(&pool.stats());
    if stats.limit_bytes >= NO_LIMIT {
        stats.limit_bytes = u64::MAX;
    }
    stats
}

/// Reads the numbers. `stats->size` says how much room the program has; it is set to what was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_stats_read(
    pool: *const larder_pool,
    stats: *mut larder_pool_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: `size` bytes behind `stats`.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            if stats.is_null() {
                return Err(Failed::null("stats"));
            }
            let room = stats.cast::<usize>().read_unaligned();
            if room < size_of::<usize>() {
                return Err(Failed::number(
                    larder_status::LARDER_ARGUMENT,
                    "stats.size is",
                    room as u64,
                    "; set it to sizeof(larder_pool_stats)",
                ));
            }
            let mut own = read(pool);
            own.size = room.min(size_of::<larder_pool_stats>());
            core::ptr::copy_nonoverlapping(
                (&raw const own).cast::<u8>(),
                stats.cast::<u8>(),
                own.size,
            );
            Ok(())
        })
    }
}

/// Writes the numbers as one JSON object. `needed`, which may be NULL, gets the bytes that the whole takes, its end included;
/// a buffer that is too small is LARDER_BUFFER and holds the beginning. `buffer` may be NULL when `bytes` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_stats_json(
    pool: *const larder_pool,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let stats = read(shared(pool)?);
            buffer::text(buffer, bytes, needed, |out| json(&stats, out))
        })
    }
}

fn json(stats: &larder_pool_stats, out: &mut dyn Write) -> fmt::Result {
    out.write_str("{\"schema\":1")?;
    for (name, value) in fields(stats) {
        // No limit is no number.
        if name == "limit_bytes" && value == u64::MAX {
            write!(out, ",\"{name}\":null")?;
        } else {
            write!(out, ",\"{name}\":{value}")?;
        }
    }
    out.write_str("}")
}
