//! Why: the cost of a pass, the lines that are touched, large spaces, reuse, and the kernel of today.

use crate::contestants::getpid::crossover_for;
use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{Better, Cell, Finding};

use super::curve::{at, cells};
use super::findings::{COST, finding};
use super::large::LEVELS;
use super::plan::{DESCRIPTORS, LARGE, NEAR, PASSES, PORTS, PROCESSES, REUSE, REUSE_AT};
use super::reuse::RULES;

pub(super) fn all(view: &RunView<'_>) -> Vec<Finding> {
    [
        passes(view),
        lines(view),
        wide(view),
        reuse(view),
        kernel(view),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A pass of some kind in some memory, at the largest A that was timed.
fn pass(view: &RunView<'_>, kind: &str, memory: &str) -> Option<(i64, Cell)> {
    cells(view, PASSES, kind)
        .into_iter()
        .rfind(|(_, cell)| cell.params.text("memory").is_ok_and(|m| m == memory))
}

/// k, and where it puts the crossing.
fn passes(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    for memory in ["near", "scattered", "packed"] {
        let Some((tasks, compare)) = pass(view, "compare-pass", memory) else {
            continue;
        };
        for (kind, stores) in [("mark-pass", "plain"), ("mark-pass-locked", "locked")] {
            let Some((_, mark)) = pass(view, kind, memory) else {
                continue;
            };
            let Some(k) = view.ratio(PASSES, &mark, &compare, "ns_per_task") else {
                continue;
            };
            let place = match (crossover_for(k.lo), crossover_for(k.hi)) {
                (_, 0) => "no crossing, the sweep wins everywhere".to_owned(),
                (32_768, _) => "no crossing, the list wins everywhere".to_owned(),
                (0, 32_768) => {
                    "nothing: its interval allows each of the two to win everywhere".to_owned()
                }
                (0, to) => format!("a crossing below {to} tasks or none"),
                (from, 32_768) => format!("a crossing above {from} tasks or none"),
                (from, to) => format!("a crossing at {from} to {to} tasks"),
            };
            parts.push(format!(
                "{memory}, {stores} marks at {tasks} tasks: k = {}, which predicts {place}",
                ratio(&k)
            ));
        }
    }
    if parts.is_empty() {
        return None;
    }
    let counted: Vec<String> = cells(view, NEAR, "algo-0")
        .into_iter()
        .filter(|(tasks, _)| [8000, 16_000, 22_000, 28_000, 30_000].contains(tasks))
        .filter_map(|(tasks, cell)| {
            Some(format!(
                "{} at {tasks}",
                short(view.middle(NEAR, &cell, "passes")?)
            ))
        })
        .collect();
    Some(finding(
        "Why do algo-0 and the sweep cross where they do?",
        format!(
            "A sweep marks once per search; algo-0 compares more than once, the more the fuller the space (passes per search here: {}). They cross where algo-0's passes reach k, \
             the cost of a marking pass over that of a comparing pass. {}. His 22000 says that k was about 1.9 on his machine, with the plain stores that his code has.",
            counted.join(", "),
            parts.join("; ")
        ),
        None,
    ))
}

/// The answer, by the share of the map in the lines that are touched, percent.
fn too_much(share: f64) -> &'static str {
    match share {
        s if s <= 10.0 => "It is not.",
        s if s < 50.0 => "It is a part, and the smaller one.",
        _ => "It is: the map is the larger part.",
    }
}

/// Whether 4096 bytes are too much.
fn lines(view: &RunView<'_>) -> Option<Finding> {
    let tasks = cells(view, NEAR, "algo-1")
        .into_iter()
        .map(|(a, _)| a)
        .filter(|a| *a <= 30_000)
        .max()?;
    let sweep = at(view, NEAR, "algo-1", tasks)?;
    let of_tasks = view.middle(NEAR, &sweep, "task_lines")?;
    let searches = view.middle(NEAR, &sweep, "searches")?;
    let allocations = view.middle(NEAR, &sweep, "allocations")?;
    if allocations <= 0.0 || searches <= 0.0 {
        return None;
    }
    let of_map = 64.0 * searches / allocations;
    let small = at(view, NEAR, "algo-2-256", tasks)
        .and_then(|cell| view.middle(NEAR, &cell, "task_lines"))
        .map(|lines| format!(" The small map touches 4 lines for each walk, but {} lines of tasks an allocation.", short(lines)))
        .unwrap_or_default();
    let share = 100.0 * of_map / (of_map + of_tasks);
    if !share.is_finite() {
        return None;
    }
    Some(finding(
        "\"If 4096 bytes is too much (hell I don't know how that could be)\"",
        format!(
            "{} At {tasks} tasks algo-1 touches {} cache lines of tasks an allocation and {} of the map, which is 64 lines for each search: {share:.2} % of all.{small}{}",
            too_much(share),
            short(of_tasks),
            short(of_map),
            if share < 50.0 {
                " Most of the lines are the list's."
            } else {
                ""
            }
        ),
        None,
    ))
}

/// Whether a kept map in a large space costs less than a walk over the tasks of a small one; both in ns.
fn by_a_map(dearest: f64, walk: Option<f64>) -> String {
    let walk = match walk {
        Some(ns) if ns.is_finite() && dearest.is_finite() => ns,
        _ => {
            return "A search that walks tasks looks at every one of them; none was timed beside."
                .to_owned();
        }
    };
    let (dear, walk_us) = (short(dearest), short(walk / 1000.0));
    if dearest < walk {
        format!(
            "Not by walking tasks: a search looks at every one of them, and algo-1 needs {walk_us} us an allocation in 15 bits already. A map that is kept can: \
             the dearest allocation below is {dear} ns."
        )
    } else {
        format!(
            "Not by a map that is kept either: its dearest allocation below is {dear} ns, and algo-1 walks the tasks of 15 bits in {walk_us} us."
        )
    }
}

/// 22 and 32 bits.
fn wide(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    let mut verdict = None;
    // The dearest of each kind, in ns for an allocation.
    let (mut dearest, mut walk): (f64, Option<f64>) = (0.0, None);
    if let Some((_, sweep)) = cells(view, NEAR, "algo-1").into_iter().next_back() {
        walk = view.middle(NEAR, &sweep, COST).map(|us| 1000.0 * us);
    }
    for bits in [22, 32] {
        for used in LEVELS {
            let cell = |name: &str| {
                view.cells(LARGE).into_iter().find(|c| {
                    c.contestant == name
                        && !c.twin
                        && c.params.int("bits").is_ok_and(|b| b == bits)
                        && c.params.int("used").is_ok_and(|u| u == used)
                })
            };
            let (Some(ours), Some(map)) = (cell("large-larder"), cell("large-pidmap")) else {
                continue;
            };
            let c = view.compare(LARGE, ours, map, "ns_per_alloc", Better::Lower);
            let (Some(r), Some(ns)) = (c.ratio, view.middle(LARGE, ours, "ns_per_alloc")) else {
                continue;
            };
            parts.push(format!(
                "2^{bits}, {} % in use: {} ns, {} of pidmap ({})",
                used as f64 / 100.0,
                short(ns),
                ratio(&r),
                word(c.verdict)
            ));
            verdict = Some(c.verdict);
            dearest = dearest.max(ns);
        }
    }
    (!parts.is_empty()).then(|| {
        finding(
            "\"We could potentially deal with 32-bit pid numbers\"",
            format!(
                "{} An allocation of larder's cyclic rule: {}.",
                by_a_map(dearest, walk),
                parts.join("; ")
            ),
            verdict,
        )
    })
}

/// The cell of a rule.
pub(super) fn reuse_cell<'a>(view: &RunView<'a>, rule: &str, live: i64) -> Option<&'a Cell> {
    view.cells(REUSE).into_iter().find(|cell| {
        !cell.twin
            && cell.params.text("rule").is_ok_and(|r| r == rule)
            && cell.params.int("live").is_ok_and(|l| l == live)
    })
}

