//! Which cells run, quick and full.

use crate::frame::{Planner, cross};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Cell, Params};

/// 2.4's `PID_MAX`, Franke's.
pub(super) const SMALL: i64 = 32768;
/// Today's `PID_MAX_LIMIT`.
pub(super) const LARGE: i64 = 1 << 22;
/// What a count of 32 bits holds.
pub(super) const HUGE: i64 = 1 << 32;
/// A hundredth of a percent of it.
pub(super) const FEW: i64 = 429_497;
/// A million identifiers, to be made.
const MILLION: i64 = 1 << 20;

/// Taken identifiers of the small space: Franke's, and all of them.
pub(super) const SMALL_LIVES: [i64; 6] = [1000, 10_000, TWO_THIRDS, 30_000, 32_700, SMALL];
/// Taken identifiers of the small space for which single costs are reported.
pub(super) const TWO_THIRDS: i64 = 22_000;
/// 1, 50, 99 and 99.99 % of the large one.
const LARGE_LIVES: [i64; 4] = [41_943, LARGE / 2, 4_152_361, 4_193_885];
/// 67 and 99.5 % of the small one, for threads.
pub(super) const THREAD_LIVES: [i64; 2] = [TWO_THIRDS, 32_604];
/// Taken identifiers at which distances are looked at; with the last so few are free that nothing lies ready for CPUs.
pub(super) const DISTANCE_LIVES: [i64; 4] = [1000, TWO_THIRDS, 32_700, SMALL - 4];

pub(super) const CYCLIC: &str = "cyclic";
pub(super) const LOWEST: &str = "lowest";
pub(super) const FIRST_FREED: &str = "first-freed";
pub(super) const LAST_FREED: &str = "last-freed";
pub(super) const EPOCHS: &str = "epochs";
pub(super) const SPARSE: &str = "sparse";
pub(super) const BITS: &str = "bits";
pub(super) const THREADED: &str = "threads";
pub(super) const CREATE: &str = "create";
pub(super) const DISTANCE: &str = "distance";

/// A rest of 48 allocations.
pub(super) const RESTED: &str = "rested 48 allocations";
/// A rest of 100 ticks of a clock that is read at each call.
pub(super) const CALLS: &str = "rested 100 calls";
/// A rest of 100 us by the monotonic clock.
pub(super) const TIMED: &str = "rested 100 us";

/// The crates that keep identifiers in order and can look for the next one, and the standard library's set.
pub(super) const ORDERED: [&str; 3] = ["roaring", "range-set-blaze", "btree-set"];
/// roaring as the set of the free ones, and of the taken ones.
pub(super) const SPARSE_PEERS: [&str; 2] = ["roaring", "roaring-taken"];

/// A group in which larder's `ids` and its peers run by one rule at several occupancies.
pub(super) struct Sweep {
    pub(super) group: &'static str,
    pub(super) rule: &'static str,
    /// What the rule hands out.
    pub(super) called: &'static str,
    pub(super) count: i64,
    pub(super) lives: &'static [i64],
    /// The occupancies of the quick form.
    quick_lives: &'static [i64],
    /// Peers, of which the first is the reference; and those that only the full form has.
    peers: [&'static [&'static str]; 2],
}

impl Sweep {
    /// Every peer of the full form.
    pub(super) fn peers(&self) -> Vec<&'static str> {
        self.peers.concat()
    }
}

const IN_SMALL: Sweep = Sweep {
    group: CYCLIC,
    rule: CYCLIC,
    called: "The next free one after the last",
    count: SMALL,
    lives: &SMALL_LIVES,
    quick_lives: &[1000, TWO_THIRDS, SMALL],
    peers: [
        &["pidmap", "tree", ORDERED[0], ORDERED[1], ORDERED[2]],
        &["hibitset-levels"],
    ],
};
/// Half of the space is taken in the full form only: it takes longest to set up.
const IN_LARGE: Sweep = Sweep {
    group: "cyclic-4m",
    count: LARGE,
    lives: &LARGE_LIVES,
    quick_lives: &[LARGE_LIVES[0], LARGE_LIVES[3]],
    peers: [&["pidmap", "tree", "hibitset-levels"], &ORDERED],
    ..IN_SMALL
};
const LOWEST_SETS: [&str; 5] = [
    "id-pool",
    "hibitset-levels",
    ORDERED[0],
    ORDERED[1],
    ORDERED[2],
];

pub(super) const SWEEPS: [Sweep; 6] = [
    IN_SMALL,
    Sweep {
        group: LOWEST,
        rule: LOWEST,
        called: "The lowest free one",
        peers: [&["hibitset", "tree"], &LOWEST_SETS],
        ..IN_SMALL
    },
    Sweep {
        group: FIRST_FREED,
        rule: FIRST_FREED,
        called: "The one freed first",
        peers: [&["ring"], &[]],
        ..IN_SMALL
    },
    Sweep {
        group: LAST_FREED,
        rule: LAST_FREED,
        called: "The one freed last",
        peers: [&["stack", "slab", "slotmap"], &[]],
        ..IN_SMALL
    },
    IN_LARGE,
    Sweep {
        group: "lowest-4m",
        rule: LOWEST,
        called: "The lowest free one",
        peers: [&["hibitset", "tree"], &LOWEST_SETS],
        ..IN_LARGE
    },
];

