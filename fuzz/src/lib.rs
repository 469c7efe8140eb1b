//! What the fuzz targets share: seeds that are made in code instead of kept in a corpus.

use libfuzzer_sys::fuzzer_mutate;

pub mod arena;
pub mod ids;
pub mod objects;
pub mod part;
pub mod pool;
pub mod records;
pub mod trace;
pub mod workload;

/// One mutation in so many begins anew from a seed.
const RESTART: u32 = 64;

/// A mutator that knows good inputs: now and then, and always at the beginning, it starts from one of `seeds`.
///
/// `data`, `size`, `max_size` and `seed` are what libFuzzer hands to a custom mutator; the result is the new size.
pub fn mutate_from(
    seeds: &[String],
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
) -> usize {
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|text| text.clone().into_bytes()).collect();
    mutate_bytes_from(&seeds, data, size, max_size, seed)
}

/// As [`mutate_from`], for inputs that are no text.
pub fn mutate_bytes_from(
    seeds: &[Vec<u8>],
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
) -> usize {
    let mut size = size;
    if !seeds.is_empty() && (size <= 1 || seed.is_multiple_of(RESTART)) {
        let text = &seeds[(seed / RESTART) as usize % seeds.len()];
        size = text.len().min(max_size);
        data[..size].copy_from_slice(&text[..size]);
        if seed.is_multiple_of(2 * RESTART) {
            // The seed as it is, so that the corpus begins with good inputs.
            return size;
        }
    }
    fuzzer_mutate(data, size, max_size)
}
