//! What the samples answer to Walfield's questions, and to those that explain the answers.

use super::groups::{COST, Main, PARTS, RELEASE, WHOLE, sizes};
use crate::frame::words::{ratio, short, spans};
use crate::frame::{At, Results, family, finding, judged};
use crate::model::{Finding, ShortAnswer, Table, Value};
use crate::stats::Verdict;
use crate::stats::defaults::{KNEE_EPS, LEVEL};
use crate::stats::sweep::{Crossover, Knee, NoKnee};

const WALFIELD: &str = "Walfield 2001";
/// Questions that Walfield did not ask.
const OURS: &str = "larder";

/// All findings that the samples allow, those on Walfield's questions first.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let main = Main::of(results);
    let main = main.as_ref();
    let all = [
        main.and_then(optimum),
        main.and_then(past_64),
        main.and_then(|main| worse(results, main)),
        main.and_then(odd_sizes),
        ends(results),
        page_by_page(results),
        flush_ceiling(results),
    ];
    all.into_iter().flatten().collect()
}

/// What the summary says of Walfield's questions.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let Some(main) = Main::of(results) else {
        return Vec::new();
    };
    let best = || {
        let set = main.clusters.sweep(COST)?.optimum_set(LEVEL, None).ok()?;
        let size = |member: Option<&usize>| Some(main.clusters.cells.get(*member?)?.0);
        let (least, most) = (size(set.members.first())?, size(set.members.last())?);
        Some(match least == most {
            true => format!("{least} pages are best; 2001: 14 to 24"),
            false => format!("{least} to {most} pages hold the best; 2001: 14 to 24"),
        })
    };
    let last_over = |pages: i64, other: Option<At<'_, '_>>, of: &str| {
        let (largest, last) = main.clusters.last().filter(|(k, _)| *k > pages)?;
        let c = last.compare(&other?, COST);
        let says = match c.verdict {
            Verdict::Slower => "yes",
            Verdict::Faster | Verdict::Same { .. } => "no",
            _ => "undecided",
        };
        Some(format!(
            "{says}: {largest} cost {} of {of}",
            ratio(&c.ratio?)
        ))
    };
    let odd = || {
        let (_, slow) = odd_ratios(&main)?;
        let says = if slow { "yes, both" } else { "not here" };
        Some(format!("{says}; why in 2001 Linux cannot tell"))
    };
    [
        ("Best cluster size?", best()),
        (
            "Dearer past 64 pages?",
            last_over(64, main.clusters.at(64), "64"),
        ),
        (
            "Worse than mmap past 4000?",
            last_over(4000, main.unbuffered, "mmap"),
        ),
        ("Are 17 and 18 pages slow?", odd()),
    ]
    .into_iter()
    .filter_map(|(question, answer)| Some(ShortAnswer::new(question, answer?)))
    .collect()
}

/// The sizes that cannot be told from the best, what the best gains, and the knee.
fn optimum(main: &Main<'_, '_>) -> Option<Finding> {
    let sweep = main.clusters.sweep(COST)?;
    let set = sweep.optimum_set(LEVEL, None).ok()?;
    let (best, cell) = main.clusters.cells.get(set.best)?;
    let gain = main.unbuffered.and_then(|one| cell.ratio(&one, COST));
    let gain = gain.map_or_else(String::new, |r| {
        format!(", at {} of one mmap per page", ratio(&r))
    });
    let members = spans(&main.clusters.settings(), &set.members);
    let told = match set.members.len() {
        1 => "are best",
        _ => &format!("cannot be told from the best, {best} pages"),
    };
    let knee = match sweep.knee(LEVEL, KNEE_EPS) {
        Ok(Knee::At { setting, .. }) => format!(" The knee is at {setting:.0} pages."),
        Ok(Knee::None(NoKnee::StillFalling)) => {
            " There is no knee: the curve still falls at the largest size.".to_owned()
        }
        Ok(Knee::None(NoKnee::Unsure)) => {
            " The noise is too large to say where the knee is.".to_owned()
        }
        Ok(Knee::None(NoKnee::OneSetting)) | Err(_) => String::new(),
    };
    Some(finding(
        "Which cluster size is best? (Walfield found 14 to 16, 19, 20, 22 and 24 pages.)",
        WALFIELD,
        format!("Clusters of {members} pages {told}{gain}.{knee}"),
    ))
}

