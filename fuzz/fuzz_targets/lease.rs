//! The two records of a lease: any bytes of a file are a number from which identifiers go on, or an error.

#![no_main]

use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::LazyLock;

use larder::ids::{Durable, IdRange, Lease, LeaseFile, LeaseRecord};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("larder-fuzz-lease-{}", std::process::id()))
});

fuzz_target!(
    |input: (Option<(u64, u64)>, Option<(u64, u64)>, Vec<u8>, u16)| {
        let (first, second, junk, at) = input;
        assert_eq!(
            LeaseRecord::from_bytes(&junk).map(|record| record.to_bytes().to_vec()),
            LeaseRecord::from_bytes(&junk).map(|_| junk.clone())
        );
        // A file with these records, then junk somewhere over it.
        let mut bytes = vec![0; 4128];
        for (place, record) in [(0, first), (4096, second)] {
            if let Some((sequence, next)) = record {
                bytes[place..place + 32]
                    .copy_from_slice(&LeaseRecord { sequence, next }.to_bytes());
            }
        }
        let at = usize::from(at) % bytes.len();
        let end = (at + junk.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&junk[..end - at]);
        fs::write(&*PATH, &bytes).expect("a file");
        let records = [0, 4096].map(|place| LeaseRecord::from_bytes(&bytes[place..place + 32]));
        let newest = records
            .iter()
            .flatten()
            .max_by_key(|record| record.sequence)
            .copied();

        let mut file = LeaseFile::open(&*PATH).expect("the file can be opened");
        let Ok(mark) = file.load() else {
            let contradict =
                matches!(records, [Some(a), Some(b)] if a.sequence == b.sequence && a != b);
            assert!(newest.is_none() || contradict);
            return;
        };
        let newest = newest.expect("a number comes from a record");
        assert_eq!(mark, (newest.sequence > 0).then_some(newest.next));
        let range = IdRange::new(1, u64::MAX - 1).expect("a range");
        let block = NonZeroU64::new(5).expect("not 0");
        let mut given = Vec::new();
        for _ in 0..2 {
            let Ok(mut lease) = Lease::new(&mut file, range, block) else {
                assert!(mark == Some(0), "every other number belongs to the range");
                return;
            };
            given.extend((0..3).map_while(|_| lease.alloc().ok()));
        }
        assert!(given.first().is_none_or(|&id| id >= mark.unwrap_or(1)));
        assert!(
            given
                .windows(2)
                .all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 5)
        );
    }
);
