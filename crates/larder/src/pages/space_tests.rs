//! The account of pages against a model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::os::testing::system;

impl Space {
    fn take_cold(&mut self, most: usize) -> Option<Taken> {
        self.take_cold_run(1, most)
    }
}

fn space(blocks: usize) -> Space {
    let system: Arc<dyn System> = system();
    Space::new(&system, blocks * BLOCK_PAGES).unwrap()
}

#[derive(Debug, Clone)]
enum Op {
    Ready(usize),
    Unused(usize),
    Cold(usize),
    ColdRun(usize, usize),
    Run(usize, Grid),
    At(usize, usize),
    Put { nth: usize, zero: bool },
    PutCold { nth: usize },
    Idle { blocks: usize, age: u64, gone: bool },
    Fragments { least: usize, age: u64, gone: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1_usize..80).prop_map(Op::Ready),
        (1_usize..80).prop_map(Op::Unused),
        (1_usize..200).prop_map(Op::Cold),
        (1_usize..65, 0_usize..100).prop_map(|(least, more)| Op::ColdRun(least, least + more)),
        (1_usize..200, 0_u32..9, any::<usize>()).prop_map(|(n, log, first)| {
            let step = 1 << log;
            Op::Run(
                n,
                Grid {
                    first: first % step,
                    step,
                },
            )
        }),
        (0_usize..17 * BLOCK_PAGES, 1_usize..200).prop_map(|(at, n)| Op::At(at, n)),
        (any::<usize>(), any::<bool>()).prop_map(|(nth, zero)| Op::Put { nth, zero }),
        (any::<usize>(), any::<bool>()).prop_map(|(nth, zero)| Op::Put { nth, zero }),
        any::<usize>().prop_map(|nth| Op::PutCold { nth }),
        (0_u32..3, 0_u64..20, any::<bool>()).prop_map(|(e, age, gone)| Op::Idle {
            blocks: 1 << e,
            age,
            gone
        }),
        (1_usize..6, 0_u64..20, any::<bool>())
            .prop_map(|(least, age, gone)| { Op::Fragments { least, age, gone } }),
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
        // When each page came back.
        let mut since: BTreeMap<usize, u64> = BTreeMap::new();
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
                Op::Cold(n) | Op::ColdRun(_, n) | Op::Run(n, _) => {
                    let frontier = space.frontier;
                    let taken = match op {
                        Op::Cold(_) => space.take_cold(n),
                        Op::ColdRun(least, _) => {
                            let taken = space.take_cold_run(least, n);
                            // Only the last pages of all are fewer.
                            let ends = |t: &Taken| t.pages.end == 16 * BLOCK_PAGES;
                            prop_assert!(taken.as_ref().is_none_or(|t| t.pages.len() >= least || ends(t)));
                            taken
                        }
                        Op::Run(_, grid) => space.take_run(n, grid, usize::MAX).ok(),
                        _ => unreachable!("{op:?}"),
                    };
                    if let Some(taken) = taken {
                        prop_assert!(!taken.pages.is_empty() && taken.pages.len() <= n);
                        if let Op::Run(_, grid) = op {
                            prop_assert_eq!(taken.pages.len(), n);
                            prop_assert_eq!(taken.pages.start, grid.from(taken.pages.start));
                            // Those between the frontier and the grid are here now, without memory.
                            for page in frontier..taken.pages.start {
                                zero.insert(page, true);
                                since.insert(page, 0);
                            }
                        }
                        for page in taken.pages.clone() {
                            prop_assert!(is_out.insert(page));
                            prop_assert!(!taken.zero || zero.get(&page).copied().unwrap_or(true));
                            prop_assert!(!taken.resident || resident.contains(&page));
                            resident.insert(page);
                        }
                        out.push(taken.pages);
                    }
                }
                Op::At(at, n) => {
                    // Behind a run where there is one, as a run grows; else anywhere.
                    let at = match out.is_empty() {
                        false if n % 2 == 0 => out[at % out.len()].end,
                        _ => at,
                    };
                    let end = at + n;
                    let frontier = space.frontier;
                    let free = at <= frontier && end <= 16 * BLOCK_PAGES && (at..end).all(|page| !is_out.contains(&page));
                    let cold = (at..end).filter(|page| !resident.contains(page)).count();
                    if free && cold > 0 {
                        prop_assert_eq!(space.take_at(at, n, cold - 1), None);
                    }
                    let taken = space.take_at(at, n, cold);
                    prop_assert_eq!(taken.is_some(), free, "{} pages from {} on, the frontier at {}", n, at, frontier);
                    if let Some(taken) = taken {
                        prop_assert_eq!(taken.pages.clone(), at..end);
                        prop_assert_eq!(taken.resident, cold == 0);
                        for page in at..end {
                            prop_assert!(is_out.insert(page));
                            prop_assert!(!taken.zero || zero.get(&page).copied().unwrap_or(true));
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
                        since.insert(page, now);
                    }
                    space.put(pages, z, now);
                }
                Op::PutCold { nth } if !out.is_empty() => {
                    let pages = out.swap_remove(nth % out.len());
                    for page in pages.clone() {
                        is_out.remove(&page);
                        zero.insert(page, true);
                        resident.remove(&page);
                        since.insert(page, now);
                    }
                    space.put_cold(pages, true, now);
                }
                Op::Idle { blocks, age, gone } => {
                    let mut from = 0;
                    let mut taken = Vec::new();
                    while let (Some(pages), next) = space.take_idle(blocks, Age::of(age, now), from) {
                        prop_assert_eq!(pages.start % (blocks * BLOCK_PAGES), 0);
                        prop_assert_eq!(pages.len(), (blocks * BLOCK_PAGES).min(space.frontier - pages.start));
                        taken.push(pages);
                        from = next;
                    }
                    give(&mut space, taken, gone, now, &is_out, &mut zero, &mut resident);
                }
                Op::Fragments { least, age, gone } => {
                    let (before, age) = if age == 19 {
                        (u64::MAX, Age::any(now))
                    } else {
                        (now.saturating_sub(age), Age::of(age, now))
                    };
                    let (mut from, mut taken) = (0, Vec::new());
                    while let Some(b) = space.next_ready(from) {
                        let begin = taken.len();
                        space.take_fragments(b, least, age, |run| taken.push(run));
                        prop_assert!(taken.len() - begin <= BLOCK_PAGES / 2);
                        from = b + 1;
                    }
                    for run in &taken {
                        prop_assert!(run.len() >= least);
                        for page in run.clone() {
                            prop_assert!(resident.contains(&page));
                            prop_assert!(since[&page] <= before, "page {} is too young", page);
                        }
                    }
                    give(&mut space, taken, gone, now, &is_out, &mut zero, &mut resident);
                }
                _ => {}
            }
            space.check();
            prop_assert_eq!(space.out(), is_out.len());
            prop_assert_eq!(space.resident(), resident.len());
        }
    }
}

