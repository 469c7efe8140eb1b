//! The whole document on one screen: what it costs, what to set, which goals hold.

use std::io::{self, Write};

use serde::Serialize;

use super::text::{clean, fit, wide, wrap};
use super::{Document, Style, number};
use crate::measure::RunView;
use crate::model::{Cost, GoalState, MachineRecord, Recommendation, ShortAnswer};
use crate::stats::Verdict;

/// Columns of the summary, on a wider terminal too.
const WIDTH: usize = 80;
/// Lines of the summary without the findings of a single experiment.
const LINES: usize = 40;
/// Findings of a single experiment.
const FINDINGS: usize = 15;

/// What disturbed the runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Noise {
    /// Whether any run passed a threshold of noise.
    pub noisy: bool,
    /// Largest difference of identical twins, percent; `None` without one.
    pub twins_percent: Option<f64>,
    /// Largest share of time in which other programs wanted a CPU, percent.
    pub others_percent: Option<f64>,
}

/// Goals by their state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GoalCount {
    /// The whole interval is on the good side.
    pub hold: usize,
    /// The whole interval is on the bad side.
    pub missed: usize,
    /// The interval crosses the goal.
    pub undecided: usize,
    /// Could not be measured here.
    pub not_measured: usize,
    /// Names of the missed ones.
    pub missed_names: Vec<String>,
}

/// A document on one screen.
///
/// ```
/// use larder_lab::report::{Document, Style, Summary};
///
/// let mut out = Vec::new();
/// Summary::of(&Document::default()).write(&Style::plain(), &mut out)?;
/// assert!(out.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Version of larder that took the first run.
    pub version: String,
    /// The machine in a few words; several machines are counted.
    pub machine: String,
    /// `quick`, `full`, or both.
    pub depth: String,
    /// Number of experiments.
    pub experiments: usize,
    /// Seconds that the runs took together.
    pub seconds: f64,
    /// What disturbed them.
    pub noise: Noise,
    /// What the resources cost, in order of the runs.
    pub costs: Vec<Cost>,
    /// Settings of the runs that were quiet enough.
    pub settings: Vec<Recommendation>,
    /// Settings left out because their run was noisy.
    pub settings_too_noisy: usize,
    /// The settings file, where there is one.
    pub settings_file: Option<String>,
    /// The sources' questions with short answers.
    pub answers: Vec<ShortAnswer>,
    /// Questions and answers of a single experiment.
    pub findings: Vec<ShortAnswer>,
    /// Goals by state.
    pub goals: GoalCount,
    /// Runs without a sample, each with its reason.
    pub empty: Vec<String>,
}

impl Summary {
    /// The summary of a document; it names no settings file.
    #[must_use]
    pub fn of(doc: &Document) -> Self {
        let runs = || doc.runs.iter().map(|(run, _)| run);
        let Some(first) = runs().next() else {
            return Self::default();
        };
        let mut summary = Self {
            version: first.version.clone(),
            machine: machine(&first.machine),
            experiments: doc.runs.len(),
            seconds: runs().map(|r| r.seconds).filter(|s| s.is_finite()).sum(),
            ..Self::default()
        };
        let mut machines: Vec<&str> = runs().map(|r| r.machine.fingerprint.as_str()).collect();
        machines.sort_unstable();
        machines.dedup();
        if machines.len() > 1 {
            summary.machine += &format!(" and {} more machines", machines.len() - 1);
        }
        let mut depths: Vec<&str> = Vec::new();
        for run in runs().filter(|r| !depths.contains(&r.depth.as_str())).collect::<Vec<_>>() {
            if !depths.contains(&run.depth.as_str()) {
                depths.push(&run.depth);
            }
        }
        summary.depth = depths.join(" and ");
        for (run, analysis) in &doc.runs {
            let view = RunView::new(run);
            let twins = run
                .groups
                .iter()
                .filter_map(|g| view.floor(&g.name, &g.metric))
                .map(|floor| 100.0 * floor.exp_m1());
            let noise = &mut summary.noise;
            noise.noisy |= run.noise.noisy;
            noise.twins_percent = twins.chain(noise.twins_percent).reduce(f64::max);
            noise.others_percent = [run.noise.cpu_pressure_percent, noise.others_percent]
                .into_iter()
                .flatten()
                .reduce(f64::max);
            summary.costs.extend(analysis.costs.iter().cloned());
            summary.answers.extend(analysis.answers.iter().cloned());
            if run.noise.noisy {
                summary.settings_too_noisy += analysis.recommendations.len();
            } else {
                summary.settings.extend(analysis.recommendations.iter().cloned());
            }
            for goal in &analysis.goals {
                let count = &mut summary.goals;
                match goal.state {
                    GoalState::Met => count.hold += 1,
                    GoalState::Missed => {
                        count.missed += 1;
                        count.missed_names.push(goal.what.clone());
                    }
                    GoalState::Open => count.undecided += 1,
                    GoalState::Skipped => count.not_measured += 1,
                }
            }
            if run.samples.is_empty() {
                let why = run.skipped.first().map_or("no cell ran", |s| s.why.as_str());
                summary.empty.push(format!("{}: {why}", run.experiment));
            }
        }
        if let [(_, only)] = doc.runs.as_slice() {
            summary.findings = only
                .findings
                .iter()
                .map(|f| ShortAnswer::new(&f.question, &f.answer))
                .collect();
        }
        summary
    }

