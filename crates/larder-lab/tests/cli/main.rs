//! The program `larder` as a user meets it, in a home of its own.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails fails the test, as it should"
)]

mod calc;
mod compare;
#[path = "../common/home.rs"]
mod home;
mod limits;
mod measure;
mod mount;
mod preloaded;
mod resume;
mod run;
mod usage;
