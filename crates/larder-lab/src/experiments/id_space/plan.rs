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
pub(super) const SMALL_LIVES: [i64; 6] = [1000, 10_000, 22_000, 30_000, 32_700, SMALL];
/// Those at which the quick form has every peer.
const QUICK_LIVES: [i64; 3] = [1000, 22_000, 32_700];
/// 1, 50, 99 and 99.99 % of the large one.
const LARGE_LIVES: [i64; 4] = [41_943, LARGE / 2, 4_152_361, 4_193_885];
/// 67 and 99.5 % of the small one, for threads.
pub(super) const THREAD_LIVES: [i64; 2] = [22_000, 32_604];
/// Taken identifiers at which distances are looked at; with the last so few are free that nothing lies ready for CPUs.
pub(super) const DISTANCE_LIVES: [i64; 4] = [1000, 22_000, 32_700, SMALL - 4];

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
const ORDERED: [&str; 3] = ["roaring", "range-set-blaze", "btree-set"];

/// These, and a search of ours over the levels of another.
const SETS: [&str; 4] = ["hibitset-levels", ORDERED[0], ORDERED[1], ORDERED[2]];

/// What looks for the lowest one.
const LOWEST_SETS: [&str; 5] = ["id-pool", SETS[0], SETS[1], SETS[2], SETS[3]];

/// roaring as the set of the free ones, and of the taken ones.
pub(super) const SPARSE_PEERS: [&str; 2] = ["roaring", "roaring-taken"];

/// A group in which larder's `ids` and its peers run by one rule at several occupancies.
pub(super) struct Sweep {
    pub(super) group: &'static str,
    pub(super) rule: &'static str,
    pub(super) count: i64,
    pub(super) lives: &'static [i64],
    /// Peers at every occupancy, of which the first is the reference; those that the quick form has at [`QUICK_LIVES`]
    /// only; and those that it leaves out.
    peers: [&'static [&'static str]; 3],
    /// How much of the cost of the best of some peers `ids` may have; without names it is the best of all.
    pub(super) goals: &'static [(f64, &'static [&'static str])],
}

impl Sweep {
    /// Every peer of the full form.
    pub(super) fn peers(&self) -> Vec<&'static str> {
        self.peers.concat()
    }

    /// Its rule in words, and what the rule hands out.
    pub(super) fn called(&self) -> [&'static str; 2] {
        match self.rule {
            CYCLIC => ["cyclic", "The next free one after the last"],
            LOWEST => ["lowest first", "The lowest free one"],
            FIRST_FREED => ["first freed first", "The one freed first"],
            _ => ["last freed first", "The one freed last"],
        }
    }
}