/// Ours of those that threads share; the one to recommend first.
pub(super) const SHARED: [&str; 3] = ["id-space-any", "id-space-last", "id-space"];
/// What the threads alone do.
pub(super) const YARDSTICK: &str = "empty-loop";
/// A bare array for each thread.
pub(super) const FLOOR: &str = "own-stacks";
/// What threads share, and what they do alone.
pub(super) const SHARED_PEERS: [&str; 7] = [
    "sbitmap",
    "array-queue",
    "mutex-ids",
    FLOOR,
    YARDSTICK,
    "mutex-pidmap",
    "sharded-slab",
];

/// Rules that state how long an identifier rests; the last three are those of a contestant of their own.
const RESTING: [&str; 5] = [FIRST_FREED, EPOCHS, RESTED, CALLS, TIMED];
/// Rules that state nothing.
const RESTLESS: [&str; 5] = [LOWEST, CYCLIC, LAST_FREED, "random", "any"];

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    // Six rounds give an interval; seven or eight would only widen it.
    let mut plan = Planner::new(request, contestants, (6, 6, 0.05), (15, 33, 0.02));
    let quick = plan.quick();
    let guess = |quick_seconds: f64| quick_seconds * if quick { 1.0 } else { 8.0 };
    for sweep in &SWEEPS {
        let lives = plan.either(sweep.quick_lives, sweep.lives).iter();
        let params = lives.map(|live| batches(quick, sweep.rule, sweep.count, *live));
        let names = [
            &["ids"][..],
            sweep.peers[0],
            plan.either(&[][..], sweep.peers[1]),
        ]
        .concat();
        let cells = cross(&names, &params.collect::<Vec<_>>());
        let each = if sweep.count == LARGE { 0.03 } else { 0.013 };
        let seconds = guess(each * cells.len() as f64);
        plan.group(sweep.group, "ns_per_pair", names[1], seconds, cells);
    }
    if quick {
        plan.skip(
            "half of the occupancies, and some peers",
            "the slow ones to set up; run with --full to have them all",
        );
    }
    let sparse = |contestant: &str, live: i64| {
        let turns = if quick { 2 } else { 30 };
        let params = batches(quick, CYCLIC, HUGE, live).with("cold", 1);
        let params = params.with("turns", turns).with("warm", 1);
        Cell::new(contestant, params.with("budget_ms", 2000))
    };
    let mut cells = vec![
        sparse("ids", FEW),
        sparse("ids", HUGE - FEW),
        sparse("roaring", HUGE - FEW),
        sparse("roaring-taken", FEW),
    ];
    if !quick {
        cells.push(sparse("roaring", FEW));
    }
    plan.group(SPARSE, "ns_per_pair", "ids", guess(0.45), cells);

    let held = [LARGE, SMALL].into_iter().flat_map(|count| {
        let of = |rule| batches(quick, rule, count, count / 2);
        let mut cells = cross(&["ids", "pidmap", "tree"], &[of(CYCLIC)]);
        cells.push(Cell::new("ids", of(EPOCHS)));
        cells
    });
    // What is counted and not timed needs one round.
    const ONCE: (u32, u32, f64) = (1, 1, 0.05);
    plan.group(BITS, "bits_per_id", "pidmap", 0.3, held)
        .rounds(ONCE);
    threads(&mut plan, guess(0.62));
    create(&mut plan, guess(0.07));
    let seconds = plan.either(1.6, 12.0);
    plan.group(DISTANCE, "distance_min", "ids", seconds, distances(quick))
        .rounds(ONCE);
    plan.finish()
}

fn batches(quick: bool, rule: &str, count: i64, live: i64) -> Params {
    let (turns, budget_ms) = if quick { (1000, 6) } else { (20_000, 100) };
    // The small space is gone round twice before the clock starts.
    let warm = if count == SMALL { 2 * SMALL / 256 } else { 64 };
    Params::new()
        .with_text("shape", "batches")
        .with_text("rule", rule)
        .with("count", count)
        .with("live", live)
        .with("turns", turns)
        .with("warm", warm)
        .with("budget_ms", budget_ms)
}

/// The quick form has the peers with two thirds of the identifiers taken, and the yardstick always.
fn threads(plan: &mut Planner, seconds: f64) {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        let why = "there is one CPU; two threads need two to show how they scale";
        return plan.skip(THREADED, why);
    }
    let (ms, quick) = (plan.either(6, 200), plan.quick());
    let cells = THREAD_LIVES.into_iter().flat_map(|live| {
        let params = [1, 2].map(|threads| {
            let params = Params::new().with_text("shape", "threads");
            let params = params.with("threads", threads).with("count", SMALL);
            params.with("live", live).with("ms", ms)
        });
        let peers: &[&str] = match (quick, live == TWO_THIRDS) {
            (false, _) => &SHARED_PEERS,
            (true, true) => &SHARED_PEERS[..5],
            (true, false) => &[YARDSTICK],
        };
        cross(&[&SHARED, peers].concat(), &params)
    });
    plan.group(THREADED, "ns_per_pair", "sbitmap", seconds, cells);
}