    /// The same with the settings file that was written.
    #[must_use]
    pub fn with_settings_file(self, file: Option<String>) -> Self {
        Self {
            settings_file: file,
            ..self
        }
    }

    /// Writes the summary. Nothing is written for a document without runs.
    ///
    /// # Errors
    /// Whatever the writer reports.
    pub fn write(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        for (heading, line) in self.lines(style.width) {
            match style.color && heading {
                true => writeln!(out, "\u{1b}[1;36m{line}\u{1b}[0m")?,
                false => writeln!(out, "{line}")?,
            }
        }
        Ok(())
    }

    /// The lines for a terminal of so many columns, each with whether it is a heading.
    fn lines(&self, width: usize) -> Vec<(bool, String)> {
        if self.experiments == 0 {
            return Vec::new();
        }
        let width = width.min(WIDTH);
        let mut top = vec![(true, self.first_line())];
        top.push((false, self.noise_line()));
        let mut parts: Vec<(String, Vec<String>, Option<String>)> = Vec::new();
        if !self.empty.is_empty() {
            parts.push(("Not measured".to_owned(), self.empty.clone(), None));
        }
        if !self.costs.is_empty() {
            let (head, rows) = costs(&self.costs, width);
            parts.push((head, rows, None));
        }
        if let Some(part) = self.settings_part(width) {
            parts.push(part);
        }
        if !self.answers.is_empty() {
            let rows = pairs(&self.answers, 28);
            parts.push(("Questions of the sources".to_owned(), rows, None));
        }
        let foot = self.foot(width);
        // The findings stand beside the 40 lines: only a single experiment has them.
        let fixed = top.len() + foot.len() + 1;
        let heads: usize = parts.iter().map(|(_, _, f)| 2 + f.iter().len()).sum();
        let wanted: Vec<usize> = parts.iter().map(|(_, rows, _)| rows.len()).collect();
        let allowed = allot(&wanted, LINES.saturating_sub(fixed + heads));
        if !self.findings.is_empty() {
            let rows = pairs(&self.findings, 32);
            parts.push(("Findings".to_owned(), rows, None));
        }
        let mut lines = top;
        let allowed = allowed.into_iter().chain([FINDINGS]);
        for ((head, rows, last), most) in parts.into_iter().zip(allowed) {
            lines.push((false, String::new()));
            lines.push((true, head));
            let shown = if rows.len() > most { most.saturating_sub(1) } else { rows.len() };
            let more = rows.len() - shown;
            lines.extend(rows.into_iter().take(shown).map(|r| (false, format!("  {r}"))));
            if more > 0 {
                lines.push((false, format!("  \u{2026} {more} more in the report")));
            }
            lines.extend(last.map(|l| (false, format!("  {l}"))));
        }
        lines.push((false, String::new()));
        lines.extend(foot.into_iter().map(|l| (false, l)));
        lines
            .into_iter()
            .map(|(head, line)| (head, fit(&clean(&line), width)))
            .collect()
    }

    fn first_line(&self) -> String {
        let s = self.seconds.max(0.0).round() as u64;
        let time = format!("{}:{:02}", s / 60, s % 60);
        let number = match self.experiments {
            1 => "1 experiment".to_owned(),
            n => format!("{n} experiments"),
        };
        let head = format!("larder {} · ", fit(&clean(&self.version), 12));
        let tail = format!(" · {}, {number}, {time}", fit(&clean(&self.depth), 14));
        let room = WIDTH.saturating_sub(wide(&head) + wide(&tail));
        format!("{head}{}{tail}", fit(&clean(&self.machine), room))
    }

