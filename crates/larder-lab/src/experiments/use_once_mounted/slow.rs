//! A source that takes half a millisecond a call, as over a network: by itself, and behind a cache that has room for all of it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use larder_fs::{Coherence, DiskModel, MountOptions};

use super::{Scratch, done, mount_alone, tool, which};
use crate::frame::words::Bound;
use crate::frame::{At, Planner, Results, goal, grid, shown, text};
use crate::model::{Cell, Goal, Measures, Params, Table, Value};

pub(super) const GROUP: &str = "slow source";
/// The contestant that is the source by itself.
pub(super) const SOURCE: &str = "source";
/// The rule behind which it is measured.
const BEHIND: &str = "adaptive";
pub(super) const PER_SECOND: &str = "per_s";

const RANDOM: &str = "random reads";
const FIND: &str = "find";
const GIT: &str = "git status";
const WORKS: [&str; 3] = [RANDOM, FIND, GIT];

const CALL: Duration = Duration::from_micros(500);
const BLOCK: usize = 4096;
/// Blocks of the file that is read at random: a power of two.
const BLOCKS: usize = 1024;
const FOLDERS: usize = 20;
/// In each folder.
const FILES: usize = 25;

pub(super) fn plan(plan: &mut Planner) {
    let cells = WORKS
        .iter()
        .flat_map(|work| [SOURCE, BEHIND].map(|name| cell(name, work)));
    plan.group(GROUP, PER_SECOND, SOURCE, 10.0, cells);
}

fn cell(name: &str, work: &str) -> Cell {
    let microseconds = CALL.as_micros() as i64;
    let params = Params::new()
        .with_text("work", work)
        .with("call_us", microseconds);
    Cell::new(name, params)
}

/// The second pass of a work. The slow source is a mount itself, which keeps next to nothing and asks at each access.
pub(super) fn run(behind: bool, params: &Params) -> anyhow::Result<Measures> {
    let work = params.text("work")?;
    let call = Duration::from_micros(params.count("call_us")? as u64);
    let scratch = Scratch::in_memory("slow")?;
    let (files, slow, at) = (
        scratch.path("files"),
        scratch.path("slow"),
        scratch.path("at"),
    );
    for folder in [&files, &slow, &at] {
        fs::create_dir(folder)?;
    }
    make(&files)?;
    mount_alone();
    let disk = DiskModel {
        per_call: call,
        ..DiskModel::default()
    };
    let source = MountOptions::new(&files, &slow)
        .cache_bytes(1 << 20)
        .read_ahead(0)
        .coherence(Coherence::Strict)
        .disk(disk)
        .mount()?;
    let cache = behind.then(|| {
        MountOptions::new(&slow, &at)
            .cache_bytes(64 << 20)
            .coherence(Coherence::Ttl(Duration::from_secs(30)))
            .rule(BEHIND)
            .mount()
    });
    let cache = cache.transpose()?;
    let place = if behind { &at } else { &slow };
    pass(work, place)?;
    let begun = Instant::now();
    let done = pass(work, place)?;
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(cache) = cache {
        cache.unmount()?;
    }
    source.unmount()?;
    Ok(Measures::new().with(PER_SECOND, done as f64 / seconds))
}

fn make(files: &Path) -> anyhow::Result<()> {
    let block = |n: usize| (n as u64).to_ne_bytes().repeat(BLOCK / 8);
    let content: Vec<u8> = (0..BLOCKS).flat_map(block).collect();
    fs::write(files.join("blocks"), content)?;
    let tree = files.join("tree");
    for folder in 0..FOLDERS {
        let folder = tree.join(format!("{folder}"));
        fs::create_dir_all(&folder)?;
        for file in 0..FILES {
            fs::write(folder.join(format!("{file}.txt")), format!("{file}\n"))?;
        }
    }
    if which("git").is_some() {
        git(&tree, &["init", "--quiet"])?;
        git(&tree, &["add", "."])?;
    }
    Ok(())
}

fn git(tree: &Path, words: &[&str]) -> anyhow::Result<()> {
    done(Command::new(tool("git")?).arg("-C").arg(tree).args(words)).map(drop)
}

/// Returns how many reads, names or commands.
fn pass(work: &str, place: &Path) -> anyhow::Result<usize> {
    match work {
        RANDOM => {
            let file = File::open(place.join("blocks"))?;
            let mut block = [0; BLOCK];
            for turn in 0..BLOCKS {
                // An odd step meets each block once.
                let n = turn * 619 % BLOCKS;
                file.read_exact_at(&mut block, (n * BLOCK) as u64)?;
                ensure!(block[..8] == (n as u64).to_ne_bytes(), "block {n} is wrong");
            }
            Ok(BLOCKS)
        }
        FIND => find(&place.join("tree")),
        GIT => git(&place.join("tree"), &["status", "--short"]).map(|()| 1),
        _ => bail!("factor 'work' is '{work}'"),
    }
}

/// Each name with its attributes, as `find -size` has them.
fn find(folder: &Path) -> anyhow::Result<usize> {
    let mut found = 0;
    let list = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    for entry in list {
        let path = entry?.path();
        found += 1;
        if path.symlink_metadata()?.is_dir() {
            found += find(&path)?;
        }
    }
    Ok(found)
}

fn at<'r, 'a>(results: &'r Results<'a>, name: &'r str, work: &str) -> Option<At<'r, 'a>> {
    results
        .of(GROUP, name)
        .find(|at| at.text("work") == Some(work))
}

pub(super) fn table(results: &Results<'_>) -> Table {
    let columns = [SOURCE, BEHIND, "ratio"];
    grid(
        "The second pass at a slow source, operations a second",
        "work",
        WORKS
            .into_iter()
            .filter(|work| at(results, SOURCE, work).is_some())
            .map(|work| (work, text(work))),
        columns.map(|name| (name, name.to_owned())),
        |work, column| match *column {
            "ratio" => {
                let both = at(results, BEHIND, work).zip(at(results, SOURCE, work));
                shown(
                    both.and_then(|(one, other)| one.ratio(&other, PER_SECOND)),
                    "x",
                )
            }
            name => at(results, name, work).map_or(Value::Empty, |at| at.value(PER_SECOND)),
        },
    )
}

pub(super) fn goals(results: &Results<'_>) -> Vec<Goal> {
    let goal = |work: &str| {
        let of = |name| at(results, name, work);
        goal(
            Bound::AtLeast(20.0),
            format!(
                "{work} again, at a source of {} µs a call",
                CALL.as_micros()
            ),
            of(BEHIND),
            of(SOURCE),
            SOURCE,
            PER_SECOND,
        )
    };
    WORKS.map(goal).to_vec()
}
