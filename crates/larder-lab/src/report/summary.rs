//! The one screen at the end of a run: the machine, the cost of each resource, what to set, the answers, the
//! goals. Every format of the report begins with it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::number;
use super::text::{clean, plural, shortened, wide, wrap};
use crate::measure::RunView;
use crate::model::{Analysis, Cost, GoalState, Recommendation, RunRecord, ShortAnswer};
use crate::stats::{self, Verdict};

/// Lines at most; two of a screen's forty are left for where the results lie.
const HEIGHT: usize = 40;

/// Columns of a terminal that every line fits into.
pub(super) const WIDTH: usize = 80;

/// Columns of a setting and of a question, with their margins.
const SETTING: usize = 31;
const QUESTION: usize = 31;

/// Lines of goals at most.
const GOAL_LINES: usize = 3;

/// What a person should know after one minute.
///
/// ```
/// use larder_lab::report::{Document, Summary};
///
/// let summary = Summary::of(&Document::default());
/// assert!(summary.lines(80).len() <= 40);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Program and machine, depth, number of experiments and time, in one line.
    pub machine: String,
    /// Noise, in one line.
    pub noise: String,
    /// True when the noise of any run passed its threshold.
    pub noisy: bool,
    /// Rows of costs.
    pub costs: Vec<Cost>,
    /// Settings that the quiet ones of the runs support; of two for one key, the first.
    pub settings: Vec<Recommendation>,
    /// Experiments whose settings are not taken, because their runs are noisy.
    #[serde(default)]
    pub too_noisy: Vec<String>,
    /// The file that has the settings, where one was written.
    #[serde(default)]
    pub settings_file: Option<PathBuf>,
    /// The documents' questions.
    pub answers: Vec<ShortAnswer>,
    /// Goals that hold.
    pub held: usize,
    /// Goals that are missed, by name.
    pub missed: Vec<String>,
    /// The experiments of the goals that are missed, one for each.
    #[serde(default)]
    pub missed_in: Vec<String>,
    /// Goals that the run leaves undecided.
    pub undecided: usize,
    /// Goals that were not measured.
    pub not_measured: usize,
}

/// The settings that runs support: what the summary shows and the settings file has.
#[derive(Debug, Default)]
pub struct Supported<'r> {
    /// Each with its run; where two runs recommend the same key, the first has its way.
    pub settings: Vec<(&'r RunRecord, &'r Recommendation)>,
    /// Runs whose recommendations are not taken because of noise, with the reason.
    pub too_noisy: Vec<(&'r RunRecord, &'r [Recommendation], String)>,
}

impl<'r> Supported<'r> {
    /// Of these runs, in their order.
    #[must_use]
    pub fn by(runs: &'r [(RunRecord, Analysis)]) -> Self {
        let mut all = Self::default();
        for (run, analysis) in runs {
            let recommended = &analysis.recommendations;
            if let Some(why) = run.noise_reason().filter(|_| !recommended.is_empty()) {
                all.too_noisy.push((run, recommended, why));
                continue;
            }
            for r in recommended {
                if all.settings.iter().all(|(_, known)| known.key != r.key) {
                    all.settings.push((run, r));
                }
            }
        }
        all
    }
}

/// A row of the table of costs, as text.
pub(super) struct CostRow {
    pub(super) what: String,
    pub(super) larder: String,
    pub(super) peer: String,
    pub(super) peer_name: String,
    /// What larder is against that peer.
    pub(super) larder_is: String,
    pub(super) floor: String,
}

/// Headings of the table of costs.
pub(super) const COST_HEADS: [&str; 5] = [
    "What it costs here",
    "larder",
    "best peer here",
    "larder is",
    "floor",
];

/// Heading of the settings.
pub(super) const SETTINGS: &str = "What to set";

/// Heading of the answers.
pub(super) const ANSWERS: &str = "Five documents of 2001 to 2003, asked again";

