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
pub(in crate::cli) use args::bytes;
pub(in crate::cli) use bar::Progress;
pub(in crate::cli) use work::{format_name, sim_fault};

use work::{load, simulate};

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output;
use larder_sim::workload::MADE;
use larder_sim::{
    Counts, FixedSize, Job, Knee, Row, Size, Trace, choices, fixed_size, knows_the_future, stream,
};

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
    let Simulated {
        rows,
        bends,
        failed,
    } = simulated(global, args)?;
    if let Some(path) = &args.html {
        page::write(&rows, &bends, &[], path)?;
        output::hint(global, &format!("wrote {}", path.display()));
    }
    print::rows(global, &rows, &bends, args.csv, out)?;
    failed.map_or(Ok(()), Err)
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

/// What came of the traces, and the failure of the last one that could not be read.
struct Simulated {
    rows: Vec<Row>,
    bends: Vec<Bend>,
    failed: Option<Failure>,
}

/// Blocks that the sample of a curve keeps: traces of fewer are looked at whole.
const SAMPLED: usize = 8192;

/// Runs every trace, rule and size. A trace is kept in memory only where a rule must know its future. One that cannot be read does
/// not stop the others: its failure comes with their rows.
fn simulated(global: &Global, args: &Sim) -> Result<Simulated, Failure> {
    let (mut rows, mut bends, mut failed) = (Vec::new(), Vec::new(), None);
    let mut policies = args.what.policies()?;
    let asked = args.what.policy.as_ref();
    if args.stream && asked.is_none_or(|asked| asked.iter().any(|p| p == "all")) {
        // All that are possible.
        policies.retain(|p| !knows_the_future(p));
    }
    let sizes = args.what.sizes()?;
    let by_share = sizes.iter().any(Size::is_share);
    for path in &args.what.traces {
        let only_once = by_share && path == Path::new("-");
        if args.stream && only_once {
            return Err(Failure::usage(
                "standard input cannot be read twice, first to count its blocks and then to simulate; give --size in blocks",
            ));
        }
        let kept = policies.iter().any(|p| knows_the_future(p)) || only_once;
        let found = if kept && !args.stream {
            loaded(global, args, path, &sizes, &policies)
        } else {
            streamed(global, args, path, &sizes, &policies)
        };
        match found {
            Ok((found, bend)) => {
                rows.extend(found);
                bends.push(bend);
            }
            Err(failure) => {
                if let Some(before) = failed.replace(failure) {
                    before.report();
                }
            }
        }
    }
    match failed {
        Some(failure) if rows.is_empty() => Err(failure),
        failed => Ok(Simulated {
            rows,
            bends,
            failed,
        }),
    }
}

/// Every rule at every size, for a trace of so many blocks, and the sizes as they were asked for.
fn jobs(
    args: &Sim,
    sizes: &[Size],
    policies: &[String],
    blocks: u32,
) -> Result<(Vec<Job>, Vec<String>), Failure> {
    let (mut jobs, mut asked) = (Vec::new(), Vec::new());
    for size in sizes {
        let blocks = args.what.blocks(size, blocks)?;
        for policy in policies {
            jobs.push(Job {
                policy: policy.clone(),
                size: blocks,
            });
            asked.push(size.text().to_owned());
        }
    }
    Ok((jobs, asked))
}

fn loaded(
    global: &Global,
    args: &Sim,
    path: &Path,
    sizes: &[Size],
    policies: &[String],
) -> Result<(Vec<Row>, Bend), Failure> {
    let trace = load(global, &args.what, path)?;
    let (jobs, asked) = jobs(args, sizes, policies, trace.counts.blocks)?;
    let rows = simulate(global, &args.what, &trace, &jobs, &asked, args.times)?;
    let bend = Bend {
        knee: fixed_size(&trace, SAMPLED, curves::SEED).0.knee(),
        trace: trace.name,
        block_size: args.what.reading.block_size,
    };
    Ok((rows, bend))
}

fn streamed(
    global: &Global,
    args: &Sim,
    path: &Path,
    sizes: &[Size],
    policies: &[String],
) -> Result<(Vec<Row>, Bend), Failure> {
    let options = args.what.reading.options()?;
    let open = || Trace::open(path, &options).map_err(sim_fault);
    let blocks = if sizes.iter().any(Size::is_share) {
        let mut bar = Progress::reading(global, path);
        let counts = Counts::of(open()?, |trace| bar.at(trace.meter())).map_err(sim_fault)?;
        bar.end();
        counts.blocks
    } else {
        0
    };
    let (jobs, asked) = jobs(args, sizes, policies, blocks)?;
    let trace = open()?;
    let name = trace.name().to_owned();
    let format = format_name(trace.format());
    let mut bar = Progress::reading(global, path);
    let mut curve = FixedSize::new(SAMPLED, curves::SEED);
    let (outcomes, counts) = stream(trace, &jobs, args.what.threads(), |trace, chunk| {
        bar.at(trace.meter());
        curve.add(chunk);
    })
    .map_err(sim_fault)?;
    bar.end();
    if args.times {
        let records = counts.uses + counts.readahead + counts.removed;
        print::times(records as usize, &outcomes);
    }
    let bend = Bend {
        knee: curve.curve(counts.uses).knee(),
        trace: name.clone(),
        block_size: args.what.reading.block_size,
    };
    Ok((work::rows(outcomes, &asked, &name, format, counts), bend))
}
