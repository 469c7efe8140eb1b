//! The account of pages against a model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::os::testing::system;

fn space(blocks: usize) -> Space {
    let system: Arc<dyn System> = system();
    Space::new(&system, blocks * BLOCK_PAGES).unwrap()
}

#[derive(Debug, Clone)]
enum Op {
    Ready(usize),
    Unused(usize),
    Cold(usize),
    Run(usize),
    Put { nth: usize, zero: bool },
    PutCold { nth: usize },
    Idle { blocks: usize, age: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1_usize..80).prop_map(Op::Ready),
        (1_usize..80).prop_map(Op::Unused),
        (1_usize..200).prop_map(Op::Cold),
        (1_usize..200).prop_map(Op::Run),
        (any::<usize>(), any::<bool>()).prop_map(|(nth, zero)| Op::Put { nth, zero }),
        (any::<usize>(), any::<bool>()).prop_map(|(nth, zero)| Op::Put { nth, zero }),
        any::<usize>().prop_map(|nth| Op::PutCold { nth }),
        (0_u32..3, 0_u64..20).prop_map(|(e, age)| Op::Idle {
            blocks: 1 << e,
            age
        }),
    ]
}

proptest! {
    /// Against a model that knows of every page whether it is out, and whether it may be called zero.
    #[test]
    fn no_page_is_taken_twice_and_zero_is_never_wrong(ops in proptest::collection::vec(op(), 1..120)) {
        let mut space = space(16);
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut is_out = BTreeSet::new();
        let mut zero: BTreeMap<usize, bool> = BTreeMap::new();
        let mut resident: BTreeSet<usize> = BTreeSet::new();
        for (now, op) in ops.into_iter().enumerate() {
            let now = now as u64;
            match op {
                Op::Ready(n) => {
                    let mut got = Vec::new();
                    let taken = space.take_ready(n, &mut |page, z| got.push((page, z)));
                    prop_assert_eq!(taken, got.len());
                    for (page, z) in got {
                        prop_assert!(is_out.insert(page));
                        prop_assert!(resident.contains(&page), "page {} is not ready", page);
                        prop_assert!(!z || zero[&page]);
                        out.push(page..page + 1);
                    }
                }
                Op::Unused(n) => {
                    let mut got = Vec::new();
                    space.take_unused(n, &mut |page, z| got.push((page, z)));
                    prop_assert!(got.len() <= n);
                    for (page, z) in got {
                        prop_assert!(is_out.insert(page));
                        prop_assert!(!z || zero[&page]);
                        out.push(page..page + 1);
                    }
                }
                Op::Cold(n) | Op::Run(n) => {
                    let taken = if matches!(op, Op::Cold(_)) { space.take_cold(n) } else { space.take_run(n, usize::MAX).ok() };
                    if let Some(taken) = taken {
                        prop_assert!(!taken.pages.is_empty() && taken.pages.len() <= n);
                        if matches!(op, Op::Run(_)) { prop_assert_eq!(taken.pages.len(), n); }
                        for page in taken.pages.clone() {
                            prop_assert!(is_out.insert(page));
                            prop_assert!(!taken.zero || zero.get(&page).copied().unwrap_or(true));
                            prop_assert!(!taken.resident || resident.contains(&page));
                            resident.insert(page);
                        }
                        out.push(taken.pages);
                    }
                }
                Op::Put { nth, zero: z } if !out.is_empty() => {
                    let pages = out.swap_remove(nth % out.len());
                    for page in pages.clone() {
                        is_out.remove(&page);
                        zero.insert(page, z);
                    }
                    space.put(pages, z, now);
                }
                Op::PutCold { nth } if !out.is_empty() => {
                    let pages = out.swap_remove(nth % out.len());
                    for page in pages.clone() {
                        is_out.remove(&page);
                        zero.insert(page, true);
                        resident.remove(&page);
                    }
                    space.put_cold(pages, true);
                }
                Op::Idle { blocks, age } => {
                    let mut from = 0;
                    while let (Some(pages), next) = space.take_idle(blocks, now.saturating_sub(age), from) {
                        prop_assert_eq!(pages.start % (blocks * BLOCK_PAGES), 0);
                        prop_assert_eq!(pages.len(), (blocks * BLOCK_PAGES).min(space.frontier - pages.start));
                        for page in pages.clone() {
                            prop_assert!(is_out.insert(page));
                            resident.insert(page);
                        }
                        out.push(pages);
                        from = next;
                    }
                }
                _ => {}
            }
            space.check();
            prop_assert_eq!(space.out(), is_out.len());
            prop_assert_eq!(space.resident(), resident.len());
        }
    }
}

#[test]
fn used_blocks_are_filled_before_whole_ones() {
    let mut space = space(4);
    let all = space.take_cold(128).unwrap();
    assert_eq!(
        all,
        Taken {
            pages: 0..128,
            zero: true,
            resident: false
        }
    );
    space.put(0..64, false, 0);
    space.put(100..110, false, 0);
    let mut got = Vec::new();
    space.take_ready(12, &mut |page, _| got.push(page));
    assert_eq!(got, (100..110).chain(0..2).collect::<Vec<_>>());
}

#[test]
fn cold_pages_come_back_before_fresh_ones_and_across_blocks() {
    let mut space = space(8);
    space.take_cold(256).unwrap();
    space.put_cold(60..200, true);
    assert_eq!(space.take_cold(100).unwrap().pages, 60..160);
    assert_eq!(space.take_cold(100).unwrap().pages, 160..200);
    assert_eq!(space.take_cold(100).unwrap().pages, 256..356);
}

#[test]
fn a_full_reservation_has_no_more() {
    let mut space = space(1);
    assert_eq!(space.take_cold(100).unwrap().pages, 0..64);
    assert_eq!(space.take_cold(1), None);
    assert_eq!(space.take_run(1, 1), Err(NoRun::Place));
    space.put(10..20, false, 0);
    assert_eq!(space.take_run(10, 0).unwrap().pages, 10..20);
}

#[test]
fn long_runs_use_whole_neighbours() {
    let mut space = space(8);
    space.take_cold(512).unwrap();
    space.put(64..128, false, 0);
    space.put(192..384, true, 0);
    let run = space.take_run(130, 0).unwrap();
    assert_eq!(
        run,
        Taken {
            pages: 192..322,
            zero: true,
            resident: true
        }
    );
    assert_eq!(space.take_run(130, 130), Err(NoRun::Place));
}

#[test]
fn a_run_without_room_changes_nothing() {
    let mut space = space(8);
    space.take_cold(128).unwrap();
    space.put_cold(0..64, true);
    space.put(64..128, false, 0);
    let before = (space.resident(), space.out());
    assert_eq!(space.take_run(128, 63), Err(NoRun::Room));
    assert_eq!(
        space.take_run(129, 128),
        Err(NoRun::Room),
        "from the frontier"
    );
    assert_eq!((space.resident(), space.out()), before);
    assert_eq!(space.take_run(128, 64).unwrap().pages, 0..128);
}

#[test]
fn the_block_that_the_frontier_crosses_is_idle_too() {
    let mut space = space(8);
    space.take_cold(150).unwrap();
    space.put(0..150, false, 5);
    assert_eq!(space.take_idle(4, 4, 0), (None, 4), "too young");
    assert_eq!(space.take_idle(4, 5, 0), (Some(0..150), 4));
    space.put_cold(0..150, true);
    assert_eq!(space.take_idle(4, 5, 0).0, None, "nothing is backed");
    assert_eq!(space.take_cold(500).unwrap().pages, 0..150);
}
