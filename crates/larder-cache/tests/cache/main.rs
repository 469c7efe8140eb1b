//! What a block cache does, mostly in one thread.

#![allow(clippy::unwrap_used)]

mod asynchronous;
mod basics;
#[path = "../common/mod.rs"]
mod common;
mod dirty;
mod faults;
mod files;
mod growth;
mod guards;
mod lost;
mod maintain;
mod memory;
mod model;
mod open;
mod own_policy;
mod parked;
mod replay;
mod runs;
mod saturated;
mod sync;
mod tenants;
mod try_write;
#[cfg(feature = "io-uring")]
mod uring;
