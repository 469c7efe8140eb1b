//! Answers to Walfield's questions, and to further questions that explain them.

use super::groups::{COST, Main, PARTS, RELEASE, WHOLE, sizes};
use crate::frame::words::{ratio, short, spans};
use crate::frame::{At, Results, family, finding, judged, median_of, text, together};
use crate::model::{Finding, ShortAnswer, Table, TableRow, Value};
use crate::stats::Verdict;
use crate::stats::defaults::{KNEE_EPS, LEVEL};
use crate::stats::sweep::{Crossover, Knee, NoKnee};

const WALFIELD: &str = "Walfield 2001";
/// Questions that Walfield did not ask.
const OURS: &str = "larder";

/// All findings that the samples allow. Those on Walfield's questions come first and have a line of the summary each.
pub(super) fn all(results: &Results<'_>) -> (Vec<Finding>, Vec<ShortAnswer>) {
    let main = Main::of(results);
    let main = main.as_ref();
    let asked = [
        main.and_then(optimum),
        main.and_then(past_64),
        main.and_then(|main| worse(results, main)),
        main.and_then(odd_sizes),
    ];
    let (mut findings, answers): (Vec<_>, Vec<_>) = asked.into_iter().flatten().unzip();
    let ours = [ends(results), page_by_page(results), flush_ceiling(results)];
    findings.extend(ours.into_iter().flatten());
    (findings, answers)
}

/// Whether a cost is higher.
fn says(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "yes",
        Verdict::Faster | Verdict::Same { .. } => "no",
        _ => "undecided",
    }
}

/// Ratios of two cluster sizes each.
fn of_pages(title: &str, rows: Vec<TableRow>) -> Table {
    Table::new(title, &["pages", "ratio"], rows)
}

/// The sizes that are equal to the best, what the best gains, and the knee.
fn optimum(main: &Main<'_, '_>) -> Option<(Finding, ShortAnswer)> {
    let sweep = main.clusters.sweep(COST)?;
    let set = sweep.optimum_set(LEVEL, None).ok()?;
    let (best, cell) = main.clusters.cells.get(set.best)?;
    let gain = main.unbuffered.and_then(|one| cell.ratio(&one, COST));
    let gain = gain.map_or_else(String::new, |r| {
        format!(", at {} of one mmap per page", ratio(&r))
    });
    let members = spans(&main.clusters.settings(), &set.members);
    let range = match set.members.len() {
        1 => "are best",
        _ => &format!("equal the best, {best} pages"),
    };
    let knee = match sweep.knee(LEVEL, KNEE_EPS) {
        Ok(Knee::At { setting, .. }) => format!("The knee is at {setting:.0} pages"),
        Ok(Knee::None(NoKnee::StillFalling)) => {
            "There is no knee, the cost still falls at the largest size".to_owned()
        }
        Ok(Knee::None(NoKnee::Unsure)) => "The noise is too large for a knee".to_owned(),
        Ok(Knee::None(NoKnee::OneSetting)) | Err(_) => "One size alone has no knee".to_owned(),
    };
    let size = |member: Option<&usize>| Some(main.clusters.cells.get(*member?)?.0);
    let (least, most) = (size(set.members.first())?, size(set.members.last())?);
    let short = match least == most {
        true => format!("{least} pages are best; 2001: 14 to 24"),
        false => format!("{least} to {most} pages hold the best; 2001: 14 to 24"),
    };
    let found = finding(
        "Which cluster size is best?",
        WALFIELD,
        format!(
            "Clusters of {members} pages {range}{gain}. {knee}; in 2001 14 to 16, 19, 20, 22 and 24 pages were best."
        ),
    );
    Some((found, ShortAnswer::new("Best cluster size?", short)))
}

/// Whether the cost rises from 64 pages to the largest cluster.
fn past_64(main: &Main<'_, '_>) -> Option<(Finding, ShortAnswer)> {
    let (largest, last) = main.clusters.last().filter(|(k, _)| *k > 64)?;
    let mut short = String::new();
    let found = judged(
        "Does the cost rise past clusters of 64 pages, as in 2001, and why?",
        WALFIELD,
        (&format!("a cluster of {largest} pages"), &last),
        ("one of 64", &main.clusters.at(64)?),
        COST,
        |r, verdict| {
            let rise = match says(verdict) {
                "yes" => "It rises here, too",
                "no" => "It does not rise here",
                _ => "This run does not decide whether it rises here",
            };
            short = format!("{}: {largest} cost {r} of 64", says(verdict));
            format!(
                "{rise}: a page from a cluster of {largest} costs {r} of one from 64; Linux lacks the memory objects of 2001 and cannot tell why it rose there."
            )
        },
    )?;
    Some((found, ShortAnswer::new("Dearer past 64 pages?", short)))
}

