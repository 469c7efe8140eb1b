//! The simulator as the program offers it, and on what a block cache recorded.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails fails the test, as it should"
)]

mod bounds;
mod cli;
#[path = "../common/home.rs"]
mod home;
mod recorded;
mod replay;
#[allow(dead_code)] // Not all of it is needed here.
#[path = "../../../larder-sim/tests/sim/samples.rs"]
mod samples;
mod workloads;
