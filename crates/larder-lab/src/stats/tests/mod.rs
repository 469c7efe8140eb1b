//! Tests that look at several statistics at once.

mod coverage;
mod laws;
mod properties;
mod sweeps;
mod verdicts;
