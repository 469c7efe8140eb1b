//! Goals, tables and sentences: no program slower than with the system's malloc by more than one in a hundred.

use std::collections::BTreeMap;
use std::path::Path;

use super::process::{CPU, FAULTS, OUTPUT, PEAK, SECONDS};
use super::work::{bench, find};
use crate::contestants::heaps::PRELOADED;
use crate::contestants::heaps::found::{LARDER, contestant_of, contestants};
use crate::frame::words::{Bound, TOO_NOISY, exact, noted, ratio, short};
use crate::frame::{
    At, Results, combined, each, family, finding, grid, mean_ratio, median_of, not_measured,
    number, shown, text, undisturbed, worst,
};
use crate::measure::Comparison;
use crate::model::{Analysis, Block, Finding, Goal, GoalState, Section, Table, Value};
use crate::stats::{Estimate, Verdict};

/// Name of the contestant that is the system's malloc.
pub(super) const SYSTEM: &str = "system";

/// The most that larder's malloc may cost.
const MOST: f64 = 1.01;

/// The most that the peaks may be in the mean.
const MOST_PEAK: f64 = 1.1;

/// Programs at least that a run of so many should decide.
const DECIDED: usize = 15;

/// What the programs of mimalloc-bench may cost, in the mean and at worst: they measure allocators, so larder is compared with the others.
const BENCH_MEAN: Bound = Bound::AtMost(0.95);
const BENCH_BEST: Bound = Bound::AtMost(1.0);
const BENCH_WORST: Bound = Bound::AtMost(1.1);

/// A program of a run.
struct Row<'r, 'a> {
    /// Its group.
    program: &'r str,
    /// The system's malloc.
    system: At<'r, 'a>,
    /// The others.
    others: Vec<At<'r, 'a>>,
    /// Larder's malloc failed, while the system's did not.
    failed: bool,
}

/// Every program with samples of the system's malloc, in the order of the plan: real ones, and those of mimalloc-bench.
fn rows<'r, 'a>(results: &'r Results<'a>) -> (Vec<Row<'r, 'a>>, Vec<Row<'r, 'a>>) {
    let row = |program: &'a str| {
        let (system, others): (Vec<_>, Vec<_>) =
            results.all(program).partition(|at| at.name() == SYSTEM);
        let system = system.first().copied()?;
        Some(Row {
            program,
            system,
            others,
            failed: results.view.failed(program, LARDER) && !results.view.failed(program, SYSTEM),
        })
    };
    let rows = results.view.groups().into_iter().filter_map(row);
    rows.partition(|row| !bench::ALL.iter().any(|program| program.name == row.program))
}

/// A malloc as a column: its contestant, and the library's file where the user named it. A second build of a known one often has the
/// same name of a file, so its whole path.
fn called<'a>(at: &At<'_, 'a>) -> &'a str {
    match at.text("library").filter(|_| at.name() == PRELOADED) {
        Some(library) if contestant_of(Path::new(library)) != PRELOADED => library,
        Some(library) => library.rsplit('/').next().unwrap_or(library),
        None => at.name(),
    }
}

