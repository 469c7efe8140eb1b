//! Reads and simulates a trace, with a progress bar, and maps its errors to exit codes.

use std::path::Path;

use super::args::What;
use super::bar::Progress;
use super::curves::SEED;
use super::print;
use crate::cli::failure::Failure;
use crate::cli::global::Global;
use crate::cli::output;
use crate::report::number;
use larder_sim::{
    Chunk, Counts, FixedSize, Format, Job, Knee, Loaded, NextUse, Outcome, Row, SimError, Size,
    Trace, Watch, fixed_size, knows_the_future, on_disk, stream, sweep,
};

/// The name of a format, or that there was no file.
pub(in crate::cli) fn format_name(format: Option<Format>) -> &'static str {
    format.map_or("generated", Format::name)
}

/// What a fault means for a script: a file that cannot be read is 5, one that must be named better is 2.
pub(in crate::cli) fn sim_fault(why: SimError) -> Failure {
    match why {
        SimError::Format { .. }
        | SimError::Columns { .. }
        | SimError::Directory { .. }
        | SimError::Workload { .. }
        | SimError::Future { .. } => Failure::usage(why),
        SimError::TooMuch { .. } | SimError::Rule { .. } | SimError::Thread(_) => {
            Failure::refused(why)
        }
        other => Failure::io(other),
    }
}

/// Where the curve of a trace under LRU bends.
pub(super) struct Bend {
    pub(super) trace: String,
    pub(super) knee: Option<Knee>,
    /// Bytes of a block.
    pub(super) block_size: u32,
}

/// A rule, and a size as it was asked for.
pub(super) struct Wanted<'a> {
    pub(super) policy: &'a str,
    pub(super) size: &'a Size,
}

/// What is wanted of a trace beside its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// Nothing of it is kept.
    pub(super) stream: bool,
    /// The cells' speed, on stderr.
    pub(super) times: bool,
    /// Where its curve bends.
    pub(super) knee: bool,
}

/// Blocks that the sample of a curve keeps: traces of fewer are looked at whole.
const SAMPLED: usize = 8192;

