//! Records of runs that never were, with costs that a test chooses.

use larder_lab::measure::{Depth, Experiment, PlanRequest};
use larder_lab::model::{
    Cell, GroupRecord, MachineRecord, Measures, NoiseRecord, RunRecord, Sample, StopReason,
};

/// Runs the experiment's plan with measures from `of(group, cell)`. Each sample of a cell is off by a thousandth of
/// itself at most, the same in every record.
pub(crate) fn record(
    experiment: &dyn Experiment,
    depth: Depth,
    rounds: u32,
    of: impl Fn(&str, &Cell) -> Measures,
) -> RunRecord {
    let machine = MachineRecord::default();
    let plan = experiment.plan(&PlanRequest {
        depth,
        machine: &machine,
        seed: 1,
    });
    let mut groups = Vec::new();
    let mut samples = Vec::new();
    for group in plan.groups {
        let mut cells = group.cells.clone();
        cells.push(group.reference.as_twin());
        for round in 0..rounds {
            for (slot, cell) in cells.iter().enumerate() {
                let measures = of(&group.name, cell);
                let noise = 1.0 + 0.001 * jitter(round, slot);
                let measures = Measures(
                    measures
                        .0
                        .into_iter()
                        .map(|(name, value)| (name, value * noise))
                        .collect(),
                );
                samples.push(Sample {
                    group: group.name.clone(),
                    cell: cell.clone(),
                    round,
                    slot: slot as u32,
                    at_us: samples.len() as u64,
                    measures,
                });
            }
        }
        groups.push(GroupRecord {
            name: group.name,
            reference: group.reference,
            metric: group.metric.to_owned(),
            rounds,
            stopped: StopReason::Rounds,
        });
    }
    RunRecord {
        schema: 1,
        id: "synthetic".to_owned(),
        experiment: experiment.name().to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        seconds: 1.0,
        version: "0".to_owned(),
        argv: Vec::new(),
        seed: 1,
        depth: depth.name().to_owned(),
        machine,
        noise: NoiseRecord::default(),
        groups,
        skipped: plan.skipped,
        samples,
    }
}

/// Between -1 and 1, by round and place, without a pattern that a paired test could mistake for an effect.
fn jitter(round: u32, slot: usize) -> f64 {
    let mut x = (u64::from(round) << 32 | slot as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x >> 11) as f64 / (1u64 << 53) as f64).mul_add(2.0, -1.0)
}

/// The run as it is when it ends early: none of its samples, `step` of them, twice as many, and so on.
pub(crate) fn cut(full: &RunRecord, step: usize) -> impl Iterator<Item = RunRecord> {
    (0..full.samples.len()).step_by(step).map(|keep| {
        let mut run = full.clone();
        run.samples.truncate(keep);
        run
    })
}

/// The run without a contestant.
pub(crate) fn without(full: &RunRecord, contestants: &[&str]) -> RunRecord {
    let mut run = full.clone();
    run.samples
        .retain(|sample| !contestants.contains(&sample.cell.contestant.as_str()));
    run
}

/// The run with one value for every measure of each `step`-th sample, the first of which is number `from`.
pub(crate) fn spoiled(full: &RunRecord, from: usize, step: usize, value: f64) -> RunRecord {
    let mut run = full.clone();
    for sample in run.samples.iter_mut().skip(from).step_by(step) {
        sample.measures.0.values_mut().for_each(|v| *v = value);
    }
    run
}

/// Whether two threads can run at once: neither they nor a helper are planned otherwise. A line on stderr says so.
pub(crate) fn has_two_cpus() -> bool {
    let there = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !there {
        eprintln!("skipped: there is one CPU, so neither two threads nor a helper are planned");
    }
    there
}
