//! Parts of sweeps: any bytes are rows of the announced plan, or an error with a place, and no more memory than the bytes.

#![no_main]

use larder_fuzz::part::{check, seeds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| check(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    larder_fuzz::mutate_bytes_from(&seeds(), data, size, max_size, seed)
});
