//! Identifiers: every rule against its model, spaces that threads share, and what lies over both.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fork;
mod layers;
mod model;
mod random;
mod rested;
mod spaces;
mod threads;
mod threads_in_place;
mod wait;
mod wait_first;
mod wide;
