//! The record of a run: taken, stored, compared and shown.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails fails the test, as it should"
)]

mod compare;
#[path = "../common/document.rs"]
mod document;
#[path = "../common/home.rs"]
mod home;
mod report_formats;
mod runner;
mod store_faults;
mod store_foreign;
mod store_roundtrip;
mod stored;
