//! What lies over the identifiers: handles, guards, pending identifiers, tenants, nested spaces, snapshots, leases.

#![cfg(feature = "std")]

mod guard;
mod lease;
mod nested;
mod pending;
#[cfg(feature = "serde")]
mod serde;
mod snapshot;
mod support;
mod tagged;
mod tenant;
