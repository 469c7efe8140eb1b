//! What the counts say to his table and to the questions that it left.

use crate::measure::RunView;
use crate::model::{Cell, Finding, ShortAnswer, Table, Value};

use super::contestants::OPT;
use super::plan::{
    BUILD, CLIENTS, CORRELATED, FIELD, LOADFILE, LOADFILE_CLIENTS, PATCHED, TOUCHED, VANILLA,
};
use super::rows::{
    Seeds, change, his_change, his_spread, is, measure, of_field, of_seeds, published_middle,
    spread,
};

/// A change below this is none.
const NONE: f64 = 2.0;
/// Points of percent within which the model's change at 64 clients is called his.
const CLOSE: f64 = 10.0;
/// Share by which a row that the constants give may differ from his.
const GIVEN: f64 = 0.05;
const LORD: &str = "Lord 2001";

/// All findings.
pub(super) fn all(view: &RunView<'_>) -> Vec<Finding> {
    [
        loads(view),
        two_clients(view),
        several_touches(view),
        own_loadfile(view),
        since(view),
        build(view),
        not_reproduced(view),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn finding(question: &str, asked_by: &str, answer: String) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict: None,
        ..Finding::default()
    }
}

/// What the summary says of Lord's questions.
pub(super) fn answers(view: &RunView<'_>) -> Vec<ShortAnswer> {
    let dbench = change(view, PATCHED, 64).map(|at_64| {
        let answer = match own_change(view, 64) {
            Some(own) if own * at_64 < 0.0 => {
                format!("not settled: two loads, {at_64:+.1} and {own:+.1} % at 64")
            }
            _ => format!("model, 64 clients: {at_64:+.1} %; in 2001: +29 %"),
        };
        ShortAnswer::new("Does use-once help dbench?", answer)
    });
    let read = |rule| of_seeds(view, rule, 2, "pages_read");
    let two = change(view, PATCHED, 2).map(|two| {
        let answer = match (read(VANILLA), read(PATCHED)) {
            (Some(before), Some(after)) if before == after => {
                "cannot be told: the model evicts no page".to_owned()
            }
            _ => format!("modelled {two:+.1} %; measured 2001: -9 %"),
        };
        ShortAnswer::new("Two clients slower with it?", answer)
    });
    [dbench, two].into_iter().flatten().collect()
}

fn loads(view: &RunView<'_>) -> Option<Finding> {
    let changes: Vec<(i64, f64)> = CLIENTS
        .iter()
        .filter_map(|&clients| Some((clients, change(view, PATCHED, clients)?)))
        .collect();
    let (_, at_64) = *changes.last()?;
    let list: Vec<String> = changes
        .iter()
        .map(|(clients, change)| {
            let his = his_change(*clients).map_or(String::new(), |his| format!(" ({his:+.0} %)"));
            format!("{clients}: {change:+.1} %{his}")
        })
        .collect();
    let from = from_which_load(&changes);
    let settled = own_change(view, 64).map_or(String::new(), |own| {
        if own * at_64 < 0.0 {
            format!(" dbench's own load file says {own:+.1} % there: two loads of opposite signs, so it is not settled here.")
        } else {
            format!(" dbench's own load file says {own:+.1} % there: the two loads agree in sign.")
        }
    });
    Some(finding(
        "\"A definite improvement under high loads, and the lower loads appear about the same.\"",
        LORD,
        format!(
            "{from}; at 64 the model says {at_64:+.1} %, Lord measured +29 %.{settled} By clients, Lord's change in brackets: {}. Medians of three seeds.",
            list.join(", ")
        ),
    ))
}

/// The loads at which it helps, and those at which it costs: said as they are.
fn from_which_load(changes: &[(i64, f64)]) -> String {
    let loads = |wanted: &dyn Fn(f64) -> bool| -> Vec<String> {
        let found = changes.iter().filter(|(_, change)| wanted(*change));
        found.map(|(clients, _)| clients.to_string()).collect()
    };
    let (gains, costs) = (
        loads(&|change| change > NONE),
        loads(&|change| change < -NONE),
    );
    let last = changes.iter().rev();
    let helped_last = last.take_while(|(_, change)| *change > NONE).count();
    let mut text = match gains.first() {
        None => format!("It helps by more than {NONE:.0} % at none of Lord's loads"),
        // All gains are the last loads, so there is a load from which on it helps.
        Some(first) if gains.len() == helped_last => {
            format!("It helps by more than {NONE:.0} % from {first} clients on")
        }
        Some(_) => format!(
            "It helps by more than {NONE:.0} % at {} clients, and not from any load on",
            gains.join(", ")
        ),
    };
    if !costs.is_empty() {
        text += &format!(" and costs more than that at {}", costs.join(", "));
    }
    text
}

