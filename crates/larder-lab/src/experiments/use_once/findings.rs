//! Findings from the counts: Lord's table, and the questions that it left open.

use super::contestants::OPT;
use super::metrics::{BARE, FIRST, RATE, READ, SECONDS, WRITTEN};
use super::plan::{CLIENTS, DBENCH, FIELD, KERNELS, LOADFILE, PATCHED, TOUCHED, VANILLA};
use super::rows::{
    Seeds, built, change, lords, lords_build, lords_change, of, rules_of, shown, signed, touched,
};
use crate::frame::{Results, finding, grid, text};
use crate::model::{Finding, ShortAnswer, Table, Value};
use crate::published::LordBuild;

/// A change below this is none.
const NONE: f64 = 2.0;
/// Points of percent within which the model's change at 64 clients is called Lord's.
const CLOSE: f64 = 10.0;
/// Share by which a row that the constants give may differ from Lord's.
const GIVEN: f64 = 0.05;
const LORD: &str = "Lord 2001";

/// All findings.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let all = [
        loads(results),
        two_clients(results),
        several_touches(results),
        since(results),
        build(results),
        published_numbers(results),
    ];
    all.into_iter().flatten().collect()
}

/// What the summary says of Lord's questions.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let own = change(results, LOADFILE, 64, RATE).map(|own| own.middle);
    let dbench = change(results, DBENCH, 64, RATE).map(|at_64| {
        let at_64 = at_64.middle;
        let answer = match own {
            Some(own) if own * at_64 < 0.0 => {
                format!("not settled: two loads, {at_64:+.1} and {own:+.1} % at 64")
            }
            _ => format!("model, 64 clients: {at_64:+.1} %; in 2001: +29 %"),
        };
        ShortAnswer::new("Does use-once help dbench?", answer)
    });
    let two = change(results, DBENCH, 2, RATE).map(|two| {
        let answer = match same_reads(results) {
            Some(_) => "cannot be told: the model evicts no page".to_owned(),
            None => format!("modelled {:+.1} %; measured 2001: -9 %", two.middle),
        };
        ShortAnswer::new("Two clients slower with it?", answer)
    });
    [dbench, two].into_iter().flatten().collect()
}

/// Both loads of dbench: the one that is made here, and dbench's own load file where it is.
fn loads(results: &Results<'_>) -> Option<Finding> {
    let made = |clients| Some((clients, change(results, DBENCH, clients, RATE)?));
    let changes: Vec<(i64, Seeds)> = CLIENTS.into_iter().filter_map(made).collect();
    let (most, last) = changes.last()?;
    let from = which_loads(&changes);
    let at_last = format!("{} at {most} clients", last.signed());
    let answer = match change(results, LOADFILE, *most, RATE) {
        Some(own) if own.middle * last.middle < 0.0 => format!(
            "Not settled, two loads have opposite signs: {at_last} under the generated load, {} under dbench 4.0's own load file. dbench on a mounted file system would settle it.",
            own.signed()
        ),
        Some(own) => format!(
            "{from}; {at_last}. dbench 4.0's own load file agrees: {}.",
            own.signed()
        ),
        None => format!(
            "{from}; {at_last}. dbench's own load file is absent, so the second load is not compared."
        ),
    };
    let columns = ["Lord 2001", "generated load", "dbench 4.0's load file"];
    let rows = CLIENTS.into_iter().rev();
    let table = grid(
        "Change of dbench's throughput by the patch",
        "clients",
        rows.map(|clients| (clients, Value::Count(clients))),
        columns.map(|name| (name, name.to_owned())),
        |clients, column| {
            let group = match *column {
                "Lord 2001" => return signed(lords_change(*clients)),
                "generated load" => DBENCH,
                _ => LOADFILE,
            };
            let changed = change(results, group, *clients, RATE);
            changed.map_or(Value::Empty, |c| text(c.signed()))
        },
    );
    Some(
        finding(
            "Is dbench faster with use-once under high load, and the same under low load?",
            LORD,
            answer,
        )
        .with(table.noted("Middles of the seeds, in brackets the least and the most.")),
    )
}

/// The loads at which it helps, and those at which it costs.
fn which_loads(changes: &[(i64, Seeds)]) -> String {
    let loads = |sign: f64| {
        let found = changes
            .iter()
            .filter(|(_, change)| sign * change.middle > NONE);
        let loads: Vec<String> = found.map(|(clients, _)| clients.to_string()).collect();
        match loads.is_empty() {
            true => "none of Lord's loads".to_owned(),
            false => format!("{} clients", loads.join(", ")),
        }
    };
    let (gains, costs) = (loads(1.0), loads(-1.0));
    format!("It gains more than {NONE:.0} % at {gains} and loses as much at {costs}")
}

