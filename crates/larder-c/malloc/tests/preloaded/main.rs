//! Programs in C and C++ with this malloc preloaded, as it is, hardened, and in its debug mode.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

mod common;
mod debug;
mod misuses;
mod profile;
mod programs;