impl Summary {
    /// Of all runs of a document, in their order.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        let Some((first, _)) = document.runs.first() else {
            return Self::default();
        };
        let analyses = || document.runs.iter().map(|(_, analysis)| analysis);
        let goals = |state| {
            let of_run = |(run, a): &'_ (RunRecord, Analysis)| {
                let goals = a.goals.iter().filter(|g| g.state == state);
                let named = goals.map(|g| (run.experiment.clone(), g.what.clone()));
                named.collect::<Vec<_>>()
            };
            document.runs.iter().flat_map(of_run).collect::<Vec<_>>()
        };
        let (missed_in, missed) = goals(GoalState::Missed).into_iter().unzip();
        let mut summary = Self {
            machine: machine(document, first),
            noise: noise(document),
            noisy: document.runs.iter().any(|(run, _)| run.noise.noisy),
            costs: analyses().flat_map(|a| a.costs.clone()).collect(),
            answers: analyses().flat_map(|a| a.answers.clone()).collect(),
            held: goals(GoalState::Met).len(),
            missed,
            missed_in,
            undecided: goals(GoalState::Open).len(),
            not_measured: goals(GoalState::Skipped).len(),
            ..Self::default()
        };
        let supported = Supported::by(&document.runs);
        let settings = supported.settings.into_iter();
        summary.settings = settings.map(|(_, r)| r.clone()).collect();
        let noisy = supported.too_noisy.into_iter();
        summary.too_noisy = noisy.map(|(run, ..)| run.experiment.clone()).collect();
        summary
    }

    /// The screen: at most 40 lines of at most 80 columns, or of `width` where that is less. What does not fit is
    /// counted. A path is never cut.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<String> {
        let width = width.min(WIDTH);
        let [what, larder, peer, is, floor] = COST_HEADS;
        let mut parts = [
            self.head(),
            part(
                &format!("{what:<24}{larder:>8}  {peer:<25}{is:>12} {floor:>8}"),
                self.cost_rows().iter().map(|row| vec![cost_line(row)]),
            ),
            part(SETTINGS, self.setting_rows().into_iter()),
            part(ANSWERS, self.answers.iter().map(answer_lines)),
            self.goals(),
        ];
        let height = |parts: &[Vec<Vec<String>>]| -> usize {
            let filled = parts.iter().filter(|p| !p.is_empty());
            filled.map(|p| p.iter().map(Vec::len).sum::<usize>()).sum()
        };
        // The longest list gives first, costs and answers before settings; its last row says how many it gave.
        let mut given = [0; 5];
        while height(&parts) > HEIGHT {
            let long = |i: &usize| parts[*i].len() > 3;
            let longest = [1, 3]
                .into_iter()
                .filter(long)
                .max_by_key(|i| parts[*i].len());
            let Some(longer) = longest.or(Some(2).filter(long)) else {
                break;
            };
            let rows = &mut parts[longer];
            let last = if given[longer] == 0 { 0 } else { 1 };
            let gone = 2 - last;
            rows.truncate(rows.len() - gone - last);
            given[longer] += gone;
            rows.push(vec![format!(
                "  \u{2026} {} more in the report",
                given[longer]
            )]);
        }
        let parts: Vec<Vec<String>> = parts
            .into_iter()
            .map(|rows| rows.concat())
            .filter(|lines| !lines.is_empty())
            .collect();
        // Blank lines between the parts are the first thing that a full screen does without.
        let all: usize = parts.iter().map(Vec::len).sum();
        let lines = if all + parts.len().saturating_sub(1) <= HEIGHT {
            parts.join(&String::new())
        } else {
            parts.concat()
        };
        let path = self.use_it();
        let cut = |line: &String| {
            if *line == path {
                line.clone()
            } else {
                shortened(&clean(line), width)
            }
        };
        lines.iter().map(cut).collect()
    }

    /// The rows of costs, as text.
    pub(super) fn cost_rows(&self) -> Vec<CostRow> {
        self.costs.iter().map(cost_row).collect()
    }

    /// How to use the settings; empty without one.
    pub(super) fn use_it(&self) -> String {
        // The malloc reads no file.
        let of_malloc = |s: &Recommendation| s.key.starts_with("malloc.");
        let program = match self.settings.iter().any(of_malloc) {
            true => "[larder run] PROGRAM",
            false => "PROGRAM",
        };
        match &self.settings_file {
            _ if self.settings.is_empty() => String::new(),
            Some(file) => format!("  Use it: LARDER_SETTINGS={} {program}", file.display()),
            None => {
                format!("  Use it: larder settings --write F, then LARDER_SETTINGS=F {program}")
            }
        }
    }

    /// Which settings the noise forbids; empty where it forbids none.
    pub(super) fn refused(&self) -> String {
        let nothing = if self.settings.is_empty() {
            "Nothing to set"
        } else {
            "Nothing more"
        };
        match self.too_noisy.len() {
            0 => String::new(),
            _ => format!("{nothing}: too noisy ({})", self.too_noisy.join(", ")),
        }
    }

    /// How many goals hold, are missed, undecided or not measured; empty without goals.
    pub(super) fn goal_counts(&self) -> String {
        let all = self.held + self.missed.len() + self.undecided + self.not_measured;
        if all == 0 {
            return String::new();
        }
        format!(
            "{} hold, {} missed, {} undecided, {} not measured",
            self.held,
            self.missed.len(),
            self.undecided,
            self.not_measured
        )
    }

    fn head(&self) -> Vec<Vec<String>> {
        if self.machine.is_empty() {
            return Vec::new();
        }
        vec![
            wrapped(&self.machine, "", "  "),
            wrapped(&format!("Noise: {}", self.noise), "", "  "),
        ]
    }

    fn setting_rows(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = self.settings.iter().map(setting_lines).collect();
        for line in [self.refused(), self.use_it()] {
            if !line.is_empty() {
                rows.push(vec![format!("  {}", line.trim_start())]);
            }
        }
        rows
    }

    fn goals(&self) -> Vec<Vec<String>> {
        let counts = self.goal_counts();
        if counts.is_empty() {
            return Vec::new();
        }
        let missed = self.missed_by_experiment();
        let mut lines = vec![format!("Goals: {counts}: larder report --goals")];
        for shown in (1..=missed.len()).rev() {
            let more = match missed.len() - shown {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let named = format!("Missed: {}{more}.", missed[..shown].join("; "));
            if shown == 1 || wrap(&named, "", "  ", WIDTH).lines().count() < GOAL_LINES {
                lines.extend(wrapped(&named, "", "  "));
                break;
            }
        }
        vec![lines]
    }

    /// The goals that are missed, each by the first words of its name, with what they share counted: one text for each
    /// experiment.
    fn missed_by_experiment(&self) -> Vec<String> {
        let mut experiments: Vec<(&str, Vec<(&str, usize)>)> = Vec::new();
        for (i, what) in self.missed.iter().enumerate() {
            let experiment = self.missed_in.get(i).map_or("", String::as_str);
            let what = what.split([',', ':']).next().unwrap_or(what);
            let at = experiments.iter().position(|(name, _)| *name == experiment);
            let at = at.unwrap_or_else(|| {
                experiments.push((experiment, Vec::new()));
                experiments.len() - 1
            });
            let goals = &mut experiments[at].1;
            match goals.iter_mut().find(|(known, _)| *known == what) {
                Some((_, count)) => *count += 1,
                None => goals.push((what, 1)),
            }
        }
        let goal = |(what, count): &(&str, usize)| {
            let what = shortened(&clean(what), 40);
            match count {
                1 => what,
                n => format!("{what} ({n})"),
            }
        };
        let text = |(experiment, goals): &(&str, Vec<(&str, usize)>)| {
            let goals: Vec<String> = goals.iter().map(goal).collect();
            format!("{experiment}: {}", goals.join(", "))
        };
        experiments.iter().map(text).collect()
    }
}

