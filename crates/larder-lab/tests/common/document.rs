//! A made-up document with everything that a report must survive. None of its numbers was measured.

#![allow(dead_code, reason = "each test program uses a part of it")]

use larder_lab::calc::{FittedModel, Parameter, Preset, Source, Submission, Timings};
use larder_lab::model::{
    Analysis, Axis, Block, Cell, Chart, Field, Finding, Goal, GoalState, GroupRecord,
    MachineRecord, Measures, NoiseRecord, Params, Point, Provenance, Recommendation, RunRecord,
    Sample, Scale, Section, Series, Skipped, StopReason, Table, Value,
};
use larder_lab::published;
use larder_lab::report::Document;
use larder_lab::stats::{Estimate, Verdict};

/// A name that tries to leave every place where a name can stand.
pub(crate) const HOSTILE: &str = "</script></title></svg><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'`|[a](javascript:window.pwned=1)\u{1b}[31m\u{202e}&";

pub(crate) fn est(value: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        value,
        lo,
        hi,
        n: 22,
        level: 0.95,
    }
}

fn machine() -> MachineRecord {
    let known = |v: &str| Field::Known(v.to_owned());
    MachineRecord {
        fingerprint: "9f3c21aa04d1e877".into(),
        fields: [
            ("cpu.model", known("Example 9000 (made up)")),
            ("cpu.online", known("0-1")),
            ("cache.l2", known("2048 KiB")),
            ("cache.l3", known("32 MiB")),
            ("memory.total", known("24 GiB")),
            ("kernel.release", known("6.12.0-example")),
            ("thp.enabled", known("always [madvise] never")),
            (
                "frequency.governor",
                Field::Unknown("no cpufreq directory: a virtual machine".into()),
            ),
            ("cgroup.cpu_max", Field::Unknown(HOSTILE.into())),
            ("libc.version", known("glibc 2.41")),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .collect(),
    }
}

fn run(experiment: &str, depth: &str, samples: Vec<Sample>) -> RunRecord {
    RunRecord {
        schema: 1,
        id: "5d41402abc4b2a76b9719d911017c592".into(),
        experiment: experiment.into(),
        started: "2026-11-21T20:52:00Z".into(),
        seconds: 141.6,
        version: "0.1.0".into(),
        argv: ["larder", "measure", experiment, "--seed", "42", "--out", "it's here.html"]
            .map(str::to_owned)
            .to_vec(),
        seed: 42,
        depth: depth.into(),
        machine: machine(),
        noise: NoiseRecord {
            cpu_pressure_percent: Some(23.4),
            memory_pressure_percent: Some(0.0),
            io_pressure_percent: None,
            steal_percent: Some(0.3),
            load: Some((1.42, 3.1)),
            others_percent: None,
            warnings: vec![
                "Other programs used 23 % of the CPU: small differences are not to be trusted. Close them and run again."
                    .into(),
            ],
            noisy: true,
        },
        groups: vec![
            GroupRecord {
                name: "sweep".into(),
                reference: Cell::new("unbuffered", Params::new().with("allocations", 1_048_576)),
                metric: "ns_per_page".into(),
                rounds: 22,
                stopped: StopReason::Precise,
            },
            GroupRecord {
                name: "peers".into(),
                reference: Cell::new("page-pool", Params::new()),
                metric: "ns_per_page".into(),
                rounds: 10,
                stopped: StopReason::TimeCap,
            },
        ],
        skipped: vec![Skipped {
            what: "jemalloc".into(),
            why: "built without it: cargo build --features peers".into(),
        }],
        samples,
    }
}

fn samples() -> Vec<Sample> {
    (0..6)
        .map(|i| Sample {
            group: "sweep".into(),
            cell: Cell::new("cluster", Params::new().with("pages", 64)),
            round: i,
            slot: i % 3,
            at_us: u64::from(i) * 1000,
            measures: Measures::new().with("ns_per_page", 120.0 + f64::from(i)),
        })
        .collect()
}

/// Time per page by size of the cluster, with intervals; zero is unbuffered.
fn sweep(scale: f64, jitter: f64) -> Vec<Point> {
    let sizes = [
        0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536,
    ];
    sizes
        .iter()
        .map(|&k| {
            let k = f64::from(k);
            let y = if k == 0.0 {
                2150.0 * scale
            } else {
                scale * (420.0 + 1900.0 / k + 90.0 * (k / 512.0).ln_1p())
            };
            let half = y * jitter * (1.0 + (k * 7.0).sin().abs());
            Point {
                x: k,
                y,
                lo: y - half,
                hi: y + half,
            }
        })
        .collect()
}

fn series(name: &str, from: Provenance, points: Vec<Point>) -> Series {
    Series {
        name: name.into(),
        points,
        from,
    }
}

pub(crate) fn sweep_chart() -> Chart {
    let unbuffered = published::walfield_elapsed()
        .iter()
        .find(|r| r.pool_pages == 0 && r.allocations == 1_048_576)
        .map_or(1.0, |r| r.elapsed_s);
    let ratio = |name: &str, scale: f64, jitter: f64| {
        let base = 2150.0;
        let points = sweep(scale, jitter)
            .into_iter()
            .map(|p| Point {
                x: p.x,
                y: p.y / base,
                lo: p.lo / base,
                hi: p.hi / base,
            })
            .collect();
        series(name, Provenance::Measured, points)
    };
    let walfield = published::walfield_elapsed()
        .iter()
        .filter(|r| r.allocations == 1_048_576)
        .map(|r| Point {
            x: f64::from(r.pool_pages),
            y: r.elapsed_s / unbuffered,
            lo: r.elapsed_s / unbuffered,
            hi: r.elapsed_s / unbuffered,
        })
        .collect();
    Chart {
        title: "Elapsed time against unbuffered, by pages per cluster".into(),
        x: Axis {
            label: "pages per cluster (0 is unbuffered)".into(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "time against unbuffered (x)".into(),
            scale: Scale::Log,
        },
        series: vec![
            ratio("cluster-k", 1.0, 0.025),
            ratio("page pool", 0.17, 0.03),
            series("Walfield 2001", Provenance::Published, walfield),
        ],
        marks: vec![
            (17.0, "17 and 18 in 2001".into()),
            (64.0, "knee".into()),
            (512.0, "one page table".into()),
            (65_536.0, "largest of 2001".into()),
        ],
        categories: Vec::new(),
    }
}

fn cost_chart() -> Chart {
    let line = |name: &str, a: f64, b: f64| {
        let points = [1, 2, 4, 8, 16]
            .iter()
            .map(|&n| {
                let y = a + b * f64::from(n);
                Point {
                    x: f64::from(n),
                    y,
                    lo: y * 0.93,
                    hi: y * 1.08,
                }
            })
            .collect();
        series(name, Provenance::Measured, points)
    };
    Chart {
        title: "Cost of one call pair by pages".into(),
        x: Axis {
            label: "pages in one call".into(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "time (ns)".into(),
            scale: Scale::Linear,
        },
        series: vec![
            line("mmap", 900.0, 480.0),
            line("mmap, populated", 1000.0, 260.0),
            line(HOSTILE, 300.0, 120.0),
            series(
                "odd points",
                Provenance::Measured,
                vec![
                    Point {
                        x: 2.0,
                        y: f64::NAN,
                        lo: 0.0,
                        hi: 1.0,
                    },
                    Point {
                        x: 3.0,
                        y: 5200.0,
                        lo: 5200.0,
                        hi: 5200.0,
                    },
                ],
            ),
        ],
        marks: vec![(4.0, HOSTILE.into())],
        categories: Vec::new(),
    }
}

fn page_buffers() -> Analysis {
    let rows = published::walfield_elapsed()
        .iter()
        .filter(|r| r.allocations == 1_048_576)
        .step_by(5)
        .map(|r| {
            let y = 0.3 + f64::from(r.pool_pages % 7) * 0.01;
            vec![
                Value::Count(i64::from(r.pool_pages)),
                Value::Published(r.elapsed_s, "s".into()),
                Value::Estimate(est(y, y * 0.98, y * 1.03), "s".into()),
                Value::Ratio(est(0.31, 0.3, 0.33), Verdict::Faster),
            ]
        })
        .collect();
    Analysis {
        experiment: "page-buffers".into(),
        title: "Page buffers from clusters".into(),
        findings: vec![
            Finding {
                question: "Why are 17 and 18 pages slow?".into(),
                asked_by: "Walfield 2001".into(),
                answer: "They are not slow here: 17 and 18 pages take 1.004 [0.991, 1.018] of the time of 16 and 19.".into(),
                verdict: Some(Verdict::Same { within: 0.02 }),
                reading: "17 pages and 16 are the same within 2 %".into(),
                ..Finding::default()
            },
            Finding {
                question: "Is a page pool faster than unbuffered mmap?".into(),
                asked_by: "Walfield 2001".into(),
                answer: "Yes: the pool takes 0.047 [0.045, 0.049] of the time, 21 times faster.".into(),
                verdict: Some(Verdict::Faster),
                ..Finding::default()
            },
            Finding {
                question: "Does it lose to plain mmap past 4000 pages?".into(),
                asked_by: "Walfield 2001".into(),
                answer: "Not to be said with 10 rounds: the ratio is 1.01 [0.93, 1.12].".into(),
                verdict: Some(Verdict::Inconclusive),
                reading: "this run does not decide between 8192 pages and mmap".into(),
                ..Finding::default()
            },
            Finding {
                question: HOSTILE.into(),
                asked_by: HOSTILE.into(),
                answer: HOSTILE.into(),
                verdict: None,
                ..Finding::default()
            },
        ],
        goals: vec![
            Goal {
                what: "Walfield's workload, 1048576 allocations".into(),
                against: "unbuffered mmap".into(),
                bound: "at most 0.05".into(),
                measured: Some(est(0.047, 0.045, 0.049)),
                unit: "x".into(),
                held_bytes: Some((1_703_936.0, 1_572_864.0)),
                state: GoalState::Met,
                note: String::new(),
            },
            Goal {
                what: "get_zeroed, warm".into(),
                against: "mimalloc".into(),
                bound: "at most 0.5".into(),
                measured: Some(est(0.62, 0.58, 0.66)),
                unit: "x".into(),
                held_bytes: None,
                state: GoalState::Missed,
                note: "the stock of zeroed pages ran dry".into(),
            },
            Goal {
                what: "256 pages deep".into(),
                against: "jemalloc".into(),
                bound: "at most 0.4".into(),
                measured: None,
                unit: "x".into(),
                held_bytes: None,
                state: GoalState::Skipped,
                note: "built without jemalloc: cargo build --features peers".into(),
            },
        ],
        sections: vec![
            Section {
                title: "The sweep".into(),
                blocks: vec![
                    Block::Text("Each size runs in fresh processes, in random rounds. The ribbon is the 95 % interval of the median.".into()),
                    Block::Chart(sweep_chart()),
                    Block::Table(Table {
                        title: "Table 1 of 2001, and here".into(),
                        columns: ["pages", "2001", "here", "against unbuffered"].map(str::to_owned).to_vec(),
                        rows,
                        notes: vec!["Unbuffered is 0 pages.".into()],
                        long: false,
                    }),
                ],
            },
            Section {
                title: "Where the time goes".into(),
                blocks: vec![Block::Table(Table {
                    title: "Counts per page".into(),
                    columns: ["contestant", "system calls", "faults", "held"].map(str::to_owned).to_vec(),
                    rows: vec![
                        vec![Value::Text("unbuffered".into()), Value::Number(2.0, String::new()), Value::Number(1.0, String::new()), Value::Number(4096.0, "B".into())],
                        vec![Value::Text(HOSTILE.into()), Value::Number(0.03125, String::new()), Value::Empty, Value::Number(1.7e6, "B".into())],
                    ],
                    notes: Vec::new(),
                    long: true,
                })],
            },
        ],
        recommendations: vec![Recommendation {
            key: "pages.cluster_pages".into(),
            value: "64".into(),
            because: "The smallest cluster within 3 % of the best.".into(),
            evidence: Some(est(1.012, 1.0, 1.024)),
        }],
        warnings: vec!["The machine was noisy: differences below 4 % are inside the A/A floor.".into()],
        floor: "A/A: the reference and its twin, the same program, are 4.0 % apart; a smaller difference counts as none.".into(),
        ..Analysis::default()
    }
}

fn zero_fill() -> Analysis {
    Analysis {
        experiment: "zero-fill".into(),
        title: "What zero-filling costs".into(),
        findings: vec![Finding {
            question: "How much of it is zero-filling?".into(),
            asked_by: "Nat! 2003".into(),
            answer: "11 % [9, 13] of a one-page call pair, 24 % [22, 26] at 64 pages.".into(),
            verdict: None,
            ..Finding::default()
        }],
        sections: vec![Section {
            title: "Cost by pages".into(),
            blocks: vec![Block::Chart(cost_chart())],
        }],
        calculator: vec![
            Preset {
                label: "mmap, second pass".into(),
                detail: "median of 22 rounds of a million operations".into(),
                source: Source::Measured,
                timings: Timings::new(0.912_345_678, 1.543_21, Some(0.951_234), 2.112_233).unwrap(),
                fitted: Some(FittedModel {
                    name: "mmap + touch + munmap".into(),
                    call: Parameter::new(0.981, 0.95, 1.02),
                    per_page: Parameter::new(0.482, 0.47, 0.495),
                    per_table: Parameter::new(0.081, 0.05, 0.11),
                    table_pages: 512,
                    zero_fill: Some(Parameter::new(0.062, 0.06, 0.065)),
                }),
            },
            Preset {
                label: HOSTILE.into(),
                detail: HOSTILE.into(),
                source: Source::Measured,
                timings: Timings::new(10.0, 9.0, Some(8.0), 40.0).unwrap(),
                fitted: None,
            },
        ],
        ..Analysis::default()
    }
}

/// Two experiments, one run without samples, submissions, hostile names everywhere.
pub(crate) fn document() -> Document {
    Document {
        runs: vec![
            (run("page-buffers", "full", samples()), page_buffers()),
            (run("zero-fill", "quick", samples()), zero_fill()),
            (
                RunRecord {
                    samples: Vec::new(),
                    argv: vec![HOSTILE.into()],
                    ..run(HOSTILE, "quick", Vec::new())
                },
                Analysis::default(),
            ),
        ],
        submissions: vec![
            Submission {
                machine: "Example 7000 (made up)".into(),
                os: "Linux 6.1".into(),
                timings: Timings::new(1.9, 3.1, Some(2.0), 4.4).unwrap(),
                date: "2026-11-20".into(),
            },
            Submission {
                machine: HOSTILE.into(),
                os: HOSTILE.into(),
                timings: Timings::new(1.9, 3.1, None, 4.4).unwrap(),
                date: HOSTILE.into(),
            },
        ],
    }
}

/// The document with a chart of bars beside its first finding.
pub(crate) fn charted() -> Document {
    let mut doc = document();
    let point = |x: u8, y: f64| Point {
        x: f64::from(x),
        y,
        lo: y * 0.9,
        hi: y * 1.1,
    };
    let series = |name: &str, from, scale: f64| Series {
        name: name.to_owned(),
        points: (0..4).map(|x| point(x, scale + f64::from(x))).collect(),
        from,
    };
    doc.runs[0].1.findings[0].chart = Some(Chart {
        title: "Four timings of a call pair".to_owned(),
        x: Axis {
            label: "timing".to_owned(),
            scale: Scale::Linear,
        },
        y: Axis {
            label: "time (us)".to_owned(),
            scale: Scale::Linear,
        },
        series: vec![
            series("here", Provenance::Measured, 1.0),
            series("1 GHz G4 of 2003", Provenance::Published, 11.0),
        ],
        marks: Vec::new(),
        categories: [
            "one page",
            "one page, touched",
            HOSTILE,
            "two pages, touched",
        ]
        .map(str::to_owned)
        .to_vec(),
    });
    doc
}