/// The mallocs of a run beside the system's, larder's first.
fn mallocs(rows: &[&Row<'_, '_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for known in contestants() {
        let cells = rows.iter().flat_map(|row| &row.others);
        for at in cells.filter(|at| at.name() == known) {
            if !names.iter().any(|name| name == called(at)) {
                names.push(called(at).to_owned());
            }
        }
    }
    names
}

impl<'r, 'a> Row<'r, 'a> {
    fn ran(&self, malloc: &str) -> Option<At<'r, 'a>> {
        let mut others = self.others.iter().copied();
        others.find(|at| called(at) == malloc)
    }

    /// The cell of a malloc, where it did not fail and wrote what it should.
    fn of(&self, malloc: &str) -> Option<At<'r, 'a>> {
        let at = self
            .ran(malloc)
            .filter(|at| !self.failed || at.name() != LARDER)?;
        (self.says_the_same(&at) == Some(true)).then_some(at)
    }

    /// Whether every run of a malloc wrote what the system's malloc wrote, which must be one and the same. `None` without a
    /// sample of both.
    fn says_the_same(&self, at: &At<'_, '_>) -> Option<bool> {
        let (own, system) = (at.by_round(OUTPUT), self.system.by_round(OUTPUT));
        let expected = system.values().next()?;
        let mut all = own.values().chain(system.values());
        (!own.is_empty()).then(|| all.all(|number| number == expected))
    }

    /// The malloc of others with the lowest median, the system's among them, of those that can be compared with larder's.
    fn best(&self) -> Option<At<'r, 'a>> {
        let own = self.of(LARDER)?;
        let others = self
            .others
            .iter()
            .filter(|at| at.name() != LARDER && self.says_the_same(at) == Some(true));
        let all = [self.system].into_iter().chain(others.copied());
        let all = all.filter(|at| own.ratio(at, SECONDS).is_some());
        let all = all.filter_map(|at| Some((at.middle(SECONDS)?, at)));
        let best = all.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(best.1)
    }

    fn wall(&self, own: &At<'_, '_>) -> Comparison {
        own.compare(&self.system, SECONDS)
    }
}

/// Whether a malloc makes a program slower by more than [`MOST`].
#[derive(Clone, Copy, PartialEq)]
enum Slower {
    Yes,
    No,
    Undecided,
    /// It failed, or wrote something else.
    Broken,
}

/// Whether larder's malloc makes a program slower, with the comparison; `None` where it was not started.
fn slower(row: &Row<'_, '_>) -> Option<(Slower, Comparison)> {
    let c = match row.ran(LARDER) {
        Some(own) => row.wall(&own),
        // Of a program that failed at once there is nothing to compare.
        None if row.failed => row.wall(&row.system),
        None => return None,
    };
    // A cost that lies no further off than the system's malloc lies from its twin is chance.
    let beyond_chance = |wall: &Estimate| c.floor.is_some_and(|floor| wall.lo.ln() > floor);
    let is_slower = match &c.ratio {
        _ if broken(row).is_some() => Slower::Broken,
        _ if c.verdict == Verdict::Noisy => Slower::Undecided,
        Some(wall) if wall.lo > MOST && beyond_chance(wall) => Slower::Yes,
        Some(wall) if wall.hi <= MOST => Slower::No,
        _ => Slower::Undecided,
    };
    Some((is_slower, c))
}

/// What a run says.
pub(super) fn of(results: &Results<'_>) -> Analysis {
    let (real, of_bench) = rows(results);
    let all: Vec<&Row<'_, '_>> = real.iter().chain(&of_bench).collect();
    let names = mallocs(&all);
    let table = |metric, title: &str| Block::Table(by_program(&all, &names, metric, title));
    let section = |title: &str, blocks| Section {
        title: title.to_owned(),
        blocks,
    };
    let time = vec![
        table(
            SECONDS,
            "Wall time with the system's malloc, and with the others as shares of it",
        ),
        table(CPU, "User and system time, the program and what it started"),
    ];
    let memory = vec![
        table(
            PEAK,
            "Largest resident set of any process: at least that of the lab's own, some ten megabytes",
        ),
        table(FAULTS, "Page faults"),
    ];
    let programs = vec![Block::Table(what_they_do(&all))];
    let on_the_whole = "How do the preloaded mallocs fare over all programs?";
    let of_allocators = "How do the preloaded mallocs fare over the programs of mimalloc-bench?";
    Analysis {
        findings: [
            any_slower(&real),
            over_all(&real, &names, on_the_whole),
            over_all(&of_bench, &names, of_allocators),
        ]
        .into_iter()
        .flatten()
        .collect(),
        goals: [goals(&real), bench_goals(&of_bench, &names)].concat(),
        sections: vec![
            section("Time", time),
            section("Memory", memory),
            section("The programs", programs),
        ],
        warnings: all.into_iter().flat_map(others).collect(),
        ..Analysis::default()
    }
}

fn by_program(rows: &[&Row<'_, '_>], names: &[String], metric: &str, title: &str) -> Table {
    let cells = rows.iter().flat_map(|row| {
        let cells = names.iter().filter_map(|malloc| row.of(malloc));
        cells.map(|at| (at, row.system))
    });
    let pairs: Vec<(At<'_, '_>, At<'_, '_>)> = cells.collect();
    let judged = family(&pairs, metric);
    let share = |at: At<'_, '_>| {
        let is_it =
            |(own, _): &(At<'_, '_>, At<'_, '_>)| (own.group, own.cell) == (at.group, at.cell);
        let c = &judged[pairs.iter().position(is_it)?];
        c.ratio.map(|ratio| Value::Ratio(ratio, c.verdict))
    };
    let system = SYSTEM.to_owned();
    let columns = [&system].into_iter().chain(names);
    grid(
        title,
        "program",
        rows.iter().map(|row| (row, text(row.program))),
        columns.map(|name| (name, name.clone())),
        |row, malloc| match (row.of(malloc), row.ran(malloc)) {
            _ if *malloc == &system => row.system.value(metric),
            (Some(at), _) => share(at).unwrap_or(Value::Empty),
            (None, Some(_)) if row.failed && malloc.as_str() == LARDER => text("failed"),
            (None, Some(_)) => text("another output"),
            (None, None) => Value::Empty,
        },
    )
}

fn what_they_do(rows: &[&Row<'_, '_>]) -> Table {
    let programs = rows.iter().filter_map(|row| find(row.program));
    grid(
        "What they do",
        "program",
        programs.map(|program| (program, text(program.name))),
        [((), "what".to_owned())],
        |program, ()| text(program.about),
    )
    .folded()
}

/// One goal on the time of each program, which speaks of the one that is farthest from it, one on how many a full run decides,
/// and one on the mean of their peaks.
fn goals(rows: &[Row<'_, '_>]) -> Vec<Goal> {
    let goals = rows.iter().map(|row| (row.program.to_owned(), goal(row)));
    let time = each(Bound::AtMost(MOST), goals);
    let known: Vec<Slower> = rows.iter().filter_map(|row| Some(slower(row)?.0)).collect();
    let is_decided = |is: &&Slower| matches!(is, Slower::Yes | Slower::No);
    let decided = known.iter().filter(is_decided).count();
    let decided = (known.len() >= DECIDED).then(|| {
        let note = format!("of {} programs", known.len());
        let what = "real programs whose time this run decides within 1 %";
        let bound = Bound::AtLeast(DECIDED as f64);
        let goal = bound.goal(
            what,
            "the system's malloc",
            Some(exact(decided as f64)),
            None,
            note,
        );
        goal.in_unit("")
    });
    let peaks = rows
        .iter()
        .filter_map(|row| Some(by_round(&row.of(LARDER)?, &row.system, PEAK)));
    let peaks: Vec<_> = peaks.collect();
    let peak = (peaks.len() > 1).then(|| {
        let what = "real programs with larder's malloc preloaded: peak, mean";
        let (note, mean) = mean_over(&peaks);
        Bound::AtMost(MOST_PEAK).goal(what, "the system's malloc", mean, None, note)
    });
    time.into_iter().chain(decided).chain(peak).collect()
}

/// A metric of a cell over that of another, by round.
fn by_round(own: &At<'_, '_>, other: &At<'_, '_>, metric: &str) -> BTreeMap<u32, f64> {
    let (own, other) = (own.by_round(metric), other.by_round(metric));
    combined(&own, &other, |own, other| own / other)
}

/// Goals on the programs of mimalloc-bench: their mean against each single malloc and against the best one of each program, and the worst
/// program against its best.
fn bench_goals(rows: &[Row<'_, '_>], names: &[String]) -> Vec<Goal> {
    let ratios = |peer: &dyn Fn(&Row<'_, '_>) -> Option<BTreeMap<u32, f64>>| -> Vec<_> {
        rows.iter().filter_map(peer).collect()
    };
    let what = "mimalloc-bench with larder's malloc preloaded, mean";
    let peers = names
        .iter()
        .map(String::as_str)
        .filter(|name| *name != LARDER);
    let single = [SYSTEM].into_iter().chain(peers).map(|name| {
        let of = |row: &Row<'_, '_>| {
            let other = if name == SYSTEM {
                Some(row.system)
            } else {
                row.of(name)
            };
            Some(by_round(&row.of(LARDER)?, &other?, SECONDS))
        };
        let (note, mean) = mean_over(&ratios(&of));
        (
            name.to_owned(),
            BENCH_MEAN.goal(what, name, mean, None, note),
        )
    });
    let best = |row: &Row<'_, '_>| -> Option<BTreeMap<u32, f64>> {
        Some(by_round(&row.of(LARDER)?, &row.best()?, SECONDS))
    };
    let peer = "the best malloc of each program";
    let (note, mean) = mean_over(&ratios(&best));
    let worst = rows.iter().filter_map(|row| {
        let what = "mimalloc-bench with larder's malloc preloaded, worst program";
        let goal = match broken(row) {
            Some(why) => missed(not_measured(BENCH_WORST, what, peer, why)),
            None => goal_on(BENCH_WORST, what, &row.of(LARDER)?, &row.best()?),
        };
        Some((row.program.to_owned(), goal))
    });
    let worst = each(BENCH_WORST, worst);
    let mean = (!rows.is_empty()).then(|| BENCH_BEST.goal(what, peer, mean, None, note));
    let single = each(BENCH_MEAN, single).filter(|_| !rows.is_empty());
    single.into_iter().chain(mean).chain(worst).collect()
}

/// The mean of ratios by round, of more than one program, and over how many it is.
fn mean_over(ratios: &[BTreeMap<u32, f64>]) -> (String, Option<Estimate>) {
    let known = ratios.iter().filter(|ratio| median_of(ratio).is_some());
    let known = known.count();
    let note = match known == ratios.len() {
        true => format!("over {known} programs"),
        false => format!("over {known} of {} programs", ratios.len()),
    };
    (note, mean_ratio(ratios).filter(|_| known > 1))
}

/// Why larder's malloc did not run a program as the system's did.
fn broken(row: &Row<'_, '_>) -> Option<&'static str> {
    let ran = row.ran(LARDER).is_some();
    match row.failed {
        true => Some("it failed, and did not with the system's malloc"),
        false if ran && row.of(LARDER).is_none() => {
            Some("what it wrote is not what it wrote with the system's malloc")
        }
        false => None,
    }
}