/// A heading with its rows; nothing without rows.
fn part(heading: &str, rows: impl Iterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let mut part = vec![vec![heading.to_owned()]];
    part.extend(rows);
    if part.len() > 1 { part } else { Vec::new() }
}

/// A text on two lines at most, the second behind a margin.
fn wrapped(text: &str, first: &str, rest: &str) -> Vec<String> {
    let text = wrap(&clean(text), first, rest, WIDTH);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() > 2 {
        lines.truncate(2);
        lines[1].push_str(" \u{2026}");
    }
    lines
}

fn cost_row(cost: &Cost) -> CostRow {
    let amount =
        |value: Option<f64>| value.map_or_else(String::new, |v| number::number(v, &cost.unit));
    let ratio = cost.larder.zip(cost.peer.as_ref());
    let ratio = ratio.map_or(f64::NAN, |(larder, (_, peer))| peer / larder);
    let times = |by: f64, word: &str| match by > 1.0 {
        true => format!("{} {word}", number::number(by, "x")),
        false => word.to_owned(),
    };
    CostRow {
        what: clean(&cost.what),
        larder: amount(cost.larder),
        peer: amount(cost.peer.as_ref().map(|(_, value)| *value)),
        peer_name: cost
            .peer
            .as_ref()
            .map_or_else(String::new, |(n, _)| clean(n)),
        larder_is: match cost.verdict {
            Some(Verdict::Faster) => times(ratio, "faster"),
            Some(Verdict::Slower) => times(ratio.recip(), "SLOWER"),
            Some(Verdict::Same { .. }) => "the same".to_owned(),
            Some(Verdict::Inconclusive) => "undecided".to_owned(),
            Some(Verdict::Refused) => "few rounds".to_owned(),
            Some(Verdict::Noisy) => "too noisy".to_owned(),
            None => String::new(),
        },
        floor: amount(cost.floor),
    }
}

