//! The settings file: any text is settings that make sense, or an error that says what is wrong.

#![no_main]

use larder::pages::{MAX_CLUSTER_PAGES, PagePool};
use larder::settings::Settings;
use larder_fuzz::mutate_from;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const GOOD: [&str; 4] = [
    "version = 1\n",
    "version = 1\n[malloc]\nmode = \"per-cpu\"\ndecay_ms = \"never\"\ncache_bytes = 1000\n",
    "version = 1\n[pages]\ncluster_pages = \"auto\"\nzeroing = \"auto\"\nprezero = false\n",
    "version = 1\n[pages]\ncluster_pages = 128\nzeroing = \"avx2\"\nprezero = true\n\
     [evidence.pages.cluster_pages]\nrun = \"3f9c\"\nbecause = \"b\"\nratio = 1.01\nlo = 0.99\nhi = 1.03\n\
     date = \"2026-01-01\"\nmachine = \"m\"\n",
];

fn seeds() -> Vec<String> {
    GOOD.map(str::to_owned).to_vec()
}

fn good_ones_are_read() {
    for text in GOOD {
        let read = text.parse::<Settings>();
        assert!(read.is_ok(), "{text}: {read:?}");
    }
}

fuzz_target!(init: good_ones_are_read(), |text: &str| {
    match text.parse::<Settings>() {
        Ok(settings) => {
            if let Some(size) = settings.pages().cluster_pages {
                assert!((1..=MAX_CLUSTER_PAGES).contains(&size.resolve()));
            }
            // What is accepted must be usable: building reads every value.
            let builder = PagePool::builder()
                .ignore_environment()
                .reserve_bytes(1 << 20)
                .settings(&settings);
            assert!(builder.build().is_ok(), "accepted, but no pool can be made of it");
            let words = settings.malloc().environment();
            assert!(words.iter().all(|(_, word)| !word.is_empty()));
        }
        Err(error) => assert!(error.to_string().len() > "settings: ".len()),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_from(&seeds(), data, size, max_size, seed)
});
