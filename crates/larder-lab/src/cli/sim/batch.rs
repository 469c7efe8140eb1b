//! `sim plan`, `sim run`, `sim merge`: a sweep in parts, for batch engines.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use super::args::{Batch, Merge, Plan as PlanArgs, RunShard, What};
use super::print;
use super::work::{How, Wanted, called, only_once, rows_of};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output;
use larder_sim::{Header, Line, MOST_PART_BYTES, Merger, Plan, PlannedCell, Size, write_part};

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
    if let Some(path) = what.traces.iter().find(|path| only_once(path)) {
        return Err(Failure::usage(format!(
            "{} is no file, so it is not there for other shards; name files",
            called(path)
        )));
    }
    Ok((
        Plan {
            traces: what
                .traces
                .iter()
                .map(|t| t.display().to_string())
                .collect(),
            policies: what.policies(false)?,
            sizes: sizes.iter().map(|s| s.text().to_owned()).collect(),
            reading: format!(
                "{:?} {} {:?} {:?} {} {:?} {:?} {} {:?} {:?}",
                options.format,
                r.block_size,
                r.columns,
                r.delimiter,
                r.text_ids,
                r.limit,
                r.touches,
                r.tick,
                r.mapped(),
                what.disk
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
        return output::print_json(out, &plan);
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

fn run_shard(global: &Global, args: &RunShard, out: &mut dyn Write) -> Outcome {
    let (k, n) = super::shard::of(args, |name| {
        std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
    })?;
    let (plan, sizes) = plan_of(&args.what)?;
    let mut lines = Vec::new();
    let mine: Vec<PlannedCell> = plan.shard(k, n).collect();
    for (t, path) in args.what.traces.iter().enumerate() {
        let cells: Vec<&PlannedCell> = mine.iter().filter(|c| c.trace == t).collect();
        if cells.is_empty() {
            continue;
        }
        let wanted: Vec<Wanted<'_>> = cells
            .iter()
            .map(|c| Wanted {
                policy: &plan.policies[c.policy],
                size: &sizes[c.size],
            })
            .collect();
        let how = How {
            stream: false,
            times: false,
            knee: false,
        };
        let (rows, _) = rows_of(global, &args.what, path, &wanted, how)?;
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
        let unread = |e| Failure::io(format!("{name} cannot be read: {e}"));
        let file = std::fs::File::open(path).map_err(unread)?;
        let mut part = Vec::new();
        // What has no end (a device, a pipe) is not read to it.
        let mut file = file.take(MOST_PART_BYTES + 1);
        file.read_to_end(&mut part).map_err(unread)?;
        if part.len() as u64 > MOST_PART_BYTES {
            return Err(Failure::refused(format!(
                "{name} has more than {MOST_PART_BYTES} bytes, so it is no part of a sweep"
            )));
        }
        merger.add(&name, &part).map_err(Failure::refused)?;
    }
    let rows = merger.finish().map_err(Failure::refused)?;
    if let Some(path) = &args.html {
        super::page::write(&rows, &[], &[], path)?;
    }
    print::rows(global, &rows, &[], args.csv, out)
}