fn create(plan: &mut Planner, seconds: f64) {
    let of = |times: i64, first: i64| {
        let params = Params::new().with_text("shape", "create");
        let params = params.with_text("rule", CYCLIC).with("count", MILLION);
        params.with("times", times).with("first", first)
    };
    let small = ["ids", "id-space", "id-space-any", "pidmap"];
    let mut cells = cross(&small, &[of(64, 0), of(64, 1)]);
    cells.push(Cell::new("tree", of(4, 1)));
    let filled = ["hibitset-levels", "slab", "eager-set"];
    cells.extend(cross(&filled[..plan.either(2, 3)], &[of(1, 1)]));
    plan.group(CREATE, "ns_per_space", "pidmap", seconds, cells);
}

/// The quick form looks where something is stated, and once at each other rule.
fn distances(quick: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    let rules = RESTING.into_iter().chain(RESTLESS);
    for (rule, live) in rules.flat_map(|rule| DISTANCE_LIVES.map(|live| (rule, live))) {
        for (batch, shared) in [(1, false), (1, true), (256, false), (256, true)] {
            let rests = rule.starts_with("rested");
            // Of four free ones none has rested so long: the space would only wait.
            let waits = rests && live == SMALL - 4;
            let stated = RESTING.contains(&rule) && (rule != EPOCHS || batch == 1);
            let looked = if stated {
                live != DISTANCE_LIVES[0] && (batch == 1 || rule == FIRST_FREED)
            } else {
                live == DISTANCE_LIVES[1] && batch == 1
            };
            if waits || (quick && !looked) || (rule == "any" && !shared) {
                continue;
            }
            let (contestant, times) = match (shared, rests) {
                (true, _) => ("id-space-ruled", 4),
                (false, true) => ("ids-rested", 4),
                (false, false) => ("ids", 8),
            };
            let params = Params::new()
                .with_text("shape", "distance")
                .with_text("rule", rule)
                .with("count", SMALL)
                .with("live", live)
                .with("batch", batch)
                .with("allocs", SMALL * if quick { 2 } else { times });
            cells.push(Cell::new(contestant, params));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::ID_SPACE;
    use super::super::goals::TARGETS;
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;

    #[test]
    #[cfg(feature = "peers")]
    fn the_full_form_has_every_peer_at_every_occupancy() {
        let full = plan_of(&ID_SPACE, Depth::Full);
        let of = |name: &str| SWEEPS.iter().find(|sweep| sweep.group == name).unwrap();
        for sweep in &SWEEPS {
            let group = full.groups.iter().find(|g| g.name == sweep.group).unwrap();
            let cells = (sweep.peers().len() + 1) * sweep.lives.len();
            assert_eq!(group.cells.len(), cells, "{}", sweep.group);
        }
        for target in &TARGETS {
            let all: Vec<&str> = target.groups.iter().flat_map(|g| of(g).peers()).collect();
            assert!(target.peers.iter().all(|peer| all.contains(peer)));
        }
        // Two threads are left out where they could not run at once.
        let alone = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
        let skipped: Vec<&str> = full.skipped.iter().map(|s| &*s.what).collect();
        assert_eq!(
            skipped.as_slice(),
            if alone { &["threads"][..] } else { &[] }
        );
    }

    #[test]
    fn occupancies_are_what_they_are_called() {
        let percent = |live: i64, count: i64| 100.0 * live as f64 / count as f64;
        let wanted = [3.0, 31.0, 67.0, 92.0, 99.8, 100.0];
        for (live, wanted) in SMALL_LIVES.into_iter().zip(wanted) {
            assert!((percent(live, SMALL) - wanted).abs() < 0.6, "{live}");
        }
        for (live, wanted) in LARGE_LIVES.into_iter().zip([1.0, 50.0, 99.0, 99.99]) {
            assert!((percent(live, LARGE) - wanted).abs() < 0.001, "{live}");
        }
        assert!((percent(FEW, HUGE) - 0.01).abs() < 0.0001);
    }

    #[test]
    fn the_quick_form_fits_and_the_full_one_looks_at_all_distances() {
        let seconds =
            |g: &crate::measure::Group| g.round_guess.as_secs_f64() * f64::from(g.min_rounds);
        let guess: f64 = plan_of(&ID_SPACE, Depth::Quick)
            .groups
            .iter()
            .map(seconds)
            .sum();
        assert!(guess < 15.0, "{guess}");
        assert_eq!(distances(false).len(), 140);
        assert_eq!(distances(true).len(), 39);
    }
}
