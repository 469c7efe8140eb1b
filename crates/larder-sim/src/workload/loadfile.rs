//! dbench's loadfile (`client.txt`) as records.

use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

use super::super::read::Ranges;
use super::super::sink::MOST_BLOCKS;
use super::super::{Kind, MOST_FILES, Record, block_of};

/// Why a loadfile could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadfileError {
    /// The line lacks what its operation needs.
    #[error(
        "dbench loadfile, line {line}: {what}; expected for instance `ReadX 9938 0 4096 4096 NT_STATUS_OK`"
    )]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// The file could not be read.
    #[error("dbench loadfile, after line {line}: {source}")]
    Read {
        /// Number of the last line that was read.
        line: u64,
        /// The system's message.
        source: std::io::Error,
    },
}

/// A page.
const PAGE: u64 = 4096;
/// What cannot be told apart.
const TOO_LARGE: &str = "more than 2^24 files, or a page of more than 2^40";
/// Dispositions of NTCreateX that empty a file that is there (FILE_SUPERSEDE, FILE_OVERWRITE, FILE_OVERWRITE_IF).
const EMPTIES: [u64; 3] = [0, 4, 5];

/// Reads a loadfile of dbench 3 or 4 line by line and yields the page touches of one client: `ReadX` and `WriteX` by page,
/// `Unlink`, `Deltree` and an overwriting `NTCreateX` as removals. A file keeps its pages when it is renamed, and one created
/// under an old name has new ones. Requests that did not succeed (a status other than `NT_STATUS_OK`) and operations without
/// pages (queries, closes, flushes, locks) are passed over; unknown operations are an error.
///
/// The whole file of dbench 4.0 has 654,379 touches.
///
/// ```
/// use larder_sim::{Kind, workload::Loadfile};
/// let text = "NTCreateX \"\\clients\\client1\\a\" 0x40 0x2 7 NT_STATUS_OK\n\
///             WriteX 7 0 8192 8192 NT_STATUS_OK\n\
///             Unlink \"\\clients\\client1\\A\" 0x6 NT_STATUS_OK\n";
/// let records: Vec<_> = Loadfile::new(text.as_bytes(), 0).collect::<Result<_, _>>()?;
/// let kinds: Vec<Kind> = records.iter().map(|record| record.kind).collect();
/// assert_eq!(kinds, [Kind::Write, Kind::Write, Kind::Remove, Kind::Remove]);
/// # Ok::<(), larder_sim::workload::LoadfileError>(())
/// ```
#[derive(Debug)]
pub struct Loadfile<R> {
    input: R,
    line: u64,
    operations: Operations,
    ended: bool,
}

impl<R: BufRead> Loadfile<R> {
    /// Reads `input`; numbers of files begin with `first_file`.
    pub fn new(input: R, first_file: u32) -> Self {
        Self {
            input,
            line: 0,
            operations: Operations::new(first_file, PAGE),
            ended: false,
        }
    }
}

/// Applies the lines of a loadfile to the files.
#[derive(Debug)]
pub(in super::super) struct Operations {
    /// Bytes of a page.
    page: u64,
    request: u32,
    next_file: u32,
    handles: HashMap<u64, String>,
    files: HashMap<String, File>,
    /// Records of the lines so far that have not been taken yet.
    pub(in super::super) queue: VecDeque<Record>,
}

#[derive(Debug, Default)]
struct File {
    number: u32,
    /// Pages that were written or read.
    pages: Ranges,
}

fn number(word: Option<&str>, what: &str) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("{what} is {word:?}, which is no number"))
}

fn name(words: &[&str], at: usize) -> Result<String, String> {
    let word = words.get(at).ok_or("the name is missing")?;
    Ok(word.trim_matches('"').to_ascii_lowercase())
}

impl Operations {
    pub(in super::super) fn new(first_file: u32, page: u64) -> Self {
        Self {
            page: page.max(1),
            request: 0,
            next_file: first_file,
            handles: HashMap::new(),
            files: HashMap::new(),
            queue: VecDeque::new(),
        }
    }

    fn file(&mut self, name: &str) -> Result<&mut File, String> {
        if !self.files.contains_key(name) {
            if self.next_file >= MOST_FILES {
                return Err(TOO_LARGE.to_owned());
            }
            let file = File {
                number: self.next_file,
                ..File::default()
            };
            self.next_file += 1;
            self.files.insert(name.to_owned(), file);
        }
        self.files.get_mut(name).ok_or_else(|| TOO_LARGE.to_owned())
    }