fn cost_line(row: &CostRow) -> String {
    let line = format!(
        "  {:<22}{:>8}  {:>8} {:<16}{:>12} {:>8}",
        shortened(&row.what, 22),
        if row.larder.is_empty() {
            "-"
        } else {
            &row.larder
        },
        row.peer,
        shortened(&row.peer_name, 16),
        row.larder_is,
        row.floor
    );
    line.trim_end().to_owned()
}

/// A setting with the first sentence of its reason.
fn setting_lines(setting: &Recommendation) -> Vec<String> {
    let name = format!("  {} = {}", setting.key, setting.value);
    let because = setting.because.split_once(". ");
    let because = because.map_or(setting.because.as_str(), |(first, _)| first);
    columns(&name, because.trim_end_matches('.'), SETTING)
}

fn answer_lines(line: &ShortAnswer) -> Vec<String> {
    columns(&format!("  {}", line.question), &line.answer, QUESTION)
}

/// Two columns, of which the second goes on below itself where it is too long.
fn columns(first: &str, second: &str, at: usize) -> Vec<String> {
    let first = clean(first);
    let blanks = " ".repeat(at.saturating_sub(wide(&first) + 1));
    wrapped(second, &format!("{first}{blanks} "), &" ".repeat(at))
}

fn machine(document: &Document, first: &RunRecord) -> String {
    let machine = &first.machine;
    let gigabytes = machine
        .text("memory.total")
        .split(' ')
        .next()
        .and_then(|b| b.parse::<f64>().ok());
    let kernel: Vec<&str> = machine
        .text("kernel.release")
        .split(['.', '-'])
        .take(2)
        .collect();
    let seconds: f64 = document.runs.iter().map(|(run, _)| run.seconds).sum();
    let depths: Vec<&str> = ["quick", "full"]
        .into_iter()
        .filter(|depth| document.runs.iter().any(|(run, _)| run.depth == *depth))
        .collect();
    format!(
        "larder {} \u{b7} {}, {}, {}, Linux {} \u{b7} {}, {}, {}:{:02}",
        first.version.rsplit_once('.').map_or("", |(most, _)| most),
        processor(machine.text("cpu.model")),
        cpus(machine.text("cpu.online")),
        gigabytes.map_or_else(
            || "memory unknown".to_owned(),
            |b| format!("{:.0} GB", b / 1e9)
        ),
        kernel.join("."),
        depths.join(" and "),
        plural(document.runs.len(), "experiment"),
        seconds as u64 / 60,
        seconds as u64 % 60
    )
}

/// A processor's name without its marks and the words that every processor has.
fn processor(model: &str) -> String {
    let model = model.replace("(R)", " ").replace("(TM)", " ");
    let said = |word: &&str| !matches!(*word, "CPU" | "Processor" | "processor");
    let words = model.split_whitespace().take_while(|word| *word != "@");
    words.filter(said).collect::<Vec<_>>().join(" ")
}

/// `2 CPUs` from a kernel's list such as `0-1` or `0,2-3`.
fn cpus(list: &str) -> String {
    let count = list.split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (
            first.trim().parse::<u32>().ok()?,
            last.trim().parse::<u32>().ok()?,
        );
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    });
    count.map_or_else(|| "CPUs unknown".to_owned(), |n| plural(n as usize, "CPU"))
}

