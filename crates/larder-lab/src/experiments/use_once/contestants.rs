//! The contestants: every rule of the library, and the best there can be.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use larder_policy::rules;

use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};
use larder_sim::machine::{Counted, Machine, Requests, Setup};
use larder_sim::workload::{BuildShape, Shape, build_like, correlated, dbench_client, interleave};
use larder_sim::{Cell as SimCell, Format, Loaded, OptHeap, ReadOptions, Record, Trace, make};

use super::metrics::{BARE, FIRST, HITS, RATE, READ, SECONDS, WRITTEN};

/// Records with which a client of the load file fills its directory.
const FILL: usize = 5_300;

/// Payload that one CPU moves in a second: Lord's row of one client, whose data fit.
pub(super) const ONE_CPU: f64 = 32.1e6;
/// How much more two CPUs move: Lord's row of two clients over that of one.
pub(super) const TWO_CPUS: f64 = 1.51;

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

fn measures(counted: &Counted) -> Measures {
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    let (tally, disk) = (&counted.tally, &counted.disk);
    Measures::new()
        .with(HITS, percent(tally.hits, tally.hits + tally.misses))
        .with(FIRST, percent(counted.first_hits, counted.first_uses))
        .with(READ, disk.read as f64)
        .with(WRITTEN, disk.written as f64)
        .with("disk_commands", disk.commands as f64)
        .with(SECONDS, disk.total_s)
        .with(RATE, counted.payload / disk.total_s.max(1e-9) / 1e6)
}

/// A rule on the modelled machine, and bare.
fn ruled(rule: &str, params: &Params) -> anyhow::Result<Measures> {
    let records = records(params)?;
    let pages = params.count("pages")?;
    let merged = params.text("requests").is_ok_and(|r| r == "merged");
    let speedup = match params.count("clients") {
        Ok(2..) => TWO_CPUS,
        _ => 1.0,
    };
    let setup = Setup {
        cpu: ONE_CPU * speedup,
        readahead: params.text("load")? != "correlated",
        requests: if merged {
            Requests::Merged
        } else {
            Requests::Apart
        },
        ..Setup::new(pages)
    };
    let mut machine = Machine::new(rule, setup)?;
    let (warm, rest) = records.split_at(warm(params).min(records.len()));
    warm.iter().try_for_each(|record| machine.step(record))?;
    let before = machine.counted();
    rest.iter().try_for_each(|record| machine.step(record))?;
    let counted = machine.counted().since(&before, setup.cpu);
    ensure!(counted.tally.lost == 0, "{rule} let no page go");
    let found = measures(&counted);
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
    for chunk in loaded.chunks() {
        cell.run(chunk?.as_ref())?;
    }
    Ok(found.with(BARE, 100.0 * cell.tally().hit_ratio()))
}