/// Whether the cost rises from 64 pages to the largest cluster.
fn past_64(main: &Main<'_, '_>) -> Option<Finding> {
    let (largest, last) = main.clusters.last().filter(|(k, _)| *k > 64)?;
    judged(
        "Why does the cost rise past 64 pages?",
        WALFIELD,
        (&format!("a cluster of {largest} pages"), &last),
        ("one of 64", &main.clusters.at(64)?),
        COST,
        |r, verdict| {
            let rise = match verdict {
                Verdict::Slower => "It rises here, too",
                Verdict::Faster | Verdict::Same { .. } => "It does not rise here",
                _ => "This run does not decide whether it rises here",
            };
            format!(
                "{rise}: a page from a cluster of {largest} costs {r} of one from a cluster of 64. The rise of 2001 cannot be \
                 told on Linux, because GNU Mach's memory objects are not in it."
            )
        },
    )
}

/// Where a cluster becomes worse than none, and what a cluster costs that keeps its pages until the last one is back.
fn worse(results: &Results<'_>, main: &Main<'_, '_>) -> Option<Finding> {
    let unbuffered = main.unbuffered?;
    let (largest, last) = main.clusters.last()?;
    // Below the smallest sizes a cluster of 1 costs what unbuffered costs; only a loss at large sizes is the question.
    let place = match main.clusters.crossing(&unbuffered, COST)? {
        Crossover::One(at) if !at.a_wins_above => {
            format!(
                "Clusters become worse from {} pages on.",
                short(at.at.value)
            )
        }
        Crossover::Several(places) => {
            let places: Vec<String> = places.iter().map(|p| short(p.at.value)).collect();
            format!("The two curves cross at {} pages.", places.join(", "))
        }
        _ => format!("No size up to {largest} pages is surely worse here."),
    };
    let kept = sizes(results, WHOLE, "cluster-whole");
    let tested = || {
        let ((best, cheapest), (large, cell)) = (kept.best(COST)?, kept.last()?);
        let r = cell.ratio(&cheapest, COST).filter(|_| best != large)?;
        Some(format!(
            "Where a cluster keeps its pages until the last is back (cluster-whole), {large} pages cost {} of {best}.",
            ratio(&r)
        ))
    };
    let why = tested().unwrap_or_else(|| {
        format!("Why is not tested here: cluster-whole tests it (`larder measure page-buffers --group {WHOLE}`).")
    });
    judged(
        "Why are clusters past about 4000 pages \"in fact worse than just using mmap by itself\"?",
        WALFIELD,
        (&format!("a cluster of {largest} pages"), &last),
        ("one mmap per page", &unbuffered),
        COST,
        |r, _| {
            format!(
                "{place} A page from a cluster of {largest} costs {r} of one mmap per page. {why}"
            )
        },
    )
}

/// 17 and 18 pages, each over 16 and over 19: a row each, and whether both are slow.
fn odd_ratios(main: &Main<'_, '_>) -> Option<(Table, bool)> {
    let names = [(17, 16), (17, 19), (18, 16), (18, 19)];
    let pairs: Option<Vec<_>> = names
        .iter()
        .map(|(odd, next)| main.clusters.at(*odd).zip(main.clusters.at(*next)))
        .collect();
    let judged = family(&pairs?, COST);
    let slow = judged.iter().all(|c| c.verdict == Verdict::Slower);
    let rows = names.iter().zip(judged).map(|((odd, next), c)| {
        let ratio = Value::Ratio(c.ratio?, c.verdict);
        Some(vec![Value::Text(format!("{odd} to {next}")), ratio])
    });
    let table = Table {
        title: "Cost of a page, by cluster size".to_owned(),
        columns: ["pages", "ratio"].map(str::to_owned).to_vec(),
        rows: rows.collect::<Option<_>>()?,
        ..Table::default()
    };
    Some((table, slow))
}

fn odd_sizes(main: &Main<'_, '_>) -> Option<Finding> {
    let (table, slow) = odd_ratios(main)?;
    let here = match slow {
        true => "Both are slow here, too",
        false => "They do not both stand out here",
    };
    let answer = format!(
        "{here}. Why they were slow in 2001 cannot be told on Linux, because GNU Mach's vm_map and mmap, the suspects, are not in it."
    );
    Some(Finding {
        table: Some(table),
        ..finding(
            "Why are clusters of 17 and 18 pages slow?",
            WALFIELD,
            answer,
        )
    })
}

