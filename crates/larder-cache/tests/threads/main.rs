//! Block caches that many threads use: what the thread sanitizer looks at.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod disk;
mod durable;
mod order;
mod pinned;
mod sharing;
