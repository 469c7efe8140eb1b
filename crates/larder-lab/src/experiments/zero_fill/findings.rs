//! One answer to each question: those of 2003 first, then those of the measurement itself.

use super::bill;
use super::cells::*;
use super::formulas::*;
use super::model;
use super::tables;
use crate::calc::Quantity;
use crate::contestants::mapping::cycle::FOUR;
use crate::frame::words::ratio;
use crate::frame::{At, Column, Results, judged, listing, shown, text};
use crate::model::{Better, Cell, Finding, Recommendation, ShortAnswer, Table, Value};
use crate::report::number;
use crate::stats::defaults::QUICK_FIRST_LOOK;
use crate::stats::sweep::OptimumSet;
use crate::stats::{Estimate, Verdict};

const NAT: &str = "Nat! 2003";
/// Questions that the document does not ask.
const OURS: &str = "larder";

type Answer = fn(&Results<'_>) -> Option<Finding>;

/// The source, the question and its answer.
const QUESTIONS: [(&str, &str, Answer); 13] = [
    (
        NAT,
        "Is at least half of allocating and faulting in 4 pages zero-filling?",
        zeroing,
    ),
    (
        NAT,
        "Is the page fault the largest of allocation, page fault and deallocation?",
        largest,
    ),
    (
        NAT,
        "Do faulting in and zero-filling take 80 % of the time with 4 pages?",
        four_pages,
    ),
    (
        NAT,
        "Does it pay to fault in more pages at a time?",
        batches,
    ),
    (
        NAT,
        "Does it pay to map one or two pages at once, not at the first touch?",
        early,
    ),
    (
        "Maynard Handley 2003",
        "Do pages that are zeroed ahead of time pay?",
        ahead,
    ),
    (
        OURS,
        "Which way of getting a zeroed page is fastest?",
        fastest_way,
    ),
    (
        OURS,
        "Which first touch of 256 MiB is cheapest?",
        cheapest_touch,
    ),
    (
        OURS,
        "Does memory cost more when it was never touched?",
        first_pass,
    ),
    (OURS, "With what should a page be zeroed?", routines),
    (
        OURS,
        "Is the measure of zero-filling to be trusted?",
        trusted,
    ),
    (
        OURS,
        "Do the formulas of 2003 give the zero-filling that is measured?",
        guess,
    ),
    (
        OURS,
        "Does a cost per call, page and page table describe a block?",
        modelled,
    ),
];

/// Every question that the samples answer.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let of = |(asked_by, question, answer): (&str, &str, Answer)| {
        Some(Finding {
            question: question.to_owned(),
            asked_by: asked_by.to_owned(),
            ..answer(results)?
        })
    };
    QUESTIONS.into_iter().filter_map(of).collect()
}

/// The groups that ran for too few rounds to answer anything.
pub(super) fn too_short(results: &Results<'_>) -> Option<String> {
    let groups = results.view.run().groups.iter();
    let short = groups.filter(|g| g.rounds < QUICK_FIRST_LOOK);
    let short: Vec<&str> = short.map(|g| g.name.as_str()).collect();
    (!short.is_empty()).then(|| {
        format!(
            "The run was too short for {}: under {QUICK_FIRST_LOOK} rounds, so their numbers stand without intervals and \
             their questions stay open.",
            short.join(", ")
        )
    })
}

/// What the summary says of zero-filling.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let zeroing = zeroing_of_four(results).map(|share| {
        let says = if share.hi < 0.5 { "no" } else { "perhaps" };
        ShortAnswer::new(
            "Is zero-filling the cost?",
            format!("{says}: {} of getting 4 pages", percent(&share)),
        )
    });
    zeroing.into_iter().collect()
}

fn said(answer: String) -> Finding {
    Finding {
        answer,
        ..Finding::default()
    }
}

fn with_table(finding: Finding, table: Table) -> Finding {
    Finding {
        table: Some(table).filter(|table| !table.rows.is_empty()),
        ..finding
    }
}

fn percent(share: &Estimate) -> String {
    number::estimate(&scaled(share, 100.0), "%")
}

fn shown_percent(share: Option<Estimate>) -> Value {
    shown(share.map(|share| scaled(&share, 100.0)), "%")
}

/// Whether a number is a bound or more, by its whole interval.
fn reaches(e: &Estimate, bound: f64) -> &'static str {
    match e {
        e if e.lo >= bound => "Yes",
        e if e.hi < bound => "No",
        _ => "Undecided",
    }
}

