//! Franke's harness played again: the contestants that count and take no time, and what their counts say.

use anyhow::{Context, bail};

use super::plan::COUNTS;
use crate::contestants::getpid::harness::{self, Batch, POSTED, Row, Series, VARIANTS};
use crate::frame::words::exact;
use crate::frame::{Results, bench, finding, grid, line, lines, number, text};
use crate::measure::Contestant;
use crate::model::{self, Chart, Finding, Measures, Params, Provenance, Scale, Value};
use crate::published;

/// The document whose author asked.
pub(super) const FRANKE: &str = "Franke 2002";

/// Seeds of the average; Franke's own is 1.
const SEEDS: [u32; 4] = [2, 3, 4, 5];

/// The counting contestants.
pub(super) fn contestants() -> Vec<Box<dyn Contestant>> {
    vec![
        bench(
            "replay",
            "The harness of March 2002 as posted, with the C library's random numbers of its day: counts searches",
            |params| {
                Ok(counted(&harness::play(
                    series(params, "series", &POSTED)?,
                    &batch(params)?,
                    1,
                )))
            },
        ),
        bench(
            "average",
            "The same with four other seeds: the mean, which does not depend on the random numbers of 2002",
            |params| {
                let (batch, series) = (batch(params)?, series(params, "series", &POSTED)?);
                let [mut mean, others @ ..] =
                    SEEDS.map(|seed| counted(&harness::play(series, &batch, seed)));
                for (name, count) in mean
                    .0
                    .iter_mut()
                    .filter(|(name, _)| name.starts_with("searches"))
                {
                    let sum: f64 = others.iter().filter_map(|run| run.get(name)).sum();
                    *count = (*count + sum) / SEEDS.len() as f64;
                }
                Ok(mean)
            },
        ),
        bench(
            "variant",
            "The same with another rule for where a sweep begins and how far an interval reaches",
            |params| {
                Ok(counted(&harness::play(
                    series(params, "rule", &VARIANTS)?,
                    &batch(params)?,
                    1,
                )))
            },
        ),
    ]
}

/// Searches and allocations of each row, and the searches of all.
fn counted(rows: &[Row]) -> Measures {
    let all: u64 = rows.iter().map(|row| row.searches).sum();
    let none = Measures::new().with("searches", all as f64);
    rows.iter().fold(none, |measures, row| {
        measures
            .with(&searches_at(row.tasks), row.searches as f64)
            .with(&allocations_at(row.tasks), row.allocations as f64)
    })
}

/// The batch that the factor `first` names by its first A.
fn batch(params: &Params) -> anyhow::Result<Batch> {
    let first = u32::try_from(params.count("first")?)?;
    let mut all = harness::batches().into_iter();
    all.find(|batch| batch.tasks.first() == Some(&first))
        .with_context(|| format!("none of Franke's runs begins with {first} tasks"))
}

/// The one that a factor names.
fn series(params: &Params, factor: &str, known: &[(&str, Series)]) -> anyhow::Result<Series> {
    let name = params.text(factor)?;
    let Some((_, series)) = known.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
        bail!("{factor} is '{name}'; it is one of: {}", names.join("; "));
    };
    Ok(*series)
}

/// Name of the measure of one row.
fn searches_at(tasks: u32) -> String {
    format!("searches.{tasks}")
}

fn allocations_at(tasks: u32) -> String {
    format!("allocations.{tasks}")
}

/// A row of the two tables of 2002: A, D, T, and S and G of each series in the order of [`POSTED`].
pub(super) struct Printed {
    pub(super) tasks: u32,
    pub(super) deletes: u32,
    pub(super) allocations: u32,
    pub(super) searches: [f64; 4],
    pub(super) us: [f64; 4],
}

/// Every row: both tables have the same A, D and T.
pub(super) fn printed() -> Vec<Printed> {
    let rows = published::franke_getpid().iter();
    let both = rows.zip(published::franke_limit256());
    let row = |(row, bounded): (&published::FrankeGetpid, &published::FrankeLimit256)| {
        let (s0, s1, s2) = (row.searches_algo0, row.searches_algo1, row.searches_algo2);
        Printed {
            tasks: row.tasks,
            deletes: row.deletes,
            allocations: row.allocations,
            searches: [s0, s1, s2, bounded.searches_algo2_256].map(f64::from),
            us: [
                row.us_algo0,
                row.us_algo1,
                row.us_algo2,
                bounded.us_algo2_256,
            ],
        }
    };
    both.map(row).collect()
}