/// The rules at the sizes, over one trace. It is kept only where a rule must know its future, or its blocks must be counted first and
/// it cannot be read twice.
pub(super) fn rows_of(
    global: &Global,
    what: &What,
    path: &Path,
    wanted: &[Wanted<'_>],
    how: How,
) -> Result<(Vec<Row>, Option<Bend>), Failure> {
    let counted = counted_first(what, wanted)?;
    let only_once = counted && path == Path::new("-");
    let streams = how.stream || what.disk.is_some();
    if streams && only_once {
        return Err(Failure::usage(
            "standard input cannot be read twice, first to count its blocks and then to simulate; give --size in blocks, and not more \
             than fit in memory",
        ));
    }
    let future = wanted.iter().any(|w| knows_the_future(w.policy));
    if (future || only_once) && !streams {
        loaded(global, what, path, wanted, how)
    } else {
        streamed(global, what, path, wanted, how)
    }
}

/// Bytes of a frame that a rule may take.
const FRAME: u64 = 64;

/// Whether the trace's blocks must be counted before it is simulated: for a share of them, and for a cache that may be far larger than
/// they are.
fn counted_first(what: &What, wanted: &[Wanted<'_>]) -> Result<bool, Failure> {
    let room = what.reading.options()?.max_memory / FRAME;
    let large = |w: &Wanted<'_>| what.blocks(w.size, 0).is_ok_and(|n| n as u64 > room);
    Ok(wanted.iter().any(|w| w.size.is_share() || large(w)))
}

/// The cells of a trace of so many blocks, and their sizes as they were asked for.
fn jobs(
    what: &What,
    wanted: &[Wanted<'_>],
    blocks: u32,
) -> Result<(Vec<Job>, Vec<String>), Failure> {
    let job = |w: &Wanted<'_>| -> Result<(Job, String), Failure> {
        let job = Job {
            policy: w.policy.to_owned(),
            size: what.blocks(w.size, blocks)?,
        };
        Ok((job, w.size.text().to_owned()))
    };
    wanted.iter().map(job).collect()
}

fn loaded(
    global: &Global,
    what: &What,
    path: &Path,
    wanted: &[Wanted<'_>],
    how: How,
) -> Result<(Vec<Row>, Option<Bend>), Failure> {
    let trace = load(global, what, path)?;
    let (jobs, asked) = jobs(what, wanted, trace.counts.blocks)?;
    say_what_opt_needs(global, what, &trace, &jobs);
    let rows = simulate(global, what, &trace, &jobs, &asked, how.times)?;
    if !how.knee {
        return Ok((rows, None));
    }
    let (curve, _) = fixed_size(&trace, SAMPLED, SEED).map_err(sim_fault)?;
    let bend = Bend {
        knee: curve.knee(),
        trace: trace.name,
        block_size: what.reading.block_size,
    };
    Ok((rows, Some(bend)))
}

fn streamed(
    global: &Global,
    what: &What,
    path: &Path,
    wanted: &[Wanted<'_>],
    how: How,
) -> Result<(Vec<Row>, Option<Bend>), Failure> {
    let options = what.reading.options()?;
    let open = || Trace::open(path, &options).map_err(sim_fault);
    let blocks = if counted_first(what, wanted)? {
        let mut bar = Progress::reading(global, path);
        let counts = Counts::of(open()?, |trace| bar.at(trace.meter())).map_err(sim_fault)?;
        bar.end();
        counts.blocks
    } else {
        u32::MAX
    };
    let (asked_for, asked) = jobs(what, wanted, blocks)?;
    // A cache of all blocks has the hits of every larger one.
    let fitting = |job: &Job| Job {
        size: job.size.min(blocks.max(1) as usize),
        ..job.clone()
    };
    let jobs: Vec<Job> = asked_for.iter().map(fitting).collect();
    let trace = open()?;
    let name = trace.name().to_owned();
    let format = format_name(trace.format());
    let mut bar = Progress::reading(global, path);
    let mut curve = how.knee.then(|| FixedSize::new(SAMPLED, SEED));
    let seen = |trace: &Trace, chunk: &Chunk| {
        bar.at(trace.meter());
        if let Some(curve) = &mut curve {
            curve.add(chunk);
        }
    };
    let simulated = match what.disk() {
        None => stream(trace, &jobs, what.threads(), seen),
        Some(setup) => on_disk(trace, &jobs, what.threads(), setup, seen),
    };
    let (mut outcomes, counts) = simulated.map_err(sim_fault)?;
    for (outcome, job) in outcomes.iter_mut().zip(asked_for) {
        outcome.job = job;
    }
    bar.end();
    if how.times {
        let records = counts.uses + counts.readahead + counts.removed;
        print::times(records as usize, &outcomes);
    }
    let bend = curve.map(|curve| Bend {
        knee: curve.curve(counts.uses).knee(),
        trace: name.clone(),
        block_size: what.reading.block_size,
    });
    Ok((rows(outcomes, &asked, &name, format, counts), bend))
}

/// Reads a trace with a bar, and keeps it.
pub(super) fn load(global: &Global, what: &What, path: &Path) -> Result<Loaded, Failure> {
    let options = what.kept()?;
    let mut bar = Progress::reading(global, path);
    let loaded = Loaded::read(path, &options, |trace| bar.at(trace.meter())).map_err(sim_fault)?;
    bar.end();
    if let (Some(to), spilled @ 1..) = (&options.spill, loaded.spilled()) {
        output::hint(
            global,
            &format!(
                "{}: {} of it are in a file without a name in {}, since --max-memory is {}",
                output::plain(&loaded.name),
                bytes(spilled),
                to.dir.display(),
                bytes(options.max_memory),
            ),
        );
    }
    Ok(loaded)
}

/// Bytes that OPT takes without a word.
const LITTLE: u64 = 64 << 20;

/// Says how much memory OPT needs before it begins, where that is much.
fn say_what_opt_needs(global: &Global, what: &What, trace: &Loaded, jobs: &[Job]) {
    let cells = jobs.iter().filter(|job| job.policy == "opt").count();
    let (shared, each) = NextUse::bytes(trace.records() as u64);
    let at_once = cells.min(what.threads()) as u64;
    if cells == 0 || shared + each * at_once < LITTLE && trace.spilled() == 0 {
        return;
    }
    output::hint(
        global,
        &format!(
            "{}: opt needs {} for the next uses of {} records, of which the file takes what --max-memory does not hold, and \
             {} a cache, {at_once} at a time",
            output::plain(&trace.name),
            bytes(shared),
            number::count(trace.records() as i64),
            bytes(each),
        ),
    );
}

fn bytes(n: u64) -> String {
    number::number(n as f64, "B")
}

/// Simulates jobs over one trace with a bar.
pub(super) fn simulate(
    global: &Global,
    what: &What,
    trace: &Loaded,
    jobs: &[Job],
    asked: &[String],
    times: bool,
) -> Result<Vec<Row>, Failure> {
    let watch = Watch::default();
    let total = trace.records() as u64 * jobs.len() as u64;
    let bar = Progress::simulating(global, &trace.name, total);
    let outcomes = bar
        .watch(&watch, || sweep(trace, jobs, what.threads(), &watch))
        .map_err(sim_fault)?;
    if times {
        print::times(trace.records(), &outcomes);
    }
    Ok(rows(
        outcomes,
        asked,
        &trace.name,
        format_name(trace.format),
        trace.counts,
    ))
}

/// The outcomes as rows.
pub(super) fn rows(
    outcomes: Vec<Outcome>,
    asked: &[String],
    trace: &str,
    format: &str,
    counts: Counts,
) -> Vec<Row> {
    outcomes
        .into_iter()
        .zip(asked)
        .map(|(outcome, asked)| Row {
            trace: trace.to_owned(),
            format: format.to_owned(),
            counts,
            policy: outcome.job.policy,
            size: outcome.job.size,
            asked: asked.clone(),
            tally: outcome.tally,
            disk: outcome.disk,
        })
        .collect()
}
