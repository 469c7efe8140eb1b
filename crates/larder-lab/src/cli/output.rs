//! Colours, width, files: everything between a finished text and the user.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::ops::Range;
use std::path::Path;

use comfy_table::{CellAlignment, LineStyle, Row, Table, presets};

use super::failure::{Failure, Outcome};
use super::global::{Color, Global};
use crate::report::Style;

/// How the terminal wants its text.
pub(super) fn style(global: &Global) -> Style {
    let terminal = io::stdout().is_terminal();
    Style {
        color: color(global.color, terminal, |name| std::env::var(name).ok()),
        width: width(terminal),
    }
}

/// `--color` wins; then CLICOLOR_FORCE, then NO_COLOR (both count when set and not empty, the first not when 0),
/// then whether it is a terminal that knows colours.
fn color(asked: Color, terminal: bool, env: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| env(name).is_some_and(|v| !v.is_empty());
    match asked {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if set("NO_COLOR") => false,
        Color::Auto if set("CLICOLOR_FORCE") && env("CLICOLOR_FORCE").as_deref() != Some("0") => {
            true
        }
        Color::Auto => terminal && env("TERM").as_deref() != Some("dumb"),
    }
}

fn width(terminal: bool) -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        terminal.then_some(usize::from(size.ws_col))
    };
    match columns.or_else(asked) {
        // Narrower than this no table can be read, and a terminal of width 0 is one that does not know.
        Some(w) if w >= 40 => w,
        Some(_) => 40,
        None => Style::plain().width,
    }
}

/// Writes a whole file or nothing: a reader never sees half a report, a full disk leaves the old one. Makes no directory.
pub(super) fn write_file(path: &Path, text: &str) -> Outcome {
    let fail = |e: io::Error| {
        Failure::io(format!(
            "{} cannot be written: {e}; name another place, or change the rights of its directory",
            path.display()
        ))
    };
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        // A device or a pipe, such as /dev/stdout: nothing to rename.
        return fs::write(path, text).map_err(fail);
    }
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    directory(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = dir.join(name);
    let written = fs::File::create(&part)
        .and_then(|mut f| f.write_all(text.as_bytes()).and_then(|()| f.sync_all()))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|e| {
        let _ = fs::remove_file(&part);
        fail(e)
    })
}

/// The directory that a file goes into is there: a mistyped one is not made.
pub(super) fn directory(path: &Path) -> Outcome {
    match path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) if matches!(fs::metadata(dir), Err(e) if e.kind() == io::ErrorKind::NotFound) => {
            Err(Failure::io(format!(
                "{} cannot be written: there is no directory {}; make it, or name another place",
                path.display(),
                dir.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Text that may come from another machine's file, without anything that a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Prints rows under their headings, from column `right` on with their ends aligned, `wide` columns at most.
pub(super) fn table(
    heads: impl Into<Row>,
    rows: Vec<Vec<String>>,
    right: Range<usize>,
    wide: Option<usize>,
    out: &mut dyn Write,
) -> Outcome {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    if let Some(width) = wide {
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    table.style_mut().row_separator = LineStyle::none();
    table.set_header(heads);
    table.add_rows(rows);
    for column in table.column_iter_mut().take(right.end).skip(right.start) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints a value as JSON with a line's end.
pub(super) fn print_json(out: &mut dyn Write, value: &serde_json::Value) -> Outcome {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// A hint on stderr, unless the user wants none.
pub(super) fn hint(global: &Global, text: &str) {
    if !global.quiet {
        // Stderr may be closed.
        let _ = writeln!(io::stderr(), "larder: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        }
    }

    #[test]
    fn colours_follow_flag_environment_and_terminal_in_this_order() {
        let no = with(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]);
        assert!(color(Color::Always, false, &no));
        assert!(!color(Color::Auto, true, &no));
        let force = with(&[("CLICOLOR_FORCE", "1")]);
        assert!(color(Color::Auto, false, &force));
        assert!(!color(Color::Never, true, &force));
        assert!(!color(Color::Auto, false, with(&[("CLICOLOR_FORCE", "0")])));
        assert!(color(Color::Auto, true, with(&[("NO_COLOR", "")])));
        assert!(!color(Color::Auto, true, with(&[("TERM", "dumb")])));
        assert!(!color(Color::Auto, false, with(&[])));
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/report.html");
        let Err(Failure::Because(_, why)) = write_file(&path, "one") else {
            panic!("a directory was made");
        };
        assert!(
            why.contains("there is no directory") && why.contains("/new;"),
            "{why}"
        );
        assert!(!dir.path().join("new").exists());
        fs::create_dir(dir.path().join("new")).unwrap();
        assert!(write_file(&path, "one").is_ok());
        assert!(write_file(&path, "two").is_ok());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(dir.path().join("new")).unwrap().count(), 1);
        let below_a_file = path.join("x");
        assert!(write_file(&below_a_file, "three").is_err());
        assert!(write_file(dir.path(), "four").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }
}
