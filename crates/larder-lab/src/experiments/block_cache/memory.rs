//! What a cached block costs in memory.

use anyhow::{Context, ensure};

use crate::contestants::block_cache::{Blocks, Reader};
use crate::contestants::timing::bytes_of;
use crate::model::{Measures, Params};

/// Three times as many blocks come as there is room for, so that what is remembered of those that left is there too. `said` is
/// what the cache says of its tables.
pub(super) fn with<B: Blocks>(
    params: &Params,
    said: impl Fn(&B) -> Option<usize>,
) -> anyhow::Result<Measures> {
    let blocks = params.count("blocks")?;
    ensure!(blocks > 0, "no blocks were asked for");
    let before = own_bytes()?;
    let mut cache = B::new(blocks)?;
    let mut reader = cache.reader();
    let mut ok = true;
    for block in 0..3 * blocks as u64 {
        ok &= reader.bring(block);
    }
    drop(reader);
    let len = cache.len();
    let grown = own_bytes()?.saturating_sub(before);
    ensure!(ok && len > 0, "blocks could not be brought");
    let of = |bytes: f64| bytes / len as f64;
    let mut measures = Measures::new().with("bytes_per_block", of(grown as f64));
    if let Some(said) = said(&cache) {
        measures = measures.with("said_bytes_per_block", of(said as f64));
    }
    Ok(measures)
}

/// Bytes in memory that are this process's own and in use: what it allocated or wrote, and not the pages of the program's file, of
/// which a cache's code brings in some hundred KiB the first time that it runs. What was freed goes back to the system before, as
/// far as malloc can give it: tables that grow leave their former ones behind.
fn own_bytes() -> anyhow::Result<u64> {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number and touches nothing but what malloc has free.
    unsafe {
        libc::malloc_trim(0);
    }
    let path = "/proc/self/smaps_rollup";
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{path} cannot be read, so memory cannot be measured here"))?;
    bytes_of(&text, "Anonymous").with_context(|| format!("{path} has no line 'Anonymous' in kB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_and_what_was_freed_does_not() {
        const BYTES: usize = 32 << 20;
        // Other tests of this process allocate at the same time, but not as much.
        let slack = BYTES as u64 / 2;
        let before = own_bytes().expect("read");
        // In parts that malloc takes from its heap, with one behind them that stays.
        let held: Vec<Vec<u8>> = (0..BYTES / 4096).map(|_| vec![1; 4000]).collect();
        let last = vec![1_u8; 4000];
        let full = own_bytes().expect("read");
        assert!(full > before + slack, "{before} to {full}");
        drop(held);
        let freed = own_bytes().expect("read");
        assert!(freed + slack < full, "{full} to {freed}");
        drop(last);
    }
}
