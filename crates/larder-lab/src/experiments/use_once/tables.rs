//! The tables and the chart.

use crate::measure::RunView;
use crate::model::{
    Axis, Block, Chart, Point, Provenance, Scale, Section, Series, Table, TableRow, Value,
};

use super::disk::{ONE_CPU, RATE, SEEK, TWO_CPUS};
use super::plan::{
    BUILD, CLIENTS, CORRELATED, FIELD, FIELD_CLIENTS, LOADFILE, LOADFILE_CLIENTS, PAGES, PATCHED,
    TOUCHED, TOUCHES, VANILLA,
};
use super::rows::{change, his_change, is, measure, of_field, of_seeds, published_middle};

/// All sections.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    vec![
        Section {
            title: "His table beside the model".to_owned(),
            blocks: vec![
                Block::Text(model()),
                Block::Table(his(view)),
                Block::Chart(chart(view)),
            ],
        },
        Section {
            title: "Every rule on the same work".to_owned(),
            blocks: vec![Block::Table(field(view)), Block::Table(loadfile(view))],
        },
        Section {
            title: "Several touches at once, and a build beside a search".to_owned(),
            blocks: vec![Block::Table(correlated(view)), Block::Table(build(view))],
        },
    ]
}

fn model() -> String {
    format!(
        "Simulated. A page cache of {PAGES} pages, 54 % of what his 128 MiB could give to files. Each client has 5,200 pages, of which 2,000 are used again, so that what \
         7 clients use again fits and what 8 use does not; the filling of a client's directory is not counted. \
         Modelled seconds = waited + max(payload / {:.1} MB/s / s, behind), with s = 1 for one client and {TWO_CPUS} for more (his own first two rows). waited: a disk \
         command of n pages that is waited for takes {:.1} ms unless it goes on where the last one ended, and n * 4096 / {:.0} MB/s; behind: the same for \
         pages written when they are 30 s old, when two fifths are dirty, or when the rule asks. Readahead of 3 to 31 pages, with drop-behind for the rules that \
         have it. Throughput = payload / seconds. Flushes are not modelled: his dbench had none.",
        ONE_CPU / 1e6,
        SEEK * 1e3,
        RATE / 1e6
    )
}

fn number(value: Option<f64>, unit: &str) -> Value {
    value.map_or(Value::Empty, |v| Value::Number(v, unit.to_owned()))
}

fn percent(value: Option<f64>) -> Value {
    value.map_or(Value::Empty, |v| Value::Text(format!("{v:.1} %")))
}

fn signed(value: Option<f64>) -> Value {
    value.map_or(Value::Empty, |v| Value::Text(format!("{v:+.1} %")))
}

fn titled(title: &str, columns: &[&str], rows: Vec<TableRow>, notes: &[&str]) -> Table {
    Table {
        title: title.to_owned(),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows,
        notes: notes.iter().map(|&note| note.to_owned()).collect(),
        long: false,
    }
}

fn his(view: &RunView<'_>) -> Table {
    let rows = CLIENTS
        .iter()
        .rev()
        .map(|&clients| {
            let published = |kernel| {
                published_middle(kernel, clients)
                    .map_or(Value::Empty, |v| Value::Published(v, "MB/s".to_owned()))
            };
            let ours = |rule, name| of_seeds(view, rule, clients, name);
            vec![
                Value::Count(clients),
                published("vanilla"),
                published("use-once"),
                signed(his_change(clients)),
                number(ours(VANILLA, "modelled_mb_per_s"), "MB/s"),
                number(ours(PATCHED, "modelled_mb_per_s"), "MB/s"),
                signed(change(view, PATCHED, clients)),
                percent(ours(VANILLA, "hit_percent")),
                percent(ours(PATCHED, "hit_percent")),
                number(ours(VANILLA, "pages_read"), ""),
                number(ours(PATCHED, "pages_read"), ""),
                number(ours(VANILLA, "pages_written"), ""),
                number(ours(PATCHED, "pages_written"), ""),
            ]
        })
        .collect();
    titled(
        "dbench, 2.4.7 and 2.4.7 with use-once: his throughput and the model's",
        &[
            "clients",
            "2.4.7 (2001)",
            "use-once (2001)",
            "change (2001)",
            "2.4.7, modelled",
            "use-once, modelled",
            "change",
            "hits, 2.4.7",
            "hits, use-once",
            "pages read, 2.4.7",
            "use-once",
            "pages written, 2.4.7",
            "use-once",
        ],
        rows,
        &[
            "Middles of three runs, his and the model's (three seeds). The model's throughput is a formula over exact counts, no measurement.",
        ],
    )
}

