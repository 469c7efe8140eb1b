//! What the lab concludes from samples: every experiment from records whose truth is known and from stored runs, the
//! statistics and the calculator from vectors that others computed.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails fails the test, as it should"
)]

mod alloc_workloads;
mod arenas;
mod calc_vectors;
mod golden_runs;
mod golden_stats;
mod id_space;
mod object_caches;
mod page_buffers;
mod page_pool;
mod process_ids;
mod programs;
mod record;
mod said;
mod sqlite;
mod zero_fill;
mod zero_fill_record;