proptest! {
    /// Against a search that looks at every page.
    #[test]
    fn a_long_run_is_the_first_that_fits(
        ops in proptest::collection::vec((any::<usize>(), 1_usize..1300, any::<bool>()), 1..150)
    ) {
        const BLOCKS: usize = 64;
        let mut space = space(BLOCKS);
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut is_here = [false; BLOCKS * BLOCK_PAGES];
        for (nth, n, takes) in ops {
            if takes || out.is_empty() {
                let blocks = n.div_ceil(BLOCK_PAGES);
                let fits = |b: &usize| {
                    let pages = b * BLOCK_PAGES..(b + blocks) * BLOCK_PAGES;
                    is_here[pages].iter().all(|here| *here)
                };
                let first = (0..=BLOCKS - blocks).find(fits).map(|b| b * BLOCK_PAGES);
                let has_ready = space.whole.next_run(0, blocks).is_some();
                let frontier = space.frontier;
                if n > BLOCK_PAGES {
                    prop_assert_eq!(space.has_long_run(n), has_ready);
                }
                match space.take_run(n, Grid::ALL, usize::MAX) {
                    Ok(taken) => {
                        if n > BLOCK_PAGES {
                            prop_assert_eq!(taken.pages.start, first.unwrap_or(frontier));
                        }
                        is_here[taken.pages.clone()].fill(false);
                        out.push(taken.pages);
                    }
                    Err(_) => {
                        prop_assert_eq!(first, None);
                    }
                }
            } else {
                let pages = out.swap_remove(nth % out.len());
                is_here[pages.clone()].fill(true);
                match nth % 4 {
                    0 => space.put_cold(pages, true, 0),
                    _ => space.put(pages, false, 0),
                }
            }
            space.check();
        }
    }
}

/// The system takes pages that were taken out for it, or does not.
fn give(
    space: &mut Space,
    taken: Vec<Range<usize>>,
    gone: bool,
    now: u64,
    is_out: &BTreeSet<usize>,
    zero: &mut BTreeMap<usize, bool>,
    resident: &mut BTreeSet<usize>,
) {
    for pages in taken {
        let mut backed = 0;
        for page in pages.clone() {
            assert!(!is_out.contains(&page), "page {page} is somebody's");
            zero.insert(page, gone);
            backed += usize::from(resident.contains(&page));
            if gone {
                resident.remove(&page);
            }
        }
        if gone {
            assert_eq!(space.put_released(pages, true, now), backed);
        } else {
            space.put_kept(pages, now);
        }
    }
}

