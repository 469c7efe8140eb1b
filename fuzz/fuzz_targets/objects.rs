//! Programs over caches of objects beside a model of who has which bytes.

#![no_main]

use larder_fuzz::objects::play_objects;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: &[u8]| play_objects(program));
