//! Sequences of operations on a page pool, against a model of who holds which page.

#![no_main]

use larder_fuzz::pool::{Case, play};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: Case| play(case));
