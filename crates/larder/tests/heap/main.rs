//! Heaps and size classes. This program runs on the system's allocator, so that the global heap has only the blocks of its tests.

#![allow(clippy::unwrap_used)]

mod checked;
#[path = "../common/mod.rs"]
mod common;
mod edges;
mod first;
mod growth;
mod idle;
mod model;
mod served;
mod short;
mod smaller;
mod threads;
