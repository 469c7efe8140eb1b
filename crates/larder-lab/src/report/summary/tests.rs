//! Made-up documents on one screen.

use super::*;
use crate::model::{Analysis, Field, Finding, Goal, NoiseRecord, RunRecord};

fn run(noisy: bool) -> RunRecord {
    let known = |v: &str| Field::Known(v.to_owned());
    RunRecord {
        schema: 1,
        id: "5d41".to_owned(),
        experiment: "page-pool".to_owned(),
        started: "2026-11-21T20:52:00Z".to_owned(),
        seconds: 121.4,
        version: "0.2.0".to_owned(),
        argv: Vec::new(),
        seed: 1,
        depth: "quick".to_owned(),
        machine: MachineRecord {
            fingerprint: "a".to_owned(),
            fields: [
                ("cpu.model", known("Example(R) 9000 8-Core Processor @ 3 GHz")),
                ("cpu.online", known("0-1")),
                ("memory.total", known("24 GiB")),
                ("kernel.release", known("6.12.0-example")),
            ]
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v))
            .collect(),
        },
        noise: NoiseRecord {
            cpu_pressure_percent: Some(4.2),
            noisy,
            ..NoiseRecord::default()
        },
        groups: Vec::new(),
        skipped: Vec::new(),
        samples: Vec::new(),
    }
}

fn goal(what: &str, state: GoalState) -> Goal {
    Goal {
        what: what.to_owned(),
        against: "mimalloc".to_owned(),
        bound: "at most 0.5".to_owned(),
        measured: None,
        unit: "x".to_owned(),
        held_bytes: None,
        state,
        note: String::new(),
    }
}

fn analysis(rows: usize, text: &str) -> Analysis {
    Analysis {
        costs: (0..rows)
            .map(|i| Cost {
                what: format!("page {i} {text}"),
                unit: "ns".to_owned(),
                larder: Some(123.0),
                peer: Some((format!("rpmalloc{text}"), 7.5)),
                floor: Some(1.0),
                verdict: Some(Verdict::Slower),
            })
            .collect(),
        answers: (0..rows)
            .map(|i| ShortAnswer::new(format!("Question {i}{text}?"), format!("no{text}")))
            .collect(),
        findings: (0..rows)
            .map(|i| Finding {
                question: format!("Why {i}{text}?"),
                answer: format!("Because{text}"),
                ..Finding::default()
            })
            .collect(),
        recommendations: (0..rows)
            .map(|i| Recommendation {
                key: format!("pages.k{i}{text}"),
                value: "64".to_owned(),
                because: format!("the least{text}"),
                evidence: None,
            })
            .collect(),
        goals: (0..rows)
            .map(|i| goal(&format!("goal {i}{text}"), GoalState::Missed))
            .chain([goal("held", GoalState::Met), goal("absent", GoalState::Skipped)])
            .collect(),
        ..Analysis::default()
    }
}

fn printed(doc: &Document, width: usize) -> String {
    let mut out = Vec::new();
    let style = Style { color: false, width };
    Summary::of(doc).write(&style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn document(number: usize, analysis: &Analysis) -> Document {
    Document {
        runs: vec![(run(false), analysis.clone()); number],
        submissions: Vec::new(),
    }
}

#[test]
fn one_screen_says_machine_costs_settings_and_goals() {
    let text = printed(&document(2, &analysis(2, "")), 80);
    for part in [
        "larder 0.2.0 · Example 9000, 2 CPUs, 24 GiB, Linux 6.12 · quick, 2 experiments, 4:03",
        "Noise: low. Others used 4 % of the CPU.",
        "7.50 ns",
        "rpmalloc",
        "slower",
        "pages.k0 = 64  the least",
        "LARDER_SETTINGS=",
        "Question 1?  no",
        "Goals: 2 hold, 4 missed, 0 undecided; 2 not measured (larder list --missing)",
        "Missed: goal 0, goal 1",
    ] {
        let part = fit(part, 80);
        let cut = part.trim_end_matches('\u{2026}');
        assert!(text.contains(cut) || part.starts_with("larder 0.2"), "{part}\n{text}");
    }
}

#[test]
fn many_long_and_hostile_rows_keep_to_the_screen() {
    let wide_text = " \u{4e2d}\u{6587}".repeat(30);
    let hostile = "\u{1b}[31m\n\u{202e}x".repeat(20);
    for text in ["", wide_text.as_str(), hostile.as_str(), " word".repeat(40).as_str()] {
        for rows in [1, 7, 40] {
            for width in [60, 80, 200] {
                for number in [1, 13] {
                    let text = printed(&document(number, &analysis(rows, text)), width);
                    let most = if number == 1 { LINES + FINDINGS + 2 } else { LINES };
                    assert!(text.lines().count() <= most, "{text}");
                    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
                    for line in text.lines() {
                        assert!(wide(line) <= width.min(WIDTH), "{line}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_that_do_not_fit_are_counted_and_numbers_stay_whole() {
    let text = printed(&document(13, &analysis(5, " with a very long name")), 80);
    assert!(text.contains("more in the report"), "{text}");
    for line in text.lines().filter(|l| l.starts_with("  page ")) {
        assert!(line.contains("123 ns") && line.contains("7.50 ns") && line.contains("slower"), "{line}");
    }
}

#[test]
fn a_noisy_run_sets_nothing_and_an_absent_part_has_no_heading() {
    let only = Analysis {
        recommendations: analysis(1, "").recommendations,
        ..Analysis::default()
    };
    let doc = Document {
        runs: vec![(run(true), only), (run(true), Analysis::default())],
        submissions: Vec::new(),
    };
    let text = printed(&doc, 80);
    assert!(text.contains("this run was noisy") && text.contains("nothing to set: too noisy"), "{text}");
    for absent in ["What it costs", "Questions", "Goals", "Missed", "LARDER_SETTINGS"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}