    fn noise_line(&self) -> String {
        let n = &self.noise;
        let mut line = match n.noisy {
            true => "Noise: this run was noisy.".to_owned(),
            false => "Noise: low.".to_owned(),
        };
        if let Some(t) = n.twins_percent {
            line += &format!(" Identical twins differ by at most {t:.1} %");
        }
        match (n.others_percent, n.twins_percent) {
            (Some(o), Some(_)) if n.noisy => line += &format!("; others {o:.0} %."),
            (Some(o), Some(_)) => line += &format!("; others used {o:.0} % CPU."),
            (Some(o), None) => line += &format!(" Others used {o:.0} % of the CPU."),
            (None, Some(_)) => line += ".",
            (None, None) => {}
        }
        line
    }

    fn settings_part(&self, width: usize) -> Option<(String, Vec<String>, Option<String>)> {
        if self.settings.is_empty() {
            return (self.settings_too_noisy > 0).then(|| {
                let rows = vec!["nothing to set: too noisy".to_owned()];
                ("What to set".to_owned(), rows, None)
            });
        }
        let set: Vec<String> = self
            .settings
            .iter()
            .map(|r| fit(&clean(&format!("{} = {}", r.key, r.value)), 36))
            .collect();
        let longest = set.iter().map(|s| wide(s)).max().unwrap_or(0);
        let mut rows: Vec<String> = set
            .iter()
            .zip(&self.settings)
            .map(|(s, r)| format!("{}  {}", padded(s, longest), r.because))
            .collect();
        if self.settings_too_noisy > 0 {
            rows.push(format!("{} left out: their run was too noisy", self.settings_too_noisy));
        }
        let plain = "What to set".to_owned();
        let file = self.settings_file.as_deref().map(clean);
        let named = file.as_ref().map(|f| {
            let quoted = match f.chars().all(|c| c.is_alphanumeric() || "~/._-+".contains(c)) {
                true => f.clone(),
                false => format!("'{}'", f.replace('\'', "'\\''")),
            };
            (format!("What to set (in {f})"), format!("Use it: LARDER_SETTINGS={quoted} PROGRAM"))
        });
        Some(match named.filter(|(h, u)| wide(h) <= width && wide(u) + 2 <= width) {
            Some((head, usage)) => (head, rows, Some(usage)),
            None => {
                let usage = "Use it: larder settings --write s.toml; LARDER_SETTINGS=s.toml PROGRAM";
                (plain, rows, Some(usage.to_owned()))
            }
        })
    }

    fn foot(&self, width: usize) -> Vec<String> {
        let g = &self.goals;
        let mut lines = Vec::new();
        if g.hold + g.missed + g.undecided + g.not_measured > 0 {
            let mut line = format!("Goals: {} hold, {} missed, {} undecided", g.hold, g.missed, g.undecided);
            if g.not_measured > 0 {
                line += &format!("; {} not measured (larder list --missing)", g.not_measured);
            }
            lines.push(line);
        }
        if !g.missed_names.is_empty() {
            let names: Vec<String> = g.missed_names.iter().map(|n| fit(&clean(n), 30)).collect();
            let mut shown = names.len();
            loop {
                let more = match names.len() - shown {
                    0 => String::new(),
                    n => format!(", \u{2026} {n} more"),
                };
                let text = format!("Missed: {}{more}", names[..shown].join(", "));
                let text = wrap(&text, "", "  ", width);
                if text.lines().count() <= 3 || shown == 1 {
                    lines.extend(text.lines().take(3).map(str::to_owned));
                    break;
                }
                shown -= 1;
            }
        }
        lines.push(match self.experiments {
            1 => "Details: larder report latest, or larder report latest --open".to_owned(),
            _ => "Details: larder report --open     One experiment: larder measure id-space".to_owned(),
        });
        lines
    }
}

/// Rows for each part within the budget: the longest part gives first, and each keeps two.
fn allot(wanted: &[usize], budget: usize) -> Vec<usize> {
    let mut rows = wanted.to_vec();
    while rows.iter().sum::<usize>() > budget {
        match rows.iter_mut().max() {
            Some(most) if *most > 2 => *most -= 1,
            _ => break,
        }
    }
    rows
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(wide(text))))
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(wide(text))))
}

