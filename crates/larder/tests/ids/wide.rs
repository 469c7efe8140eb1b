//! Wide ranges: memory follows what is used, and whole chunks cost what one costs.

use larder::ids::{IdError, IdRange, Ids, rule::Cyclic, rule::Lowest};

/// Spread over 2^32 as if at random.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF
}

#[test]
fn two_to_the_32_but_for_one_in_ten_thousand_takes_four_mebibytes() {
    let mut ids = Ids::new(0u64..=u64::from(u32::MAX), Cyclic).unwrap();
    ids.reserve(0u64..=u64::from(u32::MAX)).unwrap();
    assert_eq!(ids.free_count(), 0);
    let free = 429_497;
    for n in 0..free {
        ids.free(scattered(n)).unwrap();
    }
    assert!(ids.bytes() <= 4 << 20, "{}", ids.bytes());
    assert_eq!(ids.free_count(), u128::from(free));
    for n in 0..1000 {
        let id = scattered(n);
        assert_eq!(ids.free(id), Err(IdError::NotAllocated { id }));
        ids.alloc_at(id).unwrap();
    }
    for _ in 1000..free {
        ids.alloc().unwrap();
    }
    assert!(matches!(ids.alloc(), Err(IdError::Full { .. })));
    assert!(ids.bytes() < 2 << 20, "{}", ids.bytes());
}

/// Of 2^32 it takes two words. Of 2^64 no two are near each other, so each has a chunk of its own.
#[test]
fn an_isolated_identifier_takes_a_few_words() {
    for (range, bytes) in [
        (IdRange::new(0, (1 << 32) - 1).unwrap(), 16),
        (IdRange::ALL, 64),
    ] {
        let mut ids = Ids::new(range, Lowest).unwrap();
        let taken = 429_497;
        let shift = if range == IdRange::ALL { 32 } else { 0 };
        for n in 0..taken {
            ids.alloc_at(scattered(n) << shift).unwrap();
        }
        let each = ids.bytes() as f64 / taken as f64;
        assert!(each <= f64::from(bytes), "{each} bytes of {range}");
        for n in 0..taken {
            ids.free(scattered(n) << shift).unwrap();
        }
        assert_eq!(ids.free_count(), range.len());
        assert_eq!(ids.next_allocated(0), None);
    }
}

#[test]
fn half_of_every_number_is_one_reservation() {
    let mut ids = Ids::new(IdRange::ALL, Cyclic).unwrap();
    ids.reserve(0..1u64 << 63).unwrap();
    assert_eq!(ids.alloc().unwrap(), 1 << 63);
    assert!(ids.bytes() < 2000, "{}", ids.bytes());
    let middle = 1u64 << 40;
    ids.free_range(middle..middle * 2).unwrap();
    assert_eq!(ids.next_allocated(middle), Some(middle * 2));
    assert_eq!(ids.alloc_range(1 << 30, 1 << 36).unwrap(), middle);
    assert_eq!(ids.free(middle - 1), Ok(()));
    assert_eq!(ids.alloc_range(1 << 38, 1).unwrap(), middle + (1 << 30));
    assert_eq!(ids.iter().nth(3), Some(3));
    let runs: Vec<_> = ids.runs().map(|run| (run.first(), run.last())).collect();
    assert_eq!(runs.len(), 3, "{runs:?}");
}

#[test]
fn every_number_but_one_can_be_allocated() {
    let mut ids = Ids::new(IdRange::ALL, Lowest).unwrap();
    assert_eq!(
        ids.reserve(IdRange::ALL),
        Err(IdError::Full { allocated: 0 })
    );
    ids.reserve(1..=u64::MAX - 1).unwrap();
    let allocated = u64::MAX - 1;
    assert_eq!(ids.allocated(), allocated);
    assert_eq!(ids.alloc().unwrap(), 0);
    let allocated = allocated + 1;
    assert_eq!(ids.alloc(), Err(IdError::Full { allocated }));
    assert_eq!(ids.alloc_at(u64::MAX), Err(IdError::Full { allocated }));
    assert_eq!(ids.free_count(), 1);
    ids.free(7).unwrap();
    assert_eq!(ids.alloc().unwrap(), 7);
    ids.free_range(0..=u64::MAX - 1).unwrap();
    assert_eq!(ids.free_count(), IdRange::ALL.len());
}

#[test]
fn whole_chunks_are_cut_out_of_a_run_anywhere() {
    let chunk = 1u64 << 16;
    for last in [u64::from(u32::MAX), 1 << 48] {
        let base = last / 2 / chunk * chunk + chunk;
        for first in 0..5 {
            for end in first..5 {
                let mut ids = Ids::new(0..=last, Lowest).unwrap();
                ids.reserve(base..=base + 5 * chunk - 1).unwrap();
                let (from, to) = (base + first * chunk, base + (end + 1) * chunk);
                ids.free_range(from..=to - 1).unwrap();
                let mut expect = vec![(base, from - 1), (to, base + 5 * chunk - 1)];
                expect.retain(|&(first, last)| first <= last);
                let runs: Vec<_> = ids.runs().map(|run| (run.first(), run.last())).collect();
                assert_eq!(runs, expect);
                ids.reserve(from..=to - 1).unwrap();
                assert_eq!(ids.runs().count(), 1);
            }
        }
    }
}
