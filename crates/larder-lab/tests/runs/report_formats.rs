//! The same document in every format.

use std::io::{self, Write};

use crate::document::{HOSTILE, charted, document};
use larder_lab::model::{Block, Cost, Section, ShortAnswer, Table};
use larder_lab::report::{Document, Style, html, json, markdown, terminal};
use larder_lab::stats::Verdict;

fn on_terminal(doc: &Document, style: Style) -> String {
    let mut out = Vec::new();
    terminal(doc, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Where a text stands; a missing one fails with its name.
fn at(text: &str, what: &str) -> usize {
    text.find(what)
        .unwrap_or_else(|| panic!("'{what}' is not in:\n{text}"))
}

fn in_order(text: &str, parts: &[&str]) {
    let places: Vec<usize> = parts.iter().map(|p| at(text, p)).collect();
    assert!(places.is_sorted(), "{parts:?} stand at {places:?}");
}

#[test]
fn the_terminal_gives_warnings_sentences_goals_tables_in_this_order() {
    let text = on_terminal(&document(), Style::plain());
    // The summary stands above and names settings and goals, too.
    let text = &text[at(&text, "Page buffers from clusters")..];
    in_order(
        text,
        &[
            "Page buffers from clusters",
            "A/A: the reference and its twin",
            "! Other programs used 23 % of the CPU",
            "Why are 17 and 18 pages slow? (Walfield 2001)",
            "> 17 pages and 16 are the same within 2 %",
            "> this run does not decide between 8192 pages and mmap",
            "Goals",
            "0.620",
            "missed: the stock of zeroed pages ran dry",
            "The sweep",
            "Table 1 of 2001, and here",
            "37.2 s",
            "Published numbers have no raw data",
            "pages.cluster_pages = 64",
            "jemalloc: built without it",
            "What zero-filling costs",
            "Exploratory",
            "No samples: nothing was measured",
        ],
    );
    assert!(
        !text.contains("Counts per page"),
        "long tables are for the report"
    );
}

#[test]
fn the_terminal_is_never_steered_by_a_name() {
    let plain = on_terminal(&document(), Style::plain());
    assert!(!plain.contains('\u{1b}') && !plain.contains('\u{202e}'));
    // With colours every escape is one of ours: an SGR code that ends.
    let style = Style {
        color: true,
        width: 100,
    };
    let coloured = on_terminal(&document(), style);
    assert!(coloured.contains("\u{1b}[32m"));
    for part in coloured.split('\u{1b}').skip(1) {
        let code = part.split('m').next().unwrap();
        assert!(
            ["[0", "[1", "[2", "[31", "[32", "[33", "[1;36"].contains(&code),
            "{code:?}"
        );
    }
}

#[test]
fn terminal_lines_keep_to_the_width() {
    for width in [60, 80, 120] {
        let mut doc = document();
        // A name without a blank may be longer than any line.
        doc.runs.truncate(1);
        doc.runs[0].1.findings.truncate(3);
        doc.submissions.clear();
        let text = on_terminal(
            &doc,
            Style {
                color: false,
                width,
            },
        );
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn an_empty_document_says_so_everywhere() {
    let doc = Document::default();
    assert!(on_terminal(&doc, Style::plain()).contains("larder measure"));
    assert!(markdown(&doc).contains("No runs"));
    assert!(html(&doc).unwrap().contains("No runs to report"));
    assert_eq!(json(&doc)["runs"], serde_json::json!([]));
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::BrokenPipe))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_the_callers_to_recognise() {
    let e = terminal(&document(), &Style::plain(), &mut Closed).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn markdown_is_inert_and_its_tables_are_whole() {
    let text = markdown(&document());
    // What stands in a code span is text already: every second part between backticks.
    let prose: String = text.replace("\\`", "").split('`').step_by(2).collect();
    assert_eq!(
        text.replace("\\`", "").matches('`').count() % 2,
        0,
        "an open code span"
    );
    assert!(!text.contains("<script") && !text.contains("<img"));
    assert!(!prose.contains("[a](javascript"), "a link");
    assert!(text.contains("**same within 2 %**: They are not slow here"));
    assert!(text.contains("larder measure page-buffers --seed 42 --out 'it'\\''s here.html'"));
    // Each table has one number of cells throughout: no name adds a column.
    let mut columns = None;
    for line in text.lines() {
        let cells = line.replace("\\|", "").matches('|').count();
        if line.starts_with('|') {
            assert_eq!(*columns.get_or_insert(cells), cells, "{line}");
        } else {
            columns = None;
        }
    }
}

#[test]
fn json_has_a_schema_and_keeps_names_as_they_are() {
    let value = json(&document());
    assert_eq!(value["schema"], 1);
    assert_eq!(value["runs"][0]["run"]["seed"], 42);
    assert_eq!(
        value["runs"][0]["analysis"]["findings"][3]["answer"],
        HOSTILE
    );
    assert_eq!(value["submissions"][0]["timings"]["alloc1_us"], 1.9);
    // A number that JSON cannot hold does not lose the rest.
    let text = value.to_string();
    assert!(text.contains("odd points") && text.contains("null"));
}

#[test]
fn every_format_says_how_far_the_twins_lay_apart_and_warns_before_the_tables() {
    let doc = document();
    let line = "A/A: the reference and its twin";
    assert!(html(&doc).unwrap().contains(line));
    let floor = &json(&doc)["runs"][0]["analysis"]["floor"];
    assert!(floor.as_str().is_some_and(|text| text.starts_with(line)));
    let text = markdown(&doc);
    in_order(&text, &[line, "### Warnings", "Why are 17", "### Goals"]);
}

#[test]
fn html_has_its_parts_in_order() {
    let mut doc = charted();
    let noisy = html(&doc).unwrap();
    // The settings file takes nothing from a noisy run, so the page gives none either.
    in_order(
        &noisy,
        &["What to set", "Nothing to set: too noisy (page-buffers)"],
    );
    assert!(!noisy.contains("LARDER_SETTINGS="));
    doc.runs
        .iter_mut()
        .for_each(|(run, _)| run.noise.noisy = false);
    let page = html(&doc).unwrap();
    // Kept for a person to look at: target/tmp/report.html.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html"), &page).unwrap();
    in_order(
        &page,
        &[
            "Content-Security-Policy",
            "id=\"summary\"",
            "1 hold, 1 missed, 0 undecided, 1 not measured",
            "id=\"warnings\"",
            "pages.cluster_pages = 64",
            "LARDER_SETTINGS=",
            "id=\"goals\"",
            "Goals missed",
            "Goals that hold",
            "id=\"run-1\"",
            "published, no raw data",
            "the time cap was reached",
            "id=\"run-2\"",
            "id=\"machine\"",
            "id=\"calculator\"",
            "id=\"machines\"",
            "id=\"glossary\"",
        ],
    );
    assert!(page.contains("unknown: no cpufreq directory"));
    assert!(page.contains("<title>What memory costs on this machine</title>"));
    // A shared page has nothing that changes from one writing to the next.
    assert_eq!(page, html(&doc).unwrap());
}

#[test]
fn html_has_no_address_of_anything_outside() {
    let page = html(&document()).unwrap();
    let rest = page.replace("http://www.w3.org/2000/svg", "");
    for outside in [
        "http:",
        "https:",
        "url(",
        "@import",
        "<link",
        "<img",
        "<iframe",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!rest.contains(outside), "{outside}");
    }
    assert_eq!(rest.matches("<script").count(), 3);
    assert!(
        !rest.contains(" style="),
        "the policy knows no style attributes"
    );
    assert!(!rest.contains('\u{202e}') && !rest.contains('\u{1b}'));
}

#[test]
fn html_shows_two_findings_of_a_run_and_folds_the_others() {
    let mut doc = document();
    let (_, analysis) = &mut doc.runs[0];
    analysis.findings[0].asked_by = "larder".into();
    analysis.findings[2].reading = "larder's pool is not told from mmap".into();
    let page = html(&doc).unwrap();
    // What a source asked stands first, whatever the order of the findings.
    in_order(
        &page,
        &[
            "id=\"run-1\"",
            "Is a page pool faster than unbuffered mmap?",
            "Does it lose to plain mmap past 4000 pages?",
            "larder&#39;s pool is not told from mmap",
            "More findings (2)",
            "Why are 17 and 18 pages slow?",
            "id=\"run-2\"",
        ],
    );
    assert_eq!(page.matches("Exploratory").count(), 1, "said once");
}

#[test]
fn html_has_no_heading_without_rows() {
    let mut doc = document();
    let (_, analysis) = &mut doc.runs[0];
    let empty = Table {
        title: "an empty table".into(),
        columns: vec!["a column of nothing".into()],
        ..Table::default()
    };
    let mut chart = crate::document::sweep_chart();
    chart.title = "an empty chart".into();
    chart.series.clear();
    analysis.findings[0].table = Some(empty.clone());
    analysis.findings[0].chart = Some(chart.clone());
    analysis.sections.push(Section {
        title: "an empty section".into(),
        blocks: vec![Block::Table(empty), Block::Chart(chart)],
    });
    let page = html(&doc).unwrap();
    for gone in [
        "an empty table",
        "an empty chart",
        "an empty section",
        "a column of nothing",
        "What it costs here",
        "asked again",
    ] {
        assert!(!page.contains(gone), "{gone}");
    }
    let (_, analysis) = &mut doc.runs[0];
    analysis.costs.push(Cost {
        what: "page, warm".into(),
        unit: "ns".into(),
        larder: Some(1.8),
        peer: Some(("mimalloc".into(), 4.3)),
        floor: None,
        verdict: Some(Verdict::Faster),
    });
    analysis.answers.push(ShortAnswer::new(
        "Best cluster size?",
        "8 to 1024 pages are equal",
    ));
    let page = html(&doc).unwrap();
    in_order(
        &page,
        &[
            "What it costs here",
            "1.80 ns",
            "4.30 ns",
            "mimalloc",
            "2.39\u{d7} faster",
            "asked again",
            "8 to 1024",
        ],
    );
}
