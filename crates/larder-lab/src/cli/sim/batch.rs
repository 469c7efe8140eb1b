//! `sim plan`, `sim run`, `sim merge`: a sweep in parts, for batch engines.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::args::{Batch, Merge, Plan as PlanArgs, RunShard, What};
use super::{load, output, print, simulate};
use crate::cli::args::Global;
use crate::cli::failure::{Failure, Outcome};
use crate::sim::{Header, Job, Line, Merger, Plan, PlannedCell, Size, write_part};

pub(super) fn run(global: &Global, batch: &Batch, out: &mut dyn Write) -> Outcome {
    match batch {
        Batch::Plan(args) => plan(global, args, out),
        Batch::Run(args) => run_shard(global, args, out),
        Batch::Merge(args) => merge(global, args, out),
    }
}

fn plan_of(what: &What) -> Result<(Plan, Vec<Size>), Failure> {
    if what.traces.is_empty() {
        return Err(Failure::usage("a sweep needs a trace"));
    }
    let sizes = what.sizes()?;
    let r = &what.reading;
    let options = what.reading.options()?;
    if let Some(path) = what.traces.iter().find(|t| t.as_path() == Path::new("-")) {
        return Err(Failure::usage(format!(
            "standard input ({}) is not there for other shards; name files",
            path.display()
        )));
    }
    Ok((
        Plan {
            traces: what
                .traces
                .iter()
                .map(|t| t.display().to_string())
                .collect(),
            policies: what.policies()?,
            sizes: sizes.iter().map(|s| s.text().to_owned()).collect(),
            reading: format!(
                "{:?} {} {:?} {:?} {} {:?} {:?} {}",
                options.format,
                r.block_size,
                r.columns,
                r.delimiter,
                r.text_ids,
                r.limit,
                r.touches,
                r.tick
            ),
        },
        sizes,
    ))
}

fn plan(global: &Global, args: &PlanArgs, out: &mut dyn Write) -> Outcome {
    let (plan, _) = plan_of(&args.what)?;
    let fingerprint = format!("{:016x}", plan.fingerprint());
    if global.json {
        let cells: Vec<_> = plan
            .cells()
            .map(|c| {
                serde_json::json!({
                    "cell": c.cell, "shard": c.cell % args.shards as usize + 1, "trace": plan.traces[c.trace],
                    "size": plan.sizes[c.size], "policy": plan.policies[c.policy],
                })
            })
            .collect();
        let plan = serde_json::json!({ "schema": 1, "plan": fingerprint, "shards": args.shards, "cells": cells });
        return crate::cli::print_json(out, &plan);
    }
    writeln!(
        out,
        "plan {fingerprint}: {} cells ({} traces, {} sizes, {} rules) in {} shards",
        plan.cells().count(),
        plan.traces.len(),
        plan.sizes.len(),
        plan.policies.len(),
        args.shards
    )?;
    for shard in 1..=args.shards {
        let mut traces: BTreeMap<usize, usize> = BTreeMap::new();
        for cell in plan.shard(shard, args.shards) {
            *traces.entry(cell.trace).or_default() += 1;
        }
        let parts: Vec<String> = traces
            .iter()
            .map(|(t, n)| format!("{} x {n}", output::plain(&plan.traces[*t])))
            .collect();
        writeln!(out, "  shard {shard}/{}: {}", args.shards, parts.join(", "))?;
    }
    Ok(())
}

/// Which shard of how many: the words win over the environment.
fn shard(args: &RunShard, env: impl Fn(&str) -> Option<String>) -> Result<(u32, u32), Failure> {
    let number = |name: &str| -> Result<Option<u32>, Failure> {
        match env(name) {
            None => Ok(None),
            Some(text) => text
                .trim()
                .parse()
                .map(Some)
                .map_err(|_| Failure::usage(format!("{name} is '{text}', which is no number"))),
        }
    };
    if let Some(text) = &args.shard {
        let pair = text
            .split_once('/')
            .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        return match pair {
            Some((k, n)) if (1..=n).contains(&k) => Ok((k, n)),
            _ => Err(Failure::usage(format!(
                "--shard {text}: write K/N with K from 1 to N, for instance 3/16"
            ))),
        };
    }
    let checked = |index: u32, shards: u32, how: &str| {
        if index < shards {
            Ok((index + 1, shards))
        } else {
            Err(Failure::usage(format!(
                "{how}: index {index} is not below the number of shards, {shards}"
            )))
        }
    };
    if let (Some(index), Some(shards)) = (args.index, args.shards) {
        return checked(index, shards, "--index");
    }
    if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
        let least = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
        let shards = match args.shards {
            Some(shards) => shards,
            None => number("SLURM_ARRAY_TASK_COUNT")?.ok_or_else(|| {
                Failure::usage("SLURM_ARRAY_TASK_COUNT is not set; say --shards N")
            })?,
        };
        let index = id.checked_sub(least).ok_or_else(|| {
            Failure::usage("SLURM_ARRAY_TASK_ID is less than SLURM_ARRAY_TASK_MIN")
        })?;
        return checked(index, shards, "Slurm's job array");
    }
    if let Some(index) = number("JOB_COMPLETION_INDEX")? {
        let shards = args.shards.ok_or_else(|| {
            Failure::usage("JOB_COMPLETION_INDEX says which shard this is, but not of how many; say --shards N (the job's completions)")
        })?;
        return checked(index, shards, "JOB_COMPLETION_INDEX");
    }
    Err(Failure::usage(
        "which shard is this? Say --shard K/N, or --index I --shards N, or start it as a Slurm job array or a Kubernetes indexed job",
    ))
}

