//! What lies over the identifiers: handles, guards, snapshots.

#![cfg(feature = "std")]
#![allow(clippy::unwrap_used)]

mod guard;
#[cfg(feature = "serde")]
mod serde;
mod snapshot;
mod support;
mod tagged;
