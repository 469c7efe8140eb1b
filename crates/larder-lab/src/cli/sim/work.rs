//! Reads and simulates a trace, with a progress bar, and maps its errors to exit codes.

use std::fs::Metadata;
use std::path::Path;

use super::args::What;
use super::bar::Progress;
use super::curves::SEED;
use super::print;
use crate::cli::failure::{Code, Failure, Outcome as Done};
use crate::cli::global::Global;
use crate::cli::output;
use crate::report::number;
use larder_sim::machine::Setup;
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
    /// Share of the blocks that the curve was made of.
    pub(super) rate: f64,
    /// Bytes of a block, if all have as many.
    pub(super) block_size: Option<u32>,
}

/// The knee of a sample's curve, which stretches sizes: none is larger than all blocks.
fn within(knee: Knee, blocks: u32) -> Knee {
    let size = knee.size.min(blocks as usize);
    let rest = blocks as usize - size;
    let more = knee.a_tenth_more.map(|more| more.min(rest));
    Knee {
        size,
        a_tenth_more: more.filter(|more| *more > 0),
        ..knee
    }
}

/// Whether a trace can be read only once: standard input, a pipe or a device is empty after that.
pub(super) fn only_once(path: &Path) -> bool {
    let special = |file: Metadata| !file.is_file() && !file.is_dir();
    path == Path::new("-") || std::fs::metadata(path).is_ok_and(special)
}

/// A trace as messages name it.
pub(super) fn called(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        output::plain(&path.display().to_string())
    }
}

/// Bytes of a block; none where the blocks are objects with sizes of their own. A range of bytes is cut into blocks, so that no use
/// has more than one; a format that knows nothing but objects may have far smaller ones. A size of 1 stands for an unknown one.
pub(super) fn bytes_of_a_block(
    what: &What,
    format: Option<Format>,
    counts: &Counts,
) -> Option<u32> {
    use Format::{Lcs, OracleGeneral, Twitter, Webcachesim};
    let block_size = what.reading.block_size;
    let (block, most) = (u64::from(block_size), u64::from(counts.most_bytes));
    let objects = matches!(format, Some(OracleGeneral | Lcs | Twitter | Webcachesim));
    let larger = format.is_some() && most >= 2 * block;
    let smaller = objects && most > 1 && 2 * most <= block;
    (!larger && !smaller).then_some(block_size)
}

/// Refuses sizes in bytes where they say nothing of how many blocks fit.
pub(super) fn refuse_bytes<'a>(
    what: &What,
    trace: &str,
    format: Option<Format>,
    counts: &Counts,
    sizes: impl IntoIterator<Item = &'a Size>,
) -> Done {
    let in_bytes = sizes.into_iter().find(|size| size.is_bytes());
    match (in_bytes, bytes_of_a_block(what, format, counts)) {
        (Some(size), None) => Err(Failure::usage(format!(
            "--size '{}': {} has objects of up to {}, not blocks of {}, so bytes do not say how many fit; write a number of them \
             (1000) or a share (1%)",
            size.text(),
            output::plain(trace),
            bytes(counts.most_bytes.into()),
            bytes(what.reading.block_size.into()),
        ))),
        _ => Ok(()),
    }
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
    let once = counted && only_once(path);
    let streams = how.stream || what.disk.is_some();
    if streams && once {
        return Err(Failure::usage(format!(
            "{} cannot be read twice, first to count its blocks and then to simulate; give --size in blocks, and not more for all \
             rules together than fit in memory",
            called(path)
        )));
    }
    let future = wanted.iter().any(|w| knows_the_future(w.policy));
    if streams || !(future || once) {
        return streamed(global, what, path, wanted, how);
    }
    let others = wanted.iter().any(|w| !knows_the_future(w.policy));
    let trace = match load(global, what, path) {
        Err(why) if others && !once => return Err(without_opt(why)),
        trace => trace?,
    };
    loaded(global, what, trace, wanted, how)
}

/// A trace that is kept for one rule alone needs no room without that rule.
fn without_opt(why: Failure) -> Failure {
    match why {
        Failure::Because(Code::Refused, why) => Failure::refused(format!(
            "{why}; or leave opt out of --policy: no other rule keeps the trace"
        )),
        other => other,
    }
}