/// Pages that both kernels read with two clients, where it is the same number: the rule then had no choice to make.
fn same_reads(results: &Results<'_>) -> Option<f64> {
    let [before, after] = [VANILLA, PATCHED].map(|rule| of(results, DBENCH, rule, 2, READ));
    let before = before?.middle;
    (before == after?.middle).then_some(before)
}

fn two_clients(results: &Results<'_>) -> Option<Finding> {
    let two = change(results, DBENCH, 2, RATE)?;
    let says = match same_reads(results) {
        Some(pages) => format!(
            "The model cannot tell: both kernels read the same {pages:.0} pages from the disk, so the rule had no choice to make."
        ),
        None => format!(
            "The model changes by {} and reads other pages, which is no measurement.",
            two.signed()
        ),
    };
    Some(finding(
        "Are two clients slower with use-once (44.3 against 48.4 MB/s in 2001)?",
        LORD,
        format!("{says} dbench on a mounted file system under both rules would settle it."),
    ))
}

fn several_touches(results: &Results<'_>) -> Option<Finding> {
    let more = |rule, touches, requests| {
        let one = touched(results, rule, 1, "apart").filter(|one| *one > 0.0)?;
        Some(100.0 * (touched(results, rule, touches, requests)? / one - 1.0))
    };
    let at_two = |rule| Some((rule, more(rule, 2, "apart")?));
    let at_two: Vec<(&str, f64)> = TOUCHED.into_iter().filter_map(at_two).collect();
    let (least, _) = at_two.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (_, patched) = at_two.iter().find(|(rule, _)| *rule == PATCHED)?;
    let columns = [
        ((2, "apart"), "2 touches"),
        ((8, "apart"), "8 touches"),
        ((4, "merged"), "4 that count as one"),
    ];
    let table = grid(
        "Misses against one touch a use, Zipf's law over ten times the cache",
        "rule",
        TOUCHED.map(|rule| (rule, text(rule))),
        columns.map(|(touches, name)| (touches, name.to_owned())),
        |rule, (touches, requests)| {
            let more = more(rule, *touches, requests);
            more.map_or(Value::Empty, |n| Value::Number(n, "%".to_owned()))
        },
    );
    Some(finding(
            "What of pages that are touched several times at once?",
            "Phillips 2001",
            format!(
                "Two touches a use change the misses of use-once by {patched:+.1} %; of these rules {least} loses least."
            ),
        ).with(table))
}

fn since(results: &Results<'_>) -> Option<Finding> {
    let hits = |rule| Some((rule, of(results, FIELD, rule, 16, BARE)?));
    let rules = rules_of(results, FIELD).into_iter();
    let mut field: Vec<(&str, Seeds)> = rules.filter_map(hits).collect();
    field.sort_by(|a, b| b.1.middle.total_cmp(&a.1.middle).then(a.0.cmp(b.0)));
    let mut chosen = field.iter().filter(|(rule, _)| *rule != OPT);
    let (best, most) = chosen.next()?;
    let beaten = |(seed, mine): &(i64, f64)| {
        let others = chosen.clone().flat_map(|(_, seeds)| &seeds.values);
        others
            .into_iter()
            .any(|(own, hits)| own == seed && hits > mine)
    };
    let sure = match most.values.len() {
        1 => "one seed; --full has three",
        _ if most.values.iter().any(beaten) => "in the middle of the seeds, not with each of them",
        _ => "with each of the seeds",
    };
    let shown = |rule: &str| TOUCHED[..KERNELS].contains(&rule) || rule == *best || rule == OPT;
    let table = grid(
        "Uses that find their page at 16 clients, rules bare: no readahead, no dirty pages",
        "rule",
        field
            .iter()
            .filter(|(rule, _)| shown(rule))
            .map(|(rule, seeds)| (seeds, text(*rule))),
        [((), "hits".to_owned())],
        |seeds, ()| text(seeds.text(1, " %")),
    );
    Some(
        finding(
            "What have 25 years added?",
            "larder",
            format!(
                "Of all rules {best} finds most at 16 clients: {} of the uses ({sure}).",
                most.text(1, " %")
            ),
        )
        .with(table),
    )
}

