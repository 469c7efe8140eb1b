//! His table of four timings, with this machine's ways above the machines of 2003.

use super::cells::{CPU, FAULTS, HELD, MMAP, TIMINGS, WALL};
use super::look::{Compared, Look, scaled};
use super::words::{self, NAT, finding, ratio, text, value};
use crate::contestants::mapping::cycle::FOUR;
use crate::model::{
    Analysis, Axis, Block, Chart, Point, Provenance, Scale, Section, Series, Table, Value,
};
use crate::published;
use crate::stats::Estimate;

/// The ways in the order of the table, whether each gives zeroed pages, and what it is in words.
const WAYS: [(&str, bool, &str); 10] = [
    (MMAP, true, "mmap and munmap"),
    ("mmap-populate", true, "mmap with MAP_POPULATE, munmap"),
    ("dontneed", true, "one mapping, MADV_DONTNEED and reuse"),
    (
        "dontneed-populate",
        true,
        "the same with MADV_POPULATE_WRITE",
    ),
    (
        "madv-free",
        false,
        "one mapping, MADV_FREE and reuse (contents stay)",
    ),
    ("memfd", true, "shared mapping of a memfd, punched out"),
    ("mthp", true, "mmap in smaller huge pages"),
    ("thp", true, "mmap in huge pages"),
    ("pool-zeroed", true, "larder's PagePool, get_zeroed"),
    (
        "pool-dirty",
        false,
        "larder's PagePool, get (contents stay)",
    ),
];

/// The four timings of a way in microseconds, in his order.
pub(super) fn microseconds(look: &Look<'_>, way: &str) -> Option<[Estimate; 4]> {
    let cell = look.four(way)?;
    let [a, b, c, d] =
        FOUR.map(|name| look.estimate(TIMINGS, cell, name).map(|e| scaled(&e, 1e-3)));
    Some([a?, b?, c?, d?])
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks = Vec::new();
    blocks.extend(his_table(look).map(Block::Table));
    blocks.extend(ways_table(look).map(Block::Table));
    blocks.extend(shape(look).map(Block::Chart));
    let mut findings = Vec::new();
    findings.extend(cheapest_way(look));
    findings.extend(first_operations(look));
    Analysis {
        findings,
        sections: section("The four timings", blocks),
        ..Analysis::default()
    }
}

/// A section, unless there is nothing in it.
pub(super) fn section(title: &str, blocks: Vec<Block>) -> Vec<Section> {
    if blocks.is_empty() {
        return Vec::new();
    }
    vec![Section {
        title: title.to_owned(),
        blocks,
    }]
}

