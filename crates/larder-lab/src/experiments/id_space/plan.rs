//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

/// 2.4's PID_MAX, Franke's.
pub(super) const SMALL: i64 = 32768;
/// Today's PID_MAX_LIMIT.
pub(super) const LARGE: i64 = 1 << 22;
/// What a count of 32 bits holds.
pub(super) const HUGE: i64 = 1 << 32;
/// A hundredth of a percent of it.
pub(super) const FEW: i64 = 429_497;
/// A million identifiers, to be made.
pub(super) const MILLION: i64 = 1 << 20;

/// Taken identifiers of the small space: Franke's, and all of them.
pub(super) const SMALL_LIVES: [i64; 6] = [1000, 10_000, 22_000, 30_000, 32_700, SMALL];
/// 1, 50, 99 and 99.99 % of the large one.
pub(super) const LARGE_LIVES: [i64; 4] = [41_943, LARGE / 2, 4_152_361, 4_193_885];
/// 67 and 99.5 % of the small one, for threads.
pub(super) const THREAD_LIVES: [i64; 2] = [22_000, 32_604];

pub(super) const CYCLIC: &str = "cyclic";
pub(super) const LOWEST: &str = "lowest";
pub(super) const FIRST_FREED: &str = "first-freed";
pub(super) const LAST_FREED: &str = "last-freed";
pub(super) const EPOCHS: &str = "epochs";
pub(super) const CYCLIC_LARGE: &str = "cyclic-4m";
pub(super) const LOWEST_LARGE: &str = "lowest-4m";
pub(super) const SPARSE: &str = "sparse";
pub(super) const BITS: &str = "bits";
pub(super) const THREADED: &str = "threads";
pub(super) const CREATE: &str = "create";
pub(super) const DISTANCE: &str = "distance";

/// roaring as the set of the free ones, and of the taken ones.
pub(super) const SPARSE_PEERS: [&str; 2] = ["roaring", "roaring-taken"];

/// The crates that keep identifiers in order and can look for the next one, and the standard library's set.
pub(super) const ORDERED: [&str; 3] = ["roaring", "range-set-blaze", "btree-set"];

/// Peers of the large space by rule.
pub(super) const CYCLIC_PEERS: [&str; 6] = [
    "pidmap",
    "tree",
    "hibitset-levels",
    "roaring",
    "range-set-blaze",
    "btree-set",
];
pub(super) const LOWEST_PEERS: [&str; 7] = [
    "hibitset",
    "tree",
    "hibitset-levels",
    "id-pool",
    "roaring",
    "range-set-blaze",
    "btree-set",
];

/// Sources that threads share.
pub(super) const SHARED: [&str; 10] = [
    "id-space-any",
    "id-space-last",
    "id-space",
    "sbitmap",
    "sharded-slab",
    "array-queue",
    "mutex-pidmap",
    "mutex-ids",
    "own-stacks",
    "empty-loop",
];

/// Rules whose reuse distance is looked at.
pub(super) const RULES: [&str; 6] = [LOWEST, CYCLIC, FIRST_FREED, LAST_FREED, EPOCHS, "random"];

/// A rest of 48 allocations.
pub(super) const RESTED: &str = "rested 48 allocations";
/// A rest of 100 ticks of a clock that is read at each call.
pub(super) const CALLS: &str = "rested 100 calls";
/// A rest of 100 us by the monotonic clock.
pub(super) const TIMED: &str = "rested 100 us";

/// What [`Ids`](larder::ids::Ids) is asked for beside these.
pub(super) const RESTS: [&str; 3] = [RESTED, CALLS, TIMED];

/// Rules of shared spaces whose reuse distance is looked at.
pub(super) const SHARED_RULES: [&str; 10] = [
    LOWEST,
    CYCLIC,
    FIRST_FREED,
    LAST_FREED,
    EPOCHS,
    "random",
    "any",
    RESTED,
    CALLS,
    TIMED,
];

/// Taken identifiers at which distances are looked at; with the last so few are free that nothing lies ready for CPUs.
const DISTANCE_LIVES: [i64; 4] = [SMALL_LIVES[0], SMALL_LIVES[2], SMALL_LIVES[4], SMALL - 4];

/// Amounts of work by depth of the run.
struct Work {
    turns: i64,
    budget_ms: i64,
    cold_turns: i64,
    thread_ms: i64,
    rounds: (u32, u32, f64),
}

const QUICK: Work = Work {
    turns: 1000,
    budget_ms: 6,
    cold_turns: 4,
    thread_ms: 12,
    rounds: (6, 8, 0.05),
};

const FULL: Work = Work {
    turns: 20_000,
    budget_ms: 100,
    cold_turns: 30,
    thread_ms: 200,
    rounds: (15, 33, 0.02),
};