fn percent((before, after): (f64, f64)) -> f64 {
    100.0 * (after / before.max(1e-9) - 1.0)
}

fn build(results: &Results<'_>) -> Option<Finding> {
    let seconds = |rule| built(results, rule, SECONDS, true);
    let changed = percent((seconds(VANILLA)?, seconds(PATCHED)?));
    let says = if changed <= -10.0 {
        "Reproduced"
    } else {
        "Not reproduced"
    };
    type Of = fn(&LordBuild) -> f64;
    let of_lord: [(&str, Of); 3] = [
        ("Lord 2001, the build alone: elapsed time", |b| b.elapsed_s),
        ("Lord 2001: system time", |b| b.system_s),
        ("Lord 2001: user time", |b| b.user_s),
    ];
    let published = of_lord.into_iter().filter_map(|(name, of)| {
        let (before, after) = (lords_build("vanilla", of)?, lords_build("use-once", of)?);
        let [one, other] = [before, after].map(|s| Value::Published(s, "s".to_owned()));
        Some(vec![
            text(name),
            one,
            other,
            signed(Some(percent((before, after)))),
        ])
    });
    let modelled = |name: &str, metric, unit, beside| {
        let [before, after] = [VANILLA, PATCHED].map(|rule| built(results, rule, metric, beside));
        let changed = before.zip(after).map(percent).filter(|_| unit == "s");
        let [one, other] = [before, after].map(|value| shown(value, unit));
        vec![text(name), one, other, signed(changed)]
    };
    let rows = published.chain([
        modelled("modelled, build and search: time", SECONDS, "s", true),
        modelled("modelled: the build's hits, alone", FIRST, "%", false),
        modelled("modelled: its hits beside the search", FIRST, "%", true),
    ]);
    Some(finding(
            "Is a build faster with use-once, beside a search through a large tree (\"about 13 %\")?",
            "Phillips 2001",
            format!(
                "{says}: the modelled time of both changes by {changed:+.1} %. The model has no cost of the compiler, nor of the rules' own work."
            ),
        ).with(Table::new("A kernel's build", &["", "2.4.7", "use-once", "change"], rows)))
}

fn published_numbers(results: &Results<'_>) -> Option<Finding> {
    let ours = change(results, DBENCH, 64, RATE)?;
    let lords_64 = lords_change(64)?;
    let says = if (ours.middle - lords_64).abs() <= CLOSE {
        "is reproduced"
    } else {
        "is not reproduced"
    };
    let row = |name: &str, then: Value, now: Option<String>, so: &str| {
        vec![text(name), then, now.map_or(Value::Empty, text), text(so)]
    };
    // The model's CPU is as fast as these two rows say: do they come out so?
    let given = |name, clients| {
        let (then, now) = (
            lords("vanilla", clients)?.middle,
            of(results, DBENCH, VANILLA, clients, RATE)?,
        );
        let so = match (now.middle / then - 1.0).abs() <= GIVEN {
            true => "given: the model's CPU is made from it",
            false => "differs, though the model's CPU is made from it",
        };
        let then = Value::Published(then, "MB/s".to_owned());
        Some(row(name, then, Some(now.text(1, " MB/s")), so))
    };
    let modelled = |name, metric| {
        let now = change(results, DBENCH, 64, metric).map(|c| c.signed());
        row(name, Value::Empty, now, "only modelled")
    };
    let [before, after] =
        ["vanilla", "use-once"].map(|kernel| lords_build(kernel, |build| build.system_s));
    let system = signed(before.zip(after).map(percent));
    let rows = vec![
        row(
            "change at 64 clients",
            signed(Some(lords_64)),
            Some(ours.signed()),
            says,
        ),
        given("one client", 1)?,
        given("two clients", 2)?,
        modelled("change of the pages read at 64 clients", READ),
        modelled("change of the pages written at 64 clients", WRITTEN),
        row(
            "change of a kernel build's system time",
            system,
            None,
            "no cost of the rules' own work",
        ),
    ];
    Some(
        finding(
            "Which numbers of 2001 does the model not give?",
            "larder",
            format!(
                "Lord's {lords_64:+.0} % at 64 clients {says}: the model has {}.",
                ours.signed()
            ),
        )
        .with(
            Table::new(
                "Numbers of 2001 and the model's",
                &["number", "2001", "model", ""],
                rows,
            )
            .noted("Absolute rates depend on a disk and a load file of 2001 that are not known."),
        ),
    )
}