/// Whether it pays, by a verdict.
fn pays(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "Yes",
        Verdict::Slower => "No",
        Verdict::Same { .. } => "No, it makes no difference",
        Verdict::Inconclusive => "Undecided",
        Verdict::Noisy => "The run was too noisy to tell",
        Verdict::Refused => "The run was too short to tell",
    }
}

fn zeroing(results: &Results<'_>) -> Option<Finding> {
    let (share, share_cold) = (zeroing_of_four(results)?, zeroing_of_four_cold(results));
    let says = |share: &Estimate| match reaches(share, 0.5) {
        "No" => "no, refuted",
        "Yes" => "yes",
        _ => "undecided",
    };
    let of_warm = says(&share);
    let says = match share_cold.as_ref().map(says) {
        Some(of_cold) if of_cold == of_warm => format!("{of_warm} for warm and cold pages"),
        Some(of_cold) => format!("{of_warm} for warm pages, {of_cold} for cold ones"),
        None => format!("{of_warm} for warm pages, cold ones were not measured"),
    };
    let (first, rest) = says.split_at(1);
    let answer = format!(
        "{}{rest}: zeroing 4 warm pages is {} of it.",
        first.to_uppercase(),
        percent(&share)
    );
    let cells = [warm(results, ZEROING), cold(results, ZEROING)];
    let [fault, fault_cold] = cells.map(|at| at.and_then(|at| at.estimate("share")));
    let row = |what: &str, warm, cold, then| {
        let [warm, cold] = [warm, cold].map(shown_percent);
        [text(what), warm, cold, then]
    };
    let four = "allocating and faulting in 4 pages";
    let mut rows = vec![
        row(four, Some(share), share_cold, text("at least 50 %")),
        row("the fault alone", fault, fault_cold, text("50 to 80 %")),
    ];
    rows.extend([1, 4, 64].map(|pages| {
        let whole = block(results, STEPS, MMAP, pages, 1);
        let share = cells[0].zip(whole).and_then(|(zeroing, whole)| {
            let of = [(zeroing, CPU), (whole, CPU)];
            over_rounds(&of, |ns| pages as f64 * ns[0] / ns[1])
        });
        let what = format!("mmap, touch and munmap, pages: {pages}");
        row(&what, share, None, Value::Empty)
    }));
    let columns = ["zero-filling's share of", "warm", "cold", "2003"];
    let table = Table::new("Share of zero-filling", &columns, rows);
    Some(with_table(said(answer), table))
}

fn largest(results: &Results<'_>) -> Option<Finding> {
    let times = fault_of_the_rest(results)?;
    Some(said(format!(
        "{}: by the formulas of 2003 it takes {} of the larger of the other two.",
        reaches(&times, 1.0),
        ratio(&times)
    )))
}

fn four_pages(results: &Results<'_>) -> Option<Finding> {
    let share = faults_of_four(results)?;
    Some(said(format!(
        "{}: by the formulas of 2003 they take {}.",
        reaches(&share, 0.8),
        percent(&share)
    )))
}

fn batches(results: &Results<'_>) -> Option<Finding> {
    let late = |at: &At<'_, '_>| block(results, SIZES, MMAP, at.int("pages")?, 1);
    let early = [64, 16, 4].iter();
    let mut early = early.filter_map(|pages| block(results, SIZES, POPULATE, *pages, 1));
    let largest = early.next()?;
    let pages = largest.int("pages")?;
    let finding = judged(
        "",
        "",
        (&format!("faulting in {pages} pages at once"), &largest),
        ("faulting them in one by one", &late(&largest)?),
        CPU,
        |r, verdict| {
            let says = pays(verdict);
            format!("{says}: {pages} pages mapped within the call cost {r} of touching each.")
        },
    )?;
    let mut blocks: Vec<At<'_, '_>> = results.of(SIZES, POPULATE).collect();
    blocks.sort_by_key(|at| at.int("pages"));
    let table = listing(
        "A block faulted in page by page, and in one batch within the call",
        blocks,
        vec![
            Column::factor("pages", "pages"),
            Column::by("mmap and touch", move |at| {
                late(at).map_or(Value::Empty, |at| at.value(CPU))
            }),
            Column::metric("MAP_POPULATE", CPU),
            Column::against_each("ratio", move |at| late(at), CPU),
        ],
    );
    Some(with_table(finding, table))
}

