//! The page's content as the template wants it: text only, every number printed.

use askama::Template;

use super::table::TableView;
use super::{CALC_SCRIPT, PAGE_SCRIPT, STYLE, data, policy};
use crate::model::{
    Analysis, Block, Field, Finding, Goal, GoalState, MachineRecord, NoiseRecord, Recommendation,
    RunRecord, Section, Table, Value,
};
use crate::report::chart::{self, LegendEntry};
use crate::report::{Document, ReportError, machines, number, text, value};

/// A name with its value, or with the reason why there is none.
pub(super) struct Fact {
    name: String,
    value: String,
    unknown: bool,
}

impl Fact {
    fn new(name: &str, value: impl ToString) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_string(),
            unknown: false,
        }
    }

    fn maybe(name: &str, value: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            unknown: value.is_none(),
            value: value.unwrap_or_else(|| "unknown".to_owned()),
        }
    }

    fn field(name: &str, field: Option<&Field>) -> Self {
        let (value, unknown) = match field {
            Some(Field::Known(v)) => (v.clone(), false),
            Some(Field::Unknown(why)) => (format!("unknown: {why}"), true),
            None => ("unknown".to_owned(), true),
        };
        Self {
            name: name.to_owned(),
            value,
            unknown,
        }
    }
}

struct FindingView {
    question: String,
    asked_by: String,
    answer: String,
    /// Whether it is too long to stand in the size of a heading.
    long: bool,
    verdict: String,
    class: &'static str,
}

struct GoalView {
    state: &'static str,
    what: String,
    against: String,
    bound: String,
    measured: String,
    interval: String,
    held: String,
    note: String,
}

/// Goals that were not measured for one reason.
struct Unmeasured {
    why: String,
    goals: Vec<String>,
}

struct WarningView {
    experiment: String,
    text: String,
}

struct MachineView {
    key: Vec<Fact>,
    rest: Vec<Fact>,
}

struct ChartView {
    title: String,
    svg: String,
    marks: usize,
    legend: Vec<LegendEntry>,
    left_out: Vec<String>,
    table: TableView,
}

enum BlockView {
    Text(String),
    Table(TableView),
    Chart(ChartView),
}

struct SectionView {
    title: String,
    blocks: Vec<BlockView>,
}

struct SettingView {
    setting: String,
    because: String,
    evidence: String,
}

struct SkippedView {
    what: String,
    why: String,
}

struct Manifest {
    command: String,
    facts: Vec<Fact>,
    groups: Option<TableView>,
    skipped: Vec<SkippedView>,
}

struct RunView {
    anchor: String,
    title: String,
    experiment: String,
    depth: String,
    started: String,
    exploratory: bool,
    floor: String,
    empty: bool,
    findings: Vec<FindingView>,
    sections: Vec<SectionView>,
    recommendations: Vec<SettingView>,
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
    runs: Vec<RunView>,
    goals: Vec<GoalView>,
    unmeasured: Vec<Unmeasured>,
    goal_counts: String,
    warnings: Vec<WarningView>,
    machines: Vec<MachineView>,
    machine_table: TableView,
}

/// Prepares the page.
pub(super) fn page(doc: &Document) -> Result<Page, ReportError> {
    let runs = doc
        .runs
        .iter()
        .enumerate()
        .map(|(i, (run, a))| run_view(i, run, a))
        .collect::<Result<Vec<_>, _>>()?;
    let mut seen: Vec<&MachineRecord> = Vec::new();
    for (run, _) in &doc.runs {
        let same = |m: &&MachineRecord| {
            if run.machine.fingerprint.is_empty() {
                **m == run.machine
            } else {
                m.fingerprint == run.machine.fingerprint
            }
        };
        if !seen.iter().any(same) {
            seen.push(&run.machine);
        }
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
        goals: goals(doc),
        unmeasured: unmeasured(doc),
        goal_counts: goal_counts(doc),
        warnings: warnings(doc),
        machines: seen.into_iter().map(machine).collect(),
        machine_table: TableView::new(&machines::table(doc), true),
        runs,
    })
}

