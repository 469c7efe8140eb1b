//! Garbage on the descriptor of a mount: each message has an answer or ends the connection, and names stay in the source.

#![no_main]

use std::fs;
use std::path::PathBuf;

use larder_fs::fuzzing::{converse, seeds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| {
    // In memory, where there is such a place.
    let shm = PathBuf::from("/dev/shm");
    let place = if shm.is_dir() {
        shm
    } else {
        std::env::temp_dir()
    };
    let outer = place.join(format!("larder-fuzz-fuse-{}", std::process::id()));
    let source = outer.join("source");
    fs::create_dir_all(&source).expect("a directory");
    fs::write(source.join("a"), [1; 10_000]).expect("a file");
    converse(&source, data);
    fs::remove_dir_all(&source).expect("the source is there");
    // It is not empty if a name has left the source.
    fs::remove_dir(&outer).expect("nothing else is there");
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    larder_fuzz::mutate_bytes_from(&seeds(), data, size, max_size, seed)
});