/// Pages that one look takes out of every block. They come back as given to the system.
fn look(space: &mut Space, least: usize, before: u64, now: u64) -> Vec<Range<usize>> {
    let (mut from, mut runs) = (0, Vec::new());
    let age = if before == u64::MAX {
        Age::any(now)
    } else {
        Age::of(now.saturating_sub(before), now)
    };
    while let Some(b) = space.next_ready(from) {
        space.take_fragments(b, least, age, |run| runs.push(run));
        from = b + 1;
    }
    for run in &runs {
        assert_eq!(space.put_released(run.clone(), true, now), run.len());
    }
    space.check();
    runs
}

#[test]
fn runs_that_nobody_took_between_two_looks_are_idle() {
    let mut space = space(4);
    space.take_cold(256).unwrap();
    for run in [0..10, 12..15, 20..64, 70..71] {
        space.put(run, false, 1);
    }
    assert_eq!(look(&mut space, 4, 0, 10), [], "seen for the first time");
    let mut got = Vec::new();
    space.take_ready(2, &mut |page, _| got.push(page));
    assert_eq!(got, [0, 1]);
    space.put(0..2, false, 11);
    assert_eq!(look(&mut space, 4, 9, 12), [], "seen too short a time ago");
    assert_eq!(look(&mut space, 4, 10, 20), [2..10, 20..64]);
    assert_eq!(space.resident(), 256 - 52);
    assert_eq!(
        look(&mut space, 1, 19, 21),
        [],
        "the second look began anew"
    );
    assert_eq!(look(&mut space, 1, 20, 30), [0..2, 12..15, 70..71]);
    assert_eq!(space.take_cold(64).unwrap().pages, 0..10);
}

#[test]
fn a_whole_block_beside_a_used_one_goes_when_it_is_old_enough() {
    let mut space = space(4);
    space.take_cold(128).unwrap();
    space.put(0..64, false, 5);
    space.put(64..100, false, 5);
    assert_eq!(
        space.take_idle(2, Age::of(0, 9), 0).0,
        None,
        "not as a unit"
    );
    assert_eq!(look(&mut space, 4, 4, 9), []);
    assert_eq!(look(&mut space, 4, 5, 9), vec![Range { start: 0, end: 64 }]);
    let young = look(&mut space, 4, u64::MAX, 9);
    assert_eq!(
        young,
        vec![Range {
            start: 64,
            end: 100
        }],
        "any age"
    );
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
    space.put_cold(60..200, true, 0);
    assert_eq!(space.take_cold(100).unwrap().pages, 60..160);
    assert_eq!(space.take_cold(100).unwrap().pages, 160..200);
    assert_eq!(space.take_cold(100).unwrap().pages, 256..356);
}

#[test]
fn cold_runs_that_are_too_short_are_left_to_others() {
    let mut space = space(4);
    space.take_cold(128).unwrap();
    space.put_cold(10..20, true, 0);
    space.put_cold(70..90, true, 0);
    assert_eq!(space.take_cold_run(16, 18).unwrap().pages, 70..88);
    assert_eq!(space.take_cold_run(16, 50).unwrap().pages, 128..178);
    assert_eq!(space.take_cold(50).unwrap().pages, 10..20);
    assert_eq!(space.take_cold_run(64, 256).unwrap().pages, 178..256);
    assert_eq!(space.take_cold_run(3, 3), None, "no three are left");
    assert_eq!(space.take_cold(2).unwrap().pages, 88..90);
}

#[test]
fn a_full_reservation_has_no_more() {
    let mut space = space(1);
    assert_eq!(space.take_cold(100).unwrap().pages, 0..64);
    assert_eq!(space.take_cold(1), None);
    assert_eq!(space.take_run(1, Grid::ALL, 1), Err(NoRun::Place));
    space.put(10..20, false, 0);
    assert_eq!(space.take_run(10, Grid::ALL, 0).unwrap().pages, 10..20);
}

#[test]
fn long_runs_use_whole_neighbours() {
    let mut space = space(8);
    space.take_cold(512).unwrap();
    space.put(64..128, false, 0);
    space.put(192..384, true, 0);
    let run = space.take_run(130, Grid::ALL, 0).unwrap();
    assert_eq!(
        run,
        Taken {
            pages: 192..322,
            zero: true,
            resident: true
        }
    );
    assert_eq!(space.take_run(130, Grid::ALL, 130), Err(NoRun::Place));
}