fn chart(view: &RunView<'_>) -> Chart {
    let series = |name: &str, from, value: &dyn Fn(i64) -> Option<f64>| Series {
        name: name.to_owned(),
        points: CLIENTS
            .iter()
            .filter_map(|&clients| {
                let y = value(clients).filter(|y| *y > 0.0)?;
                Some(Point {
                    x: clients as f64,
                    y,
                    lo: y,
                    hi: y,
                })
            })
            .collect(),
        from,
    };
    Chart {
        title: "Throughput by clients".to_owned(),
        x: Axis {
            label: "clients".to_owned(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "MB/s".to_owned(),
            scale: Scale::Log,
        },
        series: vec![
            series("2.4.7 (2001)", Provenance::Published, &|n| {
                published_middle("vanilla", n)
            }),
            series("use-once (2001)", Provenance::Published, &|n| {
                published_middle("use-once", n)
            }),
            series("2.4.7, modelled", Provenance::Measured, &|n| {
                of_seeds(view, VANILLA, n, "modelled_mb_per_s")
            }),
            series("use-once, modelled", Provenance::Measured, &|n| {
                of_seeds(view, PATCHED, n, "modelled_mb_per_s")
            }),
        ],
        marks: Vec::new(),
        categories: Vec::new(),
    }
}

/// Rules of a group, in the order of the library.
fn rules_of(view: &RunView<'_>, group: &str) -> Vec<String> {
    let known = super::contestants::all();
    let present: Vec<&str> = view
        .cells(group)
        .into_iter()
        .map(|cell| cell.contestant.as_str())
        .collect();
    known
        .iter()
        .map(|contestant| contestant.name())
        .filter(|name| present.contains(name))
        .map(str::to_owned)
        .collect()
}

fn field(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for rule in rules_of(view, FIELD) {
        let mut row = vec![Value::Text(rule.clone())];
        for clients in FIELD_CLIENTS {
            let of = |name, decimals, unit| {
                of_field(view, &rule, clients, name).map_or(Value::Empty, |seeds| {
                    Value::Text(seeds.text(decimals, unit))
                })
            };
            row.extend([
                of("bare_hit_percent", 1, " %"),
                of("hit_percent", 1, " %"),
                of("pages_read", 0, ""),
                of("modelled_mb_per_s", 2, " MB/s"),
            ]);
        }
        rows.push(row);
    }
    titled(
        "dbench-like work under every rule, by clients",
        &[
            "rule",
            "bare hits, 4",
            "hits, 4",
            "pages read, 4",
            "modelled, 4",
            "bare hits, 16",
            "hits, 16",
            "pages read, 16",
            "modelled, 16",
            "bare hits, 64",
            "hits, 64",
            "pages read, 64",
            "modelled, 64",
        ],
        rows,
        &[
            "Bare: the rule alone, each touch a use, nothing dirty. Otherwise on the modelled machine. OPT has bare hits only.",
            "--full has three seeds: the middle, in brackets the least and the most. The quick form has one.",
        ],
    )
}

fn loadfile(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for rule in rules_of(view, LOADFILE) {
        let mut row = vec![Value::Text(rule.clone())];
        for clients in LOADFILE_CLIENTS {
            let of = |name| {
                measure(view, LOADFILE, &rule, name, |cell| {
                    is(cell, "clients", clients)
                })
            };
            row.extend([
                percent(of("bare_hit_percent")),
                percent(of("hit_percent")),
                number(of("modelled_mb_per_s"), "MB/s"),
            ]);
        }
        rows.push(row);
    }
    titled(
        "dbench 4.0's own loadfile, by clients",
        &[
            "rule",
            "bare hits, 4",
            "hits, 4",
            "modelled, 4",
            "bare hits, 16",
            "hits, 16",
            "modelled, 16",
            "bare hits, 32",
            "hits, 32",
            "modelled, 32",
            "bare hits, 64",
            "hits, 64",
            "modelled, 64",
        ],
        rows,
        &[
            "Only where client.txt is. The quick form reads its first 40,000 touches for each client, --full all of them.",
        ],
    )
}

fn correlated(view: &RunView<'_>) -> Table {
    let rows = TOUCHED
        .iter()
        .map(|rule| {
            let of = |touches: i64, requests: &str| {
                measure(view, CORRELATED, rule, "pages_read", |cell| {
                    is(cell, "touches", touches)
                        && cell
                            .params
                            .text("requests")
                            .is_ok_and(|found| found == requests)
                })
            };
            let mut row = vec![Value::Text((*rule).to_owned())];
            row.extend(TOUCHES.map(|touches| number(of(touches, "apart"), "")));
            row.push(number(of(4, "merged"), ""));
            row
        })
        .collect();
    titled(
        "Misses of 60,000 uses, each of 1, 2, 4 or 8 touches",
        &["rule", "1 touch", "2", "4", "8", "4, counted as one"],
        rows,
        &[
            "Zipf's law, exponent 0.9, 20,000 pages, cache of 2,000. Counted as one: the touches have one request number, as one reader's small reads have.",
        ],
    )
}

fn build(view: &RunView<'_>) -> Table {
    let rows = rules_of(view, BUILD)
        .into_iter()
        .map(|rule| {
            let of = |name, with: bool| {
                measure(view, BUILD, &rule, name, |cell| {
                    cell.params.int("grep").is_ok_and(|grep| (grep > 0) == with)
                })
            };
            vec![
                Value::Text(rule.clone()),
                percent(of("first_hit_percent", false)),
                percent(of("first_hit_percent", true)),
                number(of("pages_read", true), ""),
                number(of("modelled_s", true), "s"),
            ]
        })
        .collect();
    titled(
        "A build, alone and beside a search through a large tree",
        &[
            "rule",
            "build's hits, alone",
            "build's hits, beside",
            "pages read",
            "modelled time of both",
        ],
        rows,
        &[
            "The search reads each page once. The modelled time knows the disk and the copying, not the compiler.",
        ],
    )
}
