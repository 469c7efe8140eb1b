//! Sections, the chart, and the sentences.

use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{
    Axis, Better, Block, Cell, Chart, Finding, Point, Provenance, Scale, Section, Series,
};

use super::goals::share;
use super::plan::{
    CYCLIC, CYCLIC_LARGE, FEW, FIRST_FREED, HUGE, LARGE, LARGE_LIVES, LAST_FREED, LOWEST,
    LOWEST_LARGE, SMALL, SMALL_LIVES, SPARSE, SPARSE_PEERS, THREAD_LIVES,
};
use super::rows::{COST, Clock, best, find, median_of, scaling, spread};
use super::{promise, tables};

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    let small = [
        (CYCLIC, "The next free one after the last (cyclic)"),
        (LOWEST, "The lowest free one (lowest)"),
        (FIRST_FREED, "The one freed first (first-freed)"),
        (LAST_FREED, "The one freed last (last-freed)"),
    ];
    let large = [
        (CYCLIC_LARGE, "The next free one after the last (cyclic-4m)"),
        (LOWEST_LARGE, "The lowest free one (lowest-4m)"),
    ];
    let mut one = Vec::new();
    for (group, title) in small {
        one.push(Block::Table(tables::costs(
            view,
            group,
            title,
            SMALL,
            &SMALL_LIVES,
        )));
    }
    one.push(Block::Chart(chart(view)));
    for (group, title) in small {
        one.push(Block::Table(tables::parts(
            view,
            group,
            title,
            SMALL,
            &SMALL_LIVES,
        )));
    }
    let mut four = Vec::new();
    for (group, title) in large {
        four.push(Block::Table(tables::costs(
            view,
            group,
            title,
            LARGE,
            &LARGE_LIVES,
        )));
        four.push(Block::Table(tables::parts(
            view,
            group,
            title,
            LARGE,
            &LARGE_LIVES,
        )));
    }
    let section = |title: &str, blocks| Section {
        title: title.to_owned(),
        blocks,
    };
    vec![
        section("32768 identifiers", one),
        section("4 million identifiers", four),
        section("2^32 identifiers", vec![Block::Table(tables::sparse(view))]),
        section("Memory", vec![Block::Table(tables::bits(view))]),
        section("Two threads", vec![Block::Table(tables::threads(view))]),
        section("Making a space", vec![Block::Table(tables::create(view))]),
        section("Rest", vec![Block::Table(tables::distances(view))]),
    ]
}