/// Where a cluster becomes worse than none, and what a cluster costs that keeps its pages until the last one is back.
fn worse(results: &Results<'_>, main: &Main<'_, '_>) -> Option<(Finding, ShortAnswer)> {
    let unbuffered = main.unbuffered?;
    let (largest, last) = main.clusters.last().filter(|(k, _)| *k > 4000)?;
    // Below the smallest sizes a cluster of 1 costs what unbuffered costs; only a loss at large sizes is the question.
    let place = match main.clusters.crossing(&unbuffered, COST)? {
        Crossover::One(at) if !at.a_wins_above => {
            format!("Clusters become worse from {} pages on", short(at.at.value))
        }
        Crossover::Several(places) => {
            let places: Vec<String> = places.iter().map(|p| short(p.at.value)).collect();
            format!("The two curves cross at {} pages", places.join(", "))
        }
        _ => format!("No size up to {largest} pages is surely worse here"),
    };
    let kept = sizes(results, WHOLE, "cluster-whole");
    let tested = || {
        let ((best, cheapest), (large, cell)) = (kept.best(COST)?, kept.last()?);
        let c = cell.compare(&cheapest, COST);
        let row = vec![
            text(format!("{large} to {best}")),
            Value::Ratio(c.ratio?, c.verdict),
        ];
        (best != large).then_some(row)
    };
    let rows: Vec<_> = tested().into_iter().collect();
    let why = match rows.is_empty() {
        false => "A cause is tested by clusters that keep their pages until the last is back: see the table.".to_owned(),
        true => format!("Why is not tested here: run `larder measure page-buffers --group {WHOLE}`."),
    };
    let mut short = String::new();
    let found = judged(
        "Are clusters past about 4000 pages worse than one mmap per page, as in 2001, and why?",
        WALFIELD,
        (&format!("a cluster of {largest} pages"), &last),
        ("one mmap per page", &unbuffered),
        COST,
        |r, verdict| {
            short = format!("{}: {largest} cost {r} of mmap", says(verdict));
            format!("{place}: a page from {largest} costs {r} of one mmap per page. {why}")
        },
    )?;
    let title =
        "Cost of a page where a cluster keeps its pages until the last is back (cluster-whole)";
    let table = (!rows.is_empty()).then(|| of_pages(title, rows));
    let short = ShortAnswer::new("Worse than mmap past 4000?", short);
    Some((Finding { table, ..found }, short))
}

/// 17 and 18 pages over 16 and 19 together, and each over each with its verdict in the table.
fn odd_sizes(main: &Main<'_, '_>) -> Option<(Finding, ShortAnswer)> {
    let names = [(17, 16), (17, 19), (18, 16), (18, 19)];
    let pair = |(odd, next)| main.clusters.at(odd).zip(main.clusters.at(next));
    let judged = family(
        &names.into_iter().map(pair).collect::<Option<Vec<_>>>()?,
        COST,
    );
    let slow = judged.iter().all(|c| c.verdict == Verdict::Slower);
    let rows = names.iter().zip(judged).map(|((odd, next), c)| {
        let ratio = Value::Ratio(c.ratio?, c.verdict);
        Some(vec![text(format!("{odd} to {next}")), ratio])
    });
    let table = of_pages(
        "Cost of a page, by cluster size",
        rows.collect::<Option<_>>()?,
    );
    let of = |pages| Some(main.clusters.at(pages)?.by_round(COST));
    let four = [of(17)?, of(18)?, of(16)?, of(19)?];
    let both = median_of(&together(&four, |ns| (ns[0] + ns[1]) / (ns[2] + ns[3])))?;
    let (here, short) = match slow {
        true => ("both are slow here, too", "yes, both"),
        false => ("they do not both stand out here", "not here"),
    };
    let answer = format!(
        "17 and 18 pages cost {} of 16 and 19, so {here}; Linux lacks the suspects of 2001, GNU Mach's vm_map and mmap, and cannot tell why.",
        ratio(&both)
    );
    let found = finding(
        "Are clusters of 17 and 18 pages slow, as in 2001, and why?",
        WALFIELD,
        answer,
    )
    .with(table);
    let short = format!("{short}; Linux cannot tell why in 2001");
    Some((found, ShortAnswer::new("Are 17 and 18 pages slow?", short)))
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
        let changes = LIFE.map(|(metric, name)| Some((change(metric)?, name)));
        let changes = changes.into_iter().collect::<Option<Vec<(f64, &str)>>>()?;
        let (_, name) = *changes.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let times = c.ratio?;
        largest.push(format!(
            "{} from clusters of {pages}, mostly in {name}",
            ratio(&times)
        ));
        let mut row = vec![text(format!("{pages} to {best}"))];
        row.push(Value::Ratio(times, c.verdict));
        let nanoseconds = |(ns, _)| Value::Number(ns, "ns".to_owned());
        row.extend(changes.into_iter().map(nanoseconds));
        rows.push(row);
    }
    // The cache alone: pages that are present already, so that the touch has no fault in it.
    let populated = sizes(results, PARTS, "life-populate");
    let touch = ends.iter().filter_map(|(pages, _)| {
        let c = populated
            .at(*pages)?
            .compare(&populated.at(best)?, "touch_ns");
        let mut row = vec![text(format!("{pages} to {best}, touch of present pages"))];
        row.push(Value::Ratio(c.ratio?, c.verdict));
        row.resize(2 + LIFE.len(), Value::Empty);
        Some(row)
    });
    rows.extend(touch);
    let title =
        "Cost of a page where clusters go back whole, and what each part of its life takes more";
    let mut table = of_pages(title, rows);
    table.columns.extend(LIFE.map(|(_, name)| name.to_owned()));
    let answer = format!(
        "Against clusters of {best}, all returned whole, a page costs {}.",
        largest.join(", and ")
    );
    (!ends.is_empty()).then(|| {
        finding(
            "Where does the time of small and of large clusters go?",
            OURS,
            answer,
        )
        .with(table)
    })
}

/// What one munmap per page costs.
fn page_by_page(results: &Results<'_>) -> Option<Finding> {
    let by_page = sizes(results, PARTS, "life-by-page");
    let whole = sizes(results, PARTS, "life-whole");
    let (best, _) = whole.best(COST)?;
    let (pages, cell) = by_page.at(best).map(|at| (best, at)).or(by_page.last())?;
    judged(
        "What does giving back page by page cost?",
        OURS,
        ("giving back page by page", &cell),
        ("one call per cluster", &whole.at(pages)?),
        COST,
        |r, _| {
            format!(
                "At {pages} pages a page with a munmap of its own costs {r} of one whose cluster goes back in one call."
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