fn his_table(look: &Look<'_>) -> Option<Table> {
    let machine = &look.view.run().machine;
    let os = format!("Linux {}", machine.text("kernel.release"));
    let mut rows = Vec::new();
    for (way, _, words) in WAYS {
        let Some(timings) = microseconds(look, way) else {
            continue;
        };
        let mut row = vec![
            text(&format!("{}: {words}", machine.text("cpu.model"))),
            text(&os),
            text("this machine"),
        ];
        row.extend(timings.map(|e| Value::Estimate(e, "us".to_owned())));
        rows.push(row);
    }
    if rows.is_empty() {
        return None;
    }
    let us = |v: f64| Value::Published(v, "us".to_owned());
    for m in published::zerofill_machines() {
        rows.push(vec![
            text(&m.cpu_machine),
            text(&m.os),
            text(&m.submitter),
            us(m.alloc1_us),
            us(m.alloc1_fault_us),
            m.alloc2_us.map_or_else(|| text("N/A"), us),
            us(m.alloc2_fault_us),
        ]);
    }
    Some(Table {
        title: "One operation: a block allocated, touched or not, and given back".to_owned(),
        columns: [
            "CPU/ Machine",
            "OS",
            "Submitter",
            "1p alloc",
            "1p alloc + fault",
            "2p alloc",
            "2p alloc + fault",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![
            "His seconds for a million operations are microseconds for one. This machine's numbers are CPU time of \
             the thread, medians of the rounds; the four loops ran in one process, in turns of short slices."
                .to_owned(),
        ],
        long: false,
    })
}

fn ways_table(look: &Look<'_>) -> Option<Table> {
    let reference = look.four(MMAP)?;
    let mut rows = Vec::new();
    for (way, zeroed, words) in WAYS {
        let Some(cell) = look.four(way) else {
            continue;
        };
        let get = |metric| look.estimate(TIMINGS, cell, metric);
        let against = if way == MMAP {
            Value::Empty
        } else {
            ratio(look.compare(TIMINGS, cell, reference, CPU))
        };
        rows.push(vec![
            text(words),
            text(if zeroed { "yes" } else { "no" }),
            value(get(CPU), "ns"),
            value(get(WALL), "ns"),
            value(get("first_cpu_ns_per_op"), "ns"),
            against,
            value(get(FAULTS), ""),
            value(get(HELD), "bytes"),
        ]);
    }
    Some(Table {
        title: "One page got, touched and given back, by every way".to_owned(),
        columns: [
            "way",
            "zeroed",
            "CPU time",
            "wall time",
            "CPU time, first 16",
            "against mmap",
            "faults",
            "memory held",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![
            "'First 16' are the first operations of a fresh process, before any warm-up. Memory held is counted by the \
             kernel in steps of some pages."
                .to_owned(),
        ],
        long: false,
    })
}

/// The shape of the four timings: each machine against its own first number.
fn shape(look: &Look<'_>) -> Option<Chart> {
    let here = look.four(MMAP)?;
    let point = |i: usize, e: Estimate| Point {
        x: i as f64 + 1.0,
        y: e.value,
        lo: e.lo,
        hi: e.hi,
    };
    let measured: Option<Vec<Point>> = FOUR
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let against = look.over_rounds(TIMINGS, &[(here, name), (here, FOUR[0])], |row| {
                (row[1] > 0.0).then(|| row[0] / row[1])
            })?;
            Some(point(i, against))
        })
        .collect();
    let mut series = vec![Series {
        name: "this machine, mmap".to_owned(),
        points: measured?,
        from: Provenance::Measured,
    }];
    for m in published::zerofill_machines() {
        let four = [
            Some(m.alloc1_us),
            Some(m.alloc1_fault_us),
            m.alloc2_us,
            Some(m.alloc2_fault_us),
        ];
        let points = four
            .into_iter()
            .enumerate()
            .filter_map(|(i, us)| Some(point(i, super::look::exact(us? / m.alloc1_us, 1))))
            .collect();
        series.push(Series {
            name: m.cpu_machine.clone(),
            points,
            from: Provenance::Published,
        });
    }
    Some(Chart {
        title: "The shape of the four timings: each against its machine's own '1p alloc'"
            .to_owned(),
        x: Axis {
            label: "timing, in his order".to_owned(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "ratio to 1p alloc".to_owned(),
            scale: Scale::Linear,
        },
        series,
        marks: vec![
            (1.0, "1p".to_owned()),
            (2.0, "1p + fault".to_owned()),
            (3.0, "2p".to_owned()),
            (4.0, "2p + fault".to_owned()),
        ],
        categories: Vec::new(),
    })
}

fn cheapest_way(look: &Look<'_>) -> Option<crate::model::Finding> {
    let reference = look.four(MMAP)?;
    let mut against: Vec<(&str, Compared)> = WAYS
        .iter()
        .filter(|(way, zeroed, _)| *zeroed && *way != MMAP)
        .filter_map(|(way, _, words)| {
            let cell = look.four(way)?;
            Some((*words, look.compare(TIMINGS, cell, reference, CPU)?))
        })
        .collect();
    against.sort_by(|a, b| a.1.ratio.value.total_cmp(&b.1.ratio.value));
    let (best, by) = *against.first()?;
    let others: Vec<String> = against[1..]
        .iter()
        .map(|(words, c)| format!("{words} {}", words::times(&c.ratio)))
        .collect();
    let base = look.estimate(TIMINGS, reference, CPU)?;
    let mut answer = format!(
        "One zeroed page by mmap and munmap takes {}. The cheapest other way is {best}: {} of that.",
        words::ns(&base),
        words::compared(&by),
    );
    if !others.is_empty() {
        answer += &format!(" Then {}.", words::list(&others));
    }
    Some(finding(
        "mmap was faster than vm_allocate (part IV). Which way is fastest now?",
        NAT,
        answer,
        Some(by.verdict),
    ))
}

fn first_operations(look: &Look<'_>) -> Option<crate::model::Finding> {
    let cell = look.four(MMAP)?;
    let ratio = look.over_rounds(
        TIMINGS,
        &[(cell, "first_cpu_ns_per_op"), (cell, CPU)],
        |row| (row[1] > 0.0).then(|| row[0] / row[1]),
    )?;
    let verdict = look.judge(TIMINGS, CPU, &ratio);
    Some(finding(
        "Why warm up before timing?",
        "",
        format!(
            "The first 16 operations of a fresh process (mmap, one page, touched) cost {} of a later one.",
            words::times(&ratio)
        ),
        Some(verdict),
    ))
}