fn missed(goal: Goal) -> Goal {
    let state = GoalState::Missed;
    Goal { state, ..goal }
}

/// A goal on the wall time of a malloc beside another.
fn goal_on(bound: Bound, what: &str, own: &At<'_, '_>, other: &At<'_, '_>) -> Goal {
    let c = own.compare(other, SECONDS);
    undisturbed(
        bound.goal(what, called(other), c.ratio, None, ""),
        c.verdict,
    )
}

fn goal(row: &Row<'_, '_>) -> Goal {
    let bound = Bound::AtMost(MOST);
    let what = "a real program with larder's malloc preloaded: wall time";
    let against = "the system's malloc";
    let Some((is_slower, c)) = slower(row) else {
        return not_measured(bound, what, against, "larder's malloc did not run");
    };
    if let Some(why) = broken(row) {
        return missed(not_measured(bound, what, against, why));
    }
    let own = row.ran(LARDER).and_then(|own| own.middle(PEAK));
    let held = own.zip(row.system.middle(PEAK));
    let goal = bound.goal(what, against, c.ratio, held, "");
    if goal.state != GoalState::Missed || is_slower == Slower::Yes {
        return goal;
    }
    let why = match c.floor {
        _ if c.verdict == Verdict::Noisy => TOO_NOISY.to_owned(),
        None => "the system's malloc has no twin that shows what chance does".to_owned(),
        Some(floor) => {
            let apart = short(100.0 * floor.exp_m1());
            format!("within chance: the system's malloc and its twin lie {apart} % apart")
        }
    };
    let state = GoalState::Open;
    noted(Goal { state, ..goal }, &why)
}

