//! CSV: columns found by their headings or named by `--columns`.

use super::super::options::ReadOptions;
use super::super::record::{Kind, MOST_FILES, MOST_PAGES, block_of, tenant_of};
use super::super::sink::{About, Sink};
use super::LineParser;
use super::headings::{Columns, DELIMITERS, Role, unquoted};
use super::names::Names;
use super::number::{block, decimal, shown, trim, whole};

pub(crate) struct Csv {
    delimiter: u8,
    columns: Columns,
    widest: usize,
    header: bool,
    ids: Option<Names>,
    files: Names,
    tenants: Names,
    cells: Vec<(usize, usize)>,
    /// The file's name where several columns make it.
    file: Vec<u8>,
}

/// The delimiter of a table: the one in the first line. Where there are several, the most frequent one delimits data that
/// `--columns` explains; among headings that would be a guess.
fn delimiter(line: &[u8], headings: bool) -> Result<u8, String> {
    let mut counts = DELIMITERS.map(|d| (line.iter().filter(|b| **b == d).count(), d));
    counts.sort_by_key(|(count, _)| core::cmp::Reverse(*count));
    let [(most, best), (second, other), ..] = counts;
    if second == most && most > 0 || headings && second > 0 {
        return Err(format!(
            "{:?} and {:?} could both part the columns: say which with --delimiter",
            char::from(best),
            char::from(other)
        ));
    }
    Ok(if most == 0 { b',' } else { best })
}

impl Csv {
    pub(crate) fn new(head: &[u8], options: &ReadOptions) -> Result<Self, String> {
        let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
        let delimiter = match options.delimiter {
            Some(d) => {
                u8::try_from(d).map_err(|_| format!("the delimiter {d:?} is not one byte"))?
            }
            None => delimiter(first, options.columns.is_none())?,
        };
        let headings: Vec<String> = first
            .split(|b| *b == delimiter)
            .map(|h| String::from_utf8_lossy(unquoted(trim(h))).into_owned())
            .collect();
        let columns = match &options.columns {
            Some(asked) => Columns::asked(asked, &headings, options.text_ids)?,
            None => Columns::found(&headings)?,
        };
        let names = || Names::within(options.max_memory);
        Ok(Self {
            delimiter,
            widest: columns
                .places
                .iter()
                .flatten()
                .chain(&columns.file)
                .max()
                .map_or(0, |n| n + 1),
            header: columns.header,
            columns,
            ids: options.text_ids.then(names),
            files: names(),
            tenants: names(),
            cells: Vec::new(),
            file: Vec::new(),
        })
    }
}

fn kind(word: &[u8]) -> Result<Kind, String> {
    let lower = word.to_ascii_lowercase();
    Ok(match lower.as_slice() {
        b"r" | b"read" | b"get" | b"gets" | b"load" | b"" => Kind::Read,
        b"w" | b"write" | b"set" | b"put" | b"add" | b"store" | b"update" | b"replace" => {
            Kind::Write
        }
        b"readahead" | b"prefetch" => Kind::Readahead,
        b"d" | b"delete" | b"remove" | b"unlink" | b"trim" | b"discard" => Kind::Remove,
        b"dirty" => Kind::Dirty,
        b"clean" => Kind::Clean,
        b"held" => Kind::Held,
        b"tick" => Kind::Tick,
        _ => {
            return Err(format!(
                "the operation is '{}', which is neither reading nor writing",
                shown(word)
            ));
        }
    })
}

/// A time without the fraction of its unit: it is only kept, not simulated.
fn time(word: &[u8]) -> Result<u64, String> {
    let (digits, fraction) = match memchr::memchr(b'.', word) {
        Some(point) => (&word[..point], &word[point + 1..]),
        None => (word, &word[..0]),
    };
    let plain = fraction.iter().all(u8::is_ascii_digit);
    decimal(digits)
        .filter(|_| plain)
        .or_else(|| with_exponent(word))
        .ok_or_else(|| {
            format!(
                "the time is '{}', which is no number from 0 to 2^64 - 1",
                shown(word)
            )
        })
}

