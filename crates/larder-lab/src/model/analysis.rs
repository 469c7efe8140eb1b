//! What an experiment concludes: sentences, tables and charts, free of any output format.

use serde::{Deserialize, Serialize};

use crate::calc::Preset;
use crate::stats::{Estimate, Verdict};

/// The analysis of one run by its experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The experiment's name.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// The conclusions, most important first.
    pub findings: Vec<Finding>,
    /// Targets and whether this machine met them.
    pub goals: Vec<Goal>,
    /// Tables, charts and text.
    pub sections: Vec<Section>,
    /// Settings that the run supports.
    pub recommendations: Vec<Recommendation>,
    /// What a resource costs: rows of the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// The source's questions, answered in a few words: lines of the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<ShortAnswer>,
    /// What the reader must know before believing any of it.
    pub warnings: Vec<String>,
    /// What the A/A twins showed, in one line; empty without samples.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub floor: String,
    /// Timings of this machine for the calculator, one entry per way to get memory, with the fitted
    /// model where there is one. The first is what the calculator shows first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calculator: Vec<Preset>,
}

/// What one operation on a resource costs here: a row of the summary.
///
/// ```
/// use larder_lab::model::Cost;
/// use larder_lab::stats::Verdict;
///
/// let page = Cost {
///     what: "page, warm".to_owned(),
///     unit: "ns".to_owned(),
///     larder: Some(1.8),
///     peer: Some(("mimalloc".to_owned(), 4.3)),
///     floor: Some(1.0),
///     verdict: Some(Verdict::Faster),
/// };
/// assert!(page.larder < page.peer.map(|(_, cost)| cost));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The resource and its state, at most 22 characters, for instance `page, warm`.
    pub what: String,
    /// Unit of the three numbers.
    pub unit: String,
    /// Median from larder; `None` for what larder does not supply.
    pub larder: Option<f64>,
    /// The peer with the lowest median in the same rounds, and that median.
    pub peer: Option<(String, f64)>,
    /// Median of the least that the harness can show, for instance an empty loop or a bare array.
    pub floor: Option<f64>,
    /// Larder against that peer.
    pub verdict: Option<Verdict>,
}

/// A question of a source and its answer, in a few words: a line of the summary.
///
/// ```
/// use larder_lab::model::ShortAnswer;
///
/// let line = ShortAnswer::new("Best cluster size?", "8 to 1024 pages are equal; 2001 found 14 to 24");
/// assert!(line.question.len() + line.answer.len() < 78);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortAnswer {
    /// The question, at most 28 characters.
    pub question: String,
    /// The answer, at most 47 characters.
    pub answer: String,
}

impl ShortAnswer {
    /// A question with its answer.
    #[must_use]
    pub fn new(question: impl Into<String>, answer: impl Into<String>) -> Self {
        Self {
            question: question.into(),
            answer: answer.into(),
        }
    }
}

/// A sentence with a number and an interval, under the open question that it answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The question, in its author's sense.
    pub question: String,
    /// The source of the question, for instance `Walfield 2001`.
    pub asked_by: String,
    /// The answer.
    pub answer: String,
    /// The verdict where the answer is a comparison.
    pub verdict: Option<Verdict>,
    /// The verdict in words with its subject, for instance `larder's pool is faster than mimalloc`; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reading: String,
    /// The numbers behind the sentence where one number is not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// The chart that shows the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
}

/// Whether a goal was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoalState {
    /// The whole interval is on the good side.
    Met,
    /// The whole interval is on the bad side.
    Missed,
    /// The interval crosses the goal.
    Open,
    /// Could not be measured here.
    Skipped,
}

fn ratio_unit() -> String {
    "x".to_owned()
}

/// A target and what was measured, most often a ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What is compared.
    pub what: String,
    /// What it is compared with.
    pub against: String,
    /// The bound, as text with its direction, for instance `at most 0.7`.
    pub bound: String,
    /// What was measured.
    pub measured: Option<Estimate>,
    /// Its unit; `x` for a ratio.
    #[serde(default = "ratio_unit")]
    pub unit: String,
    /// Memory held meanwhile, in bytes, by larder and by the peer.
    pub held_bytes: Option<(f64, f64)>,
    /// Whether it was met.
    pub state: GoalState,
    /// Reason when skipped or missed.
    pub note: String,
}

impl Goal {
    /// The same for what is no ratio: in `unit`, which may be empty for a count.
    #[must_use]
    pub fn in_unit(self, unit: &str) -> Self {
        Self {
            unit: unit.to_owned(),
            ..self
        }
    }
}

/// A heading with what stands below it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Content in reading order.
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A chart; its numbers are printed as a table beneath it.
    Chart(Chart),
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// Nothing to show.
    Empty,
    /// Text.
    Text(String),
    /// A whole number.
    Count(i64),
    /// A number with its unit; printed with a fitting prefix.
    Number(f64, String),
    /// A number with its interval and unit.
    Estimate(Estimate, String),
    /// A ratio with its interval and verdict.
    Ratio(Estimate, Verdict),
    /// A number taken from a published table: never compared with a time measured here.
    Published(f64, String),
}

/// A row.
pub type TableRow = Vec<Value>;

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Caption.
    pub title: String,
    /// Column headings.
    pub columns: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<TableRow>,
    /// Footnotes.
    pub notes: Vec<String>,
    /// True when the terminal should leave it to the report because of its size.
    pub long: bool,
}

impl Table {
    /// A short table without footnotes.
    #[must_use]
    pub fn new<R: Into<TableRow>>(
        title: &str,
        columns: &[&str],
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: rows.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// How an axis spreads its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By ratio.
    Log,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Label with unit.
    pub label: String,
    /// Scale.
    pub scale: Scale,
}

impl Axis {
    /// An axis.
    #[must_use]
    pub fn new(label: &str, scale: Scale) -> Self {
        Self {
            label: label.to_owned(),
            scale,
        }
    }
}

/// Where a series' numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Measured in this run.
    Measured,
    /// Taken from a published table: drawn hollow, as a shape.
    Published,
}

/// A point with its interval; `lo == hi == y` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
}

impl Point {
    /// A point without an interval.
    #[must_use]
    pub fn bare(x: f64, y: f64) -> Self {
        Self { x, y, lo: y, hi: y }
    }
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points in order of x.
    pub points: Vec<Point>,
    /// Where they come from.
    pub from: Provenance,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Caption.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines.
    pub series: Vec<Series>,
    /// Vertical marks: position and label (a knee, an optimum, a kernel threshold).
    pub marks: Vec<(f64, String)>,
    /// Names of the horizontal values 0, 1, 2, …: the chart shows bars. Empty for a chart of lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// A setting that the run supports, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// Key in the settings file, for instance `pages.cluster_pages`.
    pub key: String,
    /// Value as TOML text.
    pub value: String,
    /// Sentence that says why.
    pub because: String,
    /// Interval of the comparison that supports it, as a ratio to the best.
    pub evidence: Option<Estimate>,
}
