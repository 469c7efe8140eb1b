//! What the samples answer to Walfield's questions.

use crate::measure::{Comparison, RunView};
use crate::model::{Better, Cell, Finding, ShortAnswer, Table, Value};
use crate::stats::Verdict;
use crate::stats::defaults::{KNEE_EPS, LEVEL};
use crate::stats::sweep::{Crossover, Knee, NoKnee, crossover};

use super::cache_size;
use super::curve::Curve;
use super::plan::{PARTS, RELEASE, WHOLE, cell};
use crate::frame::words::{ratio, reading, short, spans, word};

/// The metric that judges: CPU time of a page's life.
pub(super) const COST: &str = "ns_per_page";

const WALFIELD: &str = "Walfield 2001";
/// Questions that Walfield did not ask.
const OURS: &str = "larder";
const OPTIMAL: &str =
    "Which cluster size is best? (Walfield found 14 to 16, 19, 20, 22 and 24 pages.)";
const ODD: &str = "Why are clusters of 17 and 18 pages slow?";
const LARGE: &str = "Where does the time of large clusters go?";
const PAST_64: &str = "Why does the cost rise past 64 pages?";
const WORSE: &str =
    "Why are clusters past about 4000 pages \"in fact worse than just using mmap by itself\"?";

/// The totals that were measured, from the groups' names, ascending.
pub(super) fn totals(view: &RunView<'_>) -> Vec<u64> {
    let mut totals: Vec<u64> = view
        .groups()
        .into_iter()
        .filter_map(|name| name.strip_prefix("total-")?.parse().ok())
        .collect();
    totals.sort_unstable();
    totals
}

/// All findings that the samples allow, the most important first.
pub(super) fn all(view: &RunView<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(total) = totals(view).last() {
        let group = super::plan::total_group(*total);
        findings.extend(optimum(view, &group, *total));
        findings.extend(past_64(view, &group));
        findings.extend(against_unbuffered(view, &group, *total));
        findings.extend(odd_sizes(view, &group, *total));
    }
    findings.extend(too_small(view));
    findings.extend(too_large(view));
    findings.extend(page_by_page(view));
    findings.extend(flush_ceiling(view));
    findings.extend(whole_optimum(view));
    findings
}

fn finding(question: &str, asked_by: &str, answer: String, verdict: Option<Verdict>) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict,
        ..Finding::default()
    }
}

/// The optimum set and the knee of program 2.
fn optimum(view: &RunView<'_>, group: &str, total: u64) -> Option<Finding> {
    let curve = Curve::new(view, group, "cluster");
    let answer = best_of(&curve, group, view, &cell("unbuffered", total, None))?;
    Some(Finding {
        chart: Some(super::tables::u_shape(view)),
        ..finding(OPTIMAL, WALFIELD, answer, None)
    })
}