/// A pair by occupancy, cyclic.
fn chart(view: &RunView<'_>) -> Chart {
    let series = tables::names(view, CYCLIC)
        .into_iter()
        .map(|name| Series {
            name: name.to_owned(),
            points: SMALL_LIVES
                .iter()
                .filter_map(|live| {
                    let cell = find(view, CYCLIC, name, &[("live", *live)])?;
                    let e = view.estimate(CYCLIC, cell, COST)?;
                    Some(Point {
                        x: *live as f64,
                        y: e.value,
                        lo: e.lo,
                        hi: e.hi,
                    })
                })
                .collect(),
            from: Provenance::Measured,
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    Chart {
        title: "A pair by the number of identifiers that are taken, cyclic".to_owned(),
        x: Axis {
            label: "taken of 32768".to_owned(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "ns for a free and an allocation".to_owned(),
            scale: Scale::Log,
        },
        series,
        marks: Vec::new(),
        categories: Vec::new(),
    }
}

/// The sentences.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(occupancy(view));
    for (live, question) in [
        (FEW, "Does a wide space cost what is used of it?"),
        (HUGE - FEW, "And one that is nearly full?"),
    ] {
        // In whichever form it is better at this occupancy.
        let theirs = best(view, SPARSE, &SPARSE_PEERS, &[("live", live)], COST)
            .map_or("roaring", |cell| cell.contestant.as_str());
        all.extend(versus(view, SPARSE, question, theirs, live, HUGE));
    }
    all.extend(versus(
        view,
        CYCLIC,
        "What does the next free identifier cost?",
        "pidmap",
        SMALL_LIVES[2],
        SMALL,
    ));
    all.extend(versus(
        view,
        LOWEST,
        "What does the lowest free identifier cost?",
        "hibitset",
        SMALL_LIVES[2],
        SMALL,
    ));
    all.extend(THREAD_LIVES.iter().filter_map(|live| threads(view, *live)));
    all.extend(rest(view));
    all
}

/// Whether every rule keeps the distance that it states.
fn rest(view: &RunView<'_>) -> Option<Finding> {
    let (mut all, mut broken) = (0, Vec::new());
    for rule in promise::rules() {
        for looked in promise::cells(view, rule) {
            let (Some(least), Some(min)) = (looked.least, looked.min) else {
                continue;
            };
            let text = format!(
                "{}, {}, {}: {} of {}",
                looked.of(rule),
                share(looked.live, SMALL),
                looked.called(),
                short(min),
                short(least)
            );
            all += 1;
            if looked.is_broken() {
                broken.push(text);
            }
        }
    }
    let answer = match broken.as_slice() {
        _ if all == 0 => return None,
        [] => format!(
            "Yes, in all {all} cells of a rule that states one: the fewest found was never below."
        ),
        _ => format!(
            "DEFECT: in {} of {all} cells the fewest found is below what is stated: {}.",
            broken.len(),
            broken.join("; ")
        ),
    };
    Some(finding(
        "Does every rule keep the reuse distance that it states, also shared and by a clock?",
        answer,
        None,
    ))
}

fn finding(question: &str, answer: String, verdict: Option<crate::stats::Verdict>) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: "larder".to_owned(),
        answer,
        verdict,
        ..Finding::default()
    }
}

/// How far the cost depends on how full the space is.
fn occupancy(view: &RunView<'_>) -> Option<Finding> {
    let parts: Vec<String> = ["ids", "pidmap", "tree"]
        .into_iter()
        .filter_map(|name| {
            let cells: Vec<&Cell> = SMALL_LIVES
                .iter()
                .filter_map(|live| find(view, CYCLIC, name, &[("live", *live)]))
                .collect();
            if cells.len() < SMALL_LIVES.len() {
                return None;
            }
            let spread = median_of(&spread(view, CYCLIC, &cells))?;
            Some(format!("{name} {}", ratio(&spread)))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "Does an identifier cost more the fuller the space is?",
            format!(
                "The most expensive occupancy from 3 to 100 % costs so many times the cheapest: {}.",
                parts.join(", ")
            ),
            None,
        )
    })
}

fn versus(
    view: &RunView<'_>,
    group: &str,
    question: &str,
    theirs: &str,
    live: i64,
    count: i64,
) -> Option<Finding> {
    let ours = find(view, group, "ids", &[("live", live)])?;
    let peer = find(view, group, theirs, &[("live", live)])?;
    let c = view.compare(group, ours, peer, COST, Better::Lower);
    let answer = format!(
        "{}: {} ns a pair, {} of {theirs} ({} ns): {}.",
        share(live, count),
        short(view.middle(group, ours, COST)?),
        ratio(&c.ratio?),
        short(view.middle(group, peer, COST)?),
        word(c.verdict)
    );
    Some(finding(question, answer, Some(c.verdict)))
}

fn threads(view: &RunView<'_>, live: i64) -> Option<Finding> {
    let parts: Vec<String> = super::plan::SHARED
        .into_iter()
        .filter_map(|name| {
            let cpu = median_of(&scaling(view, name, live, Clock::Cpu))?;
            let wall = median_of(&scaling(view, name, live, Clock::Wall))?;
            Some(format!("{name} {} ({})", ratio(&cpu), ratio(&wall)))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "How do sources scale from one thread to two?",
            format!(
                "{}, by CPU time (and by the clock on the wall, where others use the CPUs, too): {}.",
                share(live, SMALL),
                parts.join(", ")
            ),
            None,
        )
    })
}
