//! Tests whose program runs on an allocator of their own: larder's heap, which counts and refuses on request. The test harness
//! runs on it too.

#![allow(clippy::unwrap_used)]

mod alloc;
#[path = "../common/mod.rs"]
mod common;
mod debug;
mod ids_memory;
mod objects_alone;
mod starved;
mod watched;

#[global_allocator]
static ALLOCATOR: watched::Watched = watched::Watched;
