//! Text from the model made safe and ready for a terminal or Markdown.

use super::number;
use crate::model::{Analysis, Goal, GoalState, RunRecord, StopReason, Value};
use crate::stats::Verdict;

/// Whether a character steers instead of showing: control characters and marks of direction.
#[must_use]
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// Takes out what could steer a terminal or turn the direction of a line: such characters become a
/// replacement mark, line ends and tabs become blanks.
#[must_use]
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if steers(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The beginning of a text, with a mark where it was cut: between words, unless one word is most of it.
#[must_use]
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(most.saturating_sub(1)).collect();
    if let Some(end) = kept.rfind(' ').filter(|end| *end > most / 2) {
        kept.truncate(end);
    }
    kept.trim_end_matches([' ', ',', ';', ':']).to_owned() + "\u{2026}"
}

/// A number of things, each of which is `one`.
#[must_use]
pub(super) fn plural(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// What a run is about: its analysis's title, or the name of its experiment.
#[must_use]
pub(super) fn title<'a>(run: &'a RunRecord, analysis: &'a Analysis) -> &'a str {
    match analysis.title.as_str() {
        "" => &run.experiment,
        title => title,
    }
}

/// The beginning of a run's name, which is enough to find it by.
#[must_use]
pub(super) fn short_id(run: &RunRecord) -> String {
    run.id.chars().take(12).collect()
}

/// Columns that a text fills on a terminal.
#[must_use]
pub(super) fn wide(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// A table's cell as text.
#[must_use]
pub(super) fn value(v: &Value) -> String {
    match v {
        Value::Empty => String::new(),
        Value::Text(t) => clean(t),
        Value::Count(n) => number::count(*n),
        Value::Number(x, unit) => clean(&number::number(*x, unit)),
        Value::Estimate(e, unit) => clean(&number::estimate(e, unit)),
        Value::Ratio(e, v) => format!("{} {}", number::estimate(e, "x"), number::verdict(v)),
        Value::Published(x, unit) => clean(&number::published(*x, unit)),
    }
}

/// Whether a column of such cells reads better with its digits at the right edge.
#[must_use]
pub(super) fn is_number(v: &Value) -> bool {
    !matches!(v, Value::Text(_) | Value::Empty)
}

/// Why a group stopped, in words.
#[must_use]
pub(super) fn stopped(s: StopReason) -> &'static str {
    match s {
        StopReason::Precise => "every interval is as narrow as was asked",
        StopReason::Rounds => "the planned number of rounds was reached",
        StopReason::NoiseSteady => "more rounds no longer narrowed the interval",
        StopReason::TimeCap => "the time cap was reached",
        StopReason::Interrupted => "interrupted; finished rounds are kept",
        StopReason::NothingToRun => "nothing of it could run here",
    }
}

/// A goal's state as a word.
#[must_use]
pub(super) fn goal_state(s: GoalState) -> &'static str {
    match s {
        GoalState::Met => "met",
        GoalState::Missed => "missed",
        GoalState::Open => "open",
        GoalState::Skipped => "skipped",
    }
}

/// Heading of the settings of a run: a noisy one writes none.
#[must_use]
pub(super) fn settings_heading(run: &RunRecord) -> &'static str {
    match run.noise_reason() {
        None => "Settings that this run supports",
        Some(_) => "Settings, not written: the run was noisy",
    }
}

/// Memory held, larder's beside the peer's.
#[must_use]
pub(super) fn held(goal: &Goal) -> String {
    goal.held_bytes.map_or_else(String::new, |(larder, peer)| {
        format!(
            "{} / {}",
            number::number(larder, "B"),
            number::number(peer, "B")
        )
    })
}

/// What was measured for a goal.
#[must_use]
pub(super) fn goal_measured(goal: &Goal) -> String {
    goal.measured.as_ref().map_or_else(
        || "not measured".to_owned(),
        |e| number::estimate(e, &goal.unit),
    )
}

/// A verdict's class: one word without its number.
#[must_use]
pub(super) fn verdict_class(v: &Verdict) -> &'static str {
    match v {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same { .. } => "same",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Refused | Verdict::Noisy => "refused",
    }
}

/// The command that repeats a run, quoted for a shell.
#[must_use]
pub(super) fn command(run: &RunRecord) -> String {
    let plain = |a: &str| {
        !a.is_empty()
            && a.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c))
    };
    run.argv
        .iter()
        .map(|a| {
            if plain(a) {
                a.clone()
            } else {
                format!("'{}'", clean(a).replace('\'', "'\\''"))
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The warnings of a run: those of the analysis, then those of the noise watch that it does not repeat.
#[must_use]
pub(super) fn warnings<'a>(run: &'a RunRecord, analysis: &'a Analysis) -> Vec<&'a str> {
    let mut all: Vec<&str> = analysis.warnings.iter().map(String::as_str).collect();
    for w in &run.noise.warnings {
        if !all.contains(&w.as_str()) {
            all.push(w);
        }
    }
    all
}

/// Breaks a paragraph into lines of at most `width` characters, the first and the others behind a margin.
#[must_use]
pub(super) fn wrap(text: &str, first: &str, rest: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        let long = wide(&line) + 1 + wide(word) > width.max(20);
        if !empty && long {
            out.push_str(line.trim_end());
            out.push('\n');
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out + line.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_characters_are_taken_out() {
        assert_eq!(
            clean("a\u{1b}[31mb\nc\u{202e}d\u{7}"),
            "a\u{fffd}[31mb c\u{fffd}d\u{fffd}"
        );
    }

    #[test]
    fn paragraphs_break_at_blanks() {
        let text = wrap("one two three four five six", "- ", "  ", 20);
        assert_eq!(text, "- one two three four\n  five six");
        let text = wrap("averyveryverylongwordindeed x", "", "", 20);
        assert_eq!(text, "averyveryverylongwordindeed\nx");
    }
}
