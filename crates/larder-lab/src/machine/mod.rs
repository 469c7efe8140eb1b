//! The machine: what it is, and what disturbs it while the lab measures.

mod build;
mod capture;
mod cgroup;
mod cpu;
mod fields;
mod fingerprint;
mod fnv;
mod kernel;
mod memory;
mod noise;
mod root;

#[cfg(test)]
mod tests;

pub use capture::{capture, capture_from};
pub use fingerprint::fingerprint;
pub(crate) use fnv::{fnv1a, fnv1a_wide};
pub use memory::memory_limit;
pub use noise::NoiseMeter;
pub(crate) use noise::joined;
pub use root::Root;