    fn transfer(&mut self, kind: Kind, words: &[&str]) -> Result<(), String> {
        let handle = number(words.get(1).copied(), "the handle")?;
        let offset = number(words.get(2).copied(), "the offset")?;
        let length = number(words.get(3).copied(), "the length")?;
        let Some(name) = self.handles.get(&handle).cloned() else {
            return Ok(()); // opened before the file begins, as dbench has it
        };
        let end = offset.checked_add(length.max(1)).ok_or(TOO_LARGE)?;
        let page_size = self.page;
        let (first, last) = (offset / page_size, (end - 1) / page_size);
        if last - first >= MOST_BLOCKS {
            return Err(format!(
                "a request for {length} bytes; more than {MOST_BLOCKS} pages of {page_size} bytes are taken for a mistake"
            ));
        }
        let file = self.file(&name)?;
        let number = file.number;
        // Both ends are checked before anything is kept.
        let base = block_of(number, first).ok_or(TOO_LARGE)?;
        block_of(number, last).ok_or(TOO_LARGE)?;
        file.pages.add(first, last + 1);
        for page in first..=last {
            let from = offset.max(page * page_size);
            let bytes = end.min((page + 1).saturating_mul(page_size)) - from;
            self.queue.push_back(Record {
                block: base + (page - first),
                request: self.request,
                bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                file: number,
                kind,
                ..Record::default()
            });
        }
        self.request = self.request.wrapping_add(1);
        Ok(())
    }

    /// The pages that were used are gone.
    fn remove(&mut self, name: &str) {
        let Some(mut file) = self.files.remove(name) else {
            return;
        };
        for page in file.pages.cut(0).into_iter().flat_map(|(a, b)| a..b) {
            if let Some(block) = block_of(file.number, page) {
                self.queue.push_back(Record {
                    block,
                    request: self.request,
                    file: file.number,
                    kind: Kind::Remove,
                    ..Record::default()
                });
            }
        }
        self.request = self.request.wrapping_add(1);
    }

    /// One line. An error is a sentence without the line's number.
    pub(in super::super) fn line(&mut self, line: &str) -> Result<(), String> {
        let words = words(line);
        let (Some(&operation), Some(&status)) = (words.first(), words.last()) else {
            return Ok(());
        };
        if !KNOWN.contains(&operation) {
            return Err(format!("{operation:?} is no operation of dbench"));
        }
        if status != "NT_STATUS_OK" && status != "SUCCESS" {
            return Ok(());
        }
        match operation {
            "ReadX" => self.transfer(Kind::Read, &words)?,
            "WriteX" => self.transfer(Kind::Write, &words)?,
            "NTCreateX" => {
                let name = name(&words, 1)?;
                let disposition = number(words.get(3).copied(), "the disposition")?;
                let handle = number(words.get(4).copied(), "the handle")?;
                if EMPTIES.contains(&disposition) {
                    self.remove(&name);
                }
                self.handles.insert(handle, name);
            }
            "Unlink" => {
                let name = name(&words, 1)?;
                self.remove(&name);
            }
            "Rename" => {
                let (from, to) = (name(&words, 1)?, name(&words, 2)?);
                if let Some(file) = self.files.remove(&from) {
                    self.remove(&to);
                    self.files.insert(to, file);
                }
            }
            "Deltree" => {
                let below = name(&words, 1)? + "\\";
                let mut gone: Vec<String> = self
                    .files
                    .keys()
                    .filter(|name| name.starts_with(&below))
                    .cloned()
                    .collect();
                gone.sort(); // the order of a hash table is no order
                gone.iter().for_each(|name| self.remove(name));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Operations of dbench 3 and 4.
const KNOWN: [&str; 18] = [
    "ReadX",
    "WriteX",
    "NTCreateX",
    "Unlink",
    "Rename",
    "Deltree",
    "Mkdir",
    "Rmdir",
    "Close",
    "Flush",
    "QUERY_PATH_INFORMATION",
    "QUERY_FILE_INFORMATION",
    "QUERY_FS_INFORMATION",
    "SET_FILE_INFORMATION",
    "FIND_FIRST",
    "LockX",
    "UnlockX",
    "Sleep",
];

/// Words of a line; a name in quotation marks is one, with them.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"').map_or(rest.len(), |at| at + 2),
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

impl<R: BufRead> Iterator for Loadfile<R> {
    type Item = Result<Record, LoadfileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.operations.queue.pop_front() {
                return Some(Ok(record));
            }
            if self.ended {
                return None;
            }
            let mut line = String::new();
            match self.input.read_line(&mut line) {
                Ok(0) => {
                    self.ended = true;
                    return None;
                }
                Ok(_) => {
                    self.line += 1;
                    if let Err(what) = self.operations.line(&line) {
                        self.ended = true;
                        let line = self.line;
                        return Some(Err(LoadfileError::Line { line, what }));
                    }
                }
                Err(source) => {
                    self.ended = true;
                    let line = self.line;
                    return Some(Err(LoadfileError::Read { line, source }));
                }
            }
        }
    }
}
