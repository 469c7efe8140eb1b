//! Blocks of files kept in memory, and the rules that choose which one leaves.
//!
//! [`policy`] has the replacement rules, in one form that the cache, the simulator and a mount share. [`replay`] drives a
//! rule with a sequence of requests and counts; it is the core of the simulator.

pub mod policy;
pub mod replay;