/// The rules whose next id is the next free one after the last.
const GOES_ROUND: [&str; 5] = ["algo-0", "bill", "pidmap", "idr", "larder cyclic"];

/// Whether going round bounds the distance, by the least one that each of these rules gave and the number of free ids: as
/// many would be handed out before the cursor comes by again, if it stood just behind each id that ends.
fn going_round(rounds: &[(&str, f64)], free: f64) -> String {
    let Some((rule, least)) = rounds.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return String::new();
    };
    if *least < free {
        format!(
            " Going round does not bound it: {rule} gave back an id after {} while {free:.0} were free. Once the space is busy, the cursor may stand just before the id that ends.",
            short(*least)
        )
    } else {
        format!(
            " Here each rule that goes round gave at least as many as were free, {free:.0} (least: {rule}, {}); that is luck of the draw, since nothing promises it.",
            short(*least)
        )
    }
}

/// What distance each rule gives, and whether it kept its word.
fn reuse(view: &RunView<'_>) -> Option<Finding> {
    let (mut kept, mut broken, mut parts) = (0, Vec::new(), Vec::new());
    let mut rounds = Vec::new();
    for (rule, _, promise) in RULES {
        for live in REUSE_AT {
            let Some(cell) = reuse_cell(view, rule, live) else {
                continue;
            };
            let Some(least) = view.middle(REUSE, cell, "least") else {
                continue;
            };
            if let Some(promised) = promise(32_767.0 - live as f64) {
                if least >= promised {
                    kept += 1;
                } else {
                    broken.push(format!(
                        "{rule} at {live}: {} for {}",
                        short(least),
                        short(promised)
                    ));
                }
            }
            if live == 22_000 && GOES_ROUND.contains(&rule) {
                rounds.push((rule, least));
            }
            if live == 22_000
                && let Some(median) = view.middle(REUSE, cell, "median")
            {
                parts.push(format!(
                    "{rule} {} (median {})",
                    short(least),
                    short(median)
                ));
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    let words = match (kept, broken.is_empty()) {
        (0, true) => String::new(),
        (n, true) => format!(" All {n} promises of a least distance were kept."),
        (_, false) => format!(" Promises not kept: {}.", broken.join("; ")),
    };
    Some(finding(
        "What reuse distance does each rule really give?",
        format!(
            "Allocations between an id's end and its return, least (and median), 22000 of 32767 in use: {}.{}{words}",
            parts.join("; "),
            going_round(&rounds, 32_767.0 - 22_000.0)
        ),
        None,
    ))
}

/// The kernel of today, emptiest against fullest.
fn kernel(view: &RunView<'_>) -> Option<Finding> {
    let mut parts = Vec::new();
    for (group, factor, name) in [
        (
            PROCESSES,
            "used",
            "fork and exit with pids in use, hundredths of a percent",
        ),
        (DESCRIPTORS, "open", "dup with descriptors open"),
        (
            PORTS,
            "used",
            "bind(0) with ports in use, hundredths of a percent",
        ),
    ] {
        let mut all: Vec<(i64, &Cell)> = view
            .cells(group)
            .into_iter()
            .filter(|cell| !cell.twin)
            .filter_map(|cell| Some((cell.params.int(factor).ok()?, cell)))
            .collect();
        all.sort_by_key(|(at, _)| *at);
        let (Some((low, first)), Some((high, last))) = (all.first(), all.last()) else {
            continue;
        };
        let (Some(few), Some(many)) = (
            view.middle(group, first, COST),
            view.middle(group, last, COST),
        ) else {
            continue;
        };
        let times = view
            .ratio(group, last, first, COST)
            .map(|r| format!(", {} times", ratio(&r)))
            .unwrap_or_default();
        parts.push(format!(
            "{name}: {} us at {low}, {} us at {high}{times}",
            short(few),
            short(many)
        ));
    }
    (!parts.is_empty()).then(|| {
        finding(
            "And the kernel of today?",
            format!("{}.", parts.join("; ")),
            None,
        )
    })
}