pub(super) const SWEEPS: [Sweep; 6] = [
    Sweep {
        group: CYCLIC,
        rule: CYCLIC,
        count: SMALL,
        lives: &SMALL_LIVES,
        peers: [&["pidmap", "tree"], &SETS, &[]],
        goals: &[(0.9, &["pidmap"]), (0.5, &ORDERED)],
    },
    Sweep {
        group: LOWEST,
        rule: LOWEST,
        count: SMALL,
        lives: &SMALL_LIVES,
        peers: [&["hibitset"], &["tree"], &LOWEST_SETS],
        goals: &[(0.7, &["hibitset"])],
    },
    Sweep {
        group: FIRST_FREED,
        rule: FIRST_FREED,
        count: SMALL,
        lives: &SMALL_LIVES,
        peers: [&["ring"], &[], &[]],
        goals: &[(1.3, &["ring"])],
    },
    Sweep {
        group: LAST_FREED,
        rule: LAST_FREED,
        count: SMALL,
        lives: &SMALL_LIVES,
        peers: [&["stack"], &["slab", "slotmap"], &[]],
        goals: &[(1.3, &["stack"])],
    },
    Sweep {
        group: "cyclic-4m",
        rule: CYCLIC,
        count: LARGE,
        lives: &LARGE_LIVES,
        peers: [&["pidmap", "tree", "hibitset-levels"], &[], &ORDERED],
        goals: &[(0.8, &[])],
    },
    Sweep {
        group: "lowest-4m",
        rule: LOWEST,
        count: LARGE,
        lives: &LARGE_LIVES,
        peers: [&["hibitset", "tree"], &[], &LOWEST_SETS],
        goals: &[(0.8, &[])],
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
    "sharded-slab",
    "array-queue",
    "mutex-pidmap",
    "mutex-ids",
    FLOOR,
    YARDSTICK,
];

/// Rules that state how long an identifier rests; the last three are those of a contestant of their own.
pub(super) const RESTING: [&str; 5] = [FIRST_FREED, EPOCHS, RESTED, CALLS, TIMED];
/// Rules that state nothing.
pub(super) const RESTLESS: [&str; 5] = [LOWEST, CYCLIC, LAST_FREED, "random", "any"];

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    // Six rounds give an interval; seven or eight would only widen it.
    let mut plan = Planner::new(request, contestants, (6, 6, 0.05), (15, 33, 0.02));
    let quick = plan.quick();
    let guess = |quick_seconds: f64| quick_seconds * if quick { 1.0 } else { 8.0 };
    for sweep in &SWEEPS {
        let [every, some, late] = sweep.peers;
        let few = plan.either(&QUICK_LIVES[..], sweep.lives);
        let none = plan.either(&[][..], sweep.lives);
        let runs = [
            (&["ids"][..], sweep.lives),
            (every, sweep.lives),
            (some, few),
            (late, none),
        ];
        let cells = runs.into_iter().flat_map(|(names, lives)| {
            let of = |live: &i64| batches(quick, sweep.rule, sweep.count, *live);
            cross(names, &lives.iter().map(of).collect::<Vec<Params>>())
        });
        let cells: Vec<Cell> = cells.collect();
        let each = if sweep.count == LARGE { 0.025 } else { 0.009 };
        let seconds = guess(each * cells.len() as f64);
        plan.group(sweep.group, "ns_per_pair", every[0], seconds, cells);
    }
    if quick {
        plan.skip(
            "most crates at 4 million identifiers",
            "they are far behind there and slow to fill; run with --full to have them all",
        );
    }
    let sparse = |contestant: &str, live: i64| {
        let turns = if quick { 4 } else { 30 };
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
    plan.group(SPARSE, "ns_per_pair", "ids", guess(0.4), cells);

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
    threads(&mut plan, guess(0.8));
    create(&mut plan, guess(0.05));
    let cells = distances(quick);
    plan.group(DISTANCE, "distance_min", "ids", 2.0, cells)
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

/// The quick form has the others with two thirds of the identifiers taken, and the yardstick always.
fn threads(plan: &mut Planner, seconds: f64) {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        let why = "there is one CPU; two threads need two to show how they scale";
        return plan.skip(THREADED, why);
    }
    let ms = plan.either(8, 200);
    let quick = plan.quick();
    let of = |live: i64, threads: i64| {
        let params = Params::new().with_text("shape", "threads");
        let params = params.with("threads", threads).with("count", SMALL);
        params.with("live", live).with("ms", ms)
    };
    let cells = THREAD_LIVES.into_iter().flat_map(|live| {
        let others = SHARED_PEERS
            .into_iter()
            .filter(|name| !quick || live == THREAD_LIVES[0] || *name == YARDSTICK)
            .filter(|name| !quick || *name != "mutex-pidmap");
        let names: Vec<&str> = SHARED.into_iter().chain(others).collect();
        cross(&names, &[of(live, 1), of(live, 2)])
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
    let filled: &[&str] = plan.either(
        &["hibitset-levels", "slab"],
        &["hibitset-levels", "slab", "eager-set"],
    );
    cells.extend(cross(filled, &[of(1, 1)]));
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
            let contestant = match (shared, rests) {
                (true, _) => "id-space-ruled",
                (false, true) => "ids-rested",
                (false, false) => "ids",
            };
            let allocs = if contestant == "ids" && !quick { 8 } else { 4 } * SMALL;
            let params = Params::new()
                .with_text("shape", "distance")
                .with_text("rule", rule)
                .with("count", SMALL)
                .with("live", live)
                .with("batch", batch)
                .with("allocs", allocs);
            cells.push(Cell::new(contestant, params));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Depth;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        plan(&request, &super::super::contestants::all())
    }

    #[test]
    fn groups_hold_their_reference_and_no_cell_twice() {
        for depth in [Depth::Quick, Depth::Full] {
            for group in plan_of(depth).groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
            }
        }
    }

    #[test]
    #[cfg(feature = "peers")]
    fn the_full_form_has_every_peer_at_every_occupancy() {
        let full = plan_of(Depth::Full);
        for sweep in &SWEEPS {
            let group = full.groups.iter().find(|g| g.name == sweep.group).unwrap();
            assert_eq!(
                group.cells.len(),
                (sweep.peers().len() + 1) * sweep.lives.len(),
                "{}",
                sweep.group
            );
            let all = sweep.peers();
            let mut judged = sweep.goals.iter().flat_map(|(_, peers)| *peers);
            assert!(judged.all(|peer| all.contains(peer)));
        }
        assert!(full.skipped.is_empty(), "{:?}", full.skipped);
    }

    #[test]
    fn occupancies_are_what_they_are_called() {
        let percent = |live: i64, count: i64| 100.0 * live as f64 / count as f64;
        for (live, wanted) in SMALL_LIVES
            .into_iter()
            .zip([3.0, 31.0, 67.0, 92.0, 99.8, 100.0])
        {
            assert!((percent(live, SMALL) - wanted).abs() < 0.6, "{live}");
        }
        for (live, wanted) in LARGE_LIVES.into_iter().zip([1.0, 50.0, 99.0, 99.99]) {
            assert!((percent(live, LARGE) - wanted).abs() < 0.001, "{live}");
        }
        assert!((percent(FEW, HUGE) - 0.01).abs() < 0.0001);
    }

    #[test]
    fn the_quick_form_fits_and_the_full_one_looks_at_all_distances() {
        let guess: f64 = plan_of(Depth::Quick)
            .groups
            .iter()
            .map(|group| group.round_guess.as_secs_f64() * f64::from(group.min_rounds))
            .sum();
        assert!(guess < 20.0, "{guess}");
        assert_eq!(distances(false).len(), 140);
        assert_eq!(distances(true).len(), 39);
    }
}
