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

pub(super) use args::Sim;
pub(in crate::cli) use args::bytes;
pub(in crate::cli) use bar::Progress;
pub(in crate::cli) use work::{format_name, sim_fault};

use work::{Bend, How, Wanted, rows_of};

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output;
use super::settings::{CacheChoice, write_cache};
use crate::report::number;
use larder_sim::workload::MADE;
use larder_sim::{DEFAULT, Row, choices};

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
    let one = args.what.traces.len() == 1 && args.what.sizes()?.len() == 1;
    if args.settings.is_some() && !one {
        return Err(Failure::usage(
            "--settings takes the rule of one trace at one --size; name one of each",
        ));
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
    if let Some(path) = &args.settings {
        let block_size = bends.first().and_then(|bend| bend.block_size);
        let block_size = block_size.ok_or_else(|| {
            Failure::usage(
                "--settings: a block cache has blocks of one size, and those of the trace are objects with sizes of their own",
            )
        })?;
        let choice = cache_choice(&rows, block_size)?;
        write_cache(path, &choice)?;
        output::hint(global, &format!("wrote {}", path.display()));
    }
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
    let bends = curves::bends(&curves);
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

/// The best of those rules that a block cache has, as the answer names it: under a modelled disk the one that is done first, else the
/// one with the fewest misses; of equal ones LRU, then the default, then the first.
fn cache_choice(rows: &[Row], block_size: u32) -> Result<CacheChoice, Failure> {
    let known = |row: &&Row| larder_policy::rules().iter().any(|r| r.name == row.policy);
    let order = |row: &&Row| (row.tally.misses, row.policy != "lru", row.policy != DEFAULT);
    let known = || rows.iter().filter(known);
    let on_disk = print::first_on_disk(known());
    let best = on_disk.or_else(|| known().min_by_key(order));
    let best = best.ok_or_else(|| {
        let known: Vec<_> = larder_policy::rules().iter().map(|r| r.name).collect();
        Failure::usage(format!(
            "--settings: a block cache has none of these rules; simulate one of {}",
            known.join(", ")
        ))
    })?;
    let (what, rank) = match best.disk {
        Some(disk) => {
            let seconds = number::number(disk.total_s, "s");
            (format!("{seconds} of the modelled disk"), "least")
        }
        None => (format!("{:.2} % hits", best.hit_percent()), "most"),
    };
    Ok(CacheChoice {
        policy: best.policy.clone(),
        bytes: best.size as u64 * u64::from(block_size),
        because: format!(
            "{what} on {} with {} blocks, the {rank} of {} rules",
            best.trace,
            best.size,
            known().count()
        ),
    })
}

/// What came of the traces, and the failure of the last one that could not be read.
struct Simulated {
    rows: Vec<Row>,
    bends: Vec<Bend>,
    failed: Option<Failure>,
}

/// Runs every trace, rule and size. One that cannot be read does not stop the others: its failure comes with their rows.
fn simulated(global: &Global, args: &Sim) -> Result<Simulated, Failure> {
    let (mut rows, mut bends, mut failed) = (Vec::new(), Vec::new(), None);
    let policies = args.what.policies(args.stream)?;
    let sizes = args.what.sizes()?;
    let every_rule = |size| policies.iter().map(move |policy| Wanted { policy, size });
    let wanted: Vec<Wanted<'_>> = sizes.iter().flat_map(every_rule).collect();
    let how = How {
        stream: args.stream,
        times: args.times,
        knee: true,
    };
    for path in &args.what.traces {
        match rows_of(global, &args.what, path, &wanted, how) {
            Ok((found, bend)) => {
                rows.extend(found);
                bends.extend(bend);
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
