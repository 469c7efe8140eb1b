use std::cell::RefCell;
use std::collections::BTreeSet;

use larder::ids::rule::{Cyclic, Lowest};
use larder::ids::{Allocate, IdError, IdRange, IdSpace, Ids, Snapshot};
use proptest::prelude::*;

use super::support::{Plain, owned};

fn of(first: u64, last: u64, live: impl IntoIterator<Item = u64>) -> Snapshot {
    let ids = Ids::rebuild(first..=last, Plain, live).unwrap();
    Snapshot::of(&RefCell::new(ids), &Plain).unwrap()
}

/// Snapshots of every shape that the format knows.
fn examples() -> Vec<Snapshot> {
    let chunk = 1 << 16;
    vec![
        of(0, 9, []),
        of(5, 5, [5]),
        of(300, 32767, [300, 301, 400, 32767]),
        of(0, chunk - 1, (0..chunk).filter(|at| at % 3 != 0)),
        of(0, 4 * chunk + 7, 0..=4 * chunk + 7),
        of(7, 5 * chunk, (100..3 * chunk).chain([4 * chunk + 9])),
        of(0, u64::MAX, [0, 1, u64::MAX - 1, u64::MAX]),
        of(
            u64::MAX - 2 * chunk + 1,
            u64::MAX,
            u64::MAX - 2 * chunk + 1..=u64::MAX,
        ),
    ]
}

#[test]
fn the_live_set_comes_back() {
    for snapshot in examples() {
        let bytes = snapshot.to_bytes().unwrap();
        let read = Snapshot::from_bytes(&bytes).unwrap();
        assert_eq!(read, snapshot);
        let ids = read.restore::<_, u64>(Plain).unwrap();
        assert_eq!(ids.range(), snapshot.range());
        assert_eq!(ids.allocated(), snapshot.allocated());
        assert!(ids.runs().eq(snapshot.runs()));
    }
}

#[test]
fn a_snapshot_is_small() {
    let sizes: Vec<_> = examples()
        .iter()
        .map(|snapshot| snapshot.to_bytes().unwrap().len())
        .collect();
    // A header of 61 bytes, and: nothing; one run; three; each run of two in as many bytes; one, two, two far apart; one.
    assert_eq!(sizes[0], 61);
    assert!(sizes[1] < 70 && sizes[2] < 80, "{sizes:?}");
    assert_eq!(sizes[3], 61 + 2 * 21_845, "{sizes:?}");
    assert!(sizes[4..].iter().all(|&size| size < 100), "{sizes:?}");
}

#[test]
fn a_snapshot_cut_anywhere_is_refused() {
    for snapshot in examples() {
        let bytes = snapshot.to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert!(
                Snapshot::from_bytes(&bytes[..length]).is_err(),
                "{length} of {}",
                bytes.len()
            );
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(Snapshot::from_bytes(&longer).is_err());
    }
}