fn two_clients(view: &RunView<'_>) -> Option<Finding> {
    let two = change(view, PATCHED, 2)?;
    let noise = spread(view, VANILLA, 2, "modelled_mb_per_s")?.max(spread(
        view,
        PATCHED,
        2,
        "modelled_mb_per_s",
    )?);
    let word = if two.abs() <= noise.max(NONE) {
        "Two clients are neither slower nor faster with the patch"
    } else if two < 0.0 {
        "Two clients are slower with the patch"
    } else {
        "Two clients are faster with the patch"
    };
    let read = |rule| of_seeds(view, rule, 2, "pages_read");
    let changed = format!("{word}: {two:+.2} %, where the seeds alone differ by {noise:.2} %.");
    let answer = match (read(VANILLA), read(PATCHED)) {
        (Some(before), Some(after)) if before == after && two.abs() <= noise.max(NONE) => format!(
            "This model cannot tell. Both read {before:.0} pages from the disk: its cache has a size in which two clients evict nothing \
             that is used again, so that the rule has no choice and no change can come out."
        ),
        (Some(before), Some(after)) if before == after => {
            format!("{changed} Both read {before:.0} pages from the disk.")
        }
        (Some(before), Some(after)) => format!(
            "{changed} The pages read from the disk change from {before:.0} to {after:.0}, so the two keep different pages."
        ),
        _ => changed,
    };
    let his = his_spread("use-once", 2).map_or(String::new(), |his| {
        format!(" Lord's three runs with the patch lay {his:.0} % apart, and he wrote that another was in line.")
    });
    Some(finding(
        "Are two clients slower with the patch (44.3 against 48.4 MB/s)?",
        LORD,
        answer + &his,
    ))
}

fn touches(cell: &Cell, touches: i64, requests: &str) -> bool {
    is(cell, "touches", touches)
        && cell
            .params
            .text("requests")
            .is_ok_and(|found| found == requests)
}

fn several_touches(view: &RunView<'_>) -> Option<Finding> {
    let misses = |rule: &str, at: i64, requests: &str| {
        measure(view, CORRELATED, rule, "pages_read", |cell| {
            touches(cell, at, requests)
        })
    };
    let more = |rule, at, requests, one| Some(100.0 * (misses(rule, at, requests)? / one - 1.0));
    let percent = |n: Option<f64>| n.map_or(Value::Empty, |n| Value::Number(n, "%".to_owned()));
    let mut at_two = Vec::new();
    let mut rows = Vec::new();
    for rule in TOUCHED {
        let Some(one) = misses(rule, 1, "apart").filter(|one| *one > 0.0) else {
            continue;
        };
        let (two, eight) = (more(rule, 2, "apart", one), more(rule, 8, "apart", one));
        at_two.extend(two.filter(|_| eight.is_some()).map(|two| (rule, two)));
        rows.push(vec![
            Value::Text(rule.to_owned()),
            percent(two),
            percent(eight),
            percent(more(rule, 4, "merged", one)),
        ]);
    }
    let by_loss = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let (least, most) = (
        at_two.iter().min_by(by_loss)?,
        at_two.iter().max_by(by_loss)?,
    );
    let patched = at_two.iter().find(|(rule, _)| *rule == PATCHED)?;
    Some(Finding {
        table: Some(Table {
            title: "Misses against one touch a use, Zipf's law over ten times the cache".to_owned(),
            columns: ["rule", "2 touches", "8 touches", "4 that count as one"]
                .map(str::to_owned)
                .to_vec(),
            rows,
            ..Table::default()
        }),
        ..finding(
            "What of pages that are touched several times at once?",
            "Phillips and Riel 2001",
            format!(
                "Two touches a use cost use-once {:+.1} % misses; of all rules {} loses most ({:+.1} %) and {} least ({:+.1} %).",
                patched.1, most.0, most.1, least.0, least.1
            ),
        )
    })
}

/// What the patch changes of the throughput under dbench's own load file, percent.
fn own_change(view: &RunView<'_>, clients: i64) -> Option<f64> {
    let of = |rule: &str| {
        measure(view, LOADFILE, rule, "modelled_mb_per_s", |cell| {
            is(cell, "clients", clients)
        })
    };
    let before = of(VANILLA).filter(|before| *before > 0.0)?;
    Some(100.0 * (of(PATCHED)? / before - 1.0))
}

