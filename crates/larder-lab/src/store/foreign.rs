//! Checks of a run or a machine's row of another database before it is stored.
//!
//! The hash of a run names its content and proves nothing, so every value is checked that the reports rely on.

use std::collections::HashSet;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::calc::Submission;
use crate::model::{RunRecord, Sample};

/// Clocks of two machines may differ by so much.
const TOLERANCE: SignedDuration = SignedDuration::from_hours(24);
/// Longest run, seconds: three years.
const MOST_SECONDS: f64 = 1e8;
/// Largest measure: above every count of 64 bits.
const MOST: f64 = 1e21;
/// Largest load or percentage.
const MOST_NOISE: f64 = 1e6;
/// Contestants and metrics whose values are differences: noise makes the difference of two timings negative, and memory
/// may shrink.
const DIFFERENCES: [&str; 3] = ["step-zeroing", "growth_bytes", "growth_bytes_per_s"];

/// Checks a run. The error names the field, its value and what is expected.
pub(super) fn run(run: &RunRecord, now: Timestamp) -> Result<(), String> {
    started(&run.started, now)?;
    let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if run.experiment.is_empty() || run.experiment.len() > 64 || !run.experiment.chars().all(name) {
        return Err(format!(
            "'experiment' is '{}'; a name of at most 64 lower-case letters, digits and '-' is expected",
            shown(&run.experiment)
        ));
    }
    if !matches!(run.depth.as_str(), "quick" | "full") {
        return Err(format!(
            "'depth' is '{}'; quick or full is expected",
            shown(&run.depth)
        ));
    }
    within("seconds", run.seconds, MOST_SECONDS)?;
    let noise = &run.noise;
    for (name, value) in [
        ("noise.cpu_pressure_percent", noise.cpu_pressure_percent),
        (
            "noise.memory_pressure_percent",
            noise.memory_pressure_percent,
        ),
        ("noise.io_pressure_percent", noise.io_pressure_percent),
        ("noise.steal_percent", noise.steal_percent),
        ("noise.load[0]", noise.load.map(|l| l.0)),
        ("noise.load[1]", noise.load.map(|l| l.1)),
    ] {
        within(name, value.unwrap_or(0.0), MOST_NOISE)?;
    }
    let mut slots = HashSet::new();
    let mut cells = HashSet::new();
    for (n, s) in run.samples.iter().enumerate() {
        sample(n, s)?;
        if !slots.insert((&s.group, s.round, s.slot)) || !cells.insert((&s.group, s.round, &s.cell))
        {
            return Err(format!(
                "'samples[{n}]' is '{}' in slot {} of round {} of group '{}', which is there already; one sample of a cell in each round is expected",
                shown(&s.cell.to_string()),
                s.slot,
                s.round,
                shown(&s.group)
            ));
        }
    }
    Ok(())
}

fn sample(n: usize, sample: &Sample) -> Result<(), String> {
    within(
        &format!("samples[{n}].at_us"),
        sample.at_us as f64,
        MOST_SECONDS * 1e6,
    )?;
    for (metric, value) in &sample.measures.0 {
        let signed = [metric.as_str(), &sample.cell.contestant]
            .iter()
            .any(|name| DIFFERENCES.contains(name));
        let magnitude = if signed { value.abs() } else { *value };
        within(
            &format!("samples[{n}].measures.{}", shown(metric)),
            magnitude,
            MOST,
        )?;
    }
    Ok(())
}

fn within(field: &str, value: f64, most: f64) -> Result<(), String> {
    if (0.0..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!(
            "'{field}' is {value:?}; a number from 0 to {most:e} is expected"
        ))
    }
}

/// A start, exactly as the lab writes it: equal times have equal texts, and their order is that of time.
fn started(text: &str, now: Timestamp) -> Result<(), String> {
    const FORM: &str = "%Y-%m-%dT%H:%M:%SZ";
    let time = DateTime::strptime(FORM, text)
        .ok()
        .filter(|t| t.strftime(FORM).to_string() == text)
        .and_then(|t| t.to_zoned(TimeZone::UTC).ok())
        .map(|t| t.timestamp());
    past(
        "started",
        text,
        "a time in UTC as 2026-01-31T23:59:59Z",
        time,
        now,
    )
}

/// Checks a machine's row. Its timings were checked when they were read.
pub(super) fn submission(row: &Submission, now: Timestamp) -> Result<(), String> {
    const FORM: &str = "%Y-%m-%d";
    let time = Date::strptime(FORM, &row.date)
        .ok()
        .filter(|d| d.strftime(FORM).to_string() == row.date)
        .and_then(|d| d.to_zoned(TimeZone::UTC).ok())
        .map(|t| t.timestamp());
    past("date", &row.date, "a day as 2026-01-31", time, now)
}

fn past(
    field: &str,
    text: &str,
    form: &str,
    time: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), String> {
    match time {
        Some(time) if time.duration_since(now) <= TOLERANCE => Ok(()),
        Some(_) => Err(format!(
            "'{field}' is '{}', which is in the future; {form} and not after now ({now:.0}) is expected",
            shown(text)
        )),
        None => Err(format!(
            "'{field}' is '{}'; {form} is expected",
            shown(text)
        )),
    }
}

/// Text of another machine for a message: short, and inert in a terminal.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}
