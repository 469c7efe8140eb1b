//! dbench's loadfile (`client.txt`), of dbench 3 or 4: the page touches of one client.
//!
//! `ReadX` and `WriteX` are uses by page, `Unlink`, `Deltree` and an overwriting `NTCreateX` are removals. A file keeps its pages
//! when it is renamed, and one created under an old name has new ones. Requests that did not succeed (a status other than
//! `NT_STATUS_OK`) and operations without pages (queries, flushes, locks) are passed over; unknown operations are an error.
//! The whole file of dbench 4.0 has 654,379 touches.

use std::collections::HashMap;

use super::super::options::ReadOptions;
use super::super::record::{Kind, MOST_FILES, Record, block_of};
use super::super::sink::{MOST_BLOCKS, Sink};
use super::lines::LineParser;
use super::names::{Kept, Names};
use super::ranges::Ranges;

/// What has no number of its own.
const TOO_LARGE: &str = "more than 2^24 files, or a page of more than 2^40";
/// Dispositions of NTCreateX that empty a file that is there (FILE_SUPERSEDE, FILE_OVERWRITE, FILE_OVERWRITE_IF).
const EMPTIES: [u64; 3] = [0, 4, 5];

/// The client's files.
#[derive(Debug)]
pub(super) struct Dbench {
    /// Bytes of a page.
    page: u64,
    request: u32,
    next_file: u32,
    names: Names,
    /// By handle that is open: the number of the name.
    handles: HashMap<u64, Kept<u32>>,
    /// The files that are there, by the numbers of their names.
    files: HashMap<u32, File>,
}

#[derive(Debug)]
struct File {
    number: u32,
    /// Pages that were written or read.
    pages: Kept<Ranges>,
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

impl Dbench {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            page: u64::from(options.block_size.max(1)),
            request: 0,
            next_file: 0,
            names: Names::within(options.max_memory),
            handles: HashMap::new(),
            files: HashMap::new(),
        }
    }

    fn file(&mut self, name: u32) -> Result<&mut File, String> {
        if !self.files.contains_key(&name) {
            if self.next_file >= MOST_FILES {
                return Err(TOO_LARGE.to_owned());
            }
            let file = File {
                number: self.next_file,
                pages: self.names.keep(Ranges::default(), 0)?,
            };
            self.next_file += 1;
            self.files.insert(name, file);
        }
        self.files
            .get_mut(&name)
            .ok_or_else(|| TOO_LARGE.to_owned())
    }

    fn transfer(&mut self, kind: Kind, words: &[&str], sink: &mut Sink) -> Result<(), String> {
        let handle = number(words.get(1).copied(), "the handle")?;
        let offset = number(words.get(2).copied(), "the offset")?;
        let length = number(words.get(3).copied(), "the length")?;
        let Some(name) = self.handles.get(&handle).map(|name| **name) else {
            return Ok(()); // opened before the file begins, as dbench has it, or closed
        };
        let end = offset.checked_add(length.max(1)).ok_or(TOO_LARGE)?;
        let page_size = self.page;
        let (first, last) = (offset / page_size, (end - 1) / page_size);
        if last - first >= MOST_BLOCKS {
            return Err(format!(
                "a request for {length} bytes; more than {MOST_BLOCKS} pages of {page_size} bytes are taken for a mistake"
            ));
        }
        let file = self.file(name)?;
        let number = file.number;
        // Both ends are checked before anything is kept.
        let base = block_of(number, first).ok_or(TOO_LARGE)?;
        block_of(number, last).ok_or(TOO_LARGE)?;
        file.pages.add(first, last + 1);
        file.pages.count();
        self.names.check()?;
        for page in first..=last {
            let from = offset.max(page * page_size);
            let bytes = end.min((page + 1).saturating_mul(page_size)) - from;
            sink.records.push(Record {
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
    fn remove(&mut self, name: u32, sink: &mut Sink) {
        let Some(mut file) = self.files.remove(&name) else {
            return;
        };
        for page in file.pages.cut(0).into_iter().flat_map(|(a, b)| a..b) {
            if let Some(block) = block_of(file.number, page) {
                sink.records.push(Record {
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

    fn operation(&mut self, line: &str, sink: &mut Sink) -> Result<(), String> {
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
            "ReadX" => self.transfer(Kind::Read, &words, sink)?,
            "WriteX" => self.transfer(Kind::Write, &words, sink)?,
            "NTCreateX" => {
                let name = name(&words, 1)?;
                let disposition = number(words.get(3).copied(), "the disposition")?;
                let handle = number(words.get(4).copied(), "the handle")?;
                let name = self.names.number(name.as_bytes())?;
                if EMPTIES.contains(&disposition) {
                    self.remove(name, sink);
                }
                self.handles.insert(handle, self.names.keep(name, 0)?);
            }
            "Close" => {
                let handle = number(words.get(1).copied(), "the handle")?;
                self.handles.remove(&handle);
            }
            "Unlink" => {
                let name = name(&words, 1)?;
                if let Some(name) = self.names.known(name.as_bytes()) {
                    self.remove(name, sink);
                }
            }
            "Rename" => {
                let (from, to) = (name(&words, 1)?, name(&words, 2)?);
                let from = self.names.known(from.as_bytes());
                if let Some(file) = from.and_then(|from| self.files.remove(&from)) {
                    let to = self.names.number(to.as_bytes())?;
                    self.remove(to, sink);
                    self.files.insert(to, file);
                }
            }
            "Deltree" => {
                let below = name(&words, 1)? + "\\";
                for name in self.names.beginning(below.as_bytes()) {
                    self.remove(name, sink);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl LineParser for Dbench {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        let text = core::str::from_utf8(line)
            .map_err(|why| format!("is no text: byte {} is none of UTF-8", why.valid_up_to()))?;
        self.operation(text, sink)
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