fn noise(document: &Document) -> String {
    let noisy: Vec<&str> = document
        .runs
        .iter()
        .filter(|(run, _)| run.noise.noisy)
        .map(|(run, _)| run.experiment.as_str())
        .collect();
    let level = match (noisy.len(), document.runs.len()) {
        (0, _) => "low".to_owned(),
        (n, all) if n == all => "HIGH".to_owned(),
        (1..=2, _) => format!("HIGH in {}", noisy.join(" and ")),
        (n, all) => format!("HIGH in {n} of {}", plural(all, "experiment")),
    };
    let mut floors: Vec<f64> = Vec::new();
    for (run, _) in &document.runs {
        let view = RunView::new(run);
        let of_groups = run
            .groups
            .iter()
            .filter_map(|g| view.floor(&g.name, &g.metric));
        floors.extend(of_groups.map(|f| 100.0 * f.exp_m1()));
    }
    let twins = stats::middle_of(&floors).map_or_else(
        || "No program ran twice to compare with itself.".to_owned(),
        |middle| {
            let most = floors.iter().copied().fold(0.0, f64::max);
            format!("Identical programs differ by {middle:.1} % (at most {most:.1}).")
        },
    );
    format!("{level}. {twins}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Goal;

    fn cost(what: &str, verdict: Verdict) -> Cost {
        Cost {
            what: what.to_owned(),
            unit: "ns".to_owned(),
            larder: Some(1.84),
            peer: Some(("mimalloc".to_owned(), 4.31)),
            floor: Some(1.0),
            verdict: Some(verdict),
        }
    }

    #[test]
    fn a_row_names_the_peer_and_says_how_much_larder_is_slower() {
        let line = |cost: &Cost| cost_line(&cost_row(cost));
        let slow = Cost {
            larder: Some(437.1),
            peer: Some(("hibitset-levels".to_owned(), 36.66)),
            ..cost("cached block, missed", Verdict::Slower)
        };
        let slow = line(&slow);
        for words in [
            "cached block, missed",
            "36.7 ns hibitset-levels",
            "11.9\u{d7} SLOWER",
        ] {
            assert!(slow.contains(words), "{slow}");
        }
        assert!(line(&cost("page", Verdict::Faster)).contains("2.34\u{d7} faster"));
        // A bare verdict stands where the medians do not agree with it.
        let odd = Cost {
            larder: Some(5.0),
            ..cost("page", Verdict::Faster)
        };
        assert!(line(&odd).contains("    faster"), "{}", line(&odd));
        let kernel = Cost {
            larder: None,
            floor: None,
            verdict: None,
            ..cost("page, from the kernel", Verdict::Faster)
        };
        let kernel = line(&kernel);
        let column = |text: &str| slow.find(text).or_else(|| kernel.find(text));
        assert_eq!(column("36.7 ns"), column("4.31 ns"));
    }

    #[test]
    fn whatever_there_is_fits_the_screen_and_what_is_left_out_is_counted() {
        let long = "a name that is far too long for its column\u{1b}[31m, and goes on".repeat(3);
        let many = Summary {
            machine: long.clone(),
            noise: long.clone(),
            costs: vec![cost(&long, Verdict::Faster); 50],
            settings: vec![
                Recommendation {
                    key: "pages.cluster_pages".to_owned(),
                    value: "64".to_owned(),
                    because: long.clone(),
                    evidence: None,
                };
                9
            ],
            answers: vec![ShortAnswer::new(long.clone(), long.clone()); 50],
            held: 3,
            missed: vec![long.clone(); 9],
            missed_in: (0..9).map(|i| format!("e{i}")).collect(),
            undecided: 1,
            not_measured: 2,
            too_noisy: vec![long; 3],
            ..Summary::default()
        };
        let lines = many.lines(WIDTH);
        assert!(lines.len() <= HEIGHT, "{}", lines.len());
        for line in &lines {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert!(!line.contains('\u{1b}'), "{line}");
        }
        let more = lines
            .iter()
            .filter(|line| line.contains("more in the report"));
        assert_eq!(more.count(), 2, "{lines:#?}");
        assert!(lines.concat().contains(" more."), "{lines:#?}");
    }

    #[test]
    fn cpus_are_counted() {
        for (list, words) in [
            ("0-1", "2 CPUs"),
            ("0", "1 CPU"),
            ("0,2-3", "3 CPUs"),
            ("?", "CPUs unknown"),
            ("3-1", "CPUs unknown"),
        ] {
            assert_eq!(cpus(list), words);
        }
    }

    fn with_a_setting() -> Analysis {
        let setting = Recommendation {
            key: "pages.prezero".to_owned(),
            value: "false".to_owned(),
            because: String::new(),
            evidence: None,
        };
        Analysis {
            recommendations: vec![setting],
            ..Analysis::default()
        }
    }

    #[test]
    fn a_noisy_run_sets_nothing_and_says_so() {
        let analysis = with_a_setting();
        let mut run = RunRecord::default();
        let text = |run: &RunRecord| {
            let document = Document {
                runs: vec![(run.clone(), analysis.clone())],
                submissions: Vec::new(),
            };
            Summary::of(&document).lines(WIDTH).concat()
        };
        assert!(text(&run).contains("pages.prezero = false"));
        run.noise.noisy = true;
        let noisy = text(&run);
        assert!(
            noisy.contains("Nothing to set: too noisy") && !noisy.contains("prezero"),
            "{noisy}"
        );
    }

    #[test]
    fn a_group_that_was_disturbed_supports_no_setting_either() {
        use crate::model::{Cell, GroupRecord, Measures, OTHERS, Params, Sample, StopReason};
        let cell = Cell::new("a", Params::new());
        let run = RunRecord {
            groups: vec![GroupRecord {
                name: "g".to_owned(),
                reference: cell.clone(),
                metric: "ns".to_owned(),
                rounds: 1,
                stopped: StopReason::Rounds,
            }],
            samples: vec![Sample {
                group: "g".to_owned(),
                cell,
                round: 0,
                slot: 0,
                at_us: 0,
                measures: Measures::new().with(OTHERS, 50.0),
            }],
            ..RunRecord::default()
        };
        let analysis = with_a_setting();
        let document = Document {
            runs: vec![(run, analysis)],
            submissions: Vec::new(),
        };
        assert_eq!(Summary::of(&document).settings, []);
    }

    #[test]
    fn the_settings_name_their_file_and_a_long_reason_goes_on_below() {
        let summary = Summary {
            settings: vec![Recommendation {
                key: "pages.cluster_pages".to_owned(),
                value: "64".to_owned(),
                because: "As cheap as the cheapest of all the others, and it holds the least memory. More."
                    .to_owned(),
                evidence: None,
            }],
            settings_file: Some(format!("/{}/s.toml", "long".repeat(30)).into()),
            ..Summary::default()
        };
        let lines = summary.lines(WIDTH);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(lines[2].starts_with("          ") && lines[2].ends_with("least memory"));
        assert!(lines[3].ends_with("/s.toml PROGRAM"), "{}", lines[3]);
    }

    #[test]
    fn a_processor_has_its_name_alone() {
        for (model, name) in [
            ("Intel(R) Xeon(R) Processor", "Intel Xeon"),
            (
                "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz",
                "Intel Xeon E5-2680 v4",
            ),
            ("AMD EPYC 9R14", "AMD EPYC 9R14"),
        ] {
            assert_eq!(processor(model), name);
        }
    }

    #[test]
    fn an_empty_part_has_no_heading() {
        let lines = Summary::default().lines(WIDTH);
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn goals_are_counted_by_state() {
        let goal = |state, what: &str| Goal {
            what: what.to_owned(),
            against: String::new(),
            bound: String::new(),
            measured: None,
            unit: String::new(),
            held_bytes: None,
            state,
            note: String::new(),
        };
        let analysis = Analysis {
            goals: vec![
                goal(GoalState::Met, "a"),
                goal(GoalState::Missed, "a page of zeros"),
                goal(GoalState::Open, "c"),
                goal(GoalState::Skipped, "d"),
            ],
            ..Analysis::default()
        };
        let document = Document {
            runs: vec![(
                RunRecord {
                    experiment: "e".to_owned(),
                    ..RunRecord::default()
                },
                analysis,
            )],
            submissions: Vec::new(),
        };
        let text = Summary::of(&document).lines(WIDTH).concat();
        assert!(
            text.contains("1 hold, 1 missed, 1 undecided, 1 not measured"),
            "{text}"
        );
        assert!(text.contains("Missed: e: a page of zeros."), "{text}");
    }
}
