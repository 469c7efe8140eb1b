//! Records of runs, made up from a fuzzer's bytes.

use arbitrary::{Arbitrary, Result, Unstructured};
use larder_lab::measure::{Depth, Experiment, PlanRequest};
use larder_lab::model::{
    GroupRecord, MachineRecord, Measures, NoiseRecord, RunRecord, Sample, Skipped, StopReason,
};
use larder_lab::store::{SCHEMA, id_of};

/// Most groups, cells of a group and rounds that a made-up record has, to keep one input fast.
const MOST: (usize, usize, usize) = (6, 12, 9);

/// A made-up run of one of the experiments.
#[derive(Debug)]
pub struct MadeUp(pub RunRecord);

/// Numbers that belong together, as a worker might report them: the same for the same cell up to a few percent.
/// Short inputs must yield whole runs, so what is plausible comes from a generator (xorshift, Marsaglia 2003).
struct Plausible(u64);

impl Plausible {
    fn next(&mut self, level: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let percent = (self.0 % 1000) as f64 / 100.0;
        level * (1.0 + percent / 100.0)
    }
}

/// A number that no worker should report, but a stored run may hold.
fn odd(u: &mut Unstructured<'_>) -> Result<f64> {
    Ok(match u.int_in_range(0..=5_u8)? {
        0 => 0.0,
        1 => -f64::from(u.arbitrary::<u16>()?),
        2 => f64::MAX,
        3 => f64::MIN_POSITIVE,
        4 => f64::from(u.arbitrary::<u16>()?),
        _ => {
            let any = u.arbitrary::<f64>()?;
            if any.is_finite() { any } else { 1.0 }
        }
    })
}

fn depth(u: &mut Unstructured<'_>) -> Result<Depth> {
    Ok(if u.arbitrary()? {
        Depth::Quick
    } else {
        Depth::Full
    })
}

fn stopped(u: &mut Unstructured<'_>) -> Result<StopReason> {
    Ok(*u.choose(&[
        StopReason::Precise,
        StopReason::Rounds,
        StopReason::NoiseSteady,
        StopReason::TimeCap,
        StopReason::Interrupted,
        StopReason::NothingToRun,
    ])?)
}

/// A run of `experiment`: cells of its own plan with made-up measures, some missing.
pub fn run_of(experiment: &dyn Experiment, u: &mut Unstructured<'_>) -> Result<RunRecord> {
    let depth = depth(u)?;
    let machine = MachineRecord::default();
    let plan = experiment.plan(&PlanRequest {
        depth,
        machine: &machine,
        seed: 1,
    });
    let mut run = RunRecord {
        schema: SCHEMA,
        id: String::new(),
        experiment: experiment.name().to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        seconds: 1.0,
        version: String::new(),
        argv: Vec::new(),
        seed: 1,
        depth: depth.name().to_owned(),
        machine,
        noise: NoiseRecord::default(),
        groups: Vec::new(),
        skipped: Vec::new(),
        samples: Vec::new(),
    };
    let metrics = experiment.metrics();
    let first = u.choose_index(plan.groups.len().max(1))?;
    for group in plan
        .groups
        .iter()
        .cycle()
        .skip(first)
        .take(MOST.0.min(plan.groups.len()))
    {
        let rounds = u.int_in_range(0..=MOST.2)?;
        let mut cells = vec![group.reference.clone(), group.reference.as_twin()];
        let from = u.choose_index(group.cells.len().max(1))?;
        cells.extend(group.cells.iter().skip(from).take(MOST.1).cloned());
        // Most groups are as a healthy machine would leave them; some have gaps, some odd numbers.
        let complete = u.ratio(3, 4)?;
        let healthy = u.ratio(3, 4)?;
        let mut plausible = Plausible(u.arbitrary::<u64>()? | 1);
        for round in 0..rounds {
            for (slot, cell) in cells.iter().enumerate() {
                if !complete && u.ratio(1, 4)? {
                    continue;
                }
                let mut measures = Measures::new();
                for metric in metrics {
                    if complete || u.ratio(3, 4)? {
                        // Settings cost less and less up to a point and then more, as sweeps do.
                        let level = (slot as f64 - 4.0).powi(2) + 10.0;
                        let value = if healthy || u.ratio(7, 8)? {
                            plausible.next(level)
                        } else {
                            odd(u)?
                        };
                        measures = measures.with(metric.name, value);
                    }
                }
                run.samples.push(Sample {
                    group: group.name.clone(),
                    cell: cell.clone(),
                    round: u32::try_from(round).unwrap_or_default(),
                    slot: u32::try_from(slot).unwrap_or_default(),
                    at_us: run.samples.len() as u64,
                    measures,
                });
            }
        }
        run.groups.push(GroupRecord {
            name: group.name.clone(),
            reference: group.reference.clone(),
            metric: group.metric.to_owned(),
            rounds: u32::try_from(rounds).unwrap_or_default(),
            stopped: stopped(u)?,
        });
    }
    if u.arbitrary()? {
        run.skipped.push(Skipped {
            what: u.arbitrary()?,
            why: u.arbitrary()?,
        });
    }
    run.id = id_of(&run);
    Ok(run)
}

impl<'a> Arbitrary<'a> for MadeUp {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let all = larder_lab::experiments::all();
        let which = u.choose_index(all.len())?;
        run_of(all[which].as_ref(), u).map(Self)
    }
}