/// Which programs are surely slower, surely not, and which this run does not decide.
fn any_slower(rows: &[Row<'_, '_>]) -> Option<Finding> {
    let known = rows.iter().filter_map(|row| Some((row, slower(row)?)));
    let known = known.filter(|(_, (is, c))| *is == Slower::Broken || c.ratio.is_some());
    let known: Vec<(&Row<'_, '_>, (Slower, Comparison))> = known.collect();
    let count = |wanted: Slower| known.iter().filter(|(_, (is, _))| *is == wanted).count();
    let all = known.len();
    let sound = known.iter().filter(|(_, (is, _))| *is != Slower::Broken);
    let most = worst(sound.filter_map(|(row, (_, c))| Some((row.program, c.ratio?))));
    let most = most.map_or_else(String::new, |(program, r)| {
        format!(
            "; {program} comes out highest, at {} of its time",
            ratio(&r)
        )
    });
    let says = match (count(Slower::Yes), count(Slower::No)) {
        _ if all == 0 => return None,
        (0, no) if no == all => format!("None of {all} programs is"),
        (0, _) => format!("None of {all} programs surely is"),
        (slow, _) => format!("{slow} of {all} programs surely"),
    };
    let broken = match count(Slower::Broken) {
        0 => String::new(),
        n => format!("; {n} failed or wrote something else"),
    };
    let table = grid(
        "Wall time with larder's malloc preloaded beside that with the system's",
        "program",
        known.iter().map(|row| (row, text(row.0.program))),
        ["of the system's", "slower by more than 1 %"].map(|name| (name, name.to_owned())),
        |(row, (is_slower, c)), column| match (*column, is_slower) {
            ("of the system's", Slower::Broken) => Value::Empty,
            ("of the system's", _) => shown(c.ratio, "x"),
            (_, Slower::Yes) => text("yes"),
            (_, Slower::No) => text("no"),
            (_, Slower::Undecided) => text("this run does not decide"),
            (_, Slower::Broken) if row.failed => text("it failed"),
            (_, Slower::Broken) => text("it wrote something else"),
        },
    );
    let question = "Is any real program slower with larder's malloc preloaded than with the system's, by more than 1 %?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", format!("{says}{broken}{most}."))
    })
}

