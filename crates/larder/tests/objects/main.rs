//! Families and caches of objects.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fork;
mod many;
mod memory;
mod programs;
mod raw;
mod signals;
mod threads;
mod typed;
