//! `sim --mrc`: curves over sizes, exact and sampled, with the samples' error.

use std::io::Write;

use serde::Serialize;

use super::args::What;
use super::work::{load, sim_fault, simulate};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use larder_sim::{
    Difference, Job, Loaded, Row, Size, Watch, difference, fixed_rate, fixed_size, lru_curve,
    sample, sweep,
};

/// Blocks that a sample should have, if there are this many.
const SAMPLED: f64 = 16384.0;
/// Blocks that SHARDS of fixed size keeps.
const KEPT: usize = 8192;
/// Seed of the samples: two runs take the same.
const SEED: u64 = 0x6c61_7264_6572;
/// Points of a curve when no sizes are asked for.
const POINTS: usize = 24;

/// One way to get a curve.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CurveRow {
    pub(super) trace: String,
    pub(super) policy: String,
    pub(super) method: String,
    /// Share of the blocks that were looked at.
    pub(super) rate: f64,
    pub(super) sizes: Vec<usize>,
    pub(super) hit_percent: Vec<f64>,
    /// From the exact curve of the same rule, in points of hit percent.
    pub(super) error_points: Option<Difference>,
}

/// Sizes that rise by a fixed ratio, from a two-thousandth of the blocks to all.
fn spread(blocks: u32) -> Vec<usize> {
    let (least, most) = (
        (f64::from(blocks) / 2000.0).max(1.0),
        f64::from(blocks).max(1.0),
    );
    let step = (most / least).powf(1.0 / (POINTS - 1) as f64);
    let mut sizes: Vec<usize> = (0..POINTS)
        .map(|n| (least * step.powi(n as i32)).round() as usize)
        .collect();
    sizes.push(blocks as usize);
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|s| *s <= blocks as usize && *s > 0);
    sizes
}

fn percent(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|r| r * 100.0).collect()
}

pub(super) struct Asked {
    pub(super) rate: Option<f64>,
    pub(super) sampled_only: bool,
    pub(super) sizes: Option<Vec<Size>>,
}

/// Curves of all traces.
pub(super) fn all(global: &Global, what: &What, asked: &Asked) -> Result<Vec<CurveRow>, Failure> {
    if let Some(rate) = asked.rate.filter(|r| !(*r > 0.0 && *r <= 1.0)) {
        return Err(Failure::usage(format!(
            "--mrc-rate {rate}: a share is above 0 and at most 1"
        )));
    }
    let policies = what.policies()?;
    let mut curves = Vec::new();
    for path in &what.traces {
        let trace = load(global, what, path)?;
        let sizes = match &asked.sizes {
            None => spread(trace.counts.blocks),
            Some(sizes) => {
                let mut sizes: Vec<usize> =
                    sizes.iter().map(|s| s.of(trace.counts.blocks)).collect();
                sizes.sort_unstable();
                sizes.dedup();
                sizes
            }
        };
        let rate = asked
            .rate
            .unwrap_or_else(|| (SAMPLED / f64::from(trace.counts.blocks)).clamp(0.001, 1.0));
        one(
            global,
            what,
            &trace,
            &sizes,
            &policies,
            rate,
            asked.sampled_only,
            &mut curves,
        )?;
    }
    Ok(curves)
}

