//! The tables and charts, in the order of the report.

use super::bill;
use super::cells::*;
use super::formulas;
use super::model;
use crate::contestants::mapping::{self, cycle::FOUR};
use crate::frame::{At, Column, Results, line, lines, listing, text, words::exact};
use crate::model::{Block, Chart, Provenance, Scale, Section, Series, Table, Value};
use crate::published;
use crate::stats::Estimate;

pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let model = model::fit(results);
    let mut fitted = vec![Block::Chart(model::chart(results, model.as_ref()))];
    fitted.extend(model.iter().flat_map(model::Model::blocks));
    let timings = vec![
        Block::Table(timings(results)),
        Block::Table(ways(results)),
        Block::Chart(shape(results)),
    ];
    let touch = vec![
        Block::Table(first_touch(results)),
        Block::Text(host(results).unwrap_or_default()),
    ];
    let section = |(title, blocks): (&str, Vec<Block>)| Section {
        title: title.to_owned(),
        blocks,
    };
    [
        ("The four timings", timings),
        (
            "What four timings say",
            vec![Block::Table(formulas::table(results))],
        ),
        ("The better model", fitted),
        (
            "Where the time of a fault goes",
            vec![Block::Table(steps(results))],
        ),
        ("The consumer's bill", bill::blocks(results)),
        ("The first touch of 256 MiB", touch),
    ]
    .map(section)
    .to_vec()
}

/// The table of 2003, this machine's ways above its machines.
fn timings(results: &Results<'_>) -> Table {
    let machine = &results.view.run().machine;
    let cpu = machine.text("cpu.model");
    let os = format!("Linux {}", machine.text("kernel.release"));
    let us = |at: At<'_, '_>, metric| match at.value(metric) {
        Value::Estimate(e, _) => Value::Estimate(scaled(&e, 1e-3), "us".to_owned()),
        Value::Number(ns, _) => Value::Number(ns * 1e-3, "us".to_owned()),
        none => none,
    };
    let here = WAYS.iter().filter_map(|way| {
        let at = four(results, way)?;
        let machine = text(format!("{cpu}: {way}"));
        let [a, b, c, d] = FOUR.map(|metric| us(at, metric));
        Some([machine, text(&os), text("this machine"), a, b, c, d])
    });
    let mut rows: Vec<_> = here.collect();
    if !rows.is_empty() {
        rows.extend(published::zerofill_machines().iter().map(|m| {
            let us = |v: f64| Value::Published(v, "us".to_owned());
            [
                text(&m.cpu_machine),
                text(&m.os),
                text(&m.submitter),
                us(m.alloc1_us),
                us(m.alloc1_fault_us),
                m.alloc2_us.map_or_else(|| text("N/A"), us),
                us(m.alloc2_fault_us),
            ]
        }));
    }
    Table::new(
        "One operation: a block allocated, touched or not, and given back",
        &[
            "CPU/ Machine",
            "OS",
            "Submitter",
            "1p alloc",
            "1p alloc + fault",
            "2p alloc",
            "2p alloc + fault",
        ],
        rows,
    )
    .noted(
        "The seconds of 2003 for a million operations are microseconds for one. This machine's numbers are CPU time of the \
         thread; the four loops ran in one process, in turns of short slices.",
    )
}

fn ways(results: &Results<'_>) -> Table {
    let zeroed = |at: &At<'_, '_>| match UNZEROED.contains(&at.name()) {
        true => text("no"),
        false => text("yes"),
    };
    listing(
        "One page got, touched and given back, by every way",
        WAYS.iter().filter_map(|way| four(results, way)),
        vec![
            Column::contestant("way"),
            Column::by("zeroed", zeroed),
            Column::metric("CPU time", CPU),
            Column::metric("wall time", WALL),
            Column::metric("CPU time, first 16", "first_cpu_ns_per_op"),
            Column::against("of mmap", four(results, MMAP), CPU),
            Column::metric("faults", FAULTS),
            Column::metric("memory held", HELD),
        ],
    )
    .noted(
        "'First 16' are the first operations of a fresh process, before any warm-up. The kernel counts memory held in steps \
         of some pages.",
    )
}

/// The shape of the four timings: each machine against its own first number.
fn shape(results: &Results<'_>) -> Chart {
    let places = || (1..).map(f64::from);
    let here = four(results, MMAP);
    let against = |name| over_rounds(&[(here?, name), (here?, FOUR[0])], |ns| ns[0] / ns[1]);
    let here: Option<Vec<Estimate>> = FOUR.into_iter().map(against).collect();
    let here = here.map(|four| line("this machine, mmap", places().zip(four)));
    let then = published::zerofill_machines().iter().map(|m| {
        let four = [
            Some(m.alloc1_us),
            Some(m.alloc1_fault_us),
            m.alloc2_us,
            Some(m.alloc2_fault_us),
        ];
        let points = places().zip(four);
        let points = points.filter_map(|(x, us)| Some((x, exact(us? / m.alloc1_us))));
        Series {
            from: Provenance::Published,
            ..line(m.cpu_machine.as_str(), points)
        }
    });
    let then = then.take(here.as_ref().map_or(0, |_| usize::MAX));
    let mut chart = lines(
        "The shape of the four timings: each against its machine's own '1p alloc'",
        ("timing", Scale::Linear),
        ("ratio to 1p alloc", Scale::Linear),
        here.into_iter().chain(then),
    );
    let names = ["1p", "1p + fault", "2p", "2p + fault"].map(str::to_owned);
    chart.marks = places().zip(names).collect();
    chart
}

