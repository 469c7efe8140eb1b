//! The tables and the chart.

use super::contestants::{ONE_CPU, TWO_CPUS};
use super::metrics::{BARE, FIRST, HITS, RATE, READ, SECONDS, WRITTEN};
use super::plan::{
    BUILD, CLIENTS, DBENCH, FIELD, FIELD_CLIENTS, LOADFILE, LOADFILE_CLIENTS, PAGES, PATCHED,
    TOUCHED, TOUCHES, VANILLA,
};
use super::rows::{Seeds, built, lords, of, rules_of, shown, touched};
use crate::frame::{Results, grid, line, lines, section, text};
use crate::model::{Block, Chart, Provenance, Scale, Section, Series, Table, Value};
use larder_sim::machine::Drive;

/// All sections.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    vec![
        section(
            "Lord's table beside the model",
            [
                Block::Text(model()),
                Block::Table(dbench(results)),
                Block::Chart(chart(results)),
            ],
        ),
        section(
            "Every rule on the same work",
            [field(results), loadfile(results)].map(Block::Table),
        ),
        section(
            "Several touches at once, and a build beside a search",
            [correlated(results), build(results)].map(Block::Table),
        ),
    ]
}

fn model() -> String {
    let drive = Drive::default();
    format!(
        "Simulated. A page cache of {PAGES} pages, 54 % of what Lord's 128 MiB could give to files. Each client has 5,200 pages, of which 2,000 are used again, so that what \
         7 clients use again fits and what 8 use does not; the filling of a client's directory is not counted. \
         Modelled seconds = waited + max(payload / {:.1} MB/s / s, behind), with s = 1 for one client and {TWO_CPUS} for more (Lord's first two rows). waited: a disk \
         command of n pages that is waited for takes {:.1} ms unless it goes on where the last one ended, and n * 4096 / {:.0} MB/s; behind: the same for \
         pages written when they are 30 s old, when two fifths are dirty, or when the rule asks. Readahead of 3 to 31 pages, with drop-behind for the rules that \
         have it. Throughput = payload / seconds. Flushes are not modelled: dbench of 2001 had none.",
        ONE_CPU / 1e6,
        drive.seek * 1e3,
        drive.rate / 1e6
    )
}

/// Names and units of the measures of [`dbench`], each for both kernels.
const OF_DBENCH: [(&str, &str, &str); 6] = [
    ("", "(2001)", "MB/s"),
    ("", "spread (2001)", ""),
    (RATE, "modelled", "MB/s"),
    (HITS, "hits", "%"),
    (READ, "pages read", ""),
    (WRITTEN, "pages written", ""),
];

fn dbench(results: &Results<'_>) -> Table {
    let kernels = [
        ("2.4.7", "vanilla", VANILLA),
        ("use-once", "use-once", PATCHED),
    ];
    let columns = OF_DBENCH.into_iter().flat_map(|measure| {
        kernels.map(|kernel| ((kernel, measure), format!("{}, {}", kernel.0, measure.1)))
    });
    let rows = CLIENTS.into_iter().rev();
    grid(
        "dbench, 2.4.7 and 2.4.7 with use-once: the throughput of 2001 and the model's",
        "clients",
        rows.map(|clients| (clients, Value::Count(clients))),
        columns,
        |clients, ((_, kernel, rule), (metric, _, unit))| match *metric {
            "" => match (lords(kernel, *clients), *unit) {
                (Some(runs), "") => text(runs.spread()),
                (Some(runs), unit) => Value::Published(runs.middle, unit.to_owned()),
                (None, _) => Value::Empty,
            },
            metric => {
                let seeds = of(results, DBENCH, rule, *clients, metric);
                shown(seeds.map(|s| s.middle), unit)
            }
        },
    )
    .noted("Middles of three runs, Lord's and the model's (three seeds). The model's throughput is a formula over exact counts, no measurement.")
    .noted("Spread: the distance of the fastest and the slowest run, of the middle one. Lord ran two clients again and found them in line.")
}

