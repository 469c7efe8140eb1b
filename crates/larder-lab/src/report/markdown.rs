//! The report as Markdown, for mail and issues.

use std::fmt::Write as _;

use super::document::Document;
use super::summary::{Summary, WIDTH};
use super::text::{self, clean};
use super::{machines, number, value};
use crate::model::{Analysis, Block, Finding, RunRecord, Table};

/// One paragraph; writing to a String cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {
        let _ = writeln!($out, $($arg)*);
    };
}

/// Makes text inert: whatever Markdown or its HTML could take for a sign stands behind a backslash.
fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // Bare addresses and mentions become links and notifications on forges.
            '@' => out.push_str("@\u{200b}"),
            c => out.push(c),
        }
    }
    out.replace("://", ":\u{200b}//")
        .replace("www.", "www\u{200b}.")
}

/// Inert text that begins a line: what would make a list or a heading of it is escaped as well.
fn paragraph(text: &str) -> String {
    let text = inert(text.trim_start());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(digits) {
        Some(b'-' | b'+' | b'=' | b':') if digits == 0 => format!("\\{text}"),
        Some(b'.' | b')') if digits > 0 => format!("{}\\{}", &text[..digits], &text[digits..]),
        _ => text,
    }
}

/// Text in a code span, or plain and inert where it holds what a renderer that passes HTML on could take for a tag.
fn code(text: &str) -> String {
    let text = clean(text);
    if text.contains(['<', '>', '&', '|', '`']) {
        inert(&text)
    } else {
        format!("`{text}`")
    }
}

/// The report as Markdown.
///
/// ```
/// use larder_lab::report::{Document, markdown};
///
/// assert!(markdown(&Document::default()).starts_with("# larder report"));
/// ```
#[must_use]
pub fn markdown(doc: &Document) -> String {
    let mut out = String::from("# larder report\n");
    if doc.runs.is_empty() {
        out.push_str("\nNo runs to report.\n");
    }
    let summary = Summary::of(doc).lines(WIDTH);
    if !summary.is_empty() {
        // A block of code keeps its columns; no line of it can end the block.
        let lines: Vec<String> = summary.iter().map(|l| l.replace('`', "'")).collect();
        line!(out, "\n```text\n{}\n```", lines.join("\n"));
    }
    for (run, analysis) in &doc.runs {
        experiment(run, analysis, &mut out);
    }
    if !doc.submissions.is_empty() {
        out.push_str("\n## Machines\n");
        table(&machines::table(doc), &mut out);
    }
    out
}

fn experiment(run: &RunRecord, a: &Analysis, out: &mut String) {
    line!(out, "\n## {}\n", inert(text::title(run, a)));
    line!(
        out,
        "{}, {} run {}, {}, larder {}, {}",
        paragraph(run.machine.text("cpu.model")),
        inert(&run.depth),
        inert(&text::short_id(run)),
        inert(&run.started),
        inert(&run.version),
        if run.noise.noisy {
            "**noisy**"
        } else {
            "quiet enough"
        },
    );
    if run.samples.is_empty() {
        out.push_str("\n**No samples: nothing was measured.**\n");
    }
    if !a.floor.is_empty() {
        line!(out, "\n{}", inert(&a.floor));
    }
    let warnings = text::warnings(run, a);
    if !warnings.is_empty() {
        out.push_str("\n### Warnings\n\n");
        for w in warnings {
            line!(out, "- {}", inert(w));
        }
    }
    for f in &a.findings {
        finding(f, out);
        if let Some(numbers) = &f.table {
            table(numbers, out);
        }
    }
    goals(a, out);
    for section in &a.sections {
        line!(out, "\n### {}", inert(&section.title));
        for block in &section.blocks {
            match block {
                Block::Text(t) => {
                    line!(out, "\n{}", paragraph(t));
                }
                Block::Table(t) => table(t, out),
                Block::Chart(c) => table(&value::chart_table(c), out),
            }
        }
    }
    if !a.recommendations.is_empty() {
        line!(out, "\n### {}\n", text::settings_heading(run));
        for r in &a.recommendations {
            let setting = format!("{} = {}", r.key, r.value);
            line!(out, "- {}: {}", code(&setting), inert(&r.because));
        }
    }
    out.push_str("\n### To repeat it\n\n");
    line!(out, "{} (seed {})", code(&text::command(run)), run.seed);
    for g in &run.groups {
        line!(
            out,
            "- {}: {} rounds, stopped because {}",
            inert(&g.name),
            g.rounds,
            text::stopped(g.stopped)
        );
    }
    for s in &run.skipped {
        line!(out, "- skipped {}: {}", inert(&s.what), inert(&s.why));
    }
}

fn finding(f: &Finding, out: &mut String) {
    line!(out, "\n> {} ({})\n", inert(&f.question), inert(&f.asked_by));
    match &f.verdict {
        Some(v) => {
            line!(out, "**{}**: {}", number::verdict(v), inert(&f.answer));
        }
        None => {
            line!(out, "{}", paragraph(&f.answer));
        }
    }
}

fn goals(a: &Analysis, out: &mut String) {
    if a.goals.is_empty() {
        return;
    }
    out.push_str("\n### Goals\n\n| what | against | goal | measured | memory held, larder / peer | state | note |\n|---|---|---|---|---|---|---|\n");
    for g in &a.goals {
        line!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            inert(&g.what),
            inert(&g.against),
            inert(&g.bound),
            inert(&text::goal_measured(g)),
            text::held(g),
            text::goal_state(g.state),
            inert(&g.note)
        );
    }
}

fn table(t: &Table, out: &mut String) {
    line!(out, "\n{}\n", paragraph(&t.title));
    let names: Vec<String> = t.columns.iter().map(|c| inert(c)).collect();
    line!(out, "| {} |", names.join(" | "));
    let rules = (0..t.columns.len()).map(|i| {
        let numbers = t.rows.iter().filter_map(|r| r.get(i)).any(text::is_number);
        if numbers { "---:" } else { "---" }
    });
    line!(out, "|{}|", rules.collect::<Vec<_>>().join("|"));
    for row in &t.rows {
        let cells: Vec<String> = row.iter().map(|v| inert(&text::value(v))).collect();
        line!(out, "| {} |", cells.join(" | "));
    }
    if value::has_published(t) {
        line!(out, "\n{}", value::PUBLISHED_NOTE);
    }
    for note in &t.notes {
        line!(out, "\n{}", paragraph(note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_machine_says_becomes_markup() {
        let hostile = "<script>x</script>|`b`\n# h [x](http://y) <img> $m$ www.z *e*";
        for text in [inert(hostile), paragraph(hostile), code(hostile)] {
            assert!(!text.contains(['<', '>', '\n']), "{text}");
            for mark in ["|", "`", "#", "[", "]", "$", "*"] {
                let bare = text.replace(&format!("\\{mark}"), "");
                assert!(!bare.contains(mark), "{mark}: {text}");
            }
            assert!(!text.contains("://") && !text.contains("www."), "{text}");
        }
        assert_eq!(
            code("larder measure a --seed=1"),
            "`larder measure a --seed=1`"
        );
        for (text, made) in [
            ("- a", "\\- a"),
            ("  + a", "\\+ a"),
            ("===", "\\==="),
            ("12. a", "12\\. a"),
            ("3) a", "3\\) a"),
            ("12 a", "12 a"),
            ("a - b", "a - b"),
            ("", ""),
        ] {
            assert_eq!(paragraph(text), made);
        }
    }
}