/// What the summary says of Walfield's questions.
pub(super) fn answers(view: &RunView<'_>) -> Vec<ShortAnswer> {
    let Some(total) = totals(view).last().copied() else {
        return Vec::new();
    };
    let group = super::plan::total_group(total);
    let curve = Curve::new(view, &group, "cluster");
    let best = || {
        let set = curve.sweep(COST)?.optimum_set(LEVEL, None).ok()?;
        let sizes = curve.sizes();
        let (least, most) = (set.members.first()?, set.members.last()?);
        let (least, most) = (sizes.get(*least)?, sizes.get(*most)?);
        Some(ShortAnswer::new(
            "Best cluster size?",
            format!("{least:.0} to {most:.0} pages hold the best; 2001: 14 to 24"),
        ))
    };
    let over = |question: &str, pages: i64, other: &Cell, of: &str| {
        let (largest, last) = curve.cells().last().filter(|(k, _)| *k > pages)?;
        let c = view.compare(&group, last, other, COST, Better::Lower);
        let r = c.ratio?;
        let says = match c.verdict {
            Verdict::Slower => "yes",
            Verdict::Faster | Verdict::Same { .. } => "no",
            _ => "undecided",
        };
        let answer = format!("{says}: {largest} cost {} of {of}", ratio(&r));
        Some(ShortAnswer::new(question, answer))
    };
    let past_64 = || over("Dearer past 64 pages?", 64, curve.at(64)?, "64");
    let unbuffered = cell("unbuffered", total, None);
    let odd = || {
        let verdicts: Vec<Verdict> = odd_ratios(view, &group, total)
            .into_iter()
            .map(|(_, c)| c.verdict)
            .collect();
        (verdicts.len() == 4).then(|| {
            let slow = verdicts.iter().all(|v| *v == Verdict::Slower);
            let says = if slow { "yes, both" } else { "not here" };
            ShortAnswer::new(
                "Are 17 and 18 pages slow?",
                format!("{says}; why in 2001 Linux cannot tell"),
            )
        })
    };
    [
        best(),
        past_64(),
        over("Worse than mmap past 4000?", 4000, &unbuffered, "mmap"),
        odd(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The same for clusters that go back whole.
fn whole_optimum(view: &RunView<'_>) -> Option<Finding> {
    let reference = view.reference(WHOLE)?;
    let curve = Curve::new(view, WHOLE, "cluster-whole");
    let answer = best_of(&curve, WHOLE, view, reference)?;
    let populated = Curve::new(view, WHOLE, "cluster-populate");
    let more = best_of(&populated, WHOLE, view, reference)
        .map(|text| format!(" Populated by the call that maps it: {text}"))
        .unwrap_or_default();
    Some(finding(
        "What would the optimum be if a cluster went back in one call?",
        OURS,
        format!("With one munmap per cluster: {answer}{more}"),
        None,
    ))
}

fn best_of(curve: &Curve<'_>, group: &str, view: &RunView<'_>, reference: &Cell) -> Option<String> {
    let sweep = curve.sweep(COST)?;
    let burden = curve.sizes();
    let set = sweep.optimum_set(LEVEL, Some(&burden)).ok()?;
    let (best, best_cell) = curve.cells().get(set.best)?;
    let gain = view
        .ratio(group, best_cell, reference, COST)
        .map(|r| format!(", which costs {} of one mmap per page", ratio(&r)))
        .unwrap_or_default();
    let knee = match sweep.knee(LEVEL, KNEE_EPS) {
        Ok(Knee::At {
            setting,
            ratio: r,
            from_start,
            ..
        }) => format!(
            " The knee is at {setting:.0} pages ({} of the best){}.",
            ratio(&r),
            if from_start {
                ", the smallest measured"
            } else {
                ""
            }
        ),
        Ok(Knee::None(NoKnee::StillFalling)) => {
            " There is no knee: the curve still falls at the largest size.".to_owned()
        }
        Ok(Knee::None(NoKnee::Unsure)) => {
            " The noise is too large to say where the knee is.".to_owned()
        }
        Ok(Knee::None(NoKnee::OneSetting)) | Err(_) => String::new(),
    };
    Some(format!(
        "Clusters of {} pages cannot be told from the best, {best} pages{gain}.{knee}",
        spans(&burden, &set.members)
    ))
}

/// Where a cluster becomes worse than none.
fn against_unbuffered(view: &RunView<'_>, group: &str, total: u64) -> Option<Finding> {
    let curve = Curve::new(view, group, "cluster");
    let unbuffered = cell("unbuffered", total, None);
    let (largest, last) = curve.cells().last()?;
    let at_end = view.compare(group, last, &unbuffered, COST, Better::Lower);
    let place = crossover(
        &curve.sizes(),
        &curve.rounds(COST),
        &curve.flat(&unbuffered, COST),
        LEVEL,
        view.run().seed,
    );
    // Below the smallest sizes a cluster of 1 costs what unbuffered costs; only a loss at large sizes is his question.
    let text = match place {
        Ok(Crossover::One(at)) if !at.a_wins_above => format!(
            "Clusters become worse from {} pages [{}, {}] on.",
            short(at.at.value),
            short(at.at.lo),
            short(at.at.hi)
        ),
        Ok(Crossover::Several(places)) => {
            let places: Vec<String> = places.iter().map(|p| short(p.at.value)).collect();
            format!("The two curves cross at {} pages.", places.join(", "))
        }
        Ok(_) => format!("No size up to {largest} pages is surely worse here."),
        Err(_) => return None,
    };
    let end = at_end
        .ratio
        .map(|r| {
            format!(
                " A page from a cluster of {largest} costs {} of one mmap per page.",
                ratio(&r)
            )
        })
        .unwrap_or_default();
    Some(Finding {
        reading: reading(
            &format!("a cluster of {largest} pages"),
            at_end.verdict,
            "one mmap per page",
        ),
        ..finding(
            WORSE,
            WALFIELD,
            format!("{text}{end} {}", kept_until_empty(view)),
            Some(at_end.verdict),
        )
    })
}

/// Whether the cost rises from 64 pages to the largest cluster.
fn past_64(view: &RunView<'_>, group: &str) -> Option<Finding> {
    let curve = Curve::new(view, group, "cluster");
    let (largest, last) = curve.cells().last().filter(|(k, _)| *k > 64)?;
    let c = view.compare(group, last, curve.at(64)?, COST, Better::Lower);
    let r = ratio(&c.ratio?);
    let answer = if c.verdict == Verdict::Slower {
        format!(
            "It rises here, too: a page from a cluster of {largest} costs {r} of one from a cluster of 64. Where the \
             time goes stands under \"{LARGE}\""
        )
    } else {
        format!(
            "No rise is seen here: a page from a cluster of {largest} costs {r} of one from a cluster of 64. Why it rose \
             in 2001 cannot be told on Linux, because GNU Mach's memory objects are not in it."
        )
    };
    Some(Finding {
        reading: reading(
            &format!("a cluster of {largest} pages"),
            c.verdict,
            "one of 64",
        ),
        ..finding(PAST_64, WALFIELD, answer, Some(c.verdict))
    })
}

/// What the contestant that keeps a cluster's pages until the last one is back says to the larger clusters.
fn kept_until_empty(view: &RunView<'_>) -> String {
    let curve = Curve::new(view, WHOLE, "cluster-whole");
    let tested = || {
        let (best, best_cell) = curve.best(COST)?;
        let (large, cell) = curve.cells().last()?;
        let r = view.ratio(WHOLE, cell, best_cell, COST)?;
        (best != *large).then(|| {
            format!(
                "Where a cluster keeps its pages until the last is back (cluster-whole), {large} pages cost {} of {best}.",
                ratio(&r)
            )
        })
    };
    tested().unwrap_or_else(|| {
        "Why is not tested here: cluster-whole, which keeps pages until the last is back, tests it (`larder measure page-buffers`).".to_owned()
    })
}

/// 17 and 18 pages, each to 16 and to 19.
fn odd_ratios(view: &RunView<'_>, group: &str, total: u64) -> Vec<(String, Comparison)> {
    let at = |k| cell("cluster", total, Some(k));
    [(17, 16), (17, 19), (18, 16), (18, 19)]
        .map(|(odd, neighbour)| {
            let c = view.compare(group, &at(odd), &at(neighbour), COST, Better::Lower);
            (format!("{odd} to {neighbour}"), c)
        })
        .into_iter()
        .filter(|(_, c)| c.ratio.is_some())
        .collect()
}

/// Whether 17 and 18 stand out from 16 and 19.
fn odd_sizes(view: &RunView<'_>, group: &str, total: u64) -> Option<Finding> {
    let ratios = odd_ratios(view, group, total);
    let most = ratios
        .iter()
        .filter_map(|(pair, c)| Some((pair, c.ratio?)))
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let stand_out = ratios.len() == 4 && ratios.iter().all(|(_, c)| c.verdict == Verdict::Slower);
    let answer = format!(
        "{}: the largest ratio is {}, {} pages. Why they were slow in 2001 cannot be told on Linux, because the suspects, \
         vm_map and mmap of GNU Mach, are not in it.",
        if stand_out {
            "Both are slow here, too"
        } else {
            "They do not both stand out here"
        },
        ratio(&most.1),
        most.0
    );
    let rows = ratios.iter().map(|(pair, c)| {
        let ratio = c.ratio.map_or(Value::Empty, |r| Value::Ratio(r, c.verdict));
        vec![Value::Text(pair.clone()), ratio]
    });
    Some(Finding {
        table: Some(Table {
            title: "Cost of a page, by cluster size".to_owned(),
            columns: ["pages", "ratio"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
            ..Table::default()
        }),
        ..finding(ODD, WALFIELD, answer, None)
    })
}

fn part(view: &RunView<'_>, life: &str, pages: i64, metric: &str) -> Option<f64> {
    let curve = Curve::new(view, PARTS, life);
    view.middle(PARTS, curve.at(pages)?, metric)
}

/// The left side: what one page per call costs.
fn too_small(view: &RunView<'_>) -> Option<Finding> {
    let curve = Curve::new(view, PARTS, "life-whole");
    let (small, small_cell) = curve.cells().first().map(|(k, c)| (*k, c))?;
    let (best, best_cell) = curve.best(COST)?;
    if best == small {
        return None;
    }
    let all = view.ratio(PARTS, small_cell, best_cell, COST)?;
    let change = |metric| {
        Some(view.middle(PARTS, small_cell, metric)? - view.middle(PARTS, best_cell, metric)?)
    };
    let (get, touch, give) = (
        change("get_ns")?,
        change("touch_ns")?,
        change("give_back_ns")?,
    );
    let sum = get + touch + give;
    let share = |x: f64| if sum > 0.0 { 100.0 * x / sum } else { 0.0 };
    Some(finding(
        "Where does the time of small pools go?",
        OURS,
        format!(
            "A page from a cluster of {small} costs {} times one from a cluster of {best} when clusters go back whole. Of the {} ns between them \
             {:.0} % is the call that maps, {:.0} % the touch, {:.0} % the call that gives back.",
            ratio(&all),
            short(sum),
            share(get),
            share(touch),
            share(give)
        ),
        None,
    ))
}

/// The right side: pages that are no longer in a cache when they are zeroed, touched and freed.
fn too_large(view: &RunView<'_>) -> Option<Finding> {
    let curve = Curve::new(view, PARTS, "life-whole");
    let (best, best_cell) = curve.best(COST)?;
    let (large, large_cell) = curve.cells().last().map(|(k, c)| (*k, c))?;
    if best == large {
        return None;
    }
    let all = view.compare(PARTS, large_cell, best_cell, COST, Better::Lower);
    let change = |metric| {
        Some(view.middle(PARTS, large_cell, metric)? - view.middle(PARTS, best_cell, metric)?)
    };
    let (get, touch, give) = (
        change("get_ns")?,
        change("touch_ns")?,
        change("give_back_ns")?,
    );
    let machine = &view.run().machine;
    let cache = |level| {
        cache_size::pages(machine, level)
            .map_or_else(|| "unknown".to_owned(), |pages| format!("{pages} pages"))
    };
    let warm = populated_touch(view, best, large)
        .map(|text| format!(" {text}"))
        .unwrap_or_default();
    Some(finding(
        LARGE,
        OURS,
        format!(
            "With clusters that go back whole, {large} pages cost {} of {best} pages ({}): a page's share of the call that maps changes by {} ns, \
             the touch by {} ns, the give-back by {} ns.{warm} The second-level cache holds {}, the third {}.",
            all.ratio
                .map_or_else(|| "an unknown share".to_owned(), |r| ratio(&r)),
            word(all.verdict),
            short(get),
            short(touch),
            short(give),
            cache(2),
            cache(3)
        ),
        None,
    ))
}

/// The cache alone: pages that are present already, so that the touch has no fault in it.
fn populated_touch(view: &RunView<'_>, best: i64, large: i64) -> Option<String> {
    let curve = Curve::new(view, PARTS, "life-populate");
    let r = view.ratio(PARTS, curve.at(large)?, curve.at(best)?, "touch_ns")?;
    Some(format!(
        "Where the pages are populated and the touch is a memset and no fault, it takes {} times as long at {large} pages ({} ns against {} ns){}.",
        ratio(&r),
        short(part(view, "life-populate", large, "touch_ns")?),
        short(part(view, "life-populate", best, "touch_ns")?),
        if r.lo > 1.0 {
            ""
        } else {
            ", which is no sure difference"
        }
    ))
}

/// What one munmap per page costs.
fn page_by_page(view: &RunView<'_>) -> Option<Finding> {
    let by_page = Curve::new(view, PARTS, "life-by-page");
    let whole = Curve::new(view, PARTS, "life-whole");
    let (best, whole_cell) = whole.best(COST)?;
    let by_cell = by_page.at(best)?;
    let r = view.compare(PARTS, by_cell, whole_cell, COST, Better::Lower);
    let give = part(view, "life-by-page", best, "give_back_ns")?;
    let total = part(view, "life-by-page", best, COST)?;
    Some(finding(
        "What does giving back page by page cost?",
        OURS,
        format!(
            "At {best} pages a call of munmap for each page takes {:.0} % of a page's life. A page costs {} of what it costs where the \
             cluster goes back in one call ({}).",
            100.0 * give / total,
            r.ratio
                .map_or_else(|| "an unknown share".to_owned(), |r| ratio(&r)),
            word(r.verdict)
        ),
        None,
    ))
}

/// The step between 33 and 34 pages per call.
fn flush_ceiling(view: &RunView<'_>) -> Option<Finding> {
    let curve = Curve::new(view, RELEASE, "release");
    let c = view.compare(
        RELEASE,
        curve.at(34)?,
        curve.at(33)?,
        "call_ns",
        Better::Lower,
    );
    let r = c.ratio?;
    Some(Finding {
        reading: reading("a call of 34 pages", c.verdict, "a call of 33"),
        ..finding(
            "Does giving pages back have a step at 33 pages a call?",
            OURS,
            format!(
                "Giving back 34 pages in one call takes {} of the time of 33 ({}). x86 kernels flush the TLB page by page up to 33 pages \
             (tlb_single_page_flush_ceiling); whether that makes the difference is not tested.",
                ratio(&r),
                word(c.verdict)
            ),
            Some(c.verdict),
        )
    })
}