fn run_shard(global: &Global, args: &RunShard, out: &mut dyn Write) -> Outcome {
    let (k, n) = shard(args, |name| std::env::var(name).ok())?;
    let (plan, sizes) = plan_of(&args.what)?;
    let mut lines = Vec::new();
    let mine: Vec<PlannedCell> = plan.shard(k, n).collect();
    for (t, path) in args.what.traces.iter().enumerate() {
        let cells: Vec<&PlannedCell> = mine.iter().filter(|c| c.trace == t).collect();
        if cells.is_empty() {
            continue;
        }
        let trace = load(global, &args.what, path)?;
        let job = |c: &&PlannedCell| Job {
            policy: plan.policies[c.policy].clone(),
            size: sizes[c.size].of(trace.counts.blocks),
        };
        let jobs: Vec<Job> = cells.iter().map(job).collect();
        let asked: Vec<String> = cells.iter().map(|c| plan.sizes[c.size].clone()).collect();
        let rows = simulate(global, &args.what, &trace, &jobs, &asked, false)?;
        lines.extend(
            cells
                .iter()
                .zip(rows)
                .map(|(c, row)| Line { cell: c.cell, row }),
        );
    }
    let header = Header {
        larder_sim_part: 1,
        plan: plan.fingerprint(),
        shard: k,
        shards: n,
        cells: plan.cells().count(),
    };
    let text = write_part(&header, &lines)?;
    match &args.out {
        None => out.write_all(text.as_bytes())?,
        Some(name) => output::write_file(Path::new(&name.replace("%k", &k.to_string())), &text)?,
    }
    Ok(())
}

fn merge(global: &Global, args: &Merge, out: &mut dyn Write) -> Outcome {
    let mut merger = Merger::default();
    for path in &args.parts {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::io(format!("{name} cannot be read: {e}")))?;
        merger.add(&name, &text).map_err(Failure::refused)?;
    }
    let rows = merger.finish().map_err(Failure::refused)?;
    if let Some(path) = &args.html {
        super::page::write(&rows, &[], path)?;
    }
    print::rows(global, &rows, args.csv, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        run: RunShard,
    }

    fn asked(words: &[&str], env: &[(&str, &str)]) -> Result<(u32, u32), Failure> {
        let words = Words::try_parse_from([&["run", "t"], words].concat()).unwrap();
        shard(&words.run, |name| {
            env.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn shards_come_from_words_slurm_and_kubernetes() {
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "5"),
            ("SLURM_ARRAY_TASK_MIN", "3"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
        ];
        assert_eq!(asked(&["--shard", "2/3"], &slurm).unwrap(), (2, 3));
        assert_eq!(
            asked(&["--index", "0", "--shards", "3"], &slurm).unwrap(),
            (1, 3)
        );
        assert_eq!(asked(&[], &slurm).unwrap(), (3, 4));
        assert_eq!(
            asked(&["--shards", "8"], &[("JOB_COMPLETION_INDEX", "7")]).unwrap(),
            (8, 8)
        );
        for (words, env) in [
            (&["--shard", "0/3"][..], &[][..]),
            (&["--shard", "4/3"], &[]),
            (&["--shard", "x"], &[]),
            (&["--index", "3", "--shards", "3"], &[]),
            (&[], &[]),
            (&[], &[("JOB_COMPLETION_INDEX", "7")]),
            (
                &[],
                &[
                    ("SLURM_ARRAY_TASK_ID", "9"),
                    ("SLURM_ARRAY_TASK_COUNT", "4"),
                ],
            ),
            (&["--shards", "8"], &[("JOB_COMPLETION_INDEX", "x")]),
        ] {
            assert!(asked(words, env).is_err(), "{words:?} {env:?}");
        }
    }
}
