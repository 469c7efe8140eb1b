//! dbench's loadfile (`client.txt`) as records.

use std::collections::HashMap;
use std::io::BufRead;

use super::super::{Kind, MOST_FILES, Record, block_of};

/// Why a loadfile could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadfileError {
    /// The line does not say what its operation needs.
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
        /// What the system said.
        source: std::io::Error,
    },
    /// More files than can be told apart, or a page beyond the last.
    #[error("dbench loadfile, line {line}: more than 2^24 files, or a page of more than 2^40")]
    TooLarge {
        /// Number of the line.
        line: u64,
    },
}

/// A page.
const PAGE: u64 = 4096;
/// A request that covers more is a mistake in the file, not a request.
const MOST_OF_A_REQUEST: u64 = 1 << 30;
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
/// use larder_lab::sim::{Kind, workload::Loadfile};
/// let text = "NTCreateX \"\\clients\\client1\\a\" 0x40 0x2 7 NT_STATUS_OK\n\
///             WriteX 7 0 8192 8192 NT_STATUS_OK\n\
///             Unlink \"\\clients\\client1\\A\" 0x6 NT_STATUS_OK\n";
/// let records: Vec<_> = Loadfile::new(text.as_bytes(), 0).collect::<Result<_, _>>()?;
/// let kinds: Vec<Kind> = records.iter().map(|record| record.kind).collect();
/// assert_eq!(kinds, [Kind::Write, Kind::Write, Kind::Remove, Kind::Remove]);
/// # Ok::<(), larder_lab::sim::workload::LoadfileError>(())
/// ```
#[derive(Debug)]
pub struct Loadfile<R> {
    input: R,
    line: u64,
    request: u32,
    next_file: u32,
    handles: HashMap<u64, String>,
    files: HashMap<String, File>,
    queue: std::collections::VecDeque<Record>,
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct File {
    number: u32,
    /// Pages up to the last that was written or read.
    pages: u64,
}

impl<R: BufRead> Loadfile<R> {
    /// Reads `input`; numbers of files begin with `first_file`.
    pub fn new(input: R, first_file: u32) -> Self {
        Self {
            input,
            line: 0,
            request: 0,
            next_file: first_file,
            handles: HashMap::new(),
            files: HashMap::new(),
            queue: std::collections::VecDeque::new(),
            ended: false,
        }
    }

    fn fault(&self, what: impl Into<String>) -> LoadfileError {
        LoadfileError::Line {
            line: self.line,
            what: what.into(),
        }
    }

    fn number(&self, word: Option<&str>, what: &str) -> Result<u64, LoadfileError> {
        let word = word.ok_or_else(|| self.fault(format!("{what} is missing")))?;
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        parsed.map_err(|_| self.fault(format!("{what} is {word:?}, which is no number")))
    }

    fn file(&mut self, name: &str) -> Result<&mut File, LoadfileError> {
        if !self.files.contains_key(name) {
            if self.next_file >= MOST_FILES {
                return Err(LoadfileError::TooLarge { line: self.line });
            }
            let file = File {
                number: self.next_file,
                pages: 0,
            };
            self.next_file += 1;
            self.files.insert(name.to_owned(), file);
        }
        let line = self.line;
        self.files
            .get_mut(name)
            .ok_or(LoadfileError::TooLarge { line })
    }

    fn transfer(&mut self, kind: Kind, words: &[&str]) -> Result<(), LoadfileError> {
        let handle = self.number(words.get(1).copied(), "the handle")?;
        let offset = self.number(words.get(2).copied(), "the offset")?;
        let length = self.number(words.get(3).copied(), "the length")?;
        let Some(name) = self.handles.get(&handle).cloned() else {
            return Ok(()); // opened before the file begins, as dbench has it
        };
        if length > MOST_OF_A_REQUEST {
            return Err(self.fault(format!("a request for {length} bytes")));
        }
        let end = offset
            .checked_add(length.max(1))
            .ok_or(LoadfileError::TooLarge { line: self.line })?;
        let (first, last) = (offset / PAGE, (end - 1) / PAGE);
        let line = self.line;
        let file = self.file(&name)?;
        file.pages = file.pages.max(last + 1);
        let number = file.number;
        for page in first..=last {
            let block = block_of(number, page).ok_or(LoadfileError::TooLarge { line })?;
            let from = offset.max(page * PAGE);
            let bytes = end.min((page + 1) * PAGE) - from;
            self.queue.push_back(Record {
                block,
                request: self.request,
                bytes: bytes as u32,
                file: number,
                kind,
                ..Record::default()
            });
        }
        self.request = self.request.wrapping_add(1);
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        if let Some(file) = self.files.remove(name) {
            for page in 0..file.pages {
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
    }

    fn name(&self, words: &[&str], at: usize) -> Result<String, LoadfileError> {
        let word = words
            .get(at)
            .ok_or_else(|| self.fault("the name is missing"))?;
        Ok(word.trim_matches('"').to_ascii_lowercase())
    }

    fn operation(&mut self, line: &str) -> Result<(), LoadfileError> {
        let words = words(line);
        let (Some(&operation), Some(&status)) = (words.first(), words.last()) else {
            return Ok(());
        };
        let known = [
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
        if !known.contains(&operation) {
            return Err(self.fault(format!("{operation:?} is no operation of dbench")));
        }
        if status != "NT_STATUS_OK" && status != "SUCCESS" {
            return Ok(());
        }
        match operation {
            "ReadX" => self.transfer(Kind::Read, &words)?,
            "WriteX" => self.transfer(Kind::Write, &words)?,
            "NTCreateX" => {
                let name = self.name(&words, 1)?;
                let disposition = self.number(words.get(3).copied(), "the disposition")?;
                let handle = self.number(words.get(4).copied(), "the handle")?;
                if EMPTIES.contains(&disposition) {
                    self.remove(&name);
                }
                self.handles.insert(handle, name);
            }
            "Unlink" => {
                let name = self.name(&words, 1)?;
                self.remove(&name);
            }
            "Rename" => {
                let (from, to) = (self.name(&words, 1)?, self.name(&words, 2)?);
                if let Some(file) = self.files.remove(&from) {
                    self.remove(&to);
                    self.files.insert(to, file);
                }
            }
            "Deltree" => {
                let below = self.name(&words, 1)? + "\\";
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
            if let Some(record) = self.queue.pop_front() {
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
                    if let Err(error) = self.operation(&line) {
                        self.ended = true;
                        return Some(Err(error));
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
