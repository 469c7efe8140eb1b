//! Snapshots of identifiers: any bytes are one that can be restored, or an error.
//!
//! Nearly every mutation breaks the checksum, so the length and the checksum are put right before a second reading.

#![no_main]

use std::cell::RefCell;
use std::sync::LazyLock;

use larder::ids::rule::Lowest;
use larder::ids::{Ids, Snapshot};
use larder_fuzz::mutate_bytes_from;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

/// More than the small ranges of the seeds have.
const MOST_IDS: u64 = 1 << 20;

/// Made once, for they are asked for at every mutation.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(seeds);

fn seeds() -> Vec<Vec<u8>> {
    let live: [Vec<u64>; 5] = [
        vec![],
        vec![0, 1, 2, 9, 65_535, 65_536],
        (0..200_000).collect(),
        (0..3000).map(|n| n * 3).collect(),
        (60_000..140_000).collect(),
    ];
    let snapshot = |live: Vec<u64>| {
        let ids = Ids::rebuild(0u64..300_000, Lowest, live).expect("a space");
        Snapshot::of(&RefCell::new(ids), &Lowest).expect("a snapshot")
    };
    live.map(|live| snapshot(live).to_bytes().expect("its bytes"))
        .to_vec()
}

fn good_ones_are_read() {
    for bytes in SEEDS.iter() {
        check(&Snapshot::from_bytes(bytes).expect("a good one"));
    }
}

fn check(snapshot: &Snapshot) {
    let runs: Vec<_> = snapshot.runs().collect();
    let count: u128 = runs.iter().map(|run| run.len()).sum();
    assert_eq!(count, u128::from(snapshot.allocated()));
    assert!(
        runs.iter()
            .all(|run| snapshot.range().contains(run.first())
                && snapshot.range().contains(run.last()))
    );
    assert!(
        runs.windows(2)
            .all(|pair| pair[0].last() + 1 < pair[1].first())
    );
    let again =
        Snapshot::from_bytes(&snapshot.to_bytes().expect("bytes")).expect("what was written");
    assert_eq!(&again, snapshot);
    if snapshot.allocated() <= MOST_IDS && snapshot.rule() == "Lowest" {
        let ids = snapshot
            .restore::<_, u64>(Lowest)
            .expect("what was accepted can be restored");
        assert!(ids.runs().eq(runs));
    }
}

fuzz_target!(init: good_ones_are_read(), |data: &[u8]| {
    let _ = Snapshot::from_bytes(data);
    let mut bytes = data.to_vec();
    if bytes.len() < 56 {
        return;
    }
    let (length, end) = (bytes.len() as u64, bytes.len() - 4);
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    if let Ok(snapshot) = Snapshot::from_bytes(&bytes) {
        check(&snapshot);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_bytes_from(&SEEDS, data, size, max_size, seed)
});