/// A number such as `1.7e+09`.
fn with_exponent(word: &[u8]) -> Option<u64> {
    memchr::memchr2(b'e', b'E', word)?;
    let number: f64 = core::str::from_utf8(word).ok()?.parse().ok()?;
    // As a float the bound is 2^64, the first number that does not fit.
    (0.0..u64::MAX as f64)
        .contains(&number)
        .then_some(number as u64)
}

impl LineParser for Csv {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if core::mem::take(&mut self.header) || trim(line).is_empty() {
            return Ok(());
        }
        self.cells.clear();
        let mut from = 0;
        for at in memchr::memchr_iter(self.delimiter, line).chain([line.len()]) {
            self.cells.push((from, at));
            from = at + 1;
            if self.cells.len() == self.widest {
                break;
            }
        }
        let Self {
            columns,
            cells,
            widest,
            ids,
            files,
            tenants,
            file,
            ..
        } = self;
        if cells.len() < *widest {
            return Err(format!("{} columns; {widest} are needed", cells.len()));
        }
        let at = |column: usize| {
            let (from, to) = cells[column];
            whole_cell(trim(&line[from..to]))
        };
        let cell = |role: Role| columns.of(role).map(at).transpose();
        let mut about = About::default();
        if let Some(word) = columns.time().map(at).transpose()? {
            about.time = time(word)?;
        }
        if let Some(op) = cell(Role::Op)? {
            about.kind = kind(op)?;
        }
        let number = |role, what| cell(role)?.map(|word| whole(word, what)).transpose();
        let request = number(Role::Request, "the request")?;
        let size = number(Role::Size, "the size")?;
        let block = match (cell(Role::Id)?, ids) {
            (Some(id), Some(names)) => Some(u64::from(names.number(id)?)),
            (Some(id), None) => Some(block(id)?),
            (None, _) => None,
        };
        if let Some(request) = request {
            // The number itself, wrapped: touches of one request may stand apart from each other.
            sink.number(request as u32);
        }
        about.file = match columns.file.as_slice() {
            [] => 0,
            [column] => files.number(at(*column)?)?,
            several => {
                file.clear();
                for column in several {
                    file.extend_from_slice(at(*column)?);
                    // In no cell.
                    file.push(self.delimiter);
                }
                files.number(file)?
            }
        };
        if let Some(tenant) = cell(Role::Tenant)? {
            about.tenant = tenant_of(u64::from(tenants.number(tenant)?));
        }
        if let Some(file) = number(Role::FileNumber, "the file's number")? {
            about.file = u32::try_from(file)
                .map_err(|_| format!("the file's number is {file}: too large"))?;
        }
        if let Some(tenant) = number(Role::TenantNumber, "the tenant's number")? {
            about.tenant = tenant_of(tenant);
        }
        let Some(block) = block else {
            let offset = match (cell(Role::Offset)?, cell(Role::Sector)?) {
                (Some(offset), _) => whole(offset, "the offset")?,
                (None, sector) => {
                    let sector = whole(sector.unwrap_or_default(), "the sector")?;
                    sector
                        .checked_mul(512)
                        .ok_or_else(|| format!("sector {sector} is beyond 64 bits of bytes"))?
                }
            };
            let size = size.ok_or("the size is missing")?;
            return sink.bytes(offset, size, about);
        };
        let block = if columns.file.is_empty() {
            block
        } else {
            // A number within a file: a page of it.
            block_of(about.file, block).ok_or_else(|| {
                format!(
                    "block {block} of file {}: {MOST_FILES} files of {MOST_PAGES} blocks can be told apart",
                    about.file
                )
            })?
        };
        sink.object(
            block,
            u32::try_from(size.unwrap_or(0)).unwrap_or(u32::MAX),
            about,
        );
        Ok(())
    }

    fn in_microseconds(&self) -> bool {
        self.columns.in_microseconds()
    }
}

/// A cell without its quotes.
#[inline]
fn whole_cell(cell: &[u8]) -> Result<&[u8], String> {
    if cell.first() != Some(&b'"') {
        return Ok(cell);
    }
    let inner = unquoted(cell);
    if inner.len() == cell.len() {
        return Err(format!(
            "the cell '{}' has a quote at its beginning and none at its end: larder reads no delimiters inside quotes",
            shown(cell)
        ));
    }
    Ok(inner)
}
