//! The C functions, called from Rust: what they do, and what bad input gets.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

mod arena;
mod blocks;
mod c;
mod family;
mod garbage;
mod garbage_arena;
mod garbage_objects;
mod heap;
mod ids;
mod objects;
#[path = "../../../larder/tests/common/process.rs"]
#[allow(dead_code)] // Not all of it is needed here.
mod process;
mod sqlite;
mod threads;
