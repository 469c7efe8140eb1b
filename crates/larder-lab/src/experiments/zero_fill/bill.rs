//! What a page costs its consumer, by supply and use, and whether zeroing it ahead of time pays.

use super::cells::*;
use crate::contestants::mapping::bill::Use;
use crate::frame::words::{ratio, short};
use crate::frame::{Column, Results, grid, listing, text};
use crate::measure::Comparison;
use crate::model::{Block, Recommendation, Table, Value};
use crate::stats::{Estimate, Verdict};

fn compare(results: &Results<'_>, group: &str, other: &str, metric: &str) -> Option<Comparison> {
    let [ahead, other] = [BEFORE, other].map(|name| results.find(group, name, &[]));
    Some(ahead?.compare(&other?, metric))
}

/// Zeroed ahead, the helper charged, against the cheapest zeroing at hand-out: the one with the largest ratio.
fn charged(results: &Results<'_>, group: &str) -> Option<(Estimate, Verdict)> {
    let ratios = [WARM, COLD].into_iter().filter_map(|other| {
        let c = compare(results, group, other, TOTAL)?;
        Some((c.ratio?, c.verdict))
    });
    ratios.max_by(|a, b| a.0.value.total_cmp(&b.0.value))
}

/// What the bills say of zeroing ahead.
pub(super) struct Ahead {
    /// Whether the sum is smaller for the consumer that writes least, and for no measured use larger; `None` undecided.
    pub(super) pays: Option<bool>,
    /// The ratio and verdict of the first use measured, the one that writes least.
    pub(super) of: (&'static str, Estimate, Verdict),
    all: Vec<(&'static str, Use, Estimate, Verdict)>,
}

pub(super) fn ahead(results: &Results<'_>) -> Option<Ahead> {
    let all: Vec<_> = USES
        .into_iter()
        .filter_map(|(group, usage)| {
            let (ratio, verdict) = charged(results, group)?;
            Some((group, usage, ratio, verdict))
        })
        .collect();
    let (_, usage, least, verdict) = *all.first()?;
    let dearer = all.iter().any(|(.., verdict)| *verdict == Verdict::Slower);
    let pays = match verdict {
        Verdict::Faster => Some(!dearer),
        Verdict::Slower | Verdict::Same { .. } => Some(false),
        _ => None,
    };
    Some(Ahead {
        pays,
        of: (usage.words(), least, verdict),
        all,
    })
}

/// Zeroing ahead is recommended only where every use was measured and it pays.
pub(super) fn recommendation(results: &Results<'_>) -> Option<Recommendation> {
    let Ahead { pays, of, all } = ahead(results)?;
    let (_, least, verdict) = of;
    let pays = all.len() == USES.len() && pays == Some(true);
    let why = match verdict {
        _ if pays => "That is less, and for no use more.",
        Verdict::Slower => {
            "Even the consumer that writes least does not earn the helper's time back."
        }
        _ => "That is not surely less for every use.",
    };
    let each = all.iter();
    let each = each.map(|(_, usage, r, _)| format!("{} {}", usage.name(), ratio(r)));
    let each: Vec<String> = each.collect();
    Some(Recommendation {
        key: "pages.prezero".to_owned(),
        value: pays.to_string(),
        because: format!(
            "Costs {} of the cheapest zeroing at hand-out. By use, with the helper charged: {}. {why}",
            short(least.value),
            each.join(", ")
        ),
        evidence: all
            .first()
            .filter(|(_, usage, ..)| *usage == Use::Write8)
            .map(|_| least),
    })
}

/// A page zeroed long before by another CPU, against those zeroed at hand-out.
pub(super) fn ahead_table(results: &Results<'_>) -> Table {
    let columns = [
        ("consumer alone, of a cold page", COLD, CPU),
        ("helper charged, of a cold page", COLD, TOTAL),
        ("helper charged, of a warm page", WARM, TOTAL),
        ("consumer alone, of no zeroing, warm", "floor-warm", CPU),
    ];
    grid(
        "A page zeroed long before by another CPU, against one zeroed at hand-out",
        "the consumer",
        USES.map(|(group, usage)| (group, text(usage.words()))),
        columns.map(|column| (column, column.0.to_owned())),
        |group, (_, other, metric)| {
            let c = compare(results, group, other, metric);
            let ratio = c.and_then(|c| Some(Value::Ratio(c.ratio?, c.verdict)));
            ratio.unwrap_or(Value::Empty)
        },
    )
}

/// The bill of every supply, a table for each use.
pub(super) fn blocks(results: &Results<'_>) -> Vec<Block> {
    let table = |(group, usage): (&'static str, Use)| {
        let warm = results.find(group, WARM, &[]);
        let table = listing(
            format!("The consumer gets a page and {}", usage.words()),
            SUPPLIES
                .iter()
                .filter_map(|name| results.find(group, name, &[])),
            vec![
                Column::contestant("supply"),
                Column::metric("consumer, CPU", CPU),
                Column::metric("consumer, wall", WALL),
                Column::metric("helper, CPU", HELPER),
                Column::metric("both", TOTAL),
                Column::against("both, of bill-warm", warm, TOTAL),
                Column::metric("give back", BACK),
                Column::metric("memory held", HELD),
            ],
        );
        Block::Table(table.noted(
            "Per page, medians over batches of 64. Giving back is a column and not part of the bill.",
        ))
    };
    USES.map(table).to_vec()
}