/// The warnings of all runs; one that several experiments share stands once.
fn warnings(doc: &Document) -> Vec<WarningView> {
    let mut all: Vec<WarningView> = Vec::new();
    for (run, a) in &doc.runs {
        for w in text::warnings(run, a) {
            match all.iter_mut().find(|v| v.text == w) {
                Some(v) => v.experiment = format!("{}, {}", v.experiment, run.experiment),
                None => all.push(WarningView {
                    experiment: run.experiment.clone(),
                    text: w.to_owned(),
                }),
            }
        }
    }
    all
}

fn subtitle(doc: &Document) -> String {
    let Some((run, _)) = doc.runs.first() else {
        return String::new();
    };
    let day = run.started.split('T').next().unwrap_or_default();
    let runs = match doc.runs.len() {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    format!(
        "{} \u{b7} {runs} \u{b7} {day}",
        run.machine.text("cpu.model")
    )
}

fn run_view(i: usize, run: &RunRecord, a: &Analysis) -> Result<RunView, ReportError> {
    let anchor = format!("run-{}", i + 1);
    let sections = a
        .sections
        .iter()
        .enumerate()
        .map(|(k, s)| section(s, &format!("{anchor}-{k}")))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(RunView {
        title: if a.title.is_empty() {
            run.experiment.clone()
        } else {
            a.title.clone()
        },
        experiment: run.experiment.clone(),
        depth: run.depth.clone(),
        started: run.started.clone(),
        exploratory: run.depth == "quick",
        floor: a.floor.clone(),
        empty: run.samples.is_empty(),
        findings: a.findings.iter().map(finding).collect(),
        sections,
        recommendations: a.recommendations.iter().map(setting).collect(),
        manifest: manifest(run),
        anchor,
    })
}

fn finding(f: &Finding) -> FindingView {
    FindingView {
        question: f.question.clone(),
        asked_by: f.asked_by.clone(),
        answer: f.answer.clone(),
        long: f.answer.chars().count() > 160,
        verdict: f.verdict.as_ref().map(number::verdict).unwrap_or_default(),
        class: f.verdict.as_ref().map_or("plain", text::verdict_class),
    }
}

fn all_goals(doc: &Document) -> impl Iterator<Item = &Goal> {
    doc.runs.iter().flat_map(|(_, a)| &a.goals)
}

/// The goals that were measured.
fn goals(doc: &Document) -> Vec<GoalView> {
    all_goals(doc)
        .filter(|g| g.state != GoalState::Skipped)
        .map(goal)
        .collect()
}

/// The goals that were not measured, by reason: dozens of them must not hide the others.
fn unmeasured(doc: &Document) -> Vec<Unmeasured> {
    let mut all: Vec<Unmeasured> = Vec::new();
    for g in all_goals(doc).filter(|g| g.state == GoalState::Skipped) {
        let line = format!("{}, against {}: {}", g.what, g.against, g.bound);
        match all.iter_mut().find(|u| u.why == g.note) {
            Some(u) => u.goals.push(line),
            None => all.push(Unmeasured {
                why: g.note.clone(),
                goals: vec![line],
            }),
        }
    }
    all
}

fn goal_counts(doc: &Document) -> String {
    let count = |state| all_goals(doc).filter(|g| g.state == state).count();
    format!(
        "{} met, {} missed, {} open, {} not measured",
        count(GoalState::Met),
        count(GoalState::Missed),
        count(GoalState::Open),
        count(GoalState::Skipped)
    )
}

fn goal(g: &Goal) -> GoalView {
    let printed = g.measured.as_ref().map(|e| number::printed(e, &g.unit));
    let (measured, interval) = printed.map_or_else(
        || ("not measured".to_owned(), String::new()),
        |p| (p.value, p.interval),
    );
    GoalView {
        state: text::goal_state(g.state),
        what: g.what.clone(),
        against: g.against.clone(),
        bound: g.bound.clone(),
        measured,
        interval,
        held: text::held(g),
        note: g.note.clone(),
    }
}

/// The fields that a reader asks for first.
const KEY_FIELDS: [(&str, &str); 8] = [
    ("cpu.model", "processor"),
    ("cpu.online", "CPUs online"),
    ("cache.l2", "level 2 cache"),
    ("cache.l3", "level 3 cache"),
    ("memory.total", "memory"),
    ("kernel.release", "kernel"),
    ("thp.enabled", "transparent huge pages"),
    ("virtualisation", "virtualisation"),
];

fn machine(m: &MachineRecord) -> MachineView {
    let mut key: Vec<Fact> = KEY_FIELDS
        .iter()
        .filter(|(name, _)| *name == "cpu.model" || m.fields.contains_key(*name))
        .map(|(name, label)| Fact::field(label, m.fields.get(*name)))
        .collect();
    if !m.fingerprint.is_empty() {
        key.push(Fact::new("fingerprint", &m.fingerprint));
    }
    MachineView {
        key,
        rest: m
            .fields
            .iter()
            .map(|(name, field)| Fact::field(name, Some(field)))
            .collect(),
    }
}

fn section(s: &Section, id: &str) -> Result<SectionView, ReportError> {
    let blocks = s
        .blocks
        .iter()
        .enumerate()
        .map(|(i, b)| block(b, &format!("{id}-{i}")))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(SectionView {
        title: s.title.clone(),
        blocks,
    })
}

fn block(b: &Block, id: &str) -> Result<BlockView, ReportError> {
    Ok(match b {
        Block::Text(t) => BlockView::Text(t.clone()),
        Block::Table(t) => BlockView::Table(TableView::new(t, true)),
        Block::Chart(c) => {
            let drawing = chart::draw(c, id);
            BlockView::Chart(ChartView {
                title: c.title.clone(),
                svg: drawing.svg,
                marks: drawing.marks,
                legend: drawing.legend,
                left_out: drawing.left_out,
                table: TableView::new(&value::chart_table(c), false),
            })
        }
    })
}

fn setting(r: &Recommendation) -> SettingView {
    SettingView {
        setting: format!("{} = {}", r.key, r.value),
        because: r.because.clone(),
        evidence: r
            .evidence
            .as_ref()
            .map(|e| number::estimate(e, "x"))
            .unwrap_or_default(),
    }
}

fn manifest(run: &RunRecord) -> Manifest {
    let mut facts = vec![
        Fact::new("run", &run.id),
        Fact::new("started", &run.started),
        Fact::new("took", number::number(run.seconds, "s")),
        Fact::new("seed", run.seed),
        Fact::new("larder", &run.version),
        Fact::new("depth", &run.depth),
        Fact::new("samples", number::count(run.samples.len() as i64)),
    ];
    facts.extend(noise(&run.noise));
    let groups = Table {
        title: "Groups".to_owned(),
        columns: [
            "group",
            "compared with",
            "judged by",
            "rounds",
            "stopped because",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: run
            .groups
            .iter()
            .map(|g| {
                vec![
                    Value::Text(g.name.clone()),
                    Value::Text(g.reference.to_string()),
                    Value::Text(g.metric.clone()),
                    Value::Count(i64::from(g.rounds)),
                    Value::Text(text::stopped(g.stopped).to_owned()),
                ]
            })
            .collect(),
        ..Table::default()
    };
    Manifest {
        command: text::command(run),
        facts,
        groups: (!run.groups.is_empty()).then(|| TableView::new(&groups, false)),
        skipped: run
            .skipped
            .iter()
            .map(|s| SkippedView {
                what: s.what.clone(),
                why: s.why.clone(),
            })
            .collect(),
    }
}

fn noise(n: &NoiseRecord) -> Vec<Fact> {
    let percent = |name: &str, v: Option<f64>| Fact::maybe(name, v.map(|p| number::number(p, "%")));
    vec![
        percent("CPU pressure", n.cpu_pressure_percent),
        percent("memory pressure", n.memory_pressure_percent),
        percent("input and output pressure", n.io_pressure_percent),
        percent("CPU time stolen", n.steal_percent),
        Fact::maybe(
            "load before, after",
            n.load
                .map(|(a, b)| format!("{}, {}", number::number(a, ""), number::number(b, ""))),
        ),
        Fact::new(
            "noise",
            if n.noisy {
                "too much to trust small differences"
            } else {
                "within bounds"
            },
        ),
    ]
}
