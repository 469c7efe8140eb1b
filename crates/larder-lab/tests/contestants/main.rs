//! The contestants do the work that they are timed for: counts and identifiers, never times.
//!
//! What is counted by process (the heap, resident memory, page tables) is tested in a process of its own by
//! [`alone`](alone::alone).

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails fails the test, as it should"
)]

mod alloc_workloads_run;
mod alone;
mod getpid_algorithms;
mod id_space_alone;
mod page_instructions;
mod page_suppliers;
mod process_ids_contestants;
mod process_ids_counts;
mod resident;
mod sqlite;
mod zero_fill_alone;
mod zero_fill_counts;
