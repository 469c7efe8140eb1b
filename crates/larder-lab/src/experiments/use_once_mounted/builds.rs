//! Phillips' test: a tree is built, alone and beside a grep over files that are larger than the cache.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use larder_fs::{Coherence, MountOptions};

use super::{
    DISK, HITS, PATCHED, READ, RULES, Scratch, VANILLA, mount_alone, tool, which, with_counts,
};
use crate::frame::words::{ratio, short};
use crate::frame::{At, Planner, Results, finding, grid, text};
use crate::model::{Cell, Finding, Measures, Params, Table, Value};

pub(super) const GROUP: &str = "builds";
pub(super) const SECONDS: &str = "build_s";

const ALONE: &str = "alone";
const GREP: &str = "beside a grep";
const CACHE_MB: i64 = 16;
/// What the grep reads, in multiples of the cache.
const TIMES: usize = 4;
/// Source files of the tree, and the headers that each includes.
const SOURCES: usize = 40;
const HEADERS: usize = 30;
/// Lines of comment in each header: the compiler reads them fast, a disk does not.
const COMMENT: usize = 1_200;

pub(super) fn plan(plan: &mut Planner) {
    if let Some(missing) = ["make", "cc", "grep"]
        .iter()
        .find(|name| which(name).is_none())
    {
        plan.skip(
            "builds beside a grep",
            format!("{missing} is not installed"),
        );
        return;
    }
    let cells = RULES.iter().flat_map(|rule| {
        [ALONE, GREP].map(|beside| {
            let params = Params::new()
                .with_text("build", beside)
                .with("cache_mb", CACHE_MB);
            Cell::new(rule, params)
        })
    });
    plan.group(GROUP, SECONDS, VANILLA, 130.0, cells)
        .rounds((3, 5, 0.05));
}

/// A child that goes with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn run(rule: &str, params: &Params) -> anyhow::Result<Measures> {
    let bytes = params.count("cache_mb")? << 20;
    let shm = Path::new("/dev/shm");
    let scratch = Scratch::open_in(shm, "build").or_else(|_| Scratch::open("build"))?;
    let (source, at) = (scratch.path("source"), scratch.path("at"));
    fs::create_dir(&at)?;
    make_tree(&source.join("tree"))?;
    make_large(&source.join("large"), TIMES * bytes)?;
    mount_alone();
    let mount = MountOptions::new(&source, &at)
        .cache_bytes(bytes)
        .rule(rule)
        .coherence(Coherence::Exclusive)
        .disk(DISK)
        .mount()?;
    let tree = at.join("tree");
    // Once, so that it is in the cache.
    make(&tree, &["-j2"])?;
    make(&tree, &["clean"])?;
    let grep = match params.text("build")? {
        GREP => {
            let all = "while :; do grep -r there-is-no-such-word .; done";
            let shell = Command::new(tool("sh")?)
                .args(["-c", &format!("exec 2>/dev/null; {all}")])
                .current_dir(at.join("large"))
                .stdout(Stdio::null())
                .spawn()?;
            Some(Running(shell))
        }
        _ => None,
    };
    let before = mount.stats();
    let begun = Instant::now();
    make(&tree, &["-j2"])?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = mount.stats();
    drop(grep);
    mount.sync()?;
    let again = make(&tree, &[])?;
    ensure!(
        again.contains("up to date") || again.contains("Nothing to be done"),
        "a second make builds again: {again}"
    );
    // The last grep goes when its file does.
    mount.detach()?;
    drop(mount);
    Ok(with_counts(
        Measures::new().with(SECONDS, seconds),
        &before,
        &after,
    ))
}

fn make(tree: &Path, words: &[&str]) -> anyhow::Result<String> {
    let done = Command::new(tool("make")?)
        .arg("-C")
        .arg(tree)
        .args(words)
        .output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "make {}: {said}", words.join(" "));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn make_tree(tree: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(tree)?;
    let write = |name: String, content: &str| {
        fs::write(tree.join(&name), content).with_context(|| format!("{name} cannot be written"))
    };
    let mut includes = String::new();
    for header in 0..HEADERS {
        let comment = "// What the compiler reads in each of the files, and makes nothing of.\n"
            .repeat(COMMENT);
        write(
            format!("h{header}.h"),
            &format!("{comment}int h{header}(int);\n"),
        )?;
        writeln!(includes, "#include \"h{header}.h\"")?;
    }
    let mut objects = String::new();
    for file in 0..SOURCES {
        let mut content = includes.clone();
        for function in 0..60 {
            writeln!(
                content,
                "int s{file}_{function}(int x) {{ for (int i = 0; i < x; i++) x ^= h{}(x + {function}); return x; }}",
                function % HEADERS
            )?;
        }
        write(format!("s{file}.c"), &content)?;
        write!(objects, " s{file}.o")?;
    }
    let rules = format!(
        "all.a:{objects}\n\trm -f $@\n\tar rc $@ $^\n%.o: %.c $(wildcard *.h)\n\tcc -O1 -c -o $@ $<\nclean:\n\trm -f *.o all.a\n.PHONY: clean\n"
    );
    write("Makefile".to_owned(), &rules)
}

fn make_large(folder: &Path, bytes: usize) -> anyhow::Result<()> {
    const FILE: usize = 256 << 10;
    fs::create_dir_all(folder)?;
    let content = "a line of the tree that the grep reads\n".repeat(FILE / 39);
    for file in 0..bytes / content.len() {
        fs::write(folder.join(format!("{file}.txt")), &content)?;
    }
    Ok(())
}

fn at<'r, 'a>(results: &'r Results<'a>, rule: &'static str, build: &str) -> Option<At<'r, 'a>> {
    results
        .of(GROUP, rule)
        .find(|at| at.text("build") == Some(build))
}

pub(super) fn found(results: &Results<'_>) -> Option<Finding> {
    let of = |rule| at(results, rule, GREP);
    let seconds = RULES
        .iter()
        .filter_map(|rule| Some((*rule, of(rule)?.middle(SECONDS)?)));
    let (best, least) = seconds.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let over = of(PATCHED)
        .zip(of(VANILLA))
        .and_then(|(one, other)| one.ratio(&other, SECONDS));
    let over = over.map_or_else(String::new, |over| {
        format!(" With use-once it takes {} of 2.4.7's time.", ratio(&over))
    });
    let answer = format!(
        "Beside the grep it is fastest under {best}: {} s.{over}",
        short(least)
    );
    let question = "Does a build suffer from a grep over more than the cache?";
    Some(finding(question, "Daniel Phillips 2001", answer).with(table(results)))
}

fn table(results: &Results<'_>) -> Table {
    let metrics = [(SECONDS, "s"), (HITS, "hits, %"), (READ, "read, MB")];
    let columns = [ALONE, GREP].into_iter().flat_map(|build| {
        metrics.map(|(metric, name)| ((build, metric), format!("{name}, {build}")))
    });
    grid(
        "The build under every rule",
        "rule",
        RULES.map(|rule| (rule, text(rule))),
        columns,
        |rule, (build, metric)| {
            at(results, rule, build).map_or(Value::Empty, |at| at.value(metric))
        },
    )
}