/// The three parts of a page's life, as the table calls them.
const LIFE: [(&str, &str); 3] = [
    ("get_ns", "the call that maps"),
    ("touch_ns", "the touch"),
    ("give_back_ns", "the call that gives back"),
];

/// Both sides of the best size, where clusters go back whole: which part of a page's life makes the difference.
fn ends(results: &Results<'_>) -> Option<Finding> {
    let whole = sizes(results, PARTS, "life-whole");
    let (best, cheapest) = whole.best(COST)?;
    let ends: Vec<(i64, At<'_, '_>)> = [whole.first()?, whole.last()?]
        .into_iter()
        .filter(|(pages, _)| *pages != best)
        .collect();
    let mut rows = Vec::new();
    let mut largest = Vec::new();
    for (pages, end) in &ends {
        let c = end.compare(&cheapest, COST);
        let change = |metric| Some(end.middle(metric)? - cheapest.middle(metric)?);
        let changes = LIFE.map(|(metric, name)| change(metric).map(|ns| (ns, name)));
        let changes = changes.into_iter().collect::<Option<Vec<(f64, &str)>>>()?;
        let (most, name) = *changes.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        largest.push(format!(
            "{pages} pages mostly in {name} ({} ns)",
            short(most)
        ));
        let mut row = vec![Value::Text(format!("{pages} to {best}"))];
        row.push(Value::Ratio(c.ratio?, c.verdict));
        row.extend(
            changes
                .iter()
                .map(|(ns, _)| Value::Number(*ns, "ns".to_owned())),
        );
        rows.push(row);
    }
    // The cache alone: pages that are present already, so that the touch has no fault in it.
    let populated = sizes(results, PARTS, "life-populate");
    let touch = ends.iter().filter_map(|(pages, _)| {
        let c = populated
            .at(*pages)?
            .compare(&populated.at(best)?, "touch_ns");
        let mut row = vec![Value::Text(format!(
            "{pages} to {best}, touch of present pages"
        ))];
        row.push(Value::Ratio(c.ratio?, c.verdict));
        row.resize(2 + LIFE.len(), Value::Empty);
        Some(row)
    });
    rows.extend(touch);
    let table = Table {
        title:
            "Cost of a page where clusters go back whole, and what each part of its life takes more"
                .to_owned(),
        columns: ["pages", "ratio"]
            .into_iter()
            .chain(LIFE.map(|(_, name)| name))
            .map(str::to_owned)
            .collect(),
        rows,
        ..Table::default()
    };
    let answer = format!(
        "Where clusters go back whole, a page costs more than from {best} pages: from {}.",
        largest.join(", from ")
    );
    (!ends.is_empty()).then(|| Finding {
        table: Some(table),
        ..finding(
            "Where does the time of small and of large clusters go?",
            OURS,
            answer,
        )
    })
}

/// What one munmap per page costs.
fn page_by_page(results: &Results<'_>) -> Option<Finding> {
    let by_page = sizes(results, PARTS, "life-by-page");
    let whole = sizes(results, PARTS, "life-whole");
    let (best, _) = whole.best(COST)?;
    let (pages, cell) = by_page.at(best).map(|at| (best, at)).or(by_page.last())?;
    let share = 100.0 * cell.middle("give_back_ns")? / cell.middle(COST)?;
    judged(
        "What does giving back page by page cost?",
        OURS,
        ("giving back page by page", &cell),
        ("one call per cluster", &whole.at(pages)?),
        COST,
        |r, _| {
            format!(
                "At {pages} pages munmap for each page takes {share:.0} % of a page's life; the page costs {r} of one whose \
                 cluster goes back in one call."
            )
        },
    )
}

/// The step between 33 and 34 pages per call.
fn flush_ceiling(results: &Results<'_>) -> Option<Finding> {
    let calls = sizes(results, RELEASE, "release");
    judged(
        "Does giving pages back have a step at 33 pages a call?",
        OURS,
        ("a call of 34 pages", &calls.at(34)?),
        ("a call of 33", &calls.at(33)?),
        "call_ns",
        |r, _| {
            format!(
                "Giving back 34 pages in one call takes {r} of the time of 33. x86 kernels flush the TLB page by page up to 33; \
                 whether that is the cause is not tested."
            )
        },
    )
}
