//! Programs over heaps beside a model of who has which bytes.

#![no_main]

use larder_fuzz::objects::play_heap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: &[u8]| play_heap(program));
