//! The one screen that a run ends with: what the machine is, what each resource costs, what to set, the questions' answers,
//! the goals. Every format of the report begins with it.

use serde::{Deserialize, Serialize};

use super::text::{clean, shortened, wrap};
use super::{Document, number};
use crate::measure::RunView;
use crate::model::{Cost, GoalState, Recommendation, RunRecord, ShortAnswer};
use crate::stats::{self, Verdict};

/// Lines at most.
const HEIGHT: usize = 40;

/// Columns of a terminal that every line fits into.
pub(super) const WIDTH: usize = 80;

/// Most goals that are missed and named in the line of goals; the report has them all.
const NAMED: usize = 4;

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
    /// Settings that the quiet ones of the runs support.
    pub settings: Vec<Recommendation>,
    /// The documents' questions.
    pub answers: Vec<ShortAnswer>,
    /// Goals that hold.
    pub held: usize,
    /// Goals that are missed, by name.
    pub missed: Vec<String>,
    /// Goals that the run leaves undecided.
    pub undecided: usize,
    /// Goals that were not measured.
    pub not_measured: usize,
}

impl Summary {
    /// Of all runs of a document, in their order.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        let Some((first, _)) = document.runs.first() else {
            return Self::default();
        };
        let analyses = || document.runs.iter().map(|(_, analysis)| analysis);
        let goals = || analyses().flat_map(|a| &a.goals);
        let count = |state| goals().filter(|g| g.state == state).count();
        let missed = goals().filter(|g| g.state == GoalState::Missed);
        let noisy = document.runs.iter().any(|(run, _)| run.noise.noisy);
        // No setting is written from a noisy run, so none is shown.
        let quiet = document.runs.iter().filter(|(run, _)| !run.noise.noisy);
        Self {
            machine: machine(document, first),
            noise: noise(document, noisy),
            noisy,
            costs: analyses().flat_map(|a| a.costs.clone()).collect(),
            settings: quiet.flat_map(|(_, a)| a.recommendations.clone()).collect(),
            answers: analyses().flat_map(|a| a.answers.clone()).collect(),
            held: count(GoalState::Met),
            missed: missed.map(|g| g.what.clone()).collect(),
            undecided: count(GoalState::Open),
            not_measured: count(GoalState::Skipped),
        }
    }

    /// The screen: at most 40 lines of at most 80 columns, or of `width` where that is less. What does not fit is
    /// counted.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<String> {
        let mut parts = vec![self.head()];
        // Rows that are left for the three lists once head, goals and the headings have theirs.
        let goals = self.goals();
        let lists = [self.costs.len(), self.settings.len(), self.answers.len()];
        let headings: usize = lists.iter().filter(|n| **n > 0).map(|_| 2).sum();
        let fixed = parts[0].len() + goals.len() + 1 + headings + if lists[1] > 0 { 1 } else { 2 };
        let [costs, settings, answers] = shared(lists, HEIGHT.saturating_sub(fixed));
        parts.push(list(
            &format!(
                "{:<23}{:>9}  {:<22} {:<9} {:>10}",
                "What it costs here", "larder", "best peer here", "larder is", "floor"
            ),
            self.costs.iter().map(cost_line),
            costs,
        ));
        let mut set = list(
            "What to set",
            self.settings.iter().map(setting_line),
            settings,
        );
        if set.is_empty() && self.noisy {
            set.push("What to set: nothing, the run was too noisy".to_owned());
        } else if !set.is_empty() {
            set.push("  Use it: LARDER_SETTINGS=FILE PROGRAM (the file is named below)".to_owned());
        }
        parts.push(set);
        parts.push(list(
            "Five documents of 2001 to 2003, asked again",
            self.answers.iter().map(answer_line),
            answers,
        ));
        parts.push(goals);
        parts.retain(|part| !part.is_empty());
        let lines = parts.join(&String::new());
        lines
            .iter()
            .map(|line| shortened(&clean(line), width.min(WIDTH)))
            .collect()
    }

    fn head(&self) -> Vec<String> {
        if self.machine.is_empty() {
            return Vec::new();
        }
        vec![self.machine.clone(), format!("Noise: {}", self.noise)]
    }

    fn goals(&self) -> Vec<String> {
        let all = self.held + self.missed.len() + self.undecided + self.not_measured;
        if all == 0 {
            return Vec::new();
        }
        let mut text = format!(
            "Goals: {} hold, {} missed, {} undecided, {} not measured (larder list --missing).",
            self.held,
            self.missed.len(),
            self.undecided,
            self.not_measured
        );
        if !self.missed.is_empty() {
            let named: Vec<String> = self
                .missed
                .iter()
                .take(NAMED)
                .map(|m| shortened(&clean(m), 50))
                .collect();
            text += &format!(" Missed: {}", named.join("; "));
            text += &match self.missed.len().saturating_sub(NAMED) {
                0 => ".".to_owned(),
                more => format!("; and {more} more."),
            };
        }
        wrap(&text, "", "  ", WIDTH)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

/// `lists` cut to `room` rows together: the longest gives first.
fn shared(mut lists: [usize; 3], room: usize) -> [usize; 3] {
    while lists.iter().sum::<usize>() > room {
        let Some(longest) = (0..3).max_by_key(|i| lists[*i]) else {
            break;
        };
        lists[longest] -= 1;
    }
    lists
}

/// A heading with its rows, of which at most `room` are shown.
fn list(heading: &str, rows: impl ExactSizeIterator<Item = String>, room: usize) -> Vec<String> {
    let all = rows.len();
    if all == 0 {
        return Vec::new();
    }
    let shown = if all > room {
        room.saturating_sub(1)
    } else {
        all
    };
    let mut lines = vec![heading.to_owned()];
    lines.extend(rows.take(shown));
    if shown < all {
        lines.push(format!("  … {} more in the report", all - shown));
    }
    lines
}

fn cost_line(cost: &Cost) -> String {
    let amount = |value: Option<f64>| {
        value.map_or(String::new(), |v| number::tick(three_digits(v), &cost.unit))
    };
    let peer = cost.peer.as_ref();
    let peer = peer.map_or(String::new(), |(name, value)| {
        format!(
            "{:>9} {}",
            amount(Some(*value)),
            shortened(&clean(name), 13)
        )
    });
    let word = match cost.verdict {
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "SLOWER",
        Some(Verdict::Same { .. }) => "the same",
        Some(Verdict::Inconclusive) => "undecided",
        Some(Verdict::Refused) => "untested",
        Some(Verdict::Noisy) => "too noisy",
        None => "",
    };
    let line = format!(
        "  {:<21}{:>9}  {peer:<22} {word:<9} {:>10}",
        shortened(&clean(&cost.what), 21),
        amount(cost.larder),
        amount(cost.floor)
    );
    line.trim_end().to_owned()
}

/// A number with three digits that count.
fn three_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * digits).round() / digits
}

