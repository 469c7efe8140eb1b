//! Does a page that was zeroed before pay, for whom, and who pays for it?

use super::cells::{BACK, CPU, HELD, HELPER, TOTAL, WALL, bill_group};
use super::look::{Compared, Look};
use super::timings::section;
use super::words::{self, finding, ratio, text, value};
use crate::contestants::mapping::bill::Use;
use crate::model::{
    Analysis, Axis, Block, Cell, Chart, Finding, Point, Provenance, Recommendation, Scale, Series,
    Table, Value,
};
use crate::stats::Verdict;

const WARM: &str = "bill-warm";
const COLD: &str = "bill-cold";
const NOW: &str = "bill-prezeroed-now";
const BEFORE: &str = "bill-prezeroed-before";

/// The supplies in the order of the tables.
const SUPPLIES: [(&str, &str); 11] = [
    ("bill-fault", "kernel fault, recycled mapping"),
    ("bill-populate", "mmap with MAP_POPULATE, call included"),
    (WARM, "warm page, zeroed at hand-out"),
    (COLD, "cold page, zeroed at hand-out"),
    (NOW, "cold page, zeroed just now by another CPU"),
    (BEFORE, "cold page, zeroed long before by another CPU"),
    ("bill-pool", "PagePool get_zeroed"),
    ("bill-pool-sparse", "PagePool get_zeroed_sparse, helper on"),
    ("bill-pool-dirty", "PagePool get, no zeroing (floor)"),
    ("floor-warm", "warm page, no zeroing (floor)"),
    ("floor-cold", "cold page, no zeroing (floor)"),
];

fn cell<'a>(look: &Look<'a>, usage: Use, supply: &str) -> Option<&'a Cell> {
    look.cell(&bill_group(usage.name()), supply, &[])
}

fn against(look: &Look<'_>, usage: Use, a: &str, b: &str, metric: &str) -> Option<Compared> {
    let (a, b) = (cell(look, usage, a)?, cell(look, usage, b)?);
    look.compare(&bill_group(usage.name()), a, b, metric)
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks: Vec<Block> = Use::ALL
        .into_iter()
        .filter_map(|usage| table(look, usage).map(Block::Table))
        .collect();
    blocks.extend(chart(look).map(Block::Chart));
    Analysis {
        findings: Use::ALL
            .into_iter()
            .filter_map(|usage| sentence(look, usage))
            .collect(),
        sections: section("The consumer's bill", blocks),
        recommendations: prezero(look).into_iter().collect(),
        ..Analysis::default()
    }
}

fn sentence(look: &Look<'_>, usage: Use) -> Option<Finding> {
    let group = bill_group(usage.name());
    let before = cell(look, usage, BEFORE)?;
    let price = look.estimate(&group, before, CPU)?;
    let helper = look.estimate(&group, before, HELPER)?;
    let consumer = against(look, usage, BEFORE, COLD, CPU)?;
    let total = against(look, usage, BEFORE, COLD, TOTAL)?;
    let mut answer = format!(
        "A consumer that then {} pays {} for a page that another CPU zeroed long before: {} of a cold page zeroed when \
         it is handed out.",
        usage.words(),
        words::ns(&price),
        words::compared(&consumer)
    );
    if let Some(now) = against(look, usage, NOW, COLD, CPU) {
        answer += &format!(" Zeroed just now it is {}.", words::compared(&now));
    }
    answer += &format!(
        " The helper burns {} per page; with that charged the bill is {}.",
        words::ns(&helper),
        words::compared(&total)
    );
    if let Some(warm) = against(look, usage, BEFORE, WARM, TOTAL) {
        answer += &format!(
            " Against a warm page zeroed when it is handed out, all charged: {}.",
            words::compared(&warm)
        );
    }
    if let Some(spoiled) = against(look, usage, BEFORE, "floor-warm", CPU) {
        answer += &format!(
            " What the cold page itself costs its user, against a warm one and no zeroing at all: {}.",
            words::times(&spoiled.ratio)
        );
    }
    Some(finding(
        match usage {
            Use::Write8 => {
                "Do pages that are zeroed ahead of time pay for a consumer that writes 8 bytes?"
            }
            Use::WriteAll => {
                "Do pages that are zeroed ahead of time pay for a consumer that overwrites them?"
            }
            Use::ReadAll => {
                "Do pages that are zeroed ahead of time pay for a consumer that reads them?"
            }
        },
        "Maynard Handley and Jim Magee, in Nat! 2003 part VI",
        answer,
        Some(total.verdict),
    ))
}

