//! The summary at the top of the page, for a reader of nothing else.

use super::goals::{self, Unmeasured};
use super::table::{CellView, Head, TableView};
use crate::report::summary::COST_HEADS;
use crate::report::{Document, Summary, text};

/// A warning, or several that differ in their details alone.
pub(super) struct Warning {
    pub(super) line: String,
    pub(super) experiments: String,
    /// The warnings whole; empty where the line has all of it.
    pub(super) whole: Vec<String>,
}

/// What stands at the top of the page: the summary of every format, with what the page alone has room for.
pub(super) struct Top {
    pub(super) summary: Summary,
    pub(super) goal_counts: String,
    pub(super) use_it: String,
    pub(super) refused: String,
    /// Says once that runs were quick; empty where none was.
    pub(super) exploratory: String,
    pub(super) warnings: Vec<Warning>,
    /// Distance of the A/A twins, by experiment.
    pub(super) floors: Vec<(String, String)>,
    pub(super) costs: Option<TableView>,
    pub(super) missed: Option<TableView>,
    pub(super) undecided: Option<TableView>,
    pub(super) held: Option<TableView>,
    pub(super) unmeasured: Vec<Unmeasured>,
}

/// Takes the summary from all runs of a document.
pub(super) fn of(doc: &Document) -> Top {
    let summary = Summary::of(doc);
    let floors = doc.runs.iter().filter(|(_, a)| !a.floor.is_empty());
    let [missed, undecided, held] = goals::tables(doc);
    Top {
        goal_counts: summary.goal_counts(),
        use_it: summary.use_it(),
        refused: summary.refused(),
        exploratory: exploratory(doc),
        warnings: warnings(doc),
        floors: floors
            .map(|(run, a)| (run.experiment.clone(), a.floor.clone()))
            .collect(),
        costs: (!summary.costs.is_empty()).then(|| cost_table(&summary)),
        missed,
        undecided,
        held,
        unmeasured: goals::unmeasured(doc),
        summary,
    }
}

fn exploratory(doc: &Document) -> String {
    let quick = doc.runs.iter().filter(|(run, _)| run.depth == "quick");
    match quick.count() {
        0 => String::new(),
        n => format!(
            "Exploratory: {} of {} took fewer rounds than a conclusion needs. larder measure --full takes enough.",
            n,
            text::plural(doc.runs.len(), "run")
        ),
    }
}

fn cost_table(summary: &Summary) -> TableView {
    let [title, larder, peer, is, floor] = COST_HEADS;
    let rows = summary.costs.iter().zip(summary.cost_rows());
    let rows = rows.map(|(cost, row)| {
        let class = cost.verdict.as_ref().map_or("", text::verdict_class);
        vec![
            CellView::new(row.what, ""),
            CellView::new(row.larder, "num"),
            CellView::new(row.peer, "num"),
            CellView::new(row.peer_name, ""),
            CellView {
                chip: row.larder_is,
                chip_class: class,
                ..CellView::default()
            },
            CellView::new(row.floor, "num"),
        ]
    });
    TableView {
        heads: [
            ("", false),
            (larder, true),
            (peer, true),
            ("", false),
            (is, false),
            (floor, true),
        ]
        .map(|(text, numeric)| Head::new(text, numeric))
        .into(),
        rows: rows.collect(),
        title: title.to_owned(),
        ..TableView::default()
    }
}

fn warnings(doc: &Document) -> Vec<Warning> {
    let mut all = Vec::new();
    for (run, a) in &doc.runs {
        for w in text::warnings(run, a) {
            all.push((run.experiment.clone(), w.to_owned()));
        }
    }
    kinds(&all)
}

/// Warnings with their experiments: what differs in its numbers and details alone is one line with a fold.
fn kinds(all: &[(String, String)]) -> Vec<Warning> {
    struct Kind<'w> {
        heads: Vec<String>,
        from: Vec<(&'w str, &'w str)>,
    }
    let mut kinds: Vec<(String, Kind<'_>)> = Vec::new();
    for (experiment, w) in all {
        let head = head(w);
        let key: String = head.chars().filter(|c| !c.is_ascii_digit()).collect();
        let at = kinds.iter().position(|(k, _)| *k == key);
        let at = at.unwrap_or_else(|| {
            let (heads, from) = (Vec::new(), Vec::new());
            kinds.push((key, Kind { heads, from }));
            kinds.len() - 1
        });
        kinds[at].1.heads.push(head.to_owned());
        kinds[at].1.from.push((experiment, w));
    }
    kinds
        .into_iter()
        .map(|(_, kind)| {
            let line = spread(&kind.heads);
            let one = kind
                .from
                .iter()
                .all(|(_, w)| w.trim_end_matches('.') == line);
            let line = if one { kind.from[0].1.to_owned() } else { line };
            let names: Vec<&str> = kind.from.iter().map(|(name, _)| *name).collect();
            let all = |(name, w): &(&str, &str)| format!("{name}: {w}");
            Warning {
                line,
                experiments: if names.len() > 3 {
                    text::plural(names.len(), "experiment")
                } else {
                    names.join(", ")
                },
                whole: if one && names.len() <= 3 {
                    Vec::new()
                } else {
                    kind.from.iter().map(all).collect()
                },
            }
        })
        .collect()
}

/// The beginning of a warning that says what it is about.
fn head(warning: &str) -> &str {
    let ends = [": ", ". ", "; ", " (", ", so "];
    let end = ends
        .iter()
        .flat_map(|e| warning.match_indices(e))
        .map(|(at, _)| at)
        .filter(|at| *at >= 20)
        .min();
    warning[..end.unwrap_or(warning.len())].trim_end_matches('.')
}

/// One text for several that differ in one number: the smallest and the largest.
fn spread(heads: &[String]) -> String {
    let Some(first) = heads.first() else {
        return String::new();
    };
    let number = |h: &str| -> Option<(usize, usize, u64)> {
        let from = h.find(|c: char| c.is_ascii_digit())?;
        let rest = &h[from..];
        let long = rest.find(|c: char| !c.is_ascii_digit());
        let to = from + long.unwrap_or(rest.len());
        Some((from, to, h[from..to].parse().ok()?))
    };
    let numbers: Vec<u64> = heads.iter().filter_map(|h| Some(number(h)?.2)).collect();
    match (number(first), numbers.iter().min(), numbers.iter().max()) {
        (Some((from, to, _)), Some(lo), Some(hi)) if lo < hi => {
            format!("{}{lo} to {hi}{}", &first[..from], &first[to..])
        }
        _ => first.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_one_kind_are_one_line() {
        let noisy = |n| {
            format!(
                "Other programs wanted the CPU during {n} % of the time (more than 10 % is noisy)."
            )
        };
        let said = [
            ("a", noisy(11)),
            ("b", noisy(17)),
            ("b", "Short and whole.".to_owned()),
        ];
        let all = kinds(&said.map(|(name, w)| (name.to_owned(), w)));
        assert_eq!(all.len(), 2);
        assert_eq!(
            all[0].line,
            "Other programs wanted the CPU during 11 to 17 % of the time"
        );
        assert_eq!(all[0].experiments, "a, b");
        assert_eq!(all[0].whole.len(), 2);
        assert!(all[0].whole[1].starts_with("b: Other programs wanted the CPU during 17 %"));
        assert_eq!(all[1].line, "Short and whole.");
    }
}
