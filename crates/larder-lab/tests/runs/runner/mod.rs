//! The runner with contestants that are not real, through the seam of the launcher.

use std::cell::{Cell as StdCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use larder_lab::measure::{
    BadSelection, Contestant, Depth, Experiment, Group, InProcess, Interrupt, LaunchError,
    Launcher, Options, Plan, PlanRequest, Progress, Runner, Silent,
};
use larder_lab::model::{
    Analysis, Cell, MachineRecord, Measures, Metric, Params, RunRecord, Sample, Skipped, StopReason,
};
use larder_lab::store::id_of;

mod continued;
mod filters;
mod noise;

/// An experiment of the given groups: name, contestants, rounds at most, target.
struct Fake(Vec<(&'static str, Vec<&'static str>, u32, f64)>);

struct Plain(&'static str);

impl Contestant for Plain {
    fn name(&self) -> &'static str {
        self.0
    }
    fn about(&self) -> &'static str {
        "a contestant that is not real"
    }
    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        Ok(Measures::new().with("ns", 1.0 + params.int("n").unwrap_or(0) as f64))
    }
}

impl Experiment for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn title(&self) -> &'static str {
        "Fake"
    }
    fn source(&self) -> &'static str {
        "nobody"
    }
    fn question(&self) -> &'static str {
        "Is it taken in rounds?"
    }
    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::cost("ns", "ns", "time")] }
    }
    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        ["a", "b", "c", "d"]
            .into_iter()
            .map(|n| Box::new(Plain(n)) as Box<dyn Contestant>)
            .collect()
    }
    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["second"])
    }
    fn plan(&self, _: &PlanRequest<'_>) -> Plan {
        let groups = self
            .0
            .iter()
            .map(|(name, contestants, rounds, target)| Group {
                name: (*name).to_owned(),
                reference: cell(contestants[0]),
                metric: "ns",
                cells: contestants.iter().copied().map(cell).collect(),
                min_rounds: 6,
                max_rounds: *rounds,
                target: *target,
                round_guess: Duration::from_secs(4),
            })
            .collect();
        Plan {
            groups,
            skipped: vec![Skipped {
                what: "planned".to_owned(),
                why: "away".to_owned(),
            }],
            // A group of which the slowest cell runs once more leaves time for that.
            until: self.0.iter().any(|g| g.0 == "sweep").then_some(0.6),
        }
    }
    /// The slowest cell of a group called `sweep`, beside its reference.
    fn afresh(&self, request: &PlanRequest<'_>, run: &RunRecord, stage: usize) -> Plan {
        if stage > 0 {
            return Plan::default();
        }
        let ns = |s: &&Sample| s.measures.get("ns").unwrap();
        let sweep = run.samples.iter().filter(|s| s.group == "sweep");
        let slowest = sweep.max_by(|a, b| ns(a).total_cmp(&ns(b)));
        let mut plan = self.plan(request);
        plan.groups
            .retain(|g| g.name == "sweep" && slowest.is_some());
        plan.until = None;
        for group in &mut plan.groups {
            "worst".clone_into(&mut group.name);
            group.cells = slowest.iter().map(|s| s.cell.clone()).collect();
        }
        plan
    }
    fn analyse(&self, _: &RunRecord) -> Analysis {
        Analysis::default()
    }
}

fn cell(name: &str) -> Cell {
    Cell::new(name, Params::new())
}

/// What a cell does in its nth run.
type Act<'a> = Box<dyn Fn(&Cell, u32) -> Result<f64, LaunchError> + 'a>;

/// A launcher whose cells take one second of a clock of its own, and do what the test says.
struct Script<'a> {
    clock: &'a StdCell<Duration>,
    runs: RefCell<BTreeMap<String, u32>>,
    act: Act<'a>,
}

impl<'a> Script<'a> {
    fn new(
        clock: &'a StdCell<Duration>,
        act: impl Fn(&Cell, u32) -> Result<f64, LaunchError> + 'a,
    ) -> Self {
        Self {
            clock,
            runs: RefCell::default(),
            act: Box::new(act),
        }
    }
}

impl Launcher for Script<'_> {
    fn launch(
        &mut self,
        _: &dyn Experiment,
        cell: &Cell,
        limit: Duration,
    ) -> Result<Measures, LaunchError> {
        let mut runs = self.runs.borrow_mut();
        let n = runs.entry(cell.to_string()).or_insert(0);
        *n += 1;
        let second = Duration::from_secs(1);
        self.clock.set(self.clock.get() + second.min(limit));
        if limit < second {
            return Err(LaunchError::TooLong(0));
        }
        (self.act)(cell, *n).map(|ns| Measures::new().with("ns", ns))
    }
}

