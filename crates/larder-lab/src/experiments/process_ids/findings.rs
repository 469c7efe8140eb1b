//! What the times say: where the curves cross, and what each answer to it costs.

use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{Better, Finding, ShortAnswer};
use crate::stats::Verdict;
use crate::stats::sweep::Crossover;

use super::counted::{self, FRANKE};
use super::curve::{at, cells, crossing, words};
use super::elsewhere::ALGORITHMS;
use super::plan::{NEAR, PACKED, SCATTERED};
use super::reasons;

/// The metric that judges: his G.
pub(super) const COST: &str = "us_per_alloc";

/// Every finding that the samples allow, the most important first.
pub(super) fn all(view: &RunView<'_>) -> Vec<Finding> {
    let mut findings = counted::findings(view);
    findings.extend(crossings(view));
    findings.extend(reasons::all(view));
    findings.extend(bounded(view));
    findings.extend(missed(view));
    findings.extend(adaptive(view));
    findings
}

/// A question in quotation marks is his, any other one larder's.
pub(super) fn finding(question: &str, answer: String, verdict: Option<Verdict>) -> Finding {
    let asked_by = if question.starts_with('"') {
        FRANKE
    } else {
        "larder"
    };
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict,
        ..Finding::default()
    }
}

/// What the summary says of Franke's questions.
pub(super) fn answers(view: &RunView<'_>) -> Vec<ShortAnswer> {
    const TASKS: i64 = 22_000;
    let cost = |name: &str| view.middle(NEAR, &at(view, NEAR, name, TASKS)?, COST);
    let cheapest = || {
        let names = [
            "algo-0", "algo-1", "algo-2", "andrea", "bill", "pidmap", "idr", "larder",
        ];
        let (name, best) = names
            .into_iter()
            .filter_map(|name| Some((name, cost(name)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let walk = cost("algo-2")?;
        Some(ShortAnswer::new(
            "Which pid allocator?",
            format!(
                "a kept map: {name} {} ns, algo-2 {} ns",
                short(1e3 * best),
                short(1e3 * walk)
            ),
        ))
    };
    let switch = || match crossing(view, NEAR, "algo-0", "algo-2")? {
        Crossover::One(one) => {
            let at = short(one.at.value);
            let (lo, hi) = (short(one.at.lo), short(one.at.hi));
            Some(format!("at {at} [{lo}, {hi}] here; with a map never"))
        }
        Crossover::NoneInRange { .. } => Some("never here: one walk is always cheaper".to_owned()),
        Crossover::Several(_) | Crossover::Touches { .. } => {
            Some("not decided in this run".to_owned())
        }
    };
    let switch = switch().map(|text| ShortAnswer::new("Switch walks at 22K tasks?", text));
    [cheapest(), switch].into_iter().flatten().collect()
}

/// algo-0 against the sweeps in every memory.
fn crossings(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    for (group, place) in [
        (NEAR, "tasks of 1.7 KB near each other"),
        (SCATTERED, "the same scattered over memory"),
        (PACKED, "tasks of 28 bytes as in his harness"),
    ] {
        let texts: Vec<String> = ALGORITHMS[1..]
            .iter()
            .copied()
            .filter_map(|sweep| {
                let found = crossing(view, group, "algo-0", sweep)?;
                Some(format!(
                    "algo-0 and {sweep}: {}",
                    words(&found, "algo-0", sweep)
                ))
            })
            .collect();
        if !texts.is_empty() {
            parts.push(format!("With {place}: {}.", texts.join("; ")));
        }
    }
    (!parts.is_empty()).then(|| {
        finding(
            "\"One should use the current algorithm until ~ 22K tasks and beyond that use algo-2.\"",
            parts.join(" "),
            None,
        )
    })
}

/// What a bound of 256 costs when it holds.
fn bounded(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    let (mut last, mut lines) = (None, String::new());
    for (tasks, cell) in cells(view, NEAR, "algo-2-256") {
        let Some(free) = at(view, NEAR, "algo-2", tasks) else {
            continue;
        };
        let c = view.compare(NEAR, &cell, &free, COST, Better::Lower);
        if let Some(r) = c.ratio {
            parts.push(format!("{} at {tasks} ({})", ratio(&r), word(c.verdict)));
            last = Some(c.verdict);
            let read = |cell| view.middle(NEAR, cell, "task_lines").map(short);
            if let Some((bound, unbound)) = read(&cell).zip(read(&free)) {
                lines = format!(
                    " At {tasks} tasks it reads {bound} cache lines of tasks an allocation, algo-2 {unbound}."
                );
            }
        }
    }
    (!parts.is_empty()).then(|| {
        finding(
            "\"Experiments with a partial maximum safe pid-range\": what does bounding at 256 cost?",
            format!(
                "With a map of 2048 ids on the stack and intervals of 256 at most, an allocation costs, as a ratio to algo-2: {}.{lines}",
                parts.join("; ")
            ),
            last,
        )
    })
}

/// Andrea's and Bill's, which he did not have.
fn missed(view: &RunView<'_>) -> Option<Finding> {
    let tasks = cells(view, NEAR, "andrea")
        .into_iter()
        .map(|(a, _)| a)
        .filter(|a| *a <= 30_000)
        .max()?;
    let sweep = at(view, NEAR, "algo-1-locked", tasks)?;
    let andrea = view.compare(
        NEAR,
        &at(view, NEAR, "andrea", tasks)?,
        &sweep,
        COST,
        Better::Lower,
    );
    let cost = |name: &str| {
        let value = view.middle(NEAR, &at(view, NEAR, name, tasks)?, COST)?;
        Some(format!("{name} {} us", short(value)))
    };
    let costs: Vec<String> = ["andrea", "bill", "pidmap", "idr", "larder"]
        .into_iter()
        .filter_map(cost)
        .collect();
    Some(finding(
        "\"Include Andrea's <getpid> there, allthough it resembles <algo-1>. I am not really sure whether Bill's version can be easily integrated.\"",
        format!(
            "Both were posted to linux-kernel in 2002 and run here. At {tasks} tasks an allocation costs {}. Andrea's is algo-1 as his text has it, with locked marks: {} of \
             algo-1-locked ({}). Bill's keeps a map and never walks; as posted it hands out ids that are in use (where a word's first free id lies before the \
             candidate it takes the candidate unseen), so its search is mended here.",
            costs.join(", "),
            andrea
                .ratio
                .map_or_else(|| "unknown".to_owned(), |r| ratio(&r)),
            word(andrea.verdict)
        ),
        Some(andrea.verdict),
    ))
}

/// The adaptive form against the better of the two it chooses from.
fn adaptive(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    let mut verdict = None;
    for (tasks, cell) in cells(view, NEAR, "adaptive") {
        let best = ["algo-0", "algo-2"]
            .into_iter()
            .filter_map(|name| {
                let cell = at(view, NEAR, name, tasks)?;
                let cost = view.middle(NEAR, &cell, COST)?;
                Some((name, cell, cost))
            })
            .min_by(|a, b| a.2.total_cmp(&b.2));
        if let Some((name, best, _)) = best {
            let c = view.compare(NEAR, &cell, &best, COST, Better::Lower);
            if let Some(r) = c.ratio {
                parts.push(format!("{} of {name} at {tasks}", ratio(&r)));
                verdict = Some(c.verdict);
            }
        }
    }
    (!parts.is_empty()).then(|| {
        finding(
            "\"Providing an adaptive implementation seems the right choice.\"",
            format!(
                "Adaptive, its threshold from two passes timed when it starts, costs {}. It chooses between two walks over the list; the maps beside it walk none.",
                parts.join(", ")
            ),
            verdict,
        )
    })
}
