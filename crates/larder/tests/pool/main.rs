//! The page pool, its settings, and the modes in which it and what stands on it run.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fork;
mod fragments;
mod limits;
mod model;
mod settings;
mod shared;
mod signals;
mod threads;
mod valgrind;
