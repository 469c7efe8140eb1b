//! Arenas: spans, policies, refusals, threads, forks, and a model of it all.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fork;
mod model;
mod spans;
mod threads;