fn take(
    fake: &Fake,
    options: &Options,
    interrupt: &Interrupt,
    act: impl Fn(&Cell, u32) -> Result<f64, LaunchError>,
) -> RunRecord {
    let clock = StdCell::new(Duration::ZERO);
    let mut script = Script::new(&clock, act);
    let mut silent = Silent;
    Runner::new(&mut script, &mut silent, interrupt)
        .with_clock(|| clock.get())
        .run(fake, &MachineRecord::default(), options)
}

/// A number that looks like noise and is the same in every test.
fn noisy(cell: &Cell, n: u32) -> f64 {
    let base = if cell.contestant == "a" { 100.0 } else { 150.0 };
    let mut h = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ cell.to_string().len() as u64;
    h = (h ^ (h >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    base * (1.0 + (h >> 40) as f64 / (1u64 << 24) as f64)
}

fn quick(seed: u64) -> Options {
    Options::new(Depth::Quick, seed)
}

fn orders(run: &RunRecord, group: &str) -> Vec<Vec<String>> {
    let mut rounds: BTreeMap<u32, BTreeMap<u32, String>> = BTreeMap::new();
    for s in run.samples.iter().filter(|s| s.group == group) {
        let before = rounds
            .entry(s.round)
            .or_default()
            .insert(s.slot, s.cell.to_string());
        assert_eq!(before, None, "two cells in one slot");
    }
    rounds
        .into_values()
        .map(|slots| slots.into_values().collect())
        .collect()
}

#[test]
fn every_round_holds_every_cell_and_the_twin_once_in_a_new_order() {
    let fake = Fake(vec![("g", vec!["a", "b", "c", "d"], 30, 0.0)]);
    let run = take(&fake, &quick(1), &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    let orders = orders(&run, "g");
    assert_eq!(orders.len() as u32, run.groups[0].rounds);
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(sorted, ["a", "a (twin)", "b", "c", "d"]);
    }
    let different: BTreeSet<_> = orders.iter().collect();
    assert!(different.len() * 3 > orders.len() * 2, "{orders:?}");
    let times: Vec<u64> = run.samples.iter().map(|s| s.at_us).collect();
    assert!(times.is_sorted());
    assert_eq!(run.id, id_of(&run));
    assert_eq!(run.skipped[0].what, "planned");
}

#[test]
fn the_seed_and_nothing_else_decides_the_order() {
    let fake = Fake(vec![("g", vec!["a", "b", "c", "d"], 6, 0.0)]);
    let go = |seed| {
        let run = take(&fake, &quick(seed), &Interrupt::new(), |c, n| {
            Ok(noisy(c, n))
        });
        assert_eq!(run.seed, seed);
        orders(&run, "g")
    };
    assert_eq!(go(7), go(7));
    assert_ne!(go(7), go(8));
    // Another group beside it changes nothing.
    let two = Fake(vec![
        ("f", vec!["a", "b"], 3, 0.0),
        ("g", vec!["a", "b", "c", "d"], 6, 0.0),
    ]);
    let run = take(&two, &quick(7), &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    assert_eq!(orders(&run, "g"), go(7));
}

#[test]
fn what_the_plan_found_runs_once_more_after_it() {
    let fake = Fake(vec![
        ("sweep", vec!["a", "b", "c", "d"], 4, 0.0),
        ("other", vec!["a", "d"], 6, 0.0),
    ]);
    let slow = |c: &Cell, n| Ok(noisy(c, n) + if c.contestant == "c" { 1000.0 } else { 0.0 });
    let run = take(&fake, &quick(1), &Interrupt::new(), slow);
    let names: Vec<&str> = run.groups.iter().map(|g| &*g.name).collect();
    assert_eq!(names, ["sweep", "other", "worst"]);
    for order in &orders(&run, "worst") {
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(sorted, ["a", "a (twin)", "c"]);
    }
    assert_eq!(orders(&run, "worst").len(), 4);
    let first = run.samples.iter().position(|s| s.group == "worst").unwrap();
    assert!(run.samples[first..].iter().all(|s| s.group == "worst"));
}

#[test]
fn what_runs_once_more_has_the_time_that_the_plan_leaves() {
    let fake = Fake(vec![("sweep", vec!["a", "b", "c", "d"], 50, 0.0)]);
    // A round takes five seconds and one of what follows three: three and four fit into 18 and 15 s.
    let options = Options {
        time_cap: Some(Duration::from_secs(30)),
        ..quick(1)
    };
    let slow = |c: &Cell, n| Ok(noisy(c, n) + if c.contestant == "c" { 1000.0 } else { 0.0 });
    let run = take(&fake, &options, &Interrupt::new(), slow);
    let rounds = |name: &str| run.groups.iter().find(|g| g.name == name).unwrap().rounds;
    assert_eq!((rounds("sweep"), rounds("worst")), (3, 4));
    assert!(run.groups.iter().all(|g| g.stopped == StopReason::TimeCap));
}

#[test]
fn groups_take_turns() {
    let fake = Fake(vec![
        ("f", vec!["a", "b"], 4, 0.0),
        ("g", vec!["a", "b"], 6, 0.0),
    ]);
    let run = take(&fake, &quick(1), &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    let mut turns: Vec<(&str, u32)> = run
        .samples
        .iter()
        .map(|s| (s.group.as_str(), s.round))
        .collect();
    turns.dedup();
    let expected = [
        ("f", 0),
        ("g", 0),
        ("f", 1),
        ("g", 1),
        ("f", 2),
        ("g", 2),
        ("f", 3),
        ("g", 3),
        ("g", 4),
        ("g", 5),
    ];
    assert_eq!(turns, expected);
    assert!(run.groups.iter().all(|g| g.stopped == StopReason::Rounds));
}

#[test]
fn a_failing_cell_is_told_once_and_left_out() {
    let fake = Fake(vec![("g", vec!["a", "b", "c"], 6, 0.0)]);
    let run = take(&fake, &quick(1), &Interrupt::new(), |c, n| {
        match (c.contestant.as_str(), n) {
            ("b", _) => Err(LaunchError::Failed("no such call".to_owned())),
            ("c", 4) => Err(LaunchError::TooLong(120)),
            _ => Ok(noisy(c, n)),
        }
    });
    assert_eq!(run.groups[0].rounds, 6);
    let told: Vec<&Skipped> = run.skipped.iter().filter(|s| s.what != "planned").collect();
    assert_eq!(told.len(), 2, "{told:?}");
    let of = |name: &str| {
        let s = told.iter().find(|s| s.what == format!("g: {name}"));
        s.map(|s| s.why.clone()).unwrap_or_default()
    };
    assert_eq!(of("b"), "no such call");
    assert!(
        of("c").starts_with("after 3 rounds: it took longer"),
        "{}",
        of("c")
    );
    let count = |name: &str| {
        run.samples
            .iter()
            .filter(|s| s.cell.contestant == name && !s.cell.twin)
            .count()
    };
    assert_eq!((count("a"), count("b"), count("c")), (6, 0, 3));
}

#[test]
fn a_group_that_cannot_run_at_all_says_so() {
    let fake = Fake(vec![("g", vec!["a"], 6, 0.0), ("h", vec!["b"], 6, 0.0)]);
    let run = take(&fake, &quick(1), &Interrupt::new(), |c, n| {
        if c.contestant == "a" {
            Err(LaunchError::Failed("no".to_owned()))
        } else {
            Ok(noisy(c, n))
        }
    });
    assert_eq!(run.groups[0].stopped, StopReason::NothingToRun);
    assert!(
        run.skipped
            .iter()
            .any(|s| s.what == "g" && s.why.contains("none of its cells"))
    );
    assert_eq!(run.groups[1].rounds, 6);
}

#[test]
fn the_time_cap_keeps_complete_rounds_of_every_group() {
    let fake = Fake(vec![
        ("f", vec!["a", "b", "c"], 50, 0.0),
        ("g", vec!["a", "b", "c"], 50, 0.0),
    ]);
    // A round takes four seconds: five fit into 21.5 s, three of the first group and two of the second.
    let options = Options {
        time_cap: Some(Duration::from_millis(21_500)),
        ..quick(1)
    };
    let run = take(&fake, &options, &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    let rounds: Vec<u32> = run.groups.iter().map(|g| g.rounds).collect();
    assert_eq!(rounds, [3, 2]);
    assert!(run.groups.iter().all(|g| g.stopped == StopReason::TimeCap));
    assert_eq!(run.samples.len(), 5 * 4);
    assert!(run.seconds <= 21.5);
}

#[test]
fn a_cell_that_the_cap_cuts_is_not_blamed() {
    let fake = Fake(vec![("g", vec!["a", "b", "c"], 50, 0.0)]);
    let options = Options {
        time_cap: Some(Duration::from_millis(2_500)),
        ..quick(1)
    };
    let run = take(&fake, &options, &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    assert_eq!(run.groups[0].stopped, StopReason::TimeCap);
    assert!(run.samples.is_empty());
    let told: Vec<_> = run.skipped.iter().filter(|s| s.what != "planned").collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].why.contains("--time-cap"), "{told:?}");
}

#[test]
fn an_interruption_keeps_complete_rounds_and_drops_the_broken_one() {
    let fake = Fake(vec![("g", vec!["a", "b", "c"], 50, 0.0)]);
    let interrupt = Interrupt::new();
    let run = take(&fake, &quick(1), &interrupt, |c, n| {
        // In the fourth round, in the midst of it or not, as the order has it.
        if c.contestant == "b" && n == 4 {
            interrupt.ask();
        }
        Ok(noisy(c, n))
    });
    assert_eq!(run.groups[0].stopped, StopReason::Interrupted);
    let rounds = run.groups[0].rounds;
    assert!(rounds == 3 || rounds == 4, "{rounds}");
    assert_eq!(run.samples.len(), rounds as usize * 4);
}

#[test]
fn precision_stops_at_a_look_and_noise_does_not() {
    let fake = Fake(vec![("g", vec!["a", "b"], 75, 0.05)]);
    let steady = take(&fake, &quick(1), &Interrupt::new(), |c, n| {
        Ok(noisy(c, 1) * (1.0 + f64::from(n % 3) * 1e-3))
    });
    assert_eq!(steady.groups[0].stopped, StopReason::Precise);
    assert!([6, 10].contains(&steady.groups[0].rounds));
    let wild = take(&fake, &quick(1), &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    assert_ne!(wild.groups[0].stopped, StopReason::Precise);
    assert!(wild.groups[0].rounds > steady.groups[0].rounds);
}

#[test]
fn the_loop_goes_on_past_the_planned_rounds_until_it_is_stable() {
    let fake = Fake(vec![("g", vec!["a", "b"], 6, 0.05)]);
    let planned = take(&fake, &quick(1), &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    assert_eq!(planned.groups[0].rounds, 6);
    let options = Options {
        until_stable: true,
        ..quick(1)
    };
    let run = take(&fake, &options, &Interrupt::new(), |c, n| Ok(noisy(c, n)));
    assert!(run.groups[0].rounds > 6, "{:?}", run.groups);
}

#[test]
fn a_contestant_can_run_in_this_process() {
    let fake = Fake(vec![("g", vec!["a", "b"], 2, 0.0)]);
    let (mut here, mut silent, interrupt) = (InProcess, Silent, Interrupt::new());
    let run = Runner::new(&mut here, &mut silent, &interrupt).run(
        &fake,
        &MachineRecord::default(),
        &quick(1),
    );
    assert_eq!(run.samples.len(), 6);
    let m = &run.samples[0].measures;
    assert_eq!(m.get("ns"), Some(1.0));
    for name in [
        "user_seconds",
        "minor_faults",
        "involuntary_switches",
        "max_rss_bytes",
    ] {
        assert!(m.get(&format!("proc.{name}")).is_some(), "{name}");
    }
}

#[test]
fn progress_is_told_about_every_cell_and_every_failure() {
    #[derive(Default)]
    struct Count {
        begun: u32,
        cells: u32,
        notes: Vec<String>,
        ended: u32,
    }
    impl Progress for Count {
        fn begin(&mut self, _: &str, guess: Duration) {
            assert_eq!(guess, Duration::from_secs(8));
            self.begun += 1;
        }
        fn cell(&mut self, _: &str, _: u32, _: &str, _: Duration) {
            self.cells += 1;
        }
        fn note(&mut self, sentence: &str) {
            self.notes.push(sentence.to_owned());
        }
        fn end(&mut self) {
            self.ended += 1;
        }
    }
    let fake = Fake(vec![("g", vec!["a", "b"], 2, 0.0)]);
    let clock = StdCell::new(Duration::ZERO);
    let mut script = Script::new(&clock, |c, n| match c.contestant.as_str() {
        "b" => Err(LaunchError::Failed("broken".to_owned())),
        _ => Ok(noisy(c, n)),
    });
    let (mut count, interrupt) = (Count::default(), Interrupt::new());
    let _ = Runner::new(&mut script, &mut count, &interrupt)
        .with_clock(|| clock.get())
        .run(&fake, &MachineRecord::default(), &quick(1));
    assert_eq!((count.begun, count.cells, count.ended), (1, 3 + 2, 1));
    assert_eq!(count.notes, ["g: b left out: broken"]);
}