/// Questions in a column of so many characters, their answers beside it.
fn pairs(all: &[ShortAnswer], most: usize) -> Vec<String> {
    let questions: Vec<String> = all.iter().map(|a| fit(&clean(&a.question), most)).collect();
    let longest = questions.iter().map(|q| wide(q)).max().unwrap_or(0);
    let answer = |(q, a): (&String, &ShortAnswer)| format!("{}  {}", padded(q, longest), a.answer);
    questions.iter().zip(all).map(answer).collect()
}

/// Heading and rows of the costs. A name gives way to a number; what does not fit at all is the floor.
fn costs(all: &[Cost], width: usize) -> (String, Vec<String>) {
    let shown = |v: Option<f64>, unit: &str| v.map_or_else(String::new, |v| clean(&number::number(v, unit)));
    let word = |c: &Cost| {
        let word = match (&c.verdict, &c.peer) {
            (Some(Verdict::Faster), _) => "faster",
            (Some(Verdict::Slower), _) => "slower",
            (Some(Verdict::Same { .. }), _) => "same",
            (Some(Verdict::Inconclusive), _) => "undecided",
            (Some(Verdict::Refused), _) => "too few",
            (None, _) => "",
        };
        word.to_owned()
    };
    let rows: Vec<[String; 6]> = std::iter::once(
        ["What it costs here", "larder", "best", "peer here", "larder is", "floor"].map(str::to_owned),
    )
    .chain(all.iter().map(|c| {
        let (name, peer) = c.peer.as_ref().map_or((String::new(), None), |(n, v)| (clean(n), Some(*v)));
        let what = format!("  {}", clean(&c.what));
        [what, shown(c.larder, &c.unit), shown(peer, &c.unit), name, word(c), shown(c.floor, &c.unit)]
    }))
    .collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (w, cell) in widths.iter_mut().zip(row) {
            *w = (*w).max(wide(cell));
        }
    }
    widths[0] = widths[0].min(26);
    let mut gaps = [2, 2, 1, 2, 2, 0];
    let total = |w: &[usize; 6], g: &[usize; 6]| w.iter().sum::<usize>() + g.iter().sum::<usize>();
    for (column, least) in [(3, 9), (0, 18)] {
        let over = total(&widths, &gaps).saturating_sub(width);
        widths[column] = widths[column].saturating_sub(over).max(least.min(widths[column]));
    }
    let mut columns = 6;
    if total(&widths, &gaps) > width {
        (columns, widths[5], gaps[4]) = (5, 0, 0);
    }
    let line = |row: &[String; 6]| {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate().take(columns) {
            let cell = fit(cell, widths[i]);
            line += &match i {
                1 | 2 | 5 => right(&cell, widths[i]),
                _ => padded(&cell, widths[i]),
            };
            line += &" ".repeat(gaps[i]);
        }
        line.trim_end().to_owned()
    };
    let mut lines = rows.iter().map(line);
    let head = lines.next().unwrap_or_default();
    // The margin of the rows is added where they are printed.
    (head, lines.map(|l| l.trim_start().to_owned()).collect())
}

/// A machine in a few words: processor, CPUs, memory, kernel.
fn machine(m: &MachineRecord) -> String {
    let mut parts = vec![processor(m.text("cpu.model"))];
    match cpus(m.text("cpu.online")) {
        Some(1) => parts.push("1 CPU".to_owned()),
        Some(n) => parts.push(format!("{n} CPUs")),
        None => {}
    }
    let known = |name: &str| Some(m.text(name)).filter(|t| *t != "unknown");
    parts.extend(known("memory.total").map(str::to_owned));
    if let Some(release) = known("kernel.release") {
        let short: Vec<&str> = release.split(['.', '-']).take(2).collect();
        parts.push(format!("Linux {}", short.join(".")));
    }
    parts.join(", ")
}

/// A processor's name without marks and clock.
fn processor(model: &str) -> String {
    let name = model.split('@').next().unwrap_or_default();
    let name = name.replace("(R)", "").replace("(TM)", "");
    let kept = |w: &&str| !matches!(*w, "CPU" | "Processor") && !w.ends_with("-Core");
    name.split_whitespace().filter(kept).collect::<Vec<_>>().join(" ")
}

/// How many CPUs a list such as `0-3,8` names.
fn cpus(list: &str) -> Option<u64> {
    list.split(',')
        .map(|part| {
            let (a, b) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            let (a, b): (u64, u64) = (a.parse().ok()?, b.parse().ok()?);
            b.checked_sub(a)?.checked_add(1)
        })
        .sum()
}

#[cfg(test)]
mod tests;
