//! The header `larder.h`: that it is what the sources say, and that programs in C and C++ compile against it and run.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

mod common;
mod examples;
mod generated;
