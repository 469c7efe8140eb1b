//! The page's content as the template wants it: text only, every number printed.

use askama::Template;

use super::finding::{ChartView, FindingView, from_a_source};
use super::glossary::{self, Contestants};
use super::record::{self, MachineView, Manifest};
use super::summary::{self, Top};
use super::table::TableView;
use super::{data, policy};
use crate::experiments;
use crate::model::{Analysis, Block, Finding, RunRecord, Section};
use crate::report::summary::{ANSWERS, SETTINGS};
use crate::report::{Document, ReportError, machines, text};

const STYLE: &str = include_str!("../../../templates/style.css");
const CALC_SCRIPT: &str = include_str!("../../../templates/calc.js");
const PAGE_SCRIPT: &str = include_str!("../../../templates/page.js");

/// Findings of a run that stand unfolded.
const VISIBLE: usize = 2;

enum BlockView {
    Text(String),
    Table(TableView),
    Chart(ChartView),
}

struct SectionView {
    title: String,
    blocks: Vec<BlockView>,
}

struct RunView {
    anchor: String,
    title: String,
    /// The title's subject alone, for the bar.
    short: String,
    question: String,
    source: String,
    experiment: String,
    depth: String,
    started: String,
    empty: bool,
    findings: Vec<FindingView>,
    /// The chart of one of these findings.
    chart: Option<ChartView>,
    more: Vec<FindingView>,
    sections: Vec<SectionView>,
    /// Whether the page has nothing else to show.
    sections_open: bool,
    tables: usize,
    charts: usize,
    manifest: Manifest,
}

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    csp: String,
    css: &'static str,
    calc_js: &'static str,
    page_js: &'static str,
    data: String,
    title: String,
    subtitle: String,
    version: &'static str,
    top: Top,
    runs: Vec<RunView>,
    machines: Vec<MachineView>,
    machine_table: TableView,
    words: &'static [(&'static str, &'static str)],
    contestants: Vec<Contestants>,
}

/// Prepares the page.
pub(super) fn page(doc: &Document) -> Result<Page, ReportError> {
    let mut runs: Vec<RunView> = doc
        .runs
        .iter()
        .enumerate()
        .map(|(i, (run, a))| run_view(i, run, a))
        .collect();
    if let [one] = runs.as_mut_slice() {
        one.sections_open = one.findings.is_empty();
    }
    let title = match runs.as_slice() {
        [one] => one.title.clone(),
        _ => "What memory costs on this machine".to_owned(),
    };
    Ok(Page {
        csp: policy::policy(STYLE, &[CALC_SCRIPT, PAGE_SCRIPT]),
        css: STYLE,
        calc_js: CALC_SCRIPT,
        page_js: PAGE_SCRIPT,
        data: data::block(doc)?,
        title,
        subtitle: subtitle(doc),
        version: env!("CARGO_PKG_VERSION"),
        top: summary::of(doc),
        machines: record::machines(doc),
        machine_table: TableView::new(&machines::table(doc), true),
        words: &glossary::WORDS,
        contestants: glossary::contestants(doc),
        runs,
    })
}

fn subtitle(doc: &Document) -> String {
    let Some((run, _)) = doc.runs.first() else {
        return String::new();
    };
    let day = run.started.split('T').next().unwrap_or_default();
    let runs = text::plural(doc.runs.len(), "run");
    format!(
        "{} \u{b7} {runs} \u{b7} {day}",
        run.machine.text("cpu.model")
    )
}

fn run_view(i: usize, run: &RunRecord, a: &Analysis) -> RunView {
    let anchor = format!("run-{}", i + 1);
    let sections: Vec<SectionView> = a
        .sections
        .iter()
        .enumerate()
        .filter_map(|(k, s)| section(s, &format!("{anchor}-{k}")))
        .collect();
    let count = |is: fn(&BlockView) -> bool| {
        let blocks = sections.iter().flat_map(|s| &s.blocks);
        blocks.filter(|b| is(b)).count()
    };
    let (findings, chart, more) = findings(&a.findings, &anchor);
    let experiment = experiments::find(&run.experiment);
    let about = |f: fn(&dyn crate::measure::Experiment) -> &'static str| {
        experiment.as_deref().map_or("", f).to_owned()
    };
    let title = text::title(run, a);
    RunView {
        short: title.split(':').next().unwrap_or_default().to_owned(),
        title: title.to_owned(),
        question: about(|e| e.question()),
        source: about(|e| e.source()),
        experiment: run.experiment.clone(),
        depth: run.depth.clone(),
        started: run.started.clone(),
        empty: run.samples.is_empty() && a.findings.is_empty(),
        findings,
        chart,
        more,
        tables: count(|b| matches!(b, BlockView::Table(_))),
        charts: count(|b| matches!(b, BlockView::Chart(_))),
        sections_open: false,
        sections,
        manifest: record::manifest(run),
        anchor,
    }
}

/// The findings that stand unfolded, the chart beside them, and the others. What a source asked comes first.
fn findings(
    all: &[Finding],
    anchor: &str,
) -> (Vec<FindingView>, Option<ChartView>, Vec<FindingView>) {
    let mut order: Vec<(usize, &Finding)> = all.iter().enumerate().collect();
    order.sort_by_key(|(_, f)| !from_a_source(f));
    let view = |(k, f): &(usize, &Finding)| FindingView::new(f, &format!("{anchor}-f{k}"));
    let (shown, folded) = order.split_at(order.len().min(VISIBLE));
    let mut shown: Vec<FindingView> = shown.iter().map(view).collect();
    // One chart beside the answers keeps the page short enough to read through.
    let chart = shown.iter_mut().find_map(|f| f.chart.take());
    (shown, chart, folded.iter().map(view).collect())
}

/// A section without what has no row and no point; `None` if nothing is left.
fn section(s: &Section, id: &str) -> Option<SectionView> {
    let blocks: Vec<BlockView> = s
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(i, b)| block(b, &format!("{id}-{i}")))
        .collect();
    (!blocks.is_empty()).then(|| SectionView {
        title: s.title.clone(),
        blocks,
    })
}

fn block(b: &Block, id: &str) -> Option<BlockView> {
    match b {
        Block::Text(t) => (!t.trim().is_empty()).then(|| BlockView::Text(t.clone())),
        Block::Table(t) => (!t.rows.is_empty()).then(|| BlockView::Table(TableView::new(t, true))),
        Block::Chart(c) => ChartView::new(c, id).map(BlockView::Chart),
    }
}