/// The steps of a fault in the words of their contestants, or of the metric where that is one of several.
fn steps(results: &Results<'_>) -> Table {
    let of = |at: Option<At<'_, '_>>, metric| at.map_or(Value::Empty, |at| at.value(metric));
    let contestants = mapping::all();
    let about = |name: &str, metric: &str| {
        let step = contestants.iter().find(|c| c.name() == name);
        let metric = METRICS.iter().find(|m| m.name == metric && metric != CPU);
        let about = metric.map(|m| m.about).or(step.map(|c| c.about()));
        text(about.unwrap_or_default())
    };
    let kernel = STEPS_OF_A_FAULT.into_iter().filter_map(|(name, metric)| {
        let (warm, cold) = (warm(results, name), cold(results, name));
        warm.or(cold)?;
        let faults = of(warm, FAULTS);
        Some([
            about(name, metric),
            of(warm, metric),
            of(cold, metric),
            faults,
        ])
    });
    let alone = ["stosb", "portable"].into_iter().filter_map(|routine| {
        let at = in_place(results, STEPS, routine)?;
        let what = text(format!("zeroing in place and nothing else: {routine}"));
        Some([what, at.value(CPU), Value::Empty, at.value(FAULTS)])
    });
    let columns = [
        "step",
        "64 pages at a time",
        "more than the caches hold",
        "faults",
    ];
    let rows = kernel.chain(alone);
    Table::new("Steps of a fault, per page", &columns, rows)
}

fn first_touch(results: &Results<'_>) -> Table {
    let plain = results.find(FIRST_TOUCH, PLAIN_REGION, &[]);
    listing(
        "256 MiB got and touched, per 4 KiB",
        regions(results),
        vec![
            Column::by("way", |at| text(called(at))),
            Column::metric("first pass, CPU", CPU),
            Column::metric("first pass, wall", WALL),
            Column::against("of region-touch", plain, CPU),
            Column::metric("second pass, CPU", AGAIN),
            Column::metric("second pass, wall", "again_ns_per_op"),
            Column::against("of region-touch", plain, AGAIN),
            Column::metric("fast chunks", "chunk_p10_ns_per_op"),
            Column::metric("slow chunks", "chunk_p90_ns_per_op"),
            Column::metric("give back", BACK),
            Column::metric("faults per page", FAULTS),
            Column::metric("memory held", HELD),
            Column::metric("in huge pages", "huge_bytes"),
        ],
    )
    .noted(
        "The second pass follows in the same process after the first region was given back. Fast and slow chunks are the \
         10th and 90th percentile of the 2 MiB chunks of the first pass, wall time.",
    )
}

/// What a guest can say about its host.
fn host(results: &Results<'_>) -> Option<String> {
    let plain = results.find(FIRST_TOUCH, PLAIN_REGION, &[])?;
    if plain.middle("guest")? == 0.0 {
        return Some(
            "This is not a virtual machine: first and second pass need not differ.".to_owned(),
        );
    }
    let balloon = ["balloon_inflated_pages", "balloon_deflated_pages"];
    let balloon = match balloon.map(|name| plain.middle(name)) {
        [Some(took), Some(gave)] => {
            format!("since boot its balloon took {took:.0} pages and gave {gave:.0} back")
        }
        _ => "its balloon's counters cannot be read".to_owned(),
    };
    let reports = match plain.middle("free_page_reporting_order") {
        Some(order) if order < 64.0 => format!(
            "free blocks of order {order:.0} and above may be reported to the host and then cost a second fault there"
        ),
        _ => "whether free pages are reported to the host cannot be read".to_owned(),
    };
    Some(format!("This is a virtual machine; {balloon}; {reports}."))
}

/// Every zeroing routine, for the finding about them.
pub(super) fn routines(results: &Results<'_>) -> Table {
    let rows = BY_BURDEN.iter().filter_map(|routine| {
        let [warm, cold] = [ZERO_WARM, ZERO_COLD].map(|group| in_place(results, group, routine));
        warm.or(cold)?;
        let bytes = rustix::param::page_size() as f64;
        let rate = |ns| Value::Number(bytes / ns * 1e9, "bytes/s".to_owned());
        let rate = warm
            .and_then(|at| at.middle(CPU))
            .map_or(Value::Empty, rate);
        let [warm, cold] = [warm, cold].map(|at| at.map_or(Value::Empty, |at| at.value(CPU)));
        Some([text(*routine), warm, rate, cold])
    });
    let columns = [
        "routine",
        "warm (256 KiB)",
        "warm, rate",
        "cold (64 MiB or more)",
    ];
    Table::new("Zeroing one page in place", &columns, rows)
        .noted("The pages are dirty before each pass: zero over zero is cheaper on some CPUs.")
}