fn early(results: &Results<'_>) -> Option<Finding> {
    let (early, late) = (four(results, POPULATE)?, four(results, MMAP)?);
    let two = early.compare(&late, FOUR[3]);
    let finding = judged(
        "",
        "",
        ("mapping one page at once", &early),
        ("mapping it at the first touch", &late),
        FOUR[1],
        |r, one| {
            let says = match (one, two.verdict) {
                (Verdict::Faster, Verdict::Faster) => "Yes, for both",
                (Verdict::Faster, _) => "For one page only",
                (_, Verdict::Faster) => "For two pages only",
                (Verdict::Slower, _) | (_, Verdict::Slower) => "No",
                (one, _) => pays(one),
            };
            format!("{says}: mapped within the call, one page costs {r} of the first touch.")
        },
    )?;
    let row = |what: &str, metric| {
        let c = early.compare(&late, metric);
        Some([text(what), Value::Ratio(c.ratio?, c.verdict)])
    };
    // (early - untouched) / (late - untouched)
    let of = [(early, FOUR[1]), (late, FOUR[0]), (late, FOUR[1])];
    let even = over_rounds(&of, |ns| match ns[2] > ns[1] {
        true => (ns[0] - ns[1]) / (ns[2] - ns[1]),
        false => f64::NAN,
    });
    let even = even.map(|even| {
        let what = "pages that must be touched for it to pay";
        [text(what), shown_percent(Some(even))]
    });
    let rows = [
        row("one page, touched", FOUR[1]),
        row("two pages, touched", FOUR[3]),
        row("one page, never touched", FOUR[0]),
        even,
    ];
    let rows = rows.into_iter().flatten();
    let columns = ["block", "mapped at once, of the first touch"];
    Some(with_table(
        finding,
        Table::new("Early mapping", &columns, rows),
    ))
}

fn ahead(results: &Results<'_>) -> Option<Finding> {
    let bill::Ahead { pays, of, .. } = bill::ahead(results)?;
    let (usage, least, verdict) = of;
    let says = match (pays, verdict) {
        (Some(true), _) => "Yes",
        (Some(false), Verdict::Faster) => "For some uses only",
        (_, verdict) => self::pays(verdict),
    };
    let finding = Finding {
        verdict: Some(verdict),
        reading: crate::frame::words::reading(
            "a page zeroed ahead",
            verdict,
            "one zeroed when it is handed out",
        ),
        ..said(format!(
            "{says}: with the helper's time charged, a consumer that {usage} pays {} of zeroing at hand-out.",
            ratio(&least)
        ))
    };
    Some(with_table(finding, bill::ahead_table(results)))
}

/// The candidate with the lowest cost, against the plain way.
fn fastest<'r, 'a: 'r>(
    candidates: impl Iterator<Item = At<'r, 'a>>,
    (plainly, plain): (&str, At<'_, '_>),
    metric: &str,
) -> Option<Finding> {
    let (_, best) = candidates
        .filter(|at| at.cell != plain.cell)
        .filter_map(|at| Some((at.ratio(&plain, metric)?.value, at)))
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = match best.name() {
        POOL | POOL_REGION => "larder's PagePool".to_owned(),
        _ => called(&best),
    };
    let sentence = |r: &str, verdict| match verdict {
        Verdict::Faster => format!("{name}, at {r} of {plainly}."),
        Verdict::Noisy | Verdict::Refused => {
            format!("{}: {name} takes {r} of {plainly}.", pays(verdict))
        }
        _ => format!("None is surely faster than {plainly}: {name} takes {r} of it."),
    };
    judged("", "", (&name, &best), (plainly, &plain), metric, sentence)
}

fn fastest_way(results: &Results<'_>) -> Option<Finding> {
    let zeroed = WAYS.iter().filter(|way| !UNZEROED.contains(way));
    let ways = zeroed.filter_map(|way| four(results, way));
    fastest(ways, ("mmap and munmap", four(results, MMAP)?), CPU)
}

fn cheapest_touch(results: &Results<'_>) -> Option<Finding> {
    let plain = results.find(FIRST_TOUCH, PLAIN_REGION, &[])?;
    let plain = ("touching pages of the smallest size", plain);
    fastest(regions(results), plain, AGAIN)
}

fn first_pass(results: &Results<'_>) -> Option<Finding> {
    let plain = results.find(FIRST_TOUCH, PLAIN_REGION, &[])?;
    let times = over_rounds(&[(plain, CPU), (plain, AGAIN)], |ns| ns[0] / ns[1])?;
    Some(said(format!(
        "{}: a process's first pass over 256 MiB costs {} of its second.",
        reaches(&times, 1.0),
        ratio(&times)
    )))
}