fn table(look: &Look<'_>, usage: Use) -> Option<Table> {
    let group = bill_group(usage.name());
    let reference = cell(look, usage, WARM);
    let rows: Vec<Vec<Value>> = SUPPLIES
        .iter()
        .filter_map(|(supply, words)| {
            let cell = cell(look, usage, supply)?;
            let get = |metric| value(look.estimate(&group, cell, metric), "ns");
            let against = reference
                .filter(|r| *r != cell)
                .and_then(|r| look.compare(&group, cell, r, TOTAL));
            Some(vec![
                text(words),
                get(CPU),
                get(WALL),
                get(HELPER),
                get(TOTAL),
                ratio(against),
                get(BACK),
                value(look.estimate(&group, cell, HELD), "bytes"),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: format!("The consumer gets a page and {}", usage.words()),
        columns: [
            "supply",
            "consumer, CPU",
            "consumer, wall",
            "helper, CPU",
            "both",
            "both, against warm",
            "give back",
            "memory held",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![
            "Per page, medians over batches of 64. Giving back is not part of the bill: it is paid by whoever gives back."
                .to_owned(),
        ],
        long: false,
    })
}

fn chart(look: &Look<'_>) -> Option<Chart> {
    let series: Vec<Series> = SUPPLIES
        .iter()
        .filter_map(|(supply, words)| {
            let points: Vec<Point> = Use::ALL
                .into_iter()
                .enumerate()
                .filter_map(|(i, usage)| {
                    let cell = cell(look, usage, supply)?;
                    let e = look.estimate(&bill_group(usage.name()), cell, TOTAL)?;
                    Some(Point {
                        x: i as f64 + 1.0,
                        y: e.value,
                        lo: e.lo,
                        hi: e.hi,
                    })
                })
                .collect();
            (!points.is_empty()).then(|| Series {
                name: (*words).to_owned(),
                points,
                from: Provenance::Measured,
            })
        })
        .collect();
    (!series.is_empty()).then(|| Chart {
        title: "The bill of consumer and helper together, by use".to_owned(),
        x: Axis {
            label: "use".to_owned(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "CPU time per page (ns)".to_owned(),
            scale: Scale::Log,
        },
        series,
        marks: Use::ALL
            .into_iter()
            .enumerate()
            .map(|(i, usage)| (i as f64 + 1.0, usage.words().to_owned()))
            .collect(),
        categories: Vec::new(),
    })
}

/// Zeroing ahead is recommended only if the whole bill is smaller than that of the cheapest zeroing at hand-out, and
/// for no use larger.
fn prezero(look: &Look<'_>) -> Option<Recommendation> {
    let totals: Vec<(Use, Compared)> = Use::ALL
        .into_iter()
        .filter_map(|usage| {
            let versus = |theirs| against(look, usage, BEFORE, theirs, TOTAL);
            // The cheaper of the two is the one against which the ratio is larger.
            let worst = [versus(WARM), versus(COLD)]
                .into_iter()
                .flatten()
                .max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))?;
            Some((usage, worst))
        })
        .collect();
    let (usage, sparse) = *totals.first()?;
    let complete = totals.len() == Use::ALL.len();
    let pays = complete
        && sparse.verdict == Verdict::Faster
        && totals.iter().all(|(_, c)| c.verdict != Verdict::Slower);
    let each: Vec<String> = totals
        .iter()
        .map(|(usage, c)| format!("{} {}", usage.name(), words::times(&c.ratio)))
        .collect();
    Some(Recommendation {
        key: "pages.prezero".to_owned(),
        value: if pays { "true" } else { "false" }.to_owned(),
        because: format!(
            "Costs {} of the cheapest zeroing at hand-out. By use, with the helper charged: {}. {}",
            words::times(&sparse.ratio),
            words::list(&each),
            if pays {
                "That is less, and for no use more."
            } else if sparse.verdict == Verdict::Slower {
                "Even the consumer that writes least does not earn the helper's time back."
            } else {
                "That is not surely less for every use."
            }
        ),
        evidence: (usage == Use::Write8).then_some(sparse.ratio),
    })
}