#[allow(clippy::too_many_arguments)]
fn one(
    global: &Global,
    what: &What,
    trace: &Loaded,
    sizes: &[usize],
    policies: &[String],
    rate: f64,
    sampled_only: bool,
    curves: &mut Vec<CurveRow>,
) -> Outcome {
    let row = |policy: &str, method: &str, rate: f64, hits: Vec<f64>, truth: Option<&Vec<f64>>| {
        CurveRow {
            trace: trace.name.clone(),
            policy: policy.to_owned(),
            method: method.to_owned(),
            rate,
            sizes: sizes.to_vec(),
            error_points: truth.map(|t| difference(&hits, t)),
            hit_percent: hits,
        }
    };
    let lru = percent(&lru_curve(trace).hit_ratios(sizes));
    curves.push(row("lru", "exact, one pass", 1.0, lru.clone(), None));
    let shards = percent(&fixed_rate(trace, rate, SEED).hit_ratios(sizes));
    curves.push(row("lru", "SHARDS, fixed rate", rate, shards, Some(&lru)));
    let (curve, last) = fixed_size(trace, KEPT, SEED);
    let shards = percent(&curve.hit_ratios(sizes));
    curves.push(row("lru", "SHARDS, 8192 blocks", last, shards, Some(&lru)));
    let mini = sample(trace, rate, SEED).map_err(sim_fault)?;
    for policy in policies {
        let jobs = |size: &dyn Fn(usize) -> usize| -> Vec<Job> {
            sizes
                .iter()
                .map(|s| Job {
                    policy: policy.clone(),
                    size: size(*s),
                })
                .collect()
        };
        let exact = match (policy.as_str(), sampled_only) {
            ("lru", _) => Some(lru.clone()),
            (_, true) => None,
            (_, false) => {
                let asked = vec![String::new(); sizes.len()];
                let rows = simulate(global, what, trace, &jobs(&|s| s), &asked, false)?;
                Some(rows.iter().map(Row::hit_percent).collect())
            }
        };
        if let Some(exact) = exact.as_ref().filter(|_| policy != "lru") {
            curves.push(row(
                policy,
                "exact, one simulation a size",
                1.0,
                exact.clone(),
                None,
            ));
        }
        let small = sweep(
            &mini.trace,
            &jobs(&|s| mini.size(s)),
            what.threads(),
            &Watch::default(),
        )
        .map_err(sim_fault)?;
        let small: Vec<f64> = small.iter().map(|o| mini.hit_ratio(&o.tally)).collect();
        curves.push(row(
            policy,
            "miniature simulation",
            mini.rate,
            percent(&small),
            exact.as_ref(),
        ));
    }
    Ok(())
}

pub(super) fn print(
    global: &Global,
    curves: &[CurveRow],
    csv: bool,
    out: &mut dyn Write,
) -> Outcome {
    if global.json {
        for curve in curves {
            serde_json::to_writer(&mut *out, curve)?;
            writeln!(out)?;
        }
        return Ok(());
    }
    if csv {
        writeln!(out, "trace,policy,method,rate,size,hit_percent")?;
        for c in curves {
            let trace = c.trace.replace('"', "\"\"");
            for (size, hit) in c.sizes.iter().zip(&c.hit_percent) {
                writeln!(
                    out,
                    "\"{trace}\",{},\"{}\",{},{size},{hit}",
                    c.policy, c.method, c.rate
                )?;
            }
        }
        return Ok(());
    }
    for curve in curves {
        let name = crate::cli::output::plain(&curve.trace);
        write!(out, "{name}: {}, {}", curve.policy, curve.method)?;
        if curve.rate < 1.0 {
            write!(out, " ({:.2} % of the blocks)", curve.rate * 100.0)?;
        }
        writeln!(out)?;
        for points in curve
            .sizes
            .iter()
            .zip(&curve.hit_percent)
            .collect::<Vec<_>>()
            .chunks(6)
        {
            let cells: Vec<String> = points
                .iter()
                .map(|(size, hit)| format!("{size:>9} {hit:6.2}"))
                .collect();
            writeln!(out, "  {}", cells.join(" |"))?;
        }
        match &curve.error_points {
            Some(e) => writeln!(
                out,
                "  off the exact curve by {:.2} points in the mean, {:.2} at most ({} sizes)",
                e.mean, e.most, e.points
            )?,
            None if curve.method.starts_with("exact") => {}
            None => writeln!(out, "  not compared with an exact curve")?,
        }
    }
    writeln!(out, "Each pair: size in blocks, hits in % of the uses.")?;
    Ok(())
}