fn trusted(results: &Results<'_>) -> Option<Finding> {
    let direct = kernel_zeroing(results)?;
    let [write, read] = ["step-write-fault", "step-read-fault"].map(|step| warm(results, step));
    let upper = over_rounds(&[(write?, CPU), (read?, CPU)], |ns| ns[0] - ns[1])?;
    let in_place = |routine: &&str| in_place(results, STEPS, routine)?.estimate(CPU);
    let lower = ["stosb", "portable"].iter().find_map(in_place)?;
    let (says, lies) = match (lower.lo..=upper.hi).contains(&direct.value) {
        true => ("Yes", "between"),
        false => ("No", "outside of"),
    };
    let answer = format!(
        "{says}: {} a page lies {lies} its bounds, zeroing in place and all that a write fault adds to a read fault.",
        number::estimate(&direct, "ns")
    );
    let row = |what: &str, e| [text(what), shown(Some(e), "ns")];
    let rows = vec![
        row("lower bound: zeroing in place, without the kernel", lower),
        row("the kernel's zeroing, by difference", direct),
        row("upper bound: write fault less read fault", upper),
    ];
    let columns = ["zeroing one warm page", "CPU time"];
    let table = Table::new("Zero-filling and its bounds", &columns, rows);
    Some(with_table(said(answer), table))
}

fn guess(results: &Results<'_>) -> Option<Finding> {
    let guess = cost(results, MMAP, Quantity::ZeroFill)?;
    let Some(times) = wide_ratio(&guess, &kernel_zeroing(results)?) else {
        let why = "one of the two is not surely above zero";
        return Some(said(format!("Undecided: {why}.")));
    };
    let says = match &times {
        times if times.lo > 1.0 => "No, too much",
        times if times.hi < 1.0 => "No, too little",
        _ => "Yes, within the noise",
    };
    let times = ratio(&times);
    Some(said(format!(
        "{says}: they give {times} of the measured time."
    )))
}

fn modelled(results: &Results<'_>) -> Option<Finding> {
    let model = model::fit(results)?;
    let page = number::estimate(&model.per_page, "ns");
    Some(said(format!(
        "{}: one more page adds {page}.",
        model.verdict()
    )))
}

/// The routines not distinguishable from the best of a group, and the one of them that asks least of the CPU.
struct Best {
    set: OptimumSet,
    names: Vec<String>,
}

impl Best {
    fn of(results: &Results<'_>, group: &str) -> Option<Self> {
        let settings = (0..).zip(BY_BURDEN).filter_map(|(i, routine)| {
            let at = in_place(results, group, routine)?;
            Some((f64::from(i), at.cell.clone()))
        });
        let settings: Vec<(f64, Cell)> = settings.collect();
        let sweep = results.view.sweep(group, &settings, CPU, Better::Lower)?;
        let set = sweep.optimum(|burden, _| burden)?;
        let routine = |cell: &Cell| cell.params.text("routine").unwrap_or("unknown").to_owned();
        let names = sweep.cells.iter().map(routine).collect();
        Some(Self { set, names })
    }

    fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("unknown", String::as_str)
    }

    fn recommended(&self) -> String {
        self.name(self.set.recommended).to_owned()
    }

    fn ties(&self) -> String {
        let ties: Vec<&str> = self.set.members.iter().map(|i| self.name(*i)).collect();
        ties.join(", ")
    }
}

fn routines(results: &Results<'_>) -> Option<Finding> {
    let [warm, cold] = [ZERO_WARM, ZERO_COLD].map(|group| Best::of(results, group));
    let routine = warm?.recommended();
    let time = in_place(results, ZERO_WARM, &routine)?.estimate(CPU)?;
    let cold = cold.map(|cold| format!("; cold ones with {}", cold.recommended()));
    let answer = format!(
        "Warm pages with {routine}, in {}, which none surely beats{}.",
        number::estimate(&time, "ns"),
        cold.unwrap_or_default()
    );
    Some(with_table(said(answer), tables::routines(results)))
}

/// The routine that asks least of the CPU, of those not distinguishable from the fastest for a warm page.
pub(super) fn recommendation(results: &Results<'_>) -> Option<Recommendation> {
    let best = Best::of(results, ZERO_WARM)?;
    let name = best.recommended();
    Some(Recommendation {
        key: "pages.zeroing".to_owned(),
        value: format!("\"{name}\""),
        because: format!(
            "As fast as the fastest; asks least of the CPU. Equal for a warm page: {}.",
            best.ties()
        ),
        evidence: best.set.ratios.get(best.set.recommended).copied(),
    })
}