/// The rows with D = 1000.
fn thousands() -> impl Iterator<Item = Printed> {
    let rows = printed().into_iter();
    rows.filter(|row| (1000..=30_000).contains(&row.tasks))
}

/// A measure of a counting contestant, in any of its cells whose factor has the value.
fn count(
    results: &Results<'_>,
    name: &str,
    (factor, value): (&str, &str),
    measure: &str,
) -> Option<f64> {
    let cells = results.of(COUNTS, name);
    let mut cells = cells.filter(|at| at.text(factor) == Some(value));
    cells.find_map(|at| at.middle(measure))
}

/// S of a series with the random numbers of 2002.
pub(super) fn replayed(results: &Results<'_>, series: usize, tasks: u32) -> Option<f64> {
    let series = ("series", POSTED[series].0);
    count(results, "replay", series, &searches_at(tasks))
}

/// S of a series on average over other random numbers.
fn averaged(results: &Results<'_>, series: usize, tasks: u32) -> Option<f64> {
    let series = ("series", POSTED[series].0);
    count(results, "average", series, &searches_at(tasks))
}

fn by_rule(results: &Results<'_>, rule: &str, tasks: u32) -> Option<f64> {
    count(results, "variant", ("rule", rule), &searches_at(tasks))
}

/// The findings about counts.
pub(super) fn findings(results: &Results<'_>) -> impl Iterator<Item = Finding> {
    let all = [reproduced(results), beginning(results), identical(results)];
    all.into_iter().flatten()
}

fn reproduced(results: &Results<'_>) -> Option<Finding> {
    let rows = printed();
    let here = |row: &Printed, i| replayed(results, i, row.tasks).map(|s| s == row.searches[i]);
    let made = |row: &Printed| {
        let ours = count(
            results,
            "replay",
            ("series", "algo-0"),
            &allocations_at(row.tasks),
        );
        ours.map(|t| t == f64::from(row.allocations))
    };
    let searches = rows
        .iter()
        .flat_map(|row| [0, 1, 2, 3].map(|i| here(row, i)));
    let same = |of: Vec<bool>| (of.iter().filter(|same| **same).count(), of.len());
    let (same_searches, searches) = same(searches.flatten().collect());
    let (same_made, made) = same(rows.iter().filter_map(made).collect());
    if searches == 0 {
        return None;
    }
    let off = |row: &Printed, series: usize| {
        let mean = averaged(results, series, row.tasks)?;
        Some((100.0 * (mean / row.searches[series] - 1.0), row.tasks))
    };
    let offs = thousands().filter(|row| row.tasks >= 8000);
    let offs = offs.flat_map(|row| [off(&row, 0), off(&row, 2)]).flatten();
    let worst = offs.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let worst = worst.map(|(off, tasks)| text(format!("{off:+.1} % (at {tasks} live ids)")));
    let answer =
        format!("{same_searches} of {searches} search counts come out as printed in 2002.");
    let facts = [
        (
            "allocations as printed",
            text(format!("{same_made} of {made}")),
        ),
        (
            "largest change of a count by other random numbers, from 8000 live ids on",
            worst.unwrap_or(Value::Empty),
        ),
    ];
    let rows = facts.into_iter().map(|(what, value)| (value, text(what)));
    let columns = [((), "here".to_owned())];
    let table = grid(
        "The test of 2002 again",
        "what",
        rows,
        columns,
        |value, ()| value.clone(),
    );
    Some(Finding {
        chart: Some(self::searches(results)),
        table: Some(table),
        ..finding(
            "Do the search counts of 2002 come out again when the test is redone?",
            FRANKE,
            answer,
        )
    })
}