/// The plan. `names` are the contestants that this build has.
pub(super) fn plan(request: &PlanRequest<'_>, names: &[&str]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let mut builder = Builder {
        work: if quick { &QUICK } else { &FULL },
        quick,
        names,
        plan: Plan::default(),
    };
    builder.small();
    builder.large();
    builder.sparse();
    builder.bits();
    builder.threads();
    builder.create();
    builder.distance();
    let mut plan = builder.plan;
    #[cfg(not(feature = "peers"))]
    plan.skipped.push(Skipped {
        what: "the crates of others".to_owned(),
        why: "this program was built without them; build with the default features to compare with them".to_owned(),
    });
    if quick {
        plan.skipped.push(Skipped {
            what: "most crates at 4 million identifiers".to_owned(),
            why: "they are far behind there and slow to fill; run with --full to have them all"
                .to_owned(),
        });
    }
    plan
}

struct Builder<'a> {
    work: &'static Work,
    quick: bool,
    names: &'a [&'a str],
    plan: Plan,
}

impl Builder<'_> {
    /// A group; contestants that this build lacks are left out, and the first of the cells is the reference where the
    /// wanted one is lacking. `seconds` is a guess of one quick round.
    fn group(
        &mut self,
        name: &str,
        metric: &'static str,
        cells: Vec<Cell>,
        reference: &str,
        seconds: f64,
    ) {
        let cells: Vec<Cell> = cells
            .into_iter()
            .filter(|cell| self.names.contains(&cell.contestant.as_str()))
            .collect();
        let Some(reference) = cells
            .iter()
            .find(|cell| cell.contestant == reference)
            .or(cells.first())
            .cloned()
        else {
            return;
        };
        let (min_rounds, max_rounds, target) = self.work.rounds;
        let scale = if self.quick { 1.0 } else { 8.0 };
        self.plan.groups.push(Group {
            name: name.to_owned(),
            reference,
            metric,
            cells,
            min_rounds,
            max_rounds,
            target,
            round_guess: Duration::from_secs_f64(seconds * scale),
        });
    }

    /// What is counted and not timed needs one round.
    fn once(&mut self) {
        if let Some(group) = self.plan.groups.last_mut() {
            (group.min_rounds, group.max_rounds) = (1, 1);
        }
    }

    fn batches(&self, contestant: &str, rule: &str, count: i64, live: i64) -> Cell {
        // The small space is gone round twice before the clock starts.
        let warm = if count == SMALL { 2 * SMALL / 256 } else { 64 };
        let params = Params::new()
            .with_text("shape", "batches")
            .with_text("rule", rule)
            .with("count", count)
            .with("live", live)
            .with("turns", self.work.turns)
            .with("warm", warm)
            .with("budget_ms", self.work.budget_ms);
        Cell::new(contestant, params)
    }

    fn sweep(&self, contestants: &[&str], rule: &str, count: i64, lives: &[i64]) -> Vec<Cell> {
        let cells = contestants.iter().flat_map(|contestant| {
            lives
                .iter()
                .map(|live| self.batches(contestant, rule, count, *live))
        });
        cells.collect()
    }

    fn small(&mut self) {
        let all: Vec<&str> = ["ids"].into_iter().chain(CYCLIC_PEERS).collect();
        let cells = self.sweep(&all, CYCLIC, SMALL, &SMALL_LIVES);
        self.group(CYCLIC, "ns_per_pair", cells, "pidmap", 0.7);

        let lowest: Vec<&str> = ["ids"].into_iter().chain(LOWEST_PEERS).collect();
        let lowest = if self.quick { &lowest[..4] } else { &lowest };
        let cells = self.sweep(lowest, LOWEST, SMALL, &SMALL_LIVES);
        self.group(LOWEST, "ns_per_pair", cells, "hibitset", 0.4);

        let cells = self.sweep(&["ids", "ring"], FIRST_FREED, SMALL, &SMALL_LIVES);
        self.group(FIRST_FREED, "ns_per_pair", cells, "ring", 0.15);

        let mut cells = self.sweep(&["ids", "stack"], LAST_FREED, SMALL, &SMALL_LIVES);
        cells.extend(self.sweep(&["slab", "slotmap"], LAST_FREED, SMALL, &SMALL_LIVES[2..3]));
        self.group(LAST_FREED, "ns_per_pair", cells, "stack", 0.15);
    }

    fn large(&mut self) {
        // The crates are far behind at this size and slow to fill.
        let quick = |few: &'static [&'static str], peers: &[&'static str]| match self.quick {
            true => few.to_vec(),
            false => ["ids"].iter().chain(peers).copied().collect(),
        };
        let cyclic = quick(&["ids", "pidmap", "tree", "hibitset-levels"], &CYCLIC_PEERS);
        let lowest = quick(&["ids", "tree", "hibitset"], &LOWEST_PEERS);
        let cells = self.sweep(&cyclic, CYCLIC, LARGE, &LARGE_LIVES);
        self.group(CYCLIC_LARGE, "ns_per_pair", cells, "pidmap", 0.6);
        let cells = self.sweep(&lowest, LOWEST, LARGE, &LARGE_LIVES);
        self.group(LOWEST_LARGE, "ns_per_pair", cells, "hibitset", 0.5);
    }

    fn sparse(&mut self) {
        let turns = self.work.cold_turns;
        let cell = |contestant: &str, live: i64| {
            let params = Params::new()
                .with_text("shape", "batches")
                .with_text("rule", CYCLIC)
                .with("count", HUGE)
                .with("live", live)
                .with("turns", turns)
                .with("warm", 1)
                .with("budget_ms", 2000)
                .with("cold", 1);
            Cell::new(contestant, params)
        };
        let cells = vec![
            cell("ids", FEW),
            cell("ids", HUGE - FEW),
            cell("roaring", FEW),
            cell("roaring", HUGE - FEW),
            cell("roaring-taken", FEW),
        ];
        self.group(SPARSE, "ns_per_pair", cells, "ids", 1.5);
    }

    fn bits(&mut self) {
        let mut cells = Vec::new();
        for count in [LARGE, SMALL] {
            for (contestant, rule) in [
                ("ids", CYCLIC),
                ("ids", EPOCHS),
                ("pidmap", CYCLIC),
                ("tree", CYCLIC),
            ] {
                cells.push(self.batches(contestant, rule, count, count / 2));
            }
        }
        self.group(BITS, "bits_per_id", cells, "pidmap", 0.2);
        self.once();
    }

    fn threads(&mut self) {
        if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
            self.plan.skipped.push(Skipped {
                what: THREADED.to_owned(),
                why: "there is one CPU; two threads need two to show how they scale".to_owned(),
            });
            return;
        }
        let mut cells = Vec::new();
        for contestant in SHARED {
            for threads in [1, 2] {
                for live in THREAD_LIVES {
                    let params = Params::new()
                        .with_text("shape", "threads")
                        .with("threads", threads)
                        .with("count", SMALL)
                        .with("live", live)
                        .with("ms", self.work.thread_ms);
                    cells.push(Cell::new(contestant, params));
                }
            }
        }
        self.group(THREADED, "ns_per_pair", cells, "sbitmap", 0.9);
    }

    fn create(&mut self) {
        let cell = |contestant: &str, times: i64, first: i64| {
            let params = Params::new()
                .with_text("shape", "create")
                .with_text("rule", CYCLIC)
                .with("count", MILLION)
                .with("times", times)
                .with("first", first);
            Cell::new(contestant, params)
        };
        let mut cells: Vec<Cell> = ["ids", "id-space", "id-space-any", "pidmap"]
            .into_iter()
            .flat_map(|name| [cell(name, 64, 0), cell(name, 64, 1)])
            .collect();
        cells.extend([
            cell("tree", 4, 1),
            cell("hibitset-levels", 1, 1),
            cell("slab", 1, 1),
        ]);
        if !self.quick {
            cells.push(cell("eager-set", 1, 1));
        }
        self.group(CREATE, "ns_per_space", cells, "pidmap", 0.1);
    }

    fn distance(&mut self) {
        let mut cells = Vec::new();
        for (contestant, rules, allocs) in [
            ("ids", &RULES[..], 8 * SMALL),
            ("ids-rested", &RESTS, 4 * SMALL),
            ("id-space-ruled", &SHARED_RULES, 4 * SMALL),
        ] {
            for rule in rules {
                for live in DISTANCE_LIVES {
                    for batch in [1, 256] {
                        let params = Params::new()
                            .with_text("shape", "distance")
                            .with_text("rule", rule)
                            .with("count", SMALL)
                            .with("live", live)
                            .with("batch", batch)
                            .with("allocs", allocs);
                        // Of four free ones none has rested so long: the space would only wait.
                        if contestant != "ids" && rule.starts_with("rested") && live == SMALL - 4 {
                            continue;
                        }
                        cells.push(Cell::new(contestant, params));
                    }
                }
            }
        }
        self.group(DISTANCE, "distance_min", cells, "ids", 3.0);
        self.once();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        let contestants = super::super::contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        plan(&request, &names)
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
    fn every_cell_names_a_contestant() {
        let contestants = super::super::contestants::all();
        for group in plan_of(Depth::Full).groups {
            for cell in group.cells {
                assert!(
                    contestants.iter().any(|c| c.name() == cell.contestant),
                    "{cell}"
                );
            }
        }
    }

    #[test]
    fn the_full_form_has_every_peer_in_the_large_space_too() {
        let full = plan_of(Depth::Full);
        let known: Vec<_> = super::super::contestants::all();
        for (group, peers) in [
            (CYCLIC_LARGE, &CYCLIC_PEERS[..]),
            (LOWEST_LARGE, &LOWEST_PEERS),
        ] {
            let group = full.groups.iter().find(|g| g.name == group).unwrap();
            for peer in peers {
                let of = |live: &&i64| {
                    group.cells.iter().any(|cell| {
                        cell.contestant == *peer
                            && cell.params.int("live").is_ok_and(|own| own == **live)
                    })
                };
                // This program may have been built without the crates of others.
                if known.iter().any(|c| c.name() == *peer) {
                    assert!(LARGE_LIVES.iter().all(|live| of(&live)), "{peer}");
                }
            }
        }
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
    fn quick_fits() {
        let guess: Duration = plan_of(Depth::Quick)
            .groups
            .iter()
            .map(|group| group.round_guess * group.min_rounds)
            .sum();
        assert!(guess < Duration::from_secs(40), "{guess:?}");
    }
}
