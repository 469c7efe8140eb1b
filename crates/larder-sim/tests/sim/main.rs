//! Traces and simulations through the public interface.

#![allow(clippy::unwrap_used)]

mod csv;
mod formats;
mod loadfile;
mod mutated;
mod opt;
mod samples;
