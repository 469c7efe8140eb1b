//! `sim`: caches over traces.

pub(in crate::cli) mod args;
mod bar;
mod batch;
mod curves;
mod page;
mod print;
mod shard;
mod work;

use std::io::Write;
use std::path::Path;

pub(super) use args::Sim;
pub(in crate::cli) use bar::Progress;
pub(in crate::cli) use work::{format_name, sim_fault};

use work::{load, simulate};

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output;
use larder_sim::workload::MADE;
use larder_sim::{Job, Knee, Row, Trace, choices, lru_curve, stream};

pub(super) fn run(global: &Global, args: &Sim, out: &mut dyn Write) -> Outcome {
    if let Some(batch) = &args.batch {
        return batch::run(global, batch, out);
    }
    if args.rules {
        return list(global, out);
    }
    if args.workloads {
        return workloads(global, out);
    }
    if args.what.traces.is_empty() {
        return Err(Failure::usage(
            "sim needs a trace: larder sim FILE, or a workload: larder sim zipf: (see larder sim --help)",
        ));
    }
    if args.mrc {
        return mrc(global, args, out);
    }
    let (rows, bends) = rows(global, args)?;
    if let Some(path) = &args.html {
        page::write(&rows, &bends, &[], path)?;
        output::hint(global, &format!("wrote {}", path.display()));
    }
    print::rows(global, &rows, &bends, args.csv, out)
}

fn mrc(global: &Global, args: &Sim, out: &mut dyn Write) -> Outcome {
    let sizes = args
        .what
        .size
        .as_ref()
        .map(|_| args.what.sizes())
        .transpose()?;
    let asked = curves::Asked {
        rate: args.mrc_rate,
        sampled_only: args.mrc_sampled,
        sizes,
    };
    let curves = curves::all(global, &args.what, &asked)?;
    let bends = curves::bends(&curves, args.what.reading.block_size);
    if let Some(path) = &args.html {
        page::write(&[], &bends, &curves, path)?;
        output::hint(global, &format!("wrote {}", path.display()));
    }
    curves::print(global, &curves, &bends, args.csv, out)
}

fn list(global: &Global, out: &mut dyn Write) -> Outcome {
    let all = choices();
    if global.json {
        let rules: Vec<_> = all
            .iter()
            .map(|c| serde_json::json!({ "name": c.name, "about": c.about, "source": c.source }))
            .collect();
        return output::print_json(out, &serde_json::json!({ "schema": 1, "rules": rules }));
    }
    for choice in all {
        writeln!(
            out,
            "{:14} {} ({})",
            choice.name, choice.about, choice.source
        )?;
    }
    Ok(())
}

/// What can be named where a trace stands, with the parameters' defaults.
fn workloads(global: &Global, out: &mut dyn Write) -> Outcome {
    if global.json {
        let all: Vec<_> = MADE
            .iter()
            .map(|made| {
                let parameters: Vec<_> = made
                    .parameters
                    .iter()
                    .map(|p| {
                        serde_json::json!({
                            "name": p.name, "default": p.default, "allowed": p.range.to_string(), "about": p.about,
                        })
                    })
                    .collect();
                serde_json::json!({ "name": made.name, "about": made.about, "parameters": parameters })
            })
            .collect();
        return output::print_json(out, &serde_json::json!({ "schema": 1, "workloads": all }));
    }
    for made in &MADE {
        let defaults: Vec<String> = made
            .parameters
            .iter()
            .map(|p| format!("{}={}", p.name, p.default))
            .collect();
        writeln!(out, "{}:{}", made.name, defaults.join(","))?;
        writeln!(out, "  {}", made.about)?;
        for p in made.parameters {
            writeln!(out, "    {:14} {}; {}", p.name, p.about, p.range)?;
        }
    }
    writeln!(
        out,
        "What is not named is as shown: zipf: and zipf:alpha=0.9 are traces, too. The same name is the same trace everywhere."
    )?;
    Ok(())
}

/// Where the curve of a trace under LRU bends.
struct Bend {
    trace: String,
    knee: Option<Knee>,
    /// Bytes of a block.
    block_size: u32,
}

/// Runs every trace, rule and size.
fn rows(global: &Global, args: &Sim) -> Result<(Vec<Row>, Vec<Bend>), Failure> {
    let (mut rows, mut bends) = (Vec::new(), Vec::new());
    let policies = args.what.policies()?;
    let sizes = args.what.sizes()?;
    for path in &args.what.traces {
        if args.stream {
            rows.extend(streamed(global, args, path)?);
            continue;
        }
        let trace = load(global, &args.what, path)?;
        let mut jobs = Vec::new();
        let mut asked = Vec::new();
        for size in &sizes {
            let blocks = args.what.blocks(size, trace.counts.blocks)?;
            for policy in &policies {
                jobs.push(Job {
                    policy: policy.clone(),
                    size: blocks,
                });
                asked.push(size.text().to_owned());
            }
        }
        rows.extend(simulate(
            global, &args.what, &trace, &jobs, &asked, args.times,
        )?);
        bends.push(Bend {
            knee: lru_curve(&trace).knee(),
            trace: trace.name,
            block_size: args.what.reading.block_size,
        });
    }
    Ok((rows, bends))
}

fn streamed(global: &Global, args: &Sim, path: &Path) -> Result<Vec<Row>, Failure> {
    let sizes = args.what.sizes()?;
    if let Some(share) = sizes.iter().find(|s| s.is_share()) {
        return Err(Failure::usage(format!(
            "--stream does not know how many blocks {} of the trace are before it has read it; give --size in blocks",
            share.text()
        )));
    }
    let mut policies = args.what.policies()?;
    let asked = args.what.policy.as_ref();
    if asked.is_none_or(|asked| asked.iter().any(|p| p == "all")) {
        // All that are possible.
        policies.retain(|p| p != "opt");
    }
    let mut jobs = Vec::new();
    for size in &sizes {
        let size = args.what.blocks(size, 0)?;
        jobs.extend(policies.iter().map(|policy| Job {
            policy: policy.clone(),
            size,
        }));
    }
    let trace = Trace::open(path, &args.what.reading.options()?).map_err(sim_fault)?;
    let (name, format) = (
        trace.name().to_owned(),
        format_name(trace.format()).to_owned(),
    );
    let mut bar = Progress::reading(global, path);
    let (outcomes, counts) = stream(trace, &jobs, args.what.threads(), |trace| {
        bar.at(trace.meter())
    })
    .map_err(sim_fault)?;
    bar.end();
    if args.times {
        print::times(
            (counts.uses + counts.readahead + counts.removed) as usize,
            &outcomes,
        );
    }
    Ok(outcomes
        .into_iter()
        .map(|outcome| Row {
            trace: name.clone(),
            format: format.clone(),
            counts,
            asked: outcome.job.size.to_string(),
            policy: outcome.job.policy,
            size: outcome.job.size,
            tally: outcome.tally,
        })
        .collect())
}
