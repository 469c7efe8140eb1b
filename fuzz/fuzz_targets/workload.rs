//! Names of workloads with their parameters: any text is a workload that makes records, a file's name, or an error that says which
//! parameter is wrong.

#![no_main]

use larder_fuzz::workload::{check, seeds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|text: &str| check(text));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    larder_fuzz::mutate_from(&seeds(), data, size, max_size, seed)
});
