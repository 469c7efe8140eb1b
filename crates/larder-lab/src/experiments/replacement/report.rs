//! Goals, tables and sentences.

use crate::frame::words::{Bound, exact};
use crate::measure::RunView;
use crate::model::{Block, Finding, Goal, Section, Table, Value};

use super::plan::{DEFAULT, ELSEWHERE, LRU, MADE, OPT, PUBLIC, all_cells};
use super::standing::{Standing, mean_gap, standings};

/// Percent of the way from LRU to OPT, in the mean of the public cells.
const MEAN_GOAL: f64 = 37.0;
/// Points behind the best rule of a cell.
const BEHIND_GOAL: f64 = 0.5;

/// The most of something over all cells; none if a cell lacks it.
fn most(standings: &[Standing], of: impl Fn(&Standing) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = standings.iter().map(of).collect();
    all?.into_iter().max_by(f64::total_cmp)
}

/// Every goal, met or not: of the default, over all cells of the public traces.
pub(super) fn goals(view: &RunView<'_>) -> Vec<Goal> {
    let standings = standings(view, PUBLIC);
    let cells = all_cells(PUBLIC).len();
    let whole = standings.len() == cells;
    let note = if whole {
        String::new()
    } else {
        format!(
            "{} of {cells} cells ran; name the traces' folder in LARDER_TRACES and run with --full",
            standings.len()
        )
    };
    let goal = |bound: Bound, what: &str, against: &str, unit: &str, value: Option<f64>| {
        let value = value.filter(|_| whole).map(exact);
        bound
            .goal(what, against, value, None, note.clone())
            .in_unit(unit)
    };
    vec![
        goal(
            Bound::AtLeast(MEAN_GOAL),
            "the default's share of the way from LRU to OPT, in the mean",
            "LRU and OPT",
            "%",
            mean_gap(&standings, DEFAULT),
        ),
        goal(
            Bound::AtLeast(0.0),
            "the same in the worst cell",
            "LRU",
            "%",
            most(&standings, |s| Some(-s.gap(DEFAULT)?)).map(|least| -least),
        ),
        goal(
            Bound::AtMost(BEHIND_GOAL),
            "points behind the best rule, in the worst cell",
            "every other rule",
            "points",
            most(&standings, Standing::behind),
        ),
    ]
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn percent(value: Option<f64>) -> Value {
    value.map_or(Value::Empty, |value| Value::Text(format!("{value:.2}")))
}

fn summary(standings: &[Standing], title: &str) -> Table {
    let rows = standings
        .iter()
        .map(|s| {
            let best = s.best();
            vec![
                Value::Text(format!("{} {}", s.trace, s.size)),
                percent(s.of(LRU)),
                percent(s.of(DEFAULT)),
                best.map_or(Value::Empty, |(rule, hits)| {
                    Value::Text(format!("{hits:.2} {rule}"))
                }),
                percent(s.of(OPT)),
                percent(s.gap(DEFAULT)),
            ]
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["trace, blocks", LRU, DEFAULT, "best other", OPT, "gap"]),
        rows,
        notes: vec![
            "Hits in % of the uses; gap: the default's share of the way from LRU to OPT, in %."
                .to_owned(),
        ],
        long: false,
    }
}

/// Every rule by its mean, the best one first.
fn ranking(standings: &[Standing], title: &str) -> Table {
    let mut rules: Vec<(&str, f64, f64)> = standings
        .first()
        .into_iter()
        .flat_map(|s| &s.hits)
        .filter_map(|(rule, _)| {
            let least = -most(standings, |s| Some(-s.gap(rule)?))?;
            Some((rule.as_str(), mean_gap(standings, rule)?, least))
        })
        .collect();
    rules.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rows = rules
        .into_iter()
        .map(|(rule, mean, least)| {
            vec![
                Value::Text(rule.to_owned()),
                Value::Text(format!("{mean:.1}")),
                Value::Text(format!("{least:.1}")),
            ]
        })
        .collect();
    Table {
        title: title.to_owned(),
        columns: headings(&["rule", "mean gap", "worst cell"]),
        rows,
        notes: Vec::new(),
        long: true,
    }
}

const GROUPS: [(&str, &str); 3] = [
    (PUBLIC, "Public traces"),
    (ELSEWHERE, "Other public traces"),
    (MADE, "Workloads made here"),
];

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    GROUPS
        .iter()
        .filter_map(|(group, title)| {
            let standings = standings(view, group);
            (!standings.is_empty()).then(|| Section {
                title: (*title).to_owned(),
                blocks: vec![
                    Block::Table(summary(&standings, title)),
                    Block::Table(ranking(
                        &standings,
                        "Every rule's share of the way from LRU to OPT, in %",
                    )),
                ],
            })
        })
        .collect()
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    GROUPS
        .iter()
        .filter_map(|(group, title)| {
            let standings = standings(view, group);
            let mean = mean_gap(&standings, DEFAULT)?;
            let below = standings
                .iter()
                .filter(|s| s.gap(DEFAULT).is_some_and(|gap| gap < 0.0))
                .count();
            let worst = standings
                .iter()
                .filter_map(|s| Some((s, s.behind()?)))
                .max_by(|a, b| a.1.total_cmp(&b.1))?;
            let (best, _) = worst.0.best()?;
            let behind = if worst.1 > 0.0 {
                format!(
                    "at most {:.2} points behind the best other rule ({best}, {} {})",
                    worst.1, worst.0.trace, worst.0.size
                )
            } else {
                "ahead of every other rule in all".to_owned()
            };
            Some(Finding {
                question: format!("How good is the default rule? {title}"),
                asked_by: "larder".to_owned(),
                answer: format!(
                    "{mean:.1} % of the way from LRU to OPT in the mean of {} cells, below LRU in {below}, {behind}.",
                    standings.len()
                ),
                verdict: None, ..Finding::default() })
        })
        .collect()
}
