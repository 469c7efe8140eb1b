//! The report on a terminal: warnings, then sentences, goals and tables.

use std::io::{self, Write};

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, TableStyle, Width, presets,
};

use super::document::Document;
use super::style::Style;
use super::summary::Summary;
use super::text::{self, clean, wrap};
use super::value::{self, PUBLISHED_NOTE};
use super::{machines, spark};
use crate::model::{
    Analysis, Block, Chart, Finding, Goal, Recommendation, RunRecord, Table, Value,
};

/// ANSI styles that the report uses.
#[derive(Clone, Copy)]
enum Ink {
    Title,
    Head,
    Dim,
    Good,
    Bad,
    Warn,
}

fn ink(style: &Style, ink: Ink, text: &str) -> String {
    if !style.color || text.is_empty() {
        return text.to_owned();
    }
    let code = match ink {
        Ink::Title => "1",
        Ink::Head => "1;36",
        Ink::Dim => "2",
        Ink::Good => "32",
        Ink::Bad => "31",
        Ink::Warn => "33",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

fn word_ink(word: &str) -> Ink {
    match word {
        "faster" | "met" => Ink::Good,
        "slower" | "missed" => Ink::Bad,
        "same" => Ink::Dim,
        _ => Ink::Warn,
    }
}

/// Writes the summary for a terminal: one screen.
///
/// # Errors
/// Whatever the writer reports.
pub fn summary(summary: &Summary, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for line in summary.lines(style.width) {
        let heading = line.starts_with(|c: char| c.is_alphabetic());
        let line = if heading {
            ink(style, Ink::Head, &line)
        } else {
            line
        };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Writes the goals alone, by experiment.
///
/// # Errors
/// Whatever the writer reports.
pub fn goals(doc: &Document, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let with_goals = || doc.runs.iter().filter(|(_, a)| !a.goals.is_empty());
    if with_goals().next().is_none() {
        writeln!(out, "These runs have no goals.")?;
    }
    for (i, (run, a)) in with_goals().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        heading(&run.experiment, style, out)?;
        goal_table(&a.goals, style, out)?;
    }
    Ok(())
}

/// Writes the whole report for a terminal, the summary first. A closed pipe is the caller's to recognise (`ErrorKind::BrokenPipe`).
///
/// # Errors
/// Whatever the writer reports.
pub fn terminal(doc: &Document, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    if doc.runs.is_empty() {
        writeln!(
            out,
            "No runs to report: `larder measure` takes one, `larder report RUN` shows it."
        )?;
    }
    summary(&Summary::of(doc), style, out)?;
    for (run, analysis) in &doc.runs {
        writeln!(out)?;
        experiment(run, analysis, style, out)?;
    }
    if !doc.submissions.is_empty() {
        writeln!(out)?;
        heading("Machines", style, out)?;
        table(&machines::table(doc), style, out)?;
    }
    Ok(())
}

fn heading(title: &str, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", ink(style, Ink::Head, &clean(title)))
}

fn experiment(run: &RunRecord, a: &Analysis, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        ink(style, Ink::Title, &clean(text::title(run, a)))
    )?;
    let line = format!(
        "{} · {} · run {} · {} · {:.0} s · {}",
        run.experiment,
        run.depth,
        text::short_id(run),
        run.started,
        run.seconds,
        run.machine.text("cpu.model"),
    );
    writeln!(
        out,
        "{}",
        ink(style, Ink::Dim, &wrap(&clean(&line), "", "", style.width))
    )?;
    if run.depth == "quick" {
        let text = "Exploratory: a quick run, fewer rounds than a conclusion needs.";
        writeln!(out, "{}", ink(style, Ink::Warn, text))?;
    }
    if run.samples.is_empty() {
        let text = "No samples: nothing was measured. The list of skipped parts says why.";
        writeln!(out, "{}", ink(style, Ink::Warn, text))?;
    }
    if !a.floor.is_empty() {
        let text = wrap(&clean(&a.floor), "", "", style.width);
        writeln!(out, "{}", ink(style, Ink::Dim, &text))?;
    }
    let warnings = text::warnings(run, a);
    if !warnings.is_empty() {
        writeln!(out)?;
        heading("Warnings", style, out)?;
        for w in warnings {
            let text = wrap(&clean(w), "! ", "  ", style.width);
            writeln!(out, "{}", ink(style, Ink::Warn, &text))?;
        }
    }
    for finding in &a.findings {
        findings(std::slice::from_ref(finding), style, out)?;
        if let Some(numbers) = &finding.table {
            table(numbers, style, out)?;
        }
    }
    if !a.goals.is_empty() {
        writeln!(out)?;
        heading("Goals", style, out)?;
        goal_table(&a.goals, style, out)?;
    }
    for section in &a.sections {
        section_blocks(section, style, out)?;
    }
    recommendations(run, &a.recommendations, style, out)?;
    if !run.skipped.is_empty() {
        writeln!(out)?;
        heading("Skipped", style, out)?;
        for s in &run.skipped {
            let text = clean(&format!("{}: {}", s.what, s.why));
            writeln!(out, "{}", wrap(&text, "- ", "  ", style.width))?;
        }
    }
    Ok(())
}

/// Writes questions and answers for a terminal.
///
/// # Errors
/// Whatever the writer reports.
pub fn findings(findings: &[Finding], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for f in findings {
        writeln!(out)?;
        let question = if f.asked_by.is_empty() {
            f.question.clone()
        } else {
            format!("{} ({})", f.question, f.asked_by)
        };
        let question = wrap(&clean(&question), "", "", style.width);
        writeln!(out, "{}", ink(style, Ink::Dim, &question))?;
        let answer = wrap(&clean(&f.answer), "  ", "  ", style.width);
        writeln!(out, "{answer}")?;
        // A verdict without its subject ("faster") says nothing.
        if !f.reading.is_empty() {
            let colour = f
                .verdict
                .as_ref()
                .map_or(Ink::Dim, |v| word_ink(text::verdict_class(v)));
            let reading = wrap(&clean(&f.reading), "  > ", "    ", style.width);
            writeln!(out, "{}", ink(style, colour, &reading))?;
        }
    }
    Ok(())
}

fn goal_table(goals: &[Goal], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let rows = goals.iter().map(|g| {
        let measured = g.measured.map(|e| Value::Estimate(e, g.unit.clone()));
        vec![
            Value::Text(text::goal_state(g.state).to_owned()),
            Value::Text(g.what.clone()),
            Value::Text(g.against.clone()),
            Value::Text(g.bound.clone()),
            measured.unwrap_or_else(|| Value::Text("not measured".to_owned())),
            Value::Text(text::held(g)),
        ]
    });
    let columns = [
        "state",
        "what",
        "against",
        "goal",
        "measured",
        "memory, larder / peer",
    ];
    table(&Table::new("", &columns, rows), style, out)?;
    // One reason often holds for many goals: it stands once.
    let mut notes: Vec<(&str, String, usize)> = Vec::new();
    for g in goals.iter().filter(|g| !g.note.is_empty()) {
        match notes.iter_mut().find(|(note, ..)| *note == g.note) {
            Some((_, _, more)) => *more += 1,
            None => notes.push((
                &g.note,
                format!("{}, {}", g.what, text::goal_state(g.state)),
                0,
            )),
        }
    }
    for (note, first, more) in notes {
        let goals = match more {
            0 => first,
            n => format!("{first}, and {n} more"),
        };
        let line = clean(&format!("{goals}: {note}"));
        writeln!(out, "{}", wrap(&line, "  ", "    ", style.width))?;
    }
    Ok(())
}

fn section_blocks(
    section: &crate::model::Section,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown = |b: &&Block| match b {
        Block::Table(t) => !t.rows.is_empty(),
        Block::Chart(c) => !spark::lines(c, style.width).is_empty(),
        Block::Text(_) => true,
    };
    let long = |b: &&Block| matches!(b, Block::Table(t) if t.long);
    let blocks: Vec<&Block> = section.blocks.iter().filter(shown).collect();
    if blocks.iter().all(long) {
        return Ok(());
    }
    writeln!(out)?;
    heading(&section.title, style, out)?;
    for (i, block) in blocks.into_iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        match block {
            Block::Text(t) => writeln!(out, "{}", wrap(&clean(t), "", "", style.width))?,
            Block::Table(t) if t.long => {
                let text = format!("{}: {} rows, in the report", clean(&t.title), t.rows.len());
                writeln!(out, "{}", ink(style, Ink::Dim, &text))?;
            }
            Block::Table(t) => table(t, style, out)?,
            Block::Chart(c) => chart(c, style, out)?,
        }
    }
    Ok(())
}

fn chart(c: &Chart, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", clean(&c.title))?;
    for line in spark::lines(c, style.width) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn recommendations(
    run: &RunRecord,
    all: &[Recommendation],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    heading(text::settings_heading(run), style, out)?;
    for r in all {
        let line = clean(&format!("{} = {}", r.key, r.value));
        writeln!(out, "{}", ink(style, Ink::Good, &line))?;
        writeln!(out, "{}", wrap(&clean(&r.because), "  ", "  ", style.width))?;
    }
    Ok(())
}

/// A rule above, below the heading and below the rows: readable without vertical lines, also when narrow.
fn new_table(style: &Style) -> comfy_table::Table {
    let rules: TableStyle = presets::UTF8_HORIZONTAL_ONLY;
    let mut t = comfy_table::Table::new();
    t.load_style(rules)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(style.width).unwrap_or(u16::MAX));
    t.style_mut().row_separator = comfy_table::LineStyle::none();
    t
}

fn table(t: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    if !t.title.is_empty() {
        writeln!(out, "{}", clean(&t.title))?;
    }
    let widths: Vec<usize> = (0..t.columns.len()).map(|i| least_width(t, i)).collect();
    let fitting = fitting(&widths, style.width);
    if fitting < t.columns.len() && fitting * 2 < t.columns.len() + 1 {
        as_list(t, style, out)?;
        return below(t, style, out);
    }
    let mut shown = new_table(style);
    shown.set_header(t.columns.iter().take(fitting).map(|c| clean(c)));
    for row in &t.rows {
        shown.add_row(row.iter().take(fitting).map(text::value));
    }
    for (column, least) in shown.column_iter_mut().zip(&widths) {
        let least = u16::try_from(least + GAP).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
    for (i, column) in shown.column_iter_mut().enumerate() {
        let numbers = t.rows.iter().filter_map(|r| r.get(i));
        if numbers.clone().next().is_some() && numbers.clone().any(text::is_number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    print_table(&shown, style, out)?;
    if fitting < t.columns.len() {
        let left: Vec<String> = t.columns[fitting..].iter().map(|c| clean(c)).collect();
        let line = format!("columns left out: {}; the page has them", left.join(", "));
        let line = wrap(&line, "  ", "  ", style.width);
        writeln!(out, "{}", ink(style, Ink::Dim, &line))?;
    }
    below(t, style, out)
}

/// Blanks beside a cell.
const GAP: usize = 2;

/// The least width of a column in which no number and no word breaks.
fn least_width(t: &Table, column: usize) -> usize {
    let word = |text: &str| text.split_whitespace().map(text::wide).max().unwrap_or(0);
    let head = t.columns.get(column).map_or(0, |c| word(&clean(c)));
    t.rows
        .iter()
        .filter_map(|row| row.get(column))
        .map(|v| match text::is_number(v) {
            true => text::wide(&text::value(v)),
            false => word(&text::value(v)),
        })
        .fold(head, usize::max)
}

/// How many columns from the left fit whole.
fn fitting(widths: &[usize], room: usize) -> usize {
    let mut used = 0;
    widths
        .iter()
        .take_while(|w| {
            used += **w + GAP;
            used <= room
        })
        .count()
}

/// One block per row, for a table of which too little would be left.
fn as_list(t: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for row in &t.rows {
        for (i, (name, v)) in t.columns.iter().zip(row).enumerate() {
            let value = text::value(v);
            if i == 0 {
                writeln!(out, "{}", wrap(&value, "- ", "  ", style.width))?;
            } else if !value.is_empty() {
                let line = format!("{}: {value}", clean(name));
                writeln!(out, "{}", wrap(&line, "    ", "      ", style.width))?;
            }
        }
    }
    Ok(())
}

fn below(t: &Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    if value::has_published(t) {
        let note = wrap(PUBLISHED_NOTE, "  ", "  ", style.width);
        writeln!(out, "{}", ink(style, Ink::Dim, &note))?;
    }
    for note in &t.notes {
        let note = wrap(&clean(note), "  ", "  ", style.width);
        writeln!(out, "{}", ink(style, Ink::Dim, &note))?;
    }
    Ok(())
}

/// Prints the lines, with the words of verdicts and states in colour.
fn print_table(t: &comfy_table::Table, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for line in t.lines() {
        let mut line = line.trim_end().to_owned();
        if style.color {
            for word in ["faster", "slower", "inconclusive", "met", "missed", "open"] {
                if let Some(head) = line.strip_suffix(word)
                    && head.ends_with(' ')
                {
                    line = format!("{head}{}", ink(style, word_ink(word), word));
                    break;
                }
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
