//! The contestants: every rule of the library, and the best there can be.

use std::path::PathBuf;

use anyhow::{Context, bail};
use larder_policy::rules;

use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};
use larder_sim::workload::{BuildShape, Shape, build_like, correlated, dbench_client, interleave};
use larder_sim::{Cell as SimCell, Format, Loaded, OptHeap, ReadOptions, Record, Trace, make};

use super::machine::{Machine, Outcome, Setup};
use super::metrics::{BARE, FIRST, HITS, RATE, READ, SECONDS, WRITTEN};

/// Records with which a client of the load file fills its directory.
const FILL: usize = 5_300;

/// The best there can be.
pub(super) const OPT: &str = "opt";

/// Every rule, then OPT.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let rules = rules().iter();
    let ruled = rules.map(|rule| {
        bench(rule.name, rule.about, move |params| {
            ruled(rule.name, params)
        })
    });
    let opt = bench(
        OPT,
        "Belady 1966: the page whose next use is farthest away leaves. Hits alone, without readahead and writes",
        opt,
    );
    ruled.chain([opt]).collect()
}

/// dbench's own load file, if it is here.
pub(in crate::experiments) fn loadfile() -> Option<PathBuf> {
    let named = std::env::var_os("LARDER_DBENCH").map(PathBuf::from);
    let path = named.unwrap_or_else(|| PathBuf::from("/usr/share/dbench/client.txt"));
    path.is_file().then_some(path)
}

/// The records of a cell.
fn records(params: &Params) -> anyhow::Result<Vec<Record>> {
    let seed = params.int("seed").unwrap_or(1).unsigned_abs();
    let records = match params.text("load")? {
        "dbench" => {
            let turns = u32::try_from(params.count("turns")?)?;
            let clients = u16::try_from(params.count("clients")?)?;
            let clients = (0..clients).map(|client| dbench_client(seed, client, turns));
            interleave(clients.collect(), seed).collect()
        }
        "loadfile" => {
            let path = loadfile().context("dbench's client.txt is not here; install Debian's dbench or name it in LARDER_DBENCH")?;
            let options = ReadOptions {
                format: Some(Format::Dbench),
                limit: Some(params.count("records")? as u64),
                ..ReadOptions::default()
            };
            let mut trace = Trace::open(&path, &options)?;
            let mut one: Vec<Record> = Vec::new();
            while trace.fill(&mut one)? {}
            let files = 1 + one.iter().map(|record| record.file).max().unwrap_or(0);
            let clients = u32::try_from(params.count("clients")?)?;
            if u64::from(clients) * u64::from(files) >= 1 << 24 {
                bail!("{clients} clients of {files} files each are more than 2^24 files");
            }
            let client = |client: u32| {
                one.iter().map(move |record| Record {
                    block: record.block + (u64::from(client * files) << 40),
                    file: record.file + client * files,
                    ..*record
                })
            };
            interleave((0..clients).map(client).collect(), seed).collect()
        }
        "correlated" => {
            let touches = u32::try_from(params.count("touches")?)?;
            let shape = Shape {
                seed,
                blocks: 20_000,
                records: params.count("uses")? as u64 * u64::from(touches),
                skew: 0.9,
                touches,
            };
            correlated(&shape).collect()
        }
        "build" => build_like(&BuildShape {
            seed,
            units: u32::try_from(params.count("units")?)?,
            grep_pages: params.count("grep")? as u64,
            ..BuildShape::default()
        })
        .collect(),
        other => bail!("load is '{other}'; it is dbench, loadfile, correlated or build"),
    };
    Ok(records)
}

/// Records that fill the clients' directories.
fn warm(params: &Params) -> usize {
    let clients = params.count("clients").unwrap_or(0);
    match params.text("load") {
        Ok("dbench") => clients * dbench_client(1, 0, 0).count(),
        Ok("loadfile") => clients * FILL,
        _ => 0,
    }
}

fn measures(outcome: &Outcome) -> Measures {
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    let first = percent(outcome.first_hits, outcome.first_uses);
    Measures::new()
        .with(HITS, percent(outcome.hits, outcome.uses))
        .with(FIRST, first)
        .with(READ, outcome.pages_read as f64)
        .with(WRITTEN, outcome.pages_written as f64)
        .with("disk_commands", outcome.commands as f64)
        .with(SECONDS, outcome.seconds)
        .with(RATE, outcome.payload / outcome.seconds.max(1e-9) / 1e6)
}

/// A rule on the modelled machine, and bare.
fn ruled(rule: &str, params: &Params) -> anyhow::Result<Measures> {
    let records = records(params)?;
    let pages = params.count("pages")?;
    let setup = Setup {
        rule,
        pages,
        clients: u16::try_from(params.count("clients").unwrap_or(1))?,
        warm: warm(params),
        readahead: params.text("load")? != "correlated",
        merged: params.text("requests").is_ok_and(|r| r == "merged"),
    };
    let outcome = Machine::new(setup)?.run(records.iter().copied())?;
    let found = measures(&outcome);
    if params.text("bare").is_err() {
        return Ok(found);
    }
    let loaded = Loaded::from_records("generated", &records)?;
    bare(found, make(rule, pages)?, &loaded)
}

/// Belady's rule: hits alone, since it has no readahead, and dirty pages are nothing to it.
fn opt(params: &Params) -> anyhow::Result<Measures> {
    let loaded = Loaded::from_records("generated", &records(params)?)?;
    let cell = OptHeap::new(params.count("pages")?, &loaded)?;
    bare(Measures::new(), Box::new(cell), &loaded)
}

/// Adds the hits without readahead, writes and time.
fn bare(found: Measures, mut cell: Box<dyn SimCell>, loaded: &Loaded) -> anyhow::Result<Measures> {
    for chunk in &loaded.chunks {
        cell.run(chunk)?;
    }
    Ok(found.with(BARE, 100.0 * cell.tally().hit_ratio()))
}
