//! What an analysis says: its goals, findings and tables, and that every format can show it.

use larder_lab::measure::Experiment;
use larder_lab::model::{Analysis, Block, Finding, Goal, RunRecord, Table};
use larder_lab::report::{self, Document, Style};

/// The first goal that says this.
#[track_caller]
pub(crate) fn goal<'a>(analysis: &'a Analysis, what: &str) -> &'a Goal {
    goal_against(analysis, what, "")
}

/// The first goal that says this and is held against that.
#[track_caller]
pub(crate) fn goal_against<'a>(analysis: &'a Analysis, what: &str, against: &str) -> &'a Goal {
    let mut goals = analysis.goals.iter();
    goals
        .find(|goal| goal.what.contains(what) && goal.against.contains(against))
        .unwrap_or_else(|| panic!("no goal '{what}' against '{against}'"))
}

/// The first finding whose question has these words.
#[track_caller]
pub(crate) fn finding<'a>(analysis: &'a Analysis, question: &str) -> &'a Finding {
    let mut findings = analysis.findings.iter();
    findings
        .find(|finding| finding.question.contains(question))
        .unwrap_or_else(|| panic!("no finding about '{question}'"))
}

/// Its answer.
#[track_caller]
pub(crate) fn answer<'a>(analysis: &'a Analysis, question: &str) -> &'a str {
    &finding(analysis, question).answer
}

/// The tables of the sections.
pub(crate) fn tables(analysis: &Analysis) -> impl Iterator<Item = &Table> {
    let blocks = analysis.sections.iter().flat_map(|s| &s.blocks);
    blocks.filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    })
}

/// The first of them whose title begins so.
#[track_caller]
pub(crate) fn table<'a>(analysis: &'a Analysis, title: &str) -> &'a Table {
    tables(analysis)
        .find(|table| table.title.starts_with(title))
        .unwrap_or_else(|| panic!("no table '{title}'"))
}

/// Shows a run in every format: none may show a number that is none. Returns what was shown.
pub(crate) fn draw(experiment: &dyn Experiment, run: &RunRecord) -> Analysis {
    let analysis = experiment.analyse(run);
    let document = Document {
        runs: vec![(run.clone(), analysis.clone())],
        submissions: Vec::new(),
    };
    assert!(!report::markdown(&document).contains("NaN"));
    let page = report::html(&document).expect("every analysis can be drawn");
    let outside = page
        .split("</script>")
        .map(|part| part.split("<script").next());
    assert!(outside.flatten().all(|text| !text.contains("NaN")));
    report::terminal(&document, &Style::plain(), &mut Vec::new())
        .expect("a vector takes everything");
    analysis
}