/// Bytes of a frame that a rule may take.
const FRAME: u64 = 64;

/// Whether the trace's blocks must be counted before it is simulated: for a share of them, and for caches that may be far larger than
/// they are.
fn counted_first(what: &What, wanted: &[Wanted<'_>]) -> Result<bool, Failure> {
    let room = what.reading.options()?.max_memory / FRAME;
    // All caches of a stream are there at once.
    let frames = wanted.iter().map(|w| what.blocks(w.size, 0).unwrap_or(0));
    let frames = frames.fold(0_u64, |all, n| all.saturating_add(n as u64));
    Ok(frames > room || wanted.iter().any(|w| w.size.is_share()))
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
    trace: Loaded,
    wanted: &[Wanted<'_>],
    how: How,
) -> Result<(Vec<Row>, Option<Bend>), Failure> {
    let (format, counts) = (trace.format, trace.counts);
    let sizes = wanted.iter().map(|w| w.size);
    refuse_bytes(what, &trace.name, format, &counts, sizes)?;
    let (jobs, asked) = jobs(what, wanted, trace.counts.blocks)?;
    let rows = simulate(global, what, &trace, &jobs, &asked, how.times)?;
    if !how.knee {
        return Ok((rows, None));
    }
    let (curve, rate) = fixed_size(&trace, SAMPLED, SEED).map_err(sim_fault)?;
    let bend = Bend {
        knee: curve.knee().map(|knee| within(knee, counts.blocks)),
        rate,
        trace: trace.name,
        block_size: bytes_of_a_block(what, format, &counts),
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
    let trace = open()?;
    let name = trace.name().to_owned();
    let format = trace.format();
    let in_bytes = |counts: &Counts| {
        let sizes = wanted.iter().map(|w| w.size);
        refuse_bytes(what, &name, format, counts, sizes)
    };
    let blocks = if counted_first(what, wanted)? {
        let mut bar = Progress::reading(global, path);
        let counts = Counts::of(open()?, |trace| bar.at(trace.meter())).map_err(sim_fault)?;
        bar.end();
        in_bytes(&counts)?;
        counts.blocks
    } else {
        u32::MAX
    };
    let (jobs, asked) = jobs(what, wanted, blocks)?;
    let blocks = blocks.max(1) as usize;
    let mut bar = Progress::reading(global, path);
    let mut curve = how.knee.then(|| FixedSize::new(SAMPLED, SEED));
    let seen = |trace: &Trace, chunk: &Chunk| {
        bar.at(trace.meter());
        if let Some(curve) = &mut curve {
            curve.add(chunk);
        }
    };
    let simulated = match what.disk() {
        None => {
            // A cache of all blocks has the hits of every larger one.
            let fitting = |job: &Job| Job {
                size: job.size.min(blocks),
                ..job.clone()
            };
            let fitting: Vec<Job> = jobs.iter().map(fitting).collect();
            stream(trace, &fitting, what.threads(), seen)
        }
        Some(setup) => {
            let distinct = blocks;
            let setup = Setup { distinct, ..setup };
            on_disk(trace, &jobs, what.threads(), setup, seen)
        }
    };
    let (mut outcomes, counts) = simulated.map_err(sim_fault)?;
    for (outcome, job) in outcomes.iter_mut().zip(jobs) {
        outcome.job = job;
    }
    bar.end();
    in_bytes(&counts)?;
    if how.times {
        let records = counts.uses + counts.readahead + counts.removed + counts.states;
        print::times(records as usize, &outcomes);
    }
    let bend = curve.map(|curve| {
        let rate = curve.rate();
        let knee = curve.curve(counts.uses).knee();
        Bend {
            knee: knee.map(|knee| within(knee, counts.blocks)),
            rate,
            trace: name.clone(),
            block_size: bytes_of_a_block(what, format, &counts),
        }
    });
    let format = format_name(format);
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

/// Simulates jobs over one trace with a bar, and says before what OPT needs.
pub(super) fn simulate(
    global: &Global,
    what: &What,
    trace: &Loaded,
    jobs: &[Job],
    asked: &[String],
    times: bool,
) -> Result<Vec<Row>, Failure> {
    say_what_opt_needs(global, what, trace, jobs);
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