fn own_loadfile(view: &RunView<'_>) -> Option<Finding> {
    let of = |rule: &str, clients: i64, name: &str| {
        measure(view, LOADFILE, rule, name, |cell| {
            is(cell, "clients", clients)
        })
    };
    let (mut more_of_both, mut apart) = (Vec::new(), Vec::new());
    let parts: Vec<String> = LOADFILE_CLIENTS
        .into_iter()
        .filter_map(|clients| {
            let before =
                of(VANILLA, clients, "modelled_mb_per_s").filter(|before| *before > 0.0)?;
            let after = of(PATCHED, clients, "modelled_mb_per_s")?;
            let hits = [VANILLA, PATCHED].map(|rule| of(rule, clients, "hit_percent"));
            let read = [VANILLA, PATCHED].map(|rule| of(rule, clients, "pages_read"));
            let [Some(hits_before), Some(hits_after)] = hits else {
                return None;
            };
            let [Some(read_before), Some(read_after)] = read else {
                return None;
            };
            if hits_after > hits_before && read_after > read_before {
                more_of_both.push(clients.to_string());
            }
            if (hits_after - hits_before) * (after - before) < 0.0 {
                apart.push(clients.to_string());
            }
            Some(format!(
                "{clients} clients {:+.1} % (hits {hits_before:.1} to {hits_after:.1} %, pages read {read_before:.0} to {read_after:.0})",
                100.0 * (after / before - 1.0),
            ))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let agree = if apart.is_empty() {
        " At no load do hits and throughput go opposite ways.".to_owned()
    } else {
        format!(
            " Hits and throughput go opposite ways at {} clients.",
            apart.join(", ")
        )
    };
    let why = if more_of_both.is_empty() {
        String::new()
    } else {
        format!(
            " At {} clients the patch finds more pages and also reads more from the disk, which is possible since a miss that overwrites its \
             whole page reads nothing; which misses those are is not counted.",
            more_of_both.join(", ")
        )
    };
    Some(finding(
        "And with dbench's own loadfile (of dbench 4.0, not of 2001)?",
        "larder",
        format!(
            "Modelled throughput with the patch: {}.{agree}{why}",
            parts.join("; ")
        ),
    ))
}

fn since(view: &RunView<'_>) -> Option<Finding> {
    let hits = |rule: &str| of_field(view, rule, 16, "bare_hit_percent");
    let said = |rule: &str| Some(hits(rule)?.text(1, " %"));
    let (vanilla, patched) = (said(VANILLA)?, said(PATCHED)?);
    let mut names: Vec<&str> = view
        .cells(FIELD)
        .into_iter()
        .filter(|cell| !cell.twin && cell.contestant != OPT)
        .map(|cell| cell.contestant.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut field: Vec<(&str, Seeds)> = names
        .into_iter()
        .filter_map(|name| Some((name, hits(name)?)))
        .collect();
    field.sort_by(|a, b| b.1.middle.total_cmp(&a.1.middle).then(a.0.cmp(b.0)));
    let (best, most) = field.first()?;
    let named: Vec<String> = ["linux-2.4.8", "linux-2.4.16", "linux-two-list", "mglru"]
        .iter()
        .filter_map(|rule| Some(format!("{rule} {}", said(rule)?)))
        .collect();
    let opt = said(OPT).map_or(String::new(), |opt| {
        format!(" The best there can be is {opt}.")
    });
    let better: Vec<String> = most
        .values
        .iter()
        .filter_map(|(seed, mine)| {
            let at = |(name, seeds): &(&str, Seeds)| {
                let of_seed = seeds.values.iter().find(|(found, _)| found == seed);
                of_seed.map(|(_, hits)| (name.to_string(), *hits))
            };
            let others = field.iter().filter_map(at);
            let (name, hits) = others.max_by(|a, b| a.1.total_cmp(&b.1))?;
            (hits > *mine).then(|| format!("with seed {seed} {name} has more, {hits:.1} %"))
        })
        .collect();
    let certain = match (most.values.len(), better.is_empty()) {
        (..=1, _) => " One seed; --full has three.".to_owned(),
        (seeds, true) => format!(
            " Medians of {seeds} seeds, in brackets the least and the most; no rule has more than {best} with any of them."
        ),
        (seeds, false) => format!(
            " Medians of {seeds} seeds, in brackets the least and the most; {}.",
            better.join("; ")
        ),
    };
    Some(finding(
        "What have 25 years added?",
        "the lab",
        format!(
            "Hit ratio at 16 clients, the rules bare (no readahead, no dirty pages): 2.4.7 {vanilla}, with use-once {patched}, then {}; the most has {best} with {}.{opt}{certain}",
            named.join(", "),
            most.text(1, " %")
        ),
    ))
}

fn build(view: &RunView<'_>) -> Option<Finding> {
    let reads = |rule: &str, with: bool| {
        measure(view, BUILD, rule, "modelled_s", |cell| {
            cell.params.int("grep").is_ok_and(|grep| (grep > 0) == with)
        })
    };
    let hits = |rule: &str| {
        measure(view, BUILD, rule, "first_hit_percent", |cell| {
            cell.params.int("grep").is_ok_and(|grep| grep > 0)
        })
    };
    let (before, after) = (reads(VANILLA, true)?, reads(PATCHED, true)?);
    let mut kept: Vec<(&str, f64)> = Vec::new();
    for cell in view.cells(BUILD) {
        if !kept.iter().any(|(name, _)| *name == cell.contestant)
            && let Some(hits) = hits(&cell.contestant)
        {
            kept.push((&cell.contestant, hits));
        }
    }
    kept.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let (best, most) = *kept.first()?;
    let changed = 100.0 * (after / before.max(1e-9) - 1.0);
    Some(finding(
        "Is a build faster with a search through a large tree beside it (\"about 13 %\", 11 % by Phillips' list)?",
        "Phillips 2001",
        format!(
            "{}: the patch changes the modelled time of both together by {:+.1} %. The compiler's own time is not in the model. The build finds {:.1} % of its pages in memory with 2.4.7, {:.1} % with the patch, {most:.1} % with \
             {best}.",
            if changed <= -10.0 {
                "The model gives it, too"
            } else {
                "The model does not reproduce it"
            },
            changed,
            hits(VANILLA)?,
            hits(PATCHED)?
        ),
    ))
}

fn not_reproduced(view: &RunView<'_>) -> Option<Finding> {
    let ours = change(view, PATCHED, 64)?;
    let written = |rule| of_seeds(view, rule, 64, "pages_written");
    let read = |rule| of_seeds(view, rule, 64, "pages_read");
    let percent =
        |a: Option<f64>, b: Option<f64>| Some(100.0 * (a? / b.filter(|b| *b > 0.0)? - 1.0));
    let reads = percent(read(PATCHED), read(VANILLA))?;
    let writes = percent(written(PATCHED), written(VANILLA))?;
    let given = given_rows(view);
    Some(finding(
        "Which published numbers does the model not give?",
        "the lab",
        format!(
            "Lord's change at 64 clients is +29 %, the model's {ours:+.1} %: {}. There the patch changes the pages read from disk by {reads:+.1} % and those written by \
             {writes:+.1} %. The 22 % less system time of Lord's kernel build cannot show: the model has no cost of the rules' own work. Lord's absolute rates depend on a disk and \
             a loadfile of 2001 that are not known. {given}",
            if (ours - 29.0).abs() <= CLOSE {
                "as far as a model can say the same"
            } else {
                "not the same"
            }
        ),
    ))
}

/// The model's CPU is as fast as his first two rows say: do those rows come out so?
fn given_rows(view: &RunView<'_>) -> String {
    let rows = [1, 2].map(|clients| {
        let ours = of_seeds(view, VANILLA, clients, "modelled_mb_per_s")?;
        let his = published_middle("vanilla", clients)?;
        Some((ours, his))
    });
    let [Some((one, his_one)), Some((two, his_two))] = rows else {
        return "The constants of the CPU come from Lord's rows of one and two clients.".to_owned();
    };
    let near = |ours: f64, his: f64| (ours / his - 1.0).abs() <= GIVEN;
    let numbers =
        format!("{one:.1} and {two:.1} MB/s where Lord has {his_one:.1} and {his_two:.1}");
    if near(one, his_one) && near(two, his_two) {
        format!(
            "The constants of the CPU come from Lord's rows of one and two clients, so those two rows are given, not found: {numbers}."
        )
    } else {
        format!(
            "The constants of the CPU come from Lord's rows of one and two clients, and still those two rows are others: {numbers}."
        )
    }
}