fn chart(results: &Results<'_>) -> Chart {
    let series = |name: &str, from, value: &dyn Fn(i64) -> Option<Seeds>| {
        let points = CLIENTS.into_iter().filter_map(|clients| {
            let seeds = value(clients).filter(|seeds| seeds.middle > 0.0)?;
            Some((clients as f64, seeds.estimate()))
        });
        let line = line(name, points);
        Series { from, ..line }
    };
    let then = |kernel| move |clients| lords(kernel, clients);
    let here = |rule| move |clients| of(results, DBENCH, rule, clients, RATE);
    let (published, modelled) = (Provenance::Published, Provenance::Measured);
    lines(
        "Throughput by clients",
        ("clients", Scale::Log),
        ("MB/s", Scale::Log),
        [
            series("2.4.7 (2001)", published, &then("vanilla")),
            series("use-once (2001)", published, &then("use-once")),
            series("2.4.7, modelled", modelled, &here(VANILLA)),
            series("use-once, modelled", modelled, &here(PATCHED)),
        ],
    )
}

/// A row for each rule, with four measures at each load.
fn by_rule(results: &Results<'_>, title: &str, group: &str, loads: &[i64]) -> Table {
    let measures = [
        (BARE, "bare hits", 1, " %"),
        (HITS, "hits", 1, " %"),
        (READ, "pages read", 0, ""),
        (RATE, "modelled", 2, " MB/s"),
    ];
    let columns = loads
        .iter()
        .flat_map(|clients| measures.map(|m| ((*clients, m), format!("{}, {clients}", m.1))));
    let rules = rules_of(results, group).into_iter();
    grid(
        title,
        "rule",
        rules.map(|rule| (rule, text(rule))),
        columns,
        |rule, (clients, (metric, _, decimals, unit))| {
            let seeds = of(results, group, rule, *clients, metric);
            seeds.map_or(Value::Empty, |s| text(s.text(*decimals, unit)))
        },
    )
}

fn field(results: &Results<'_>) -> Table {
    let title = "dbench-like work under every rule, by clients";
    by_rule(results, title, FIELD, &FIELD_CLIENTS)
        .noted("Bare: the rule alone, each touch a use, nothing dirty. Otherwise on the modelled machine. OPT has bare hits only.")
        .noted("--full has three seeds: the middle, in brackets the least and the most. The quick form has one.")
}

fn loadfile(results: &Results<'_>) -> Table {
    let title = "dbench 4.0's own load file, by clients";
    by_rule(results, title, LOADFILE, &LOADFILE_CLIENTS)
        .noted("Only where client.txt is. The quick form reads its first 40,000 touches for each client, --full all of them.")
        .noted("A miss that overwrites its whole page reads nothing, so a rule may find more pages and also read more.")
}

fn correlated(results: &Results<'_>) -> Table {
    let apart = TOUCHES.map(|n| ((n, "apart"), n.to_string()));
    let merged = ((4, "merged"), "4, counted as one".to_owned());
    grid(
        "Misses of 60,000 uses, by touches of each use",
        "rule",
        TOUCHED.map(|rule| (rule, text(rule))),
        apart.into_iter().chain([merged]),
        |rule, (touches, requests)| shown(touched(results, rule, *touches, requests), ""),
    )
    .noted("Zipf's law, exponent 0.9, 20,000 pages, cache of 2,000. Counted as one: the touches have one request number, as one reader's small reads have.")
}

fn build(results: &Results<'_>) -> Table {
    let columns = [
        ((FIRST, false, "%"), "build's hits, alone"),
        ((FIRST, true, "%"), "build's hits, beside"),
        ((READ, true, ""), "pages read"),
        ((SECONDS, true, "s"), "modelled time of both"),
    ];
    let rules = rules_of(results, BUILD).into_iter();
    grid(
        "A build, alone and beside a search through a large tree",
        "rule",
        rules.map(|rule| (rule, text(rule))),
        columns.map(|(column, name)| (column, name.to_owned())),
        |rule, (metric, beside, unit)| shown(built(results, rule, metric, *beside), unit),
    )
    .noted("The search reads each page once. The modelled time knows the disk and the copying, not the compiler.")
}