fn setting_line(setting: &Recommendation) -> String {
    format!(
        "  {:<27} {}",
        format!("{} = {}", setting.key, setting.value),
        setting.because
    )
}

fn answer_line(line: &ShortAnswer) -> String {
    format!("  {:<28} {}", line.question, line.answer)
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
        "larder {} · {}, {}, {} · Linux {} · {}, {} experiment{}, {}:{:02}",
        first.version.rsplit_once('.').map_or("", |(most, _)| most),
        shortened(machine.text("cpu.model"), 20),
        cpus(machine.text("cpu.online")),
        gigabytes.map_or_else(
            || "memory unknown".to_owned(),
            |b| format!("{:.0} GB", b / 1e9)
        ),
        kernel.join("."),
        depths.join(" and "),
        document.runs.len(),
        if document.runs.len() == 1 { "" } else { "s" },
        seconds as u64 / 60,
        seconds as u64 % 60
    )
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
    match count {
        Some(1) => "1 CPU".to_owned(),
        Some(n) => format!("{n} CPUs"),
        None => "CPUs unknown".to_owned(),
    }
}

fn noise(document: &Document, noisy: bool) -> String {
    let mut floors: Vec<f64> = Vec::new();
    for (run, _) in &document.runs {
        let view = RunView::new(run);
        let of_group = |g: &crate::model::GroupRecord| view.floor(&g.name, &g.metric);
        floors.extend(
            run.groups
                .iter()
                .filter_map(of_group)
                .map(|f| 100.0 * f.exp_m1()),
        );
    }
    let twins = stats::middle_of(&floors).map_or_else(
        || "no floor from identical twins".to_owned(),
        |middle| {
            let most = floors.iter().copied().fold(0.0, f64::max);
            format!("identical twins differ by {middle:.1} % (at most {most:.1})")
        },
    );
    let others: Vec<f64> = document
        .runs
        .iter()
        .filter_map(|(run, _)| run.noise.cpu_pressure_percent)
        .collect();
    let others = others.iter().copied().fold(None, |most: Option<f64>, p| {
        Some(most.map_or(p, |m| m.max(p)))
    });
    let others = others.map_or_else(String::new, |p| format!("; others: {p:.0} % CPU"));
    format!("{}; {twins}{others}.", if noisy { "HIGH" } else { "low" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Analysis, Goal};

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
    fn a_row_names_the_peer_and_says_where_larder_is_slower() {
        let line = cost_line(&cost("page, warm", Verdict::Slower));
        for word in ["page, warm", "mimalloc", "SLOWER"] {
            assert!(line.contains(word), "{line}");
        }
        let bare = Cost {
            larder: None,
            peer: None,
            floor: None,
            verdict: None,
            ..cost("page", Verdict::Faster)
        };
        assert_eq!(cost_line(&bare), "  page");
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
            missed: vec![long; 9],
            undecided: 1,
            not_measured: 2,
            noisy: false,
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
        assert!(lines.concat().contains("and 5 more."), "{lines:#?}");
    }

    #[test]
    fn costs_have_three_digits() {
        for (value, rounded) in [
            (0.73861, 0.739),
            (12.844, 12.8),
            (7093.9, 7090.0),
            (0.0, 0.0),
        ] {
            assert!((three_digits(value) - rounded).abs() < 1e-9, "{value}");
        }
        assert!(three_digits(f64::NAN).is_nan());
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

    #[test]
    fn a_noisy_run_sets_nothing_and_says_so() {
        let setting = Recommendation {
            key: "pages.prezero".to_owned(),
            value: "false".to_owned(),
            because: String::new(),
            evidence: None,
        };
        let analysis = Analysis {
            recommendations: vec![setting],
            ..Analysis::default()
        };
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
            noisy.contains("nothing, the run was too noisy") && !noisy.contains("prezero"),
            "{noisy}"
        );
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
            runs: vec![(RunRecord::default(), analysis)],
            submissions: Vec::new(),
        };
        let text = Summary::of(&document).lines(WIDTH).concat();
        assert!(
            text.contains("1 hold, 1 missed, 1 undecided, 1 not measured"),
            "{text}"
        );
        assert!(text.contains("Missed: a page of zeros."), "{text}");
    }
}