#[test]
fn holes_that_are_too_short_for_a_long_run_are_passed_once() {
    let mut space = space(64);
    let take = |space: &mut Space, n| space.take_run(n, Grid::ALL, usize::MAX).unwrap().pages;
    let runs: Vec<_> = (0..20).map(|_| take(&mut space, 80)).collect();
    for run in runs.iter().step_by(2) {
        space.put(run.clone(), false, 0);
    }
    let looks_from = |space: &Space| space.no_blocks_below[0][2];
    assert_eq!(take(&mut space, 100), 1600..1700);
    assert_eq!(looks_from(&space), 1600 / 64);
    // Another hole that is too short changes nothing, and one that is long enough is found.
    let block = space.take_at(320, 64, 0).unwrap().pages;
    space.put(block, false, 0);
    assert_eq!(take(&mut space, 100), 1700..1800);
    assert_eq!(looks_from(&space), 1700 / 64);
    space.put(runs[3].clone(), false, 0);
    assert_eq!(looks_from(&space), 3);
    assert_eq!(take(&mut space, 100), 192..292);
    assert_eq!(take(&mut space, 100), 1800..1900);
    assert_eq!(looks_from(&space), 1800 / 64);
}

#[test]
fn a_run_without_room_changes_nothing() {
    let mut space = space(8);
    space.take_cold(128).unwrap();
    space.put_cold(0..64, true, 0);
    space.put(64..128, false, 0);
    let before = (space.resident(), space.out());
    assert_eq!(space.take_run(128, Grid::ALL, 63), Err(NoRun::Room));
    assert_eq!(
        space.take_run(129, Grid::ALL, 128),
        Err(NoRun::Room),
        "from the frontier"
    );
    assert_eq!((space.resident(), space.out()), before);
    assert_eq!(space.take_run(128, Grid::ALL, 64).unwrap().pages, 0..128);
}

#[test]
fn the_block_that_the_frontier_crosses_is_idle_too() {
    let mut space = space(8);
    space.take_cold(150).unwrap();
    space.put(0..150, false, 5);
    assert_eq!(space.take_idle(4, Age::of(5, 9), 0), (None, 4), "too young");
    assert_eq!(space.take_idle(4, Age::of(5, 10), 0), (Some(0..150), 4));
    space.put_released(0..150, true, 5);
    assert_eq!(
        space.take_idle(4, Age::of(5, 10), 0).0,
        None,
        "nothing is backed"
    );
    assert_eq!(space.take_cold(500).unwrap().pages, 0..150);
}

#[test]
fn pages_that_came_after_the_clock_was_read_are_young() {
    let mut space = space(8);
    space.take_cold(150).unwrap();
    space.put(0..150, false, 14);
    let stay = (None, 4);
    assert_eq!(space.take_idle(4, Age::of(5, 9), 0), stay);
    assert_eq!(space.take_idle(4, Age::of(u64::MAX, 9), 0), stay);
    assert_eq!(
        space.take_idle(4, Age::of(5, 8), 0),
        (Some(0..150), 4),
        "the clock jumped back"
    );
}

#[test]
fn a_run_on_a_grid_takes_the_place_that_is_there() {
    // Every fourth block begins on the grid, the second one first.
    let grid = Grid {
        first: 64,
        step: 256,
    };
    let mut space = space(32);
    let take = |space: &mut Space, n| space.take_run(n, grid, usize::MAX).map(|run| run.pages);
    let runs: Vec<_> = (0..8).map(|_| take(&mut space, 64).unwrap()).collect();
    assert_eq!(runs[0], 64..128);
    assert_eq!(runs[7].start, 64 + 7 * 256);
    assert_eq!(take(&mut space, 64), Err(NoRun::Place));
    assert_eq!(
        space.resident(),
        8 * 64,
        "what lies between was never backed"
    );
    // A place that is free serves whatever fits, also when another one came back last, and no page beyond it is free.
    space.put(runs[3].clone(), false, 0);
    assert_eq!(take(&mut space, 200).unwrap(), 832..1032);
    space.put(832..1032, false, 0);
    space.put(runs[5].clone(), false, 0);
    space.put(runs[1].clone(), false, 0);
    assert_eq!(take(&mut space, 10).unwrap().start, runs[1].start);
    assert_eq!(take(&mut space, 64).unwrap(), runs[3]);
    assert_eq!(take(&mut space, 1).unwrap().start, runs[5].start);
    assert_eq!(take(&mut space, 1), Err(NoRun::Place));
    // Within a block, too, and of pages that were given back.
    let fine = Grid { first: 4, step: 8 };
    assert_eq!(space.take_run(3, fine, 0).unwrap().pages, 332..335);
    assert_eq!(space.take_run(3, fine, 0).unwrap().pages, 340..343);
}
