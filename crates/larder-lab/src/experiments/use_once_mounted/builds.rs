//! Phillips' test: a tree is built, alone and beside a grep over files that are larger than the cache. One tree is Linux's, the other
//! one is small and generated.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use larder_fs::{Coherence, Mount, MountOptions, MountStats};

use super::slow::SOURCE;
use super::{DISK, HITS, PATCHED, READ, RULES, Scratch, VANILLA};
use super::{done, linux, lords_build, make, mount_alone, tool, which, with_counts};
use crate::frame::words::short;
use crate::frame::{At, Planner, Results, finding, grid, text};
use crate::model::{Cell, Finding, Measures, Params, Table, Value};

pub(super) const SECONDS: &str = "build_s";

const ALONE: &str = "alone";
const GREP: &str = "beside a grep";
/// What the grep reads, in multiples of the cache.
const TIMES: usize = 4;
/// Source files of the tree, and the headers that each includes.
const SOURCES: usize = 40;
const HEADERS: usize = 30;
/// Lines of comment in each header: the compiler reads them fast, a disk does not.
const COMMENT: usize = 1_200;

/// A tree, with the group of cells in which it is built.
struct Tree {
    group: &'static str,
    /// In a question.
    called: &'static str,
    /// Of its table.
    title: &'static str,
    /// The mount's.
    cache_mb: i64,
    /// One round, in seconds.
    guess: f64,
    rules: &'static [&'static str],
    make: fn(&Path) -> anyhow::Result<()>,
    /// The folder in it that is built.
    part: &'static str,
    /// Names of the objects there that are removed, so that the timed build makes them again.
    objects: &'static str,
    /// What `make` is asked for.
    target: &'static str,
    /// Lord built Linux, too: his seconds of 2001 stand beside these.
    published: bool,
}

const GENERATED: Tree = Tree {
    group: "builds",
    called: "a build",
    title: "A build, under eight rules",
    cache_mb: 16,
    guess: 140.0,
    rules: &RULES,
    make: make_tree,
    part: ".",
    objects: "*.[ao]",
    target: "all.a",
    published: false,
};

const LINUX: Tree = Tree {
    group: "linux",
    called: "a build of Linux's mm/",
    title: "A build of Linux's mm/, under six rules",
    // With fewer it has not enough inodes: `make` lists folders of thousands of headers.
    cache_mb: 40,
    guess: 840.0,
    rules: &[
        VANILLA,
        PATCHED,
        "linux-two-list",
        "mglru",
        "lru",
        "adaptive",
    ],
    make: linux::make_tree,
    part: "mm",
    // 27 of 46: a cell takes a minute.
    objects: "[a-m]*.[ao]",
    target: "mm/",
    published: true,
};

pub(super) fn plan(plan: &mut Planner, without_linux: Option<&str>) {
    let lacking = ["make", "cc", "grep"]
        .iter()
        .find(|name| which(name).is_none());
    let lacking = lacking.map(|name| format!("{name} is not installed; install it"));
    for (tree, lacking) in [(LINUX, without_linux), (GENERATED, lacking.as_deref())] {
        if let Some(why) = lacking {
            plan.skip(format!("{} beside a grep", tree.called), why);
            continue;
        }
        let cell = |rule: &str, beside: &str| {
            let params = Params::new()
                .with_text("tree", tree.group)
                .with_text("build", beside)
                .with("cache_mb", tree.cache_mb);
            Cell::new(rule, params)
        };
        let under = |rule: &&str| [ALONE, GREP].map(|beside| cell(rule, beside));
        let cells = tree.rules.iter().flat_map(under);
        let cells = cells.chain([cell(SOURCE, ALONE)]);
        plan.group(tree.group, SECONDS, VANILLA, tree.guess, cells)
            .rounds((3, 5, 0.05));
    }
}

/// A child that is killed when this is dropped.
struct Running(Child);

