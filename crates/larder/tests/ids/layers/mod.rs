//! What lies over the identifiers: handles, guards, snapshots.

#![cfg(feature = "std")]

mod guard;
#[cfg(feature = "serde")]
mod serde;
mod snapshot;
mod support;
mod tagged;
