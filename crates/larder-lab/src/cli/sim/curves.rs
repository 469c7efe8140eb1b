//! `sim --mrc`: curves over sizes, exact and sampled, with the samples' error.

use std::io::Write;

use serde::Serialize;

use super::args::What;
use super::print;
use super::work::{Bend, bytes_of_a_block, load, refuse_bytes, sim_fault, simulate};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output::{self, plain};
use larder_sim::{
    DEFAULT, Difference, Job, Knee, Loaded, Row, Size, Watch, difference, fixed_rate, fixed_size,
    lru_curve, sample, sweep,
};

/// Blocks that a sample should have, if there are this many.
const SAMPLED: f64 = 16384.0;
/// Blocks that SHARDS of fixed size keeps.
const KEPT: usize = 8192;
/// Seed of the samples: two runs take the same.
pub(super) const SEED: u64 = 0x6c61_7264_6572;
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
    /// Where an exact curve of LRU bends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) knee: Option<Knee>,
    /// Bytes of a block, if all have as many.
    #[serde(skip)]
    pub(super) block_size: Option<u32>,
}

impl CurveRow {
    pub(super) fn is_exact(&self) -> bool {
        self.method.starts_with("exact")
    }
}

/// Rules of curves when none are asked for.
const SHOWN: [&str; 5] = ["opt", DEFAULT, "s3-fifo", "arc", "lru"];

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
    let policies = what.policies_or(&SHOWN)?;
    let mut curves = Vec::new();
    for path in &what.traces {
        let trace = load(global, what, path)?;
        let sizes = match &asked.sizes {
            None => spread(trace.counts.blocks),
            Some(sizes) => {
                refuse_bytes(what, &trace.name, trace.format, &trace.counts, sizes)?;
                let mut sizes: Vec<usize> = sizes
                    .iter()
                    .map(|s| what.blocks(s, trace.counts.blocks))
                    .collect::<Result<_, _>>()?;
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
    let block_size = bytes_of_a_block(what, trace.format, &trace.counts);
    let row = |policy: &str, method: &str, rate: f64, hits: Vec<f64>, truth: Option<&Vec<f64>>| {
        CurveRow {
            trace: trace.name.clone(),
            policy: policy.to_owned(),
            method: method.to_owned(),
            rate,
            sizes: sizes.to_vec(),
            error_points: truth.map(|t| difference(&hits, t)),
            hit_percent: hits,
            knee: None,
            block_size,
        }
    };
    let curve = lru_curve(trace).map_err(sim_fault)?;
    let lru = percent(&curve.hit_ratios(sizes));
    curves.push(CurveRow {
        knee: curve.knee(),
        ..row("lru", "exact, one pass", 1.0, lru.clone(), None)
    });
    let sampled = fixed_rate(trace, rate, SEED).map_err(sim_fault)?;
    let shards = percent(&sampled.hit_ratios(sizes));
    curves.push(row("lru", "SHARDS, fixed rate", rate, shards, Some(&lru)));
    let (curve, last) = fixed_size(trace, KEPT, SEED).map_err(sim_fault)?;
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

/// Each rule once, by the best method that there is.
pub(super) fn each_rule_once<'a>(curves: &[&'a CurveRow]) -> Vec<&'a CurveRow> {
    let exact = curves.iter().filter(|c| c.is_exact());
    let mut once: Vec<&CurveRow> = Vec::new();
    for &curve in exact.chain(curves) {
        if !once.iter().any(|o| o.policy == curve.policy) {
            once.push(curve);
        }
    }
    once
}

/// Where the curves bend.
pub(super) fn bends(curves: &[CurveRow]) -> Vec<Bend> {
    let exact = curves.iter().filter(|c| c.policy == "lru" && c.is_exact());
    exact
        .map(|curve| Bend {
            trace: curve.trace.clone(),
            knee: curve.knee,
            rate: curve.rate,
            block_size: curve.block_size,
        })
        .collect()
}

pub(super) fn print(
    global: &Global,
    curves: &[CurveRow],
    bends: &[Bend],
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
    let mut of_trace = curves;
    while let Some(first) = of_trace.first() {
        let len = of_trace.iter().take_while(|c| c.trace == first.trace);
        let (here, rest) = of_trace.split_at(len.count());
        of_trace = rest;
        writeln!(
            out,
            "{}: hits in % of the uses, by blocks",
            plain(&first.trace)
        )?;
        let mut shown = each_rule_once(&here.iter().collect::<Vec<_>>());
        let last = |c: &CurveRow| c.hit_percent.iter().sum::<f64>();
        shown.sort_by(|a, b| last(b).total_cmp(&last(a)));
        write!(out, "{}", drawing(&shown))?;
        table(&shown, out)?;
        errors(here, out)?;
        writeln!(out)?;
    }
    for line in print::best_sizes(bends) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Lines of a drawing.
const HIGH: usize = 16;
/// Columns of a size.
const WIDE: usize = 2;
/// What the rules are drawn with, the best one first.
const PENS: &[u8] = b"123456789abcdefghijklmnopqrstuvwxyz";

/// Hits upwards, sizes to the right. Where several rules meet, the best one's mark is seen.
fn drawing(shown: &[&CurveRow]) -> String {
    let most = shown.iter().flat_map(|c| &c.hit_percent).copied();
    let most = most.fold(1.0, f64::max);
    let sizes = shown.first().map_or(0, |c| c.sizes.len());
    let mut field = vec![vec![b' '; sizes * WIDE]; HIGH];
    for (curve, pen) in shown.iter().zip(PENS).rev() {
        for (at, hit) in curve.hit_percent.iter().enumerate() {
            let up = (hit / most * (HIGH - 1) as f64).round() as usize;
            field[HIGH - 1 - up.min(HIGH - 1)][at * WIDE] = *pen;
        }
    }
    let mut text = String::new();
    for (line, marks) in field.iter().enumerate() {
        let value = most * (HIGH - 1 - line) as f64 / (HIGH - 1) as f64;
        let marks = String::from_utf8_lossy(marks);
        text += format!("{value:6.1} |{marks}").trim_end();
        text += "\n";
    }
    text + &format!("       +{}\n", "-".repeat(sizes * WIDE))
}

/// Sizes down, rules across.
fn table(shown: &[&CurveRow], out: &mut dyn Write) -> Outcome {
    let Some(first) = shown.first() else {
        return Ok(());
    };
    let pens = PENS.iter().map(|&pen| format!("{} ", char::from(pen)));
    let mut heads = vec!["blocks".to_owned()];
    heads.extend(
        shown
            .iter()
            .zip(pens.chain(std::iter::repeat(String::new())))
            .map(|(c, pen)| pen + &c.policy),
    );
    let rows = first.sizes.iter().enumerate().map(|(at, size)| {
        let hits = shown.iter().map(|c| format!("{:.2}", c.hit_percent[at]));
        std::iter::once(size.to_string()).chain(hits).collect()
    });
    output::table(heads, rows.collect(), 0..usize::MAX, None, out)
}

/// How far the quicker ways to get these curves are off.
fn errors(curves: &[CurveRow], out: &mut dyn Write) -> Outcome {
    for curve in curves.iter().filter(|c| !c.is_exact()) {
        let CurveRow { policy, method, .. } = curve;
        write!(
            out,
            "{policy}, {method} ({:.2} % of the blocks): ",
            curve.rate * 100.0
        )?;
        match &curve.error_points {
            Some(e) => writeln!(
                out,
                "off by {:.2} points in the mean, {:.2} at most",
                e.mean, e.most
            )?,
            None => writeln!(out, "not compared with an exact curve")?,
        }
    }
    Ok(())
}