/// Geometric means, of each malloc over the programs that it ran.
fn over_all(rows: &[Row<'_, '_>], names: &[String], question: &str) -> Option<Finding> {
    let logs = |malloc: &str, metric: &str| -> Vec<f64> {
        let log = |row: &Row<'_, '_>| {
            let (own, system) = (row.of(malloc)?.middle(metric)?, row.system.middle(metric)?);
            let log = (own > 0.0 && system > 0.0).then(|| own.ln() - system.ln());
            log.filter(|log| log.is_finite())
        };
        rows.iter().filter_map(log).collect()
    };
    let mean = |malloc: &str, metric: &str| {
        let logs = logs(malloc, metric);
        let log = logs.iter().sum::<f64>() / logs.len() as f64;
        (!logs.is_empty()).then(|| log.exp())
    };
    let count = |malloc: &str| logs(malloc, SECONDS).len();
    let first = names.first()?;
    let time = mean(first, SECONDS)?;
    let columns = [("", "programs"), (SECONDS, "wall time"), (PEAK, "peak")];
    let table = grid(
        "Geometric means over the programs that each ran, the system's malloc is 1",
        "malloc",
        names.iter().map(|name| (name, text(name))),
        columns.map(|(metric, name)| (metric, name.to_owned())),
        |malloc, metric| match *metric {
            "" => Value::Count(count(malloc) as i64),
            metric => number(mean(malloc, metric)),
        },
    );
    let answer = format!(
        "{} takes {} of the time of the system's malloc, in the geometric mean over {} programs.",
        match first.as_str() {
            LARDER => "larder's malloc",
            other => other,
        },
        short(time),
        count(first)
    );
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

/// Mallocs on which the output of a program depends, or chance.
fn others(row: &Row<'_, '_>) -> Vec<String> {
    let others = row.others.iter();
    let others = others.filter(|at| row.says_the_same(at) == Some(false));
    let warning = |at: &At<'_, '_>| {
        format!(
            "{} wrote something else with {} than with the system's malloc; it is not compared",
            row.program,
            called(at)
        )
    };
    others.map(warning).collect()
}
