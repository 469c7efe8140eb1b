//! Sequences of operations on the identifiers of one owner, under every rule, against a set.

#![no_main]

use larder_fuzz::ids::{Case, play};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: Case| play(case));
