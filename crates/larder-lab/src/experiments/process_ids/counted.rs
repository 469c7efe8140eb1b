//! What the counts say: Franke's numbers again, and what gave them.

use super::counts::{allocations_at, searches_at};
use super::plan::COUNTS;
use crate::contestants::getpid::harness::{POSTED, VARIANTS};
use crate::frame::words::exact;
use crate::frame::{Results, finding, grid, line, lines};
use crate::model::{Chart, Finding, Provenance, Scale, Series, Table, Value};
use crate::published;

/// Who asked.
pub(super) const FRANKE: &str = "Franke 2002";

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
    let both = published::franke_getpid()
        .iter()
        .zip(published::franke_limit256());
    let row = |(row, bounded): (&published::FrankeGetpid, &published::FrankeLimit256)| Printed {
        tasks: row.tasks,
        deletes: row.deletes,
        allocations: row.allocations,
        searches: [
            row.searches_algo0,
            row.searches_algo1,
            row.searches_algo2,
            bounded.searches_algo2_256,
        ]
        .map(f64::from),
        us: [
            row.us_algo0,
            row.us_algo1,
            row.us_algo2,
            bounded.us_algo2_256,
        ],
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
    let mut cells = results
        .of(COUNTS, name)
        .filter(|at| at.text(factor) == Some(value));
    cells.find_map(|at| at.middle(measure))
}

/// S of a series with the random numbers of 2002.
pub(super) fn replayed(results: &Results<'_>, series: usize, tasks: u32) -> Option<f64> {
    count(
        results,
        "replay",
        ("series", POSTED[series].0),
        &searches_at(tasks),
    )
}

/// S of a series on average over other random numbers.
fn averaged(results: &Results<'_>, series: usize, tasks: u32) -> Option<f64> {
    count(
        results,
        "average",
        ("series", POSTED[series].0),
        &searches_at(tasks),
    )
}

fn by_rule(results: &Results<'_>, rule: &str, tasks: u32) -> Option<f64> {
    count(results, "variant", ("rule", rule), &searches_at(tasks))
}

/// The findings about counts.
pub(super) fn findings(results: &Results<'_>) -> Vec<Finding> {
    let all = [reproduced(results), beginning(results), identical(results)];
    all.into_iter().flatten().collect()
}

