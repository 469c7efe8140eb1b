//! JSON lines: a line that says what the file is, then a line for each run or machine's row.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rows::{Fault, put, put_submission};
use super::{SCHEMA, Store, StoreError, foreign};
use crate::calc::Submission;
use crate::model::RunRecord;

const FORMAT: &str = "larder results";

/// A line of at most this many bytes is read: more is no run of the lab, and must not fill the memory.
const LONGEST_LINE: u64 = 1 << 30;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    schema: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Run(Box<RunRecord>),
    Submission(Submission),
}

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Runs that are new here.
    pub runs: usize,
    /// Machines' rows that are new here.
    pub submissions: usize,
    /// What was here already.
    pub known: usize,
}

/// Writes runs and rows as JSON lines.
///
/// # Errors
/// Those of the writer.
pub fn export(
    runs: impl IntoIterator<Item = RunRecord>,
    submissions: impl IntoIterator<Item = Submission>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let header = Header {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
    };
    let mut line = |json: serde_json::Result<String>| writeln!(out, "{}", json?);
    line(serde_json::to_string(&header))?;
    for run in runs {
        line(serde_json::to_string(&Line::Run(Box::new(run))))?;
    }
    for submission in submissions {
        line(serde_json::to_string(&Line::Submission(submission)))?;
    }
    Ok(())
}

impl Store {
    /// Adds what a file holds, all of it or nothing; what is known already is counted and left alone.
    ///
    /// New runs are marked as imported: they are never the latest, and no settings come from them. A run that was
    /// taken here, exported and imported again is known, and stays an own one.
    ///
    /// # Errors
    /// A file that cannot be read or is no export, the first bad line with its number and field, and those of the
    /// database.
    pub fn import(&mut self, path: &Path) -> Result<Imported, StoreError> {
        let file = File::open(path).map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })?;
        self.import_from(BufReader::new(file), path)
    }

    /// Like [`import`](Self::import), from any reader; `path` is the name that errors show.
    ///
    /// # Errors
    /// The same.
    pub fn import_from(
        &mut self,
        mut reader: impl BufRead,
        path: &Path,
    ) -> Result<Imported, StoreError> {
        check_header(&mut reader, path)?;
        let now = jiff::Timestamp::now();
        self.transaction(|tx| {
            let mut imported = Imported::default();
            let mut number = 1;
            while let Some(text) = next_line(&mut reader, path)? {
                number += 1;
                let at = |why: String| StoreError::Line {
                    path: path.to_owned(),
                    line: number,
                    why,
                };
                if text.trim().is_empty() {
                    continue;
                }
                let line: Line = serde_json::from_str(&text)
                    .map_err(|e| at(format!("this is no run and no machine's row: {e}")))?;
                let (new, count) = match line {
                    Line::Run(run) => {
                        schema(run.schema)
                            .and_then(|()| foreign::run(&run, now))
                            .map_err(at)?;
                        (put(tx, &run, true), &mut imported.runs)
                    }
                    Line::Submission(row) => {
                        foreign::submission(&row, now).map_err(at)?;
                        (put_submission(tx, &row), &mut imported.submissions)
                    }
                };
                match new.map_err(|fault| match fault {
                    Fault::Record(why) => at(why).into(),
                    other => other,
                })? {
                    true => *count += 1,
                    false => imported.known += 1,
                }
            }
            Ok(imported)
        })
    }
}

fn check_header(reader: &mut impl BufRead, path: &Path) -> Result<(), StoreError> {
    let no = |why: String| StoreError::NotAnExport {
        path: path.to_owned(),
        why,
    };
    let text = next_line(reader, path)?.ok_or_else(|| no("it is empty".to_owned()))?;
    let header: Header = serde_json::from_str(&text)
        .ok()
        .filter(|h: &Header| h.format == FORMAT)
        .ok_or_else(|| no(format!("its first line does not say \"{FORMAT}\"")))?;
    schema(header.schema).map_err(no)
}

fn schema(found: u32) -> Result<(), String> {
    if found > SCHEMA {
        Err(format!(
            "it was written by a newer larder (schema {found}, this one knows up to {SCHEMA}); install that version"
        ))
    } else {
        Ok(())
    }
}

fn next_line(reader: &mut impl BufRead, path: &Path) -> Result<Option<String>, StoreError> {
    let mut bytes = Vec::new();
    let n = reader
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut bytes)
        .map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })?;
    // Bytes that are not text make invalid JSON, which is reported with the line's number.
    Ok((n > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}