#[test]
fn a_snapshot_with_any_bit_flipped_is_refused() {
    for snapshot in examples() {
        let mut bytes = snapshot.to_bytes().unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Snapshot::from_bytes(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// The bytes with another checksum, as an attacker would make them.
fn sealed(mut bytes: Vec<u8>) -> Result<Snapshot, IdError> {
    let end = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    Snapshot::from_bytes(&bytes)
}

/// A snapshot of 0..=last with this body and so many identifiers, and a right checksum.
fn forged(last: u64, allocated: u64, body: &[u8]) -> Result<Snapshot, IdError> {
    let mut bytes = of(0, last, []).to_bytes().unwrap();
    bytes.truncate(bytes.len() - 4);
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&[0; 4]);
    let length = bytes.len() as u64;
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    bytes[36..44].copy_from_slice(&allocated.to_le_bytes());
    sealed(bytes)
}

#[test]
fn what_is_sealed_well_and_absurd_is_refused() {
    let most = u64::MAX;
    assert!(
        forged(9, 3, &[4, 1, 0, 0]).unwrap().iter().eq([4, 5, 7]),
        "the way to forge works"
    );
    assert!(forged(9, 3, &[4, 1]).is_err(), "the count is wrong");
    assert!(forged(9, 2, &[4]).is_err(), "a run is cut off");
    assert!(forged(9, 2, &[4, 0x81]).is_err(), "a number is cut off");
    assert!(forged(9, 2, &[9, 1]).is_err(), "the run is outside");
    assert!(forged(9, 2, &[10, 0, 0]).is_err(), "the run is outside");
    assert!(forged(9, 11, &[0, 10]).is_err(), "the run leaves the range");
    let huge = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
    for at in 0..4 {
        // Distance or length: as large as a number can be, and larger.
        let mut body = vec![1, 1, 1, 1];
        body.splice(at..=at, huge);
        assert!(forged(most, 65536, &body).is_err());
        body[at + 9] = 2;
        assert!(forged(most, 65536, &body).is_err());
        body.insert(at, 0xFF);
        assert!(forged(most, 65536, &body).is_err());
    }
    let mut reversed = of(3, 9, []).to_bytes().unwrap();
    reversed[20] = 10;
    assert!(sealed(reversed).is_err());
    let mut cursor = of(3, 9, []).to_bytes().unwrap();
    (cursor[10], cursor[44]) = (1, 10);
    assert!(sealed(cursor).is_err(), "the cursor is outside");
    let mut flag = of(3, 9, []).to_bytes().unwrap();
    flag[10] = 2;
    assert!(sealed(flag).is_err());
    let mut name = of(3, 9, []).to_bytes().unwrap();
    name[11] = 255;
    assert!(sealed(name).is_err(), "the name is longer than the file");
    let mut name = of(3, 9, []).to_bytes().unwrap();
    name[52] = 0xFF;
    assert!(sealed(name).is_err(), "the name is no text");
    let mut length = of(3, 9, []).to_bytes().unwrap();
    length[12] += 1;
    assert!(sealed(length).is_err(), "the length is wrong");
    let mut version = of(3, 9, []).to_bytes().unwrap();
    version[8] = 3;
    let error = sealed(version).unwrap_err();
    assert!(
        matches!(error, IdError::Version { found: 3, known: 2 }),
        "{error}"
    );
    assert!(matches!(
        Snapshot::from_bytes(b"PK\x03\x04"),
        Err(IdError::Damaged { .. })
    ));
}

#[test]
fn few_bytes_do_not_stand_for_too_many_identifiers() {
    // 2^36 + 1 identifiers in seven bytes.
    let body = [0, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
    let error = forged(u64::MAX, (1 << 36) + 1, &body).unwrap_err();
    assert!(matches!(error, IdError::TooLarge { most, .. } if most == Snapshot::MOST_IDS));
    let small = of(0, 99, 0..50).to_bytes().unwrap();
    assert!(Snapshot::from_bytes_at_most(&small, 50).is_ok());
    assert!(Snapshot::from_bytes_at_most(&small, 49).is_err());
}

/// A band of more identifiers than a snapshot may have unasked is a few bytes, and can be read if one asks.
#[test]
fn what_was_written_can_be_read() {
    let mut ids = Ids::new(0..=u64::MAX, Lowest).unwrap();
    let band = Snapshot::MOST_IDS + 1;
    ids.reserve(1..=band).unwrap();
    ids.alloc_at(1 << 50).unwrap();
    let snapshot = Snapshot::of(&RefCell::new(ids), &Lowest).unwrap();
    let bytes = snapshot.to_bytes().unwrap();
    assert!(bytes.len() < 200);
    let error = Snapshot::from_bytes(&bytes).unwrap_err();
    assert!(
        matches!(error, IdError::TooLarge { found, most, .. } if found == band + 1 && most == Snapshot::MOST_IDS)
    );
    assert!(
        error.to_string().contains("`from_bytes_at_most`"),
        "{error}"
    );
    let read = Snapshot::from_bytes_at_most(&bytes, band + 1).unwrap();
    assert_eq!(read, snapshot);
    assert_eq!(
        Snapshot::from_bytes_at_most(&bytes, u64::MAX).unwrap(),
        snapshot
    );
    assert!(matches!(
        Snapshot::from_bytes_at_most(&bytes, band),
        Err(IdError::TooLarge { .. })
    ));
    assert!(
        read.restore::<_, u64>(Lowest)
            .unwrap()
            .runs()
            .eq(snapshot.runs())
    );
}

#[test]
fn the_cursor_comes_back() {
    let mut ids = Ids::new(10..20u64, Cyclic).unwrap();
    assert_eq!(
        Snapshot::of(&RefCell::new(Ids::new(0u8..9, Cyclic).unwrap()), &Cyclic)
            .unwrap()
            .cursor(),
        None
    );
    for _ in 0..5 {
        ids.alloc().unwrap();
    }
    ids.free(11).unwrap();
    ids.free(14).unwrap();
    let ids = RefCell::new(ids);
    let snapshot = Snapshot::of(&ids, &Cyclic).unwrap();
    assert_eq!(snapshot.cursor(), Some(14));
    let bytes = snapshot.to_bytes().unwrap();
    let again = RefCell::new(
        Snapshot::from_bytes(&bytes)
            .unwrap()
            .restore::<_, u64>(Cyclic)
            .unwrap(),
    );
    for _ in 0..7 {
        assert_eq!(again.alloc(), ids.alloc());
    }
    assert_eq!(again.alloc(), Err(IdError::Full { allocated: 10 }));
}

#[test]
fn another_rule_is_refused() {
    let snapshot = of(0, 9, [3]);
    let error = snapshot.restore::<_, u64>(Cyclic).unwrap_err();
    assert!(
        matches!(&error, IdError::OtherRule { saved, given } if saved == "Plain" && given == "Cyclic")
    );
    let ids = owned(0, 99);
    snapshot.restore_into(&ids).unwrap();
    assert_eq!(ids.next_allocated(0), Some(3));
}

#[test]
fn restoring_into_a_space_takes_all_or_none() {
    let snapshot = of(0, 99, [3, 4, 50, 60]);
    let ids = owned(0, 99);
    ids.alloc_at(50).unwrap();
    let error = snapshot.restore_into(&ids).unwrap_err();
    assert!(matches!(error, IdError::Taken { id: 50 }));
    assert_eq!(ids.allocated(), 1);
    let narrow = owned(0, 59);
    assert!(snapshot.restore_into(&narrow).is_err());
    assert_eq!(narrow.allocated(), 0);
}

#[test]
fn a_shared_space_can_be_taken_and_restored() {
    let space = IdSpace::new(0..1000u64, Lowest).unwrap();
    let mut taken: Vec<_> = (0..700).map(|_| space.alloc().unwrap()).collect();
    for _ in 0..350 {
        let id = taken.swap_remove(taken.len() / 3);
        space.free(id).unwrap();
    }
    let snapshot = Snapshot::of(&space, &Lowest).unwrap();
    let again = IdSpace::new(0..1000u64, Lowest).unwrap();
    snapshot.restore_into(&again).unwrap();
    taken.sort_unstable();
    assert!(snapshot.iter().eq(taken.iter().copied()));
    assert!(again.iter().eq(taken));
    assert!(
        snapshot
            .restore::<_, u64>(Lowest)
            .unwrap()
            .iter()
            .eq(snapshot.iter())
    );
}

#[test]
fn a_rule_with_too_long_a_name_is_refused() {
    #[derive(Clone)]
    struct Wordy;
    impl std::fmt::Debug for Wordy {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&"x".repeat(256))
        }
    }
    impl larder::ids::Rule for Wordy {
        type Order = <Plain as larder::ids::Rule>::Order;
        fn order(&self, last: u64) -> Result<Self::Order, IdError> {
            larder::ids::Rule::order(&Plain, last)
        }
    }
    let error = Snapshot::of(&owned(0, 9), &Wordy).unwrap_err();
    assert!(matches!(error, IdError::Invalid { .. }));
}

fn runs_of(live: &BTreeSet<u64>) -> Vec<IdRange> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &id in live {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => runs.push((id, id)),
        }
    }
    runs.into_iter()
        .map(|(first, last)| IdRange::new(first, last).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_set_comes_back(
        first in prop_oneof![Just(0), 0..1_000_000u64, (1u64 << 60)..(1 << 61)],
        parts in prop::collection::vec((0..300_000u64, prop_oneof![1..4u64, 1..2000u64, 60_000..140_000u64], 1..4u64), 0..12),
        length in prop_oneof![Just(0u64), 400_000..700_000u64],
    ) {
        let last = first + 450_000 + length;
        let mut live = BTreeSet::new();
        for (at, count, step) in parts {
            live.extend((at..at + count).step_by(step as usize).map(|at| first + at).filter(|&id| id <= last));
        }
        let ids = Ids::rebuild(first..=last, Lowest, live.iter().copied()).unwrap();
        let snapshot = Snapshot::of(&RefCell::new(ids), &Lowest).unwrap();
        prop_assert_eq!(snapshot.allocated(), live.len() as u64);
        prop_assert!(snapshot.runs().eq(runs_of(&live)));
        let read = Snapshot::from_bytes(&snapshot.to_bytes().unwrap()).unwrap();
        prop_assert!(read.iter().eq(live.iter().copied()));
        prop_assert!(read.restore::<_, u64>(Lowest).unwrap().iter().eq(live));
    }

    #[test]
    fn no_body_breaks_the_reader(body in prop::collection::vec(prop_oneof![0..4u8, any::<u8>()], 0..60), allocated in 0..200_000u64) {
        if let Ok(snapshot) = forged(1 << 18, allocated, &body) {
            prop_assert_eq!(snapshot.iter().count() as u64, allocated);
            prop_assert!(snapshot.runs().all(|run| run.last() <= 1 << 18));
            let _ = snapshot.restore::<_, u64>(Plain);
        }
    }
}

#[test]
fn an_integer_that_is_too_small_is_refused() {
    let snapshot = of(0, 256, [3]);
    let error = snapshot.restore::<_, u8>(Plain).unwrap_err();
    assert!(matches!(error, IdError::Invalid { .. }), "{error}");
    let ids = IdSpace::new(0u8..=255, Plain).unwrap();
    assert!(snapshot.restore_into(&ids).is_err());
    let fits = of(0, 255, [3]).restore::<_, u8>(Plain).unwrap();
    assert!(fits.iter().eq([3u8]));
}