fn reproduced(results: &Results<'_>) -> Option<Finding> {
    let (mut counts, mut same, mut allocations, mut same_allocations) = (0, 0, 0, 0);
    for row in printed() {
        for (series, posted) in row.searches.into_iter().enumerate() {
            let ours = replayed(results, series, row.tasks);
            counts += usize::from(ours.is_some());
            same += usize::from(ours == Some(posted));
        }
        let ours = count(
            results,
            "replay",
            ("series", "algo-0"),
            &allocations_at(row.tasks),
        );
        allocations += usize::from(ours.is_some());
        same_allocations += usize::from(ours == Some(f64::from(row.allocations)));
    }
    if counts == 0 {
        return None;
    }
    let off = |row: &Printed, series: usize| {
        let mean = averaged(results, series, row.tasks)?;
        Some((100.0 * (mean / row.searches[series] - 1.0), row.tasks))
    };
    let offs = thousands().filter(|row| row.tasks >= 8000);
    let offs = offs.flat_map(|row| [off(&row, 0), off(&row, 2)]).flatten();
    let worst = offs.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let other = worst.map_or_else(String::new, |(off, tasks)| {
        format!(" Other random numbers change a count from 8000 live ids on by {off:+.1} % at most (at {tasks}).")
    });
    let answer = format!(
        "{same} of {counts} search counts and {same_allocations} of {allocations} numbers of allocations come out as printed in 2002.{other}"
    );
    let question = "Volunteers to redo the test: do the counts come out again?";
    Some(Finding {
        chart: Some(searches(results)),
        ..finding(question, FRANKE, answer)
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
    let tried = VARIANTS
        .iter()
        .filter_map(|(rule, _)| Some((*rule, fit(results, rule)?)));
    let (best, (same, rows, _)) =
        tried.max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.1.2.total_cmp(&a.1.2)))?;
    // Only a rule that gives nearly all of the column explains it.
    let answer = if 10 * same < 9 * rows {
        format!(
            "No rule tried tells: \"{best}\" gives {same} of {rows} counts, and {} remain a riddle.",
            rows - same
        )
    } else {
        let text = fit(results, VARIANTS[0].0).map_or(0, |(same, ..)| same);
        format!(
            "What was measured as algo-1 searched {best}: this gives {same} of {rows} counts exactly, the rule of the text gives {text}."
        )
    };
    type Of = fn(&Results<'_>, &str) -> Option<f64>;
    let columns: [(Of, _); 3] = [
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
        VARIANTS
            .iter()
            .map(|(rule, _)| (*rule, Value::Text((*rule).to_owned()))),
        columns.map(|(of, heading)| (of, heading.to_owned())),
        |rule, of| number(of(results, rule)),
    );
    let question = "Why did algo-1 need 3604 searches at 2000 live ids where algo-0 needed 76?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

/// A bare number.
pub(super) fn number(value: Option<f64>) -> Value {
    value.map_or(Value::Empty, |v| Value::Number(v, String::new()))
}

fn identical(results: &Results<'_>) -> Option<Finding> {
    let differ = |counts: &dyn Fn(&Printed, usize) -> Option<f64>| {
        let rows = printed().into_iter().filter_map(|row| {
            let (bounded, free) = (counts(&row, 3)?, counts(&row, 2)?);
            (bounded != free).then(|| row.tasks.to_string())
        });
        rows.collect::<Vec<_>>().join(" and ")
    };
    replayed(results, 3, 1000)?;
    let posted = differ(&|row, series| Some(row.searches[series]));
    let here = differ(&|row, series| replayed(results, series, row.tasks));
    let answer = if here == posted {
        format!(
            "The counts cannot tell: the posted bound ends at id 1016, and with that slip they differ from algo-2's at {here} live ids, as printed."
        )
    } else {
        format!(
            "Not known: the posted bound ends at id 1016, but with that slip they differ at {here} live ids, printed at {posted}: the slip does not explain it."
        )
    };
    let question = "The search counts with intervals of at most 256 are identical but in 2 cases: is 256 sufficient?";
    Some(finding(question, FRANKE, answer))
}

/// A line of the document.
pub(super) fn of_2002(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Series {
    Series {
        from: Provenance::Published,
        ..line(
            format!("{name}, Franke 2002"),
            points.map(|(x, y)| (x, exact(y))),
        )
    }
}

/// S by live ids beside Franke's, where D is 1000.
fn searches(results: &Results<'_>) -> Chart {
    let series = ["algo-0", "algo-1", "algo-2"].into_iter().enumerate();
    let both = series.flat_map(|(i, name)| {
        let ours = thousands().filter_map(|row| {
            Some((
                f64::from(row.tasks),
                exact(averaged(results, i, row.tasks)?),
            ))
        });
        let posted = thousands().map(|row| (f64::from(row.tasks), row.searches[i]));
        [
            line(format!("{name}, mean of four seeds"), ours),
            of_2002(name, posted),
        ]
    });
    lines(
        "Searches in 10000 allocations",
        ("live ids", Scale::Linear),
        ("searches", Scale::Linear),
        both,
    )
}

/// A table of 2002 as it was laid out, with what was counted and timed here after each column. `columns` are indices of
/// [`POSTED`] with the contestant that is timed; `more` are contestants of whom the cost alone is shown.
pub(super) fn again<'t>(
    results: &'t Results<'_>,
    title: &str,
    columns: &[(usize, &'t str)],
    more: &[(&'t str, &str)],
    cost: impl Fn(&str, u32) -> Value + Copy + 't,
) -> Table {
    type Of<'t> = Box<dyn Fn(&Printed) -> Value + 't>;
    let published = |value, unit: &str| Value::Published(value, unit.to_owned());
    let timed = |name: &'t str| -> Of<'t> { Box::new(move |row| cost(name, row.tasks)) };
    let mut all: Vec<(Of<'_>, String)> = Vec::new();
    let mut add = |heading: &str, of: Of<'t>| all.push((of, heading.to_owned()));
    add("D", Box::new(|row| Value::Count(row.deletes.into())));
    add("T", Box::new(|row| Value::Count(row.allocations.into())));
    for &(i, name) in columns {
        let tag = POSTED[i].0.trim_start_matches("algo-");
        let here = move |row: &Printed| number(replayed(results, i, row.tasks));
        add(
            &format!("S{tag} (2002)"),
            Box::new(move |row| published(row.searches[i], "")),
        );
        add(&format!("S{tag} here"), Box::new(here));
        add(
            &format!("G{tag} (2002)"),
            Box::new(move |row| published(row.us[i], "us")),
        );
        add(&format!("G{tag} here"), timed(name));
    }
    for (name, heading) in more {
        add(heading, timed(name));
    }
    let rows = printed().into_iter().map(|row| {
        let name = Value::Count(row.tasks.into());
        (row, name)
    });
    Table {
        notes: vec![
            "A live ids, D deletions a round, T allocations, S searches, G microseconds an allocation. S is played with the random numbers of 2002. G of 2002 is of another machine: a shape. A quick run times a few A with fewer allocations; --full times all.".to_owned(),
        ],
        long: true,
        ..grid(title, "A", rows, all, |row, of| of(row))
    }
}