impl Running {
    /// A grep that begins again when it has found nothing in all files, and ends when it fails.
    fn grep(folder: &Path) -> anyhow::Result<Self> {
        const AGAIN: &str = "while grep -r there-is-no-such-word .; [ $? -lt 2 ]; do :; done";
        let mut shell = Command::new(tool("sh")?);
        let quiet = shell.args(["-c", AGAIN]).current_dir(folder);
        let quiet = quiet.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(quiet.spawn()?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A build through a mount under a rule, or of the source by itself.
pub(super) fn run(rule: Option<&str>, params: &Params) -> anyhow::Result<Measures> {
    let bytes = params.count("cache_mb")? << 20;
    // A cell of a run from before there was Linux says no tree.
    let tree = [LINUX, GENERATED]
        .into_iter()
        .find(|tree| params.text("tree").is_ok_and(|name| name == tree.group))
        .unwrap_or(GENERATED);
    let scratch = Scratch::in_memory("build")?;
    let (source, at) = (scratch.path("source"), scratch.path("at"));
    fs::create_dir(&source)?;
    fs::create_dir(&at)?;
    (tree.make)(&source.join("tree"))?;
    make_large(&source.join("large"), TIMES * bytes)?;
    mount_alone();
    let mount = rule.map(|rule| {
        MountOptions::new(&source, &at)
            .cache_bytes(bytes)
            .rule(rule)
            .coherence(Coherence::Exclusive)
            .disk(DISK)
            .mount()
    });
    let mount = mount.transpose()?;
    let place = if mount.is_some() { &at } else { &source };
    let folder = place.join("tree");
    let build = [tree.target, "-j2"];
    // Once, so that it is in the cache.
    make(&folder, &build)?;
    let removed = remove(&folder.join(tree.part), tree.objects)?;
    let mut grep = match params.text("build")? {
        GREP => Some(Running::grep(&place.join("large"))?),
        _ => None,
    };
    let before = mount.as_ref().map(Mount::stats);
    let begun = Instant::now();
    let said = make(&folder, &build)?;
    let mut found = Measures::new().with(SECONDS, begun.elapsed().as_secs_f64());
    let after = mount.as_ref().map(Mount::stats);
    if let Some(Running(shell)) = &mut grep {
        ensure!(
            shell.try_wait()?.is_none(),
            "the grep failed before the build ended"
        );
    }
    drop(grep);
    let made = compiled(&said).count();
    ensure!(
        removed > 0 && made >= removed,
        "the second make compiles {made} objects, but {removed} were removed"
    );
    if let Some((before, after)) = before.zip(after) {
        found = with_counts(found, &before, &after);
        within_inodes(&before, &after)?;
    }
    if let Some(mount) = mount {
        // The last grep ends its turn, and then the mount ends.
        mount.detach()?;
        mount.wait()?;
    }
    let said = make(&source.join("tree"), &build)?;
    if let Some(name) = compiled(&said).next() {
        bail!("the third make, on the source, compiles {name} again");
    }
    Ok(found)
}

/// Removes files with such names. Returns how many objects of one source file each were among them.
fn remove(folder: &Path, names: &str) -> anyhow::Result<usize> {
    let removed = done(
        Command::new(tool("find")?)
            .arg(folder)
            .args(["-name", names, "-print", "-delete"]),
    )?;
    Ok(removed.lines().filter(|name| name.ends_with(".o")).count())
}

/// The objects that a `make` says it compiles.
fn compiled(said: &str) -> impl Iterator<Item = &str> {
    said.lines()
        .filter_map(|line| line.trim_start().strip_prefix("CC "))
        .map(str::trim)
        .filter(|name| name.ends_with(".o"))
}

/// A mount that has no inode left forgets a file with its blocks.
fn within_inodes(before: &MountStats, after: &MountStats) -> anyhow::Result<()> {
    let forgotten = after.invalidated - before.invalidated;
    ensure!(
        forgotten == 0,
        "the build and the grep use more files than the mount has inodes ({}): it forgot {forgotten} with their blocks, so the time is not the rule's",
        after.most_inodes
    );
    Ok(())
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
        "all.a:{objects}\n\t@rm -f $@\n\t@ar rc $@ $^\n%.o: %.c $(wildcard *.h)\n\t@echo CC $@\n\t@cc -O1 -c -o $@ $<\n"
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

fn at<'r, 'a>(
    results: &'r Results<'a>,
    tree: &Tree,
    rule: &'static str,
    build: &str,
) -> Option<At<'r, 'a>> {
    results
        .of(tree.group, rule)
        .find(|at| at.text("build") == Some(build))
}

pub(super) fn found(results: &Results<'_>) -> impl Iterator<Item = Finding> {
    let found = |tree| found_in(results, &tree);
    [LINUX, GENERATED].into_iter().filter_map(found)
}

fn found_in(results: &Results<'_>, tree: &Tree) -> Option<Finding> {
    let seconds = |rule, build| at(results, tree, rule, build)?.middle(SECONDS);
    let beside = RULES
        .iter()
        .filter_map(|rule| Some((*rule, seconds(*rule, GREP)?)));
    let (best, least) = beside.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut rules = vec![(VANILLA, "2.4.7"), (PATCHED, "use-once")];
    if rules.iter().all(|(rule, _)| *rule != best) {
        rules.push((best, best));
    }
    let times = rules.iter().filter_map(|(rule, called)| {
        let times = seconds(*rule, GREP)? / seconds(*rule, ALONE)?;
        Some(format!("{times:.2} under {called}"))
    });
    let mut times = times.collect::<Vec<_>>().join(", ");
    if !times.is_empty() {
        times = format!(
            "Beside the grep it takes, in multiples of its time alone (medians): {times}. "
        );
    }
    let over = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    let now = over(seconds(PATCHED, ALONE), seconds(VANILLA, ALONE));
    let then = over(lords(PATCHED), lords(VANILLA)).filter(|_| tree.published);
    let alone = now.zip(then).map_or_else(String::new, |(now, then)| {
        format!(" Alone, use-once takes {now:.2} of 2.4.7's time; in 2001 a whole kernel took {then:.2}.")
    });
    let answer = format!(
        "{times}Fastest beside the grep: {best}, {} s.{alone}",
        short(least)
    );
    let question = format!(
        "Does {} suffer from a grep over more than the cache?",
        tree.called
    );
    Some(finding(question, "Daniel Phillips 2001", answer).with(table(results, tree)))
}

/// Seconds of Lord's kernel builds under the kernel that has this rule.
fn lords(rule: &str) -> Option<f64> {
    let kernels = [(VANILLA, "vanilla"), (PATCHED, "use-once")];
    let (_, kernel) = kernels.into_iter().find(|(name, _)| *name == rule)?;
    lords_build(kernel, |build| build.elapsed_s)
}

fn table(results: &Results<'_>, tree: &Tree) -> Table {
    const PUBLISHED: (&str, &str) = ("", "");
    let columns = [
        ((ALONE, SECONDS), "s, alone"),
        ((ALONE, HITS), "hits, %, alone"),
        ((ALONE, READ), "read, MB, alone"),
        ((GREP, SECONDS), "s, beside a grep"),
        ((GREP, HITS), "hits, %, with the grep's"),
        ((GREP, READ), "read, MB, with the grep's"),
    ];
    let columns = columns.map(|(column, name)| (column, name.to_owned()));
    let published = tree
        .published
        .then(|| (PUBLISHED, "s, 2001, alone".to_owned()));
    grid(
        tree.title,
        "rule",
        RULES
            .into_iter()
            .chain([SOURCE])
            .filter(|rule| at(results, tree, rule, ALONE).is_some())
            .map(|rule| (rule, text(rule))),
        columns.into_iter().chain(published),
        |rule, column| match *column {
            PUBLISHED => lords(rule).map_or(Value::Empty, |s| Value::Published(s, "s".to_owned())),
            (build, metric) => {
                at(results, tree, rule, build).map_or(Value::Empty, |at| at.value(metric))
            }
        },
    )
}
