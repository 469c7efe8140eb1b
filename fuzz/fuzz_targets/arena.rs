//! Sequences of operations on an arena, against a model that tries every address.

#![no_main]

use larder_fuzz::arena::{Case, play};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: Case| play(case));