/// Of a rule: rows of the posted S1 that it gives, of how many, and the root mean square of ln(count / posted).
fn fit(results: &Results<'_>, rule: &str) -> Option<(usize, usize, f64)> {
    let (mut same, mut rows, mut squares) = (0, 0, 0.0);
    for row in thousands() {
        let (count, posted) = (by_rule(results, rule, row.tasks)?, row.searches[1]);
        rows += 1;
        same += usize::from(count == posted);
        // Neither is 0 in an honest record.
        squares += (count.max(0.5) / posted.max(0.5)).ln().powi(2);
    }
    (rows > 0).then(|| (same, rows, (squares / rows as f64).sqrt()))
}

fn beginning(results: &Results<'_>) -> Option<Finding> {
    let rules = || VARIANTS.iter().map(|(rule, _)| *rule);
    let tried = rules().filter_map(|rule| Some((rule, fit(results, rule)?)));
    let (best, (same, rows, _)) =
        tried.max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.1.2.total_cmp(&a.1.2)))?;
    // Only a rule that gives nearly all of the column explains it.
    let answer = if 10 * same < 9 * rows {
        format!("Not known: the best rule tried, \"{best}\", gives {same} of {rows} counts.")
    } else {
        format!("The sweep that was measured searched {best}: this gives {same} of {rows} counts.")
    };
    type Of = fn(&Results<'_>, &str) -> Option<f64>;
    let columns: [(Of, &str); 3] = [
        (
            |r, rule| Some(fit(r, rule)?.0 as f64),
            "rows of 30 as printed",
        ),
        (
            |r, rule| Some(fit(r, rule)?.2),
            "root mean square of ln(count / printed)",
        ),
        (
            |r, rule| by_rule(r, rule, 2000),
            "searches at 2000 (printed: 3604)",
        ),
    ];
    let table = grid(
        "What could have given the searches of algo-1: rules tried, from 1000 to 30000 live ids",
        "rule of the sweep",
        rules().map(|rule| (rule, text(rule))),
        columns.map(|(of, heading)| (of, heading.to_owned())),
        |rule, of| number(of(results, rule)),
    );
    let question = "Why did the sweep over a cleared map (algo-1) search 3604 times at 2000 live ids in 2002, and the walk (algo-0) 76 times?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

fn identical(results: &Results<'_>) -> Option<Finding> {
    let differ = |counts: &dyn Fn(&Printed, usize) -> Option<f64>| {
        let rows = printed().into_iter().filter(|row| {
            let both = counts(row, 3).zip(counts(row, 2));
            both.is_some_and(|(bounded, free)| bounded != free)
        });
        rows.map(|row| row.tasks.to_string())
            .collect::<Vec<_>>()
            .join(" and ")
    };
    replayed(results, 3, 1000)?;
    let posted = differ(&|row, series| Some(row.searches[series]));
    let here = differ(&|row, series| replayed(results, series, row.tasks));
    let answer = if here == posted {
        format!(
            "Not decided by these counts: the posted bound ends at id 1016, and with that slip they differ at {here} live ids, as printed."
        )
    } else {
        format!(
            "Not known: with the bound of the posted code, which ends at id 1016, they differ at {here} live ids, printed at {posted}: the slip does not explain it."
        )
    };
    let question = "With free intervals of at most 256 ids the search counts of 2002 are identical but in 2 cases: do 256 ids suffice?";
    Some(finding(question, FRANKE, answer))
}

/// A line of the document.
pub(super) fn of_2002(name: &str, points: impl Iterator<Item = (f64, f64)>) -> model::Series {
    let points = points.map(|(x, y)| (x, exact(y)));
    model::Series {
        from: Provenance::Published,
        ..line(format!("{name}, Franke 2002"), points)
    }
}

/// S by live ids beside Franke's, where D is 1000.
fn searches(results: &Results<'_>) -> Chart {
    let both = [0, 1, 2].into_iter().flat_map(|i| {
        let name = POSTED[i].0;
        let ours = thousands().filter_map(|row| {
            let mean = averaged(results, i, row.tasks)?;
            Some((f64::from(row.tasks), exact(mean)))
        });
        let posted = thousands().map(|row| (f64::from(row.tasks), row.searches[i]));
        [
            line(format!("{name}, mean of four seeds"), ours),
            of_2002(name, posted),
        ]
    });
    let axis = ("live ids", Scale::Linear);
    lines(
        "Searches in 10000 allocations",
        axis,
        ("searches", Scale::Linear),
        both,
    )
}
