//! CSV: columns found by their headings or named by `--columns`.

use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::super::source::ReadOptions;
use super::LineParser;
use super::names::Names;
use super::number::{decimal, shown, trim, whole};

/// What a column can be, with the headings that say so.
const ROLES: [(Role, &[&str]); 9] = [
    (
        Role::Id,
        &[
            "id",
            "obj_id",
            "object",
            "object_id",
            "key",
            "block",
            "page",
        ],
    ),
    (Role::Offset, &["offset"]),
    (Role::Sector, &["sector"]),
    (Role::Size, &["size", "bytes", "length", "len", "obj_size"]),
    (Role::Op, &["op", "operation", "type", "kind"]),
    (Role::Time, &["time", "timestamp", "ts", "clock_time"]),
    (Role::File, &["file", "disk", "device", "volume", "inode"]),
    (Role::Tenant, &["tenant", "client", "pid", "host"]),
    (Role::Request, &["request", "request_id"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Id,
    Offset,
    Sector,
    Size,
    Op,
    Time,
    File,
    Tenant,
    Request,
}

pub(in super::super) struct Csv {
    delimiter: u8,
    /// By role: the column, from 0.
    places: [Option<usize>; 9],
    widest: usize,
    header: bool,
    ids: Option<Names>,
    files: Names,
    tenants: Names,
    request: Option<u64>,
    cells: Vec<(usize, usize)>,
}

/// The delimiter that parts a line most often.
fn delimiter(line: &[u8]) -> u8 {
    let count = |d: u8| line.iter().filter(|b| **b == d).count();
    let mut best = (b',', count(b','));
    for d in *b";\t|" {
        if count(d) > best.1 {
            best = (d, count(d));
        }
    }
    best.0
}

fn role(heading: &str) -> Option<usize> {
    let heading = heading.to_ascii_lowercase();
    ROLES
        .iter()
        .position(|(_, names)| names.contains(&heading.as_str()))
}

impl Csv {
    pub(in super::super) fn new(head: &[u8], options: &ReadOptions) -> Result<Self, String> {
        let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
        let delimiter = match options.delimiter {
            Some(d) => {
                u8::try_from(d).map_err(|_| format!("the delimiter {d:?} is not one byte"))?
            }
            None => delimiter(first),
        };
        let headings: Vec<String> = first
            .split(|b| *b == delimiter)
            .map(|h| String::from_utf8_lossy(unquoted(trim(h))).into_owned())
            .collect();
        let mut csv = Self {
            delimiter,
            places: [None; 9],
            widest: 0,
            header: false,
            ids: options.text_ids.then(Names::default),
            files: Names::default(),
            tenants: Names::default(),
            request: None,
            cells: Vec::new(),
        };
        match &options.columns {
            Some(columns) => csv.asked(columns, &headings)?,
            None => csv.found(&headings)?,
        }
        let has = |role: Role| csv.places[role as usize].is_some();
        if !has(Role::Id) && !has(Role::Offset) && !has(Role::Sector) {
            return Err("no column says which block: name one as id, offset (bytes) or sector (512 bytes) with --columns, for instance --columns time=1,id=2,size=3".to_owned());
        }
        if has(Role::Id) && (has(Role::Offset) || has(Role::Sector))
            || has(Role::Offset) && has(Role::Sector)
        {
            return Err(
                "several columns say which block (id, offset, sector): choose with --columns"
                    .to_owned(),
            );
        }
        csv.widest = csv.places.iter().flatten().max().map_or(0, |n| n + 1);
        Ok(csv)
    }

    /// Columns as the user names them.
    fn asked(&mut self, columns: &str, headings: &[String]) -> Result<(), String> {
        for pair in columns.split(',') {
            let why = || format!("'{pair}' in --columns is not NAME=NUMBER or NAME=HEADING");
            let (name, place) = pair.split_once('=').ok_or_else(why)?;
            let role = role(name.trim()).ok_or_else(|| {
                format!("'{name}' in --columns is no column that is known; there are id, offset, sector, size, op, time, file, tenant, request")
            })?;
            let place = place.trim();
            let at = match place.parse::<usize>() {
                Ok(0) => return Err(format!("'{pair}' in --columns: columns are counted from 1")),
                Ok(n) => n - 1,
                Err(_) => {
                    self.header = true;
                    headings
                        .iter()
                        .position(|h| h.eq_ignore_ascii_case(place))
                        .ok_or_else(|| {
                            format!(
                                "no column is headed '{place}'; there are {}",
                                headings.join(", ")
                            )
                        })?
                }
            };
            if self.places[role].replace(at).is_some() {
                return Err(format!("'{name}' is twice in --columns"));
            }
        }
        // A first line whose block is no number is a heading, unless blocks are texts.
        let block = [Role::Id, Role::Offset, Role::Sector]
            .iter()
            .find_map(|r| self.places[*r as usize]);
        if let (Some(at), None) = (block, &self.ids) {
            let cell = headings.get(at).map_or("", String::as_str);
            let letters = cell.starts_with(|c: char| c.is_ascii_alphabetic());
            self.header |= letters;
        }
        Ok(())
    }

    /// Columns by their headings.
    fn found(&mut self, headings: &[String]) -> Result<(), String> {
        for (at, heading) in headings.iter().enumerate() {
            if let Some(role) = role(heading)
                && self.places[role].replace(at).is_some()
            {
                return Err(format!(
                    "two columns are headed like '{heading}': choose with --columns"
                ));
            }
        }
        self.header = true;
        Ok(())
    }
}

fn unquoted(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"\"")
        .and_then(|c| c.strip_suffix(b"\""))
        .unwrap_or(cell)
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
        _ => {
            return Err(format!(
                "the operation is '{}', which is neither reading nor writing",
                shown(word)
            ));
        }
    })
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
        if self.cells.len() < self.widest {
            return Err(format!(
                "{} columns; {} are needed",
                self.cells.len(),
                self.widest
            ));
        }
        let cell = |role: Role| {
            let (from, to) = self.cells[self.places[role as usize]?];
            Some(unquoted(trim(&line[from..to])))
        };
        let mut about = About::default();
        if let Some(time) = cell(Role::Time) {
            // Fractions of the unit are cut off: time is only kept, not simulated.
            let digits = time.split(|b| *b == b'.').next().unwrap_or_default();
            about.time = decimal(digits).ok_or_else(|| format!("the time is '{}'", shown(time)))?;
        }
        if let Some(op) = cell(Role::Op) {
            about.kind = kind(op)?;
        }
        let request = cell(Role::Request)
            .map(|n| whole(n, "the request"))
            .transpose()?;
        let size = cell(Role::Size)
            .map(|size| whole(size, "the size"))
            .transpose()?;
        let file = cell(Role::File).map(<[u8]>::to_vec);
        let tenant = cell(Role::Tenant).map(<[u8]>::to_vec);
        let block = match (cell(Role::Id), &mut self.ids) {
            (Some(id), Some(names)) => Some(u64::from(names.number(id)?)),
            (Some(id), None) => Some(whole(id, "the block")?),
            (None, _) => None,
        };
        let cell = |role: Role| {
            let (from, to) = self.cells[self.places[role as usize]?];
            Some(unquoted(trim(&line[from..to])))
        };
        if request.is_some() && request == self.request {
            sink.again();
        }
        self.request = request;
        if let Some(file) = file {
            about.file = self.files.number(&file)?;
        }
        if let Some(tenant) = tenant {
            about.tenant = u16::try_from(self.tenants.number(&tenant)?).unwrap_or(u16::MAX);
        }
        let Some(block) = block else {
            let offset = match (cell(Role::Offset), cell(Role::Sector)) {
                (Some(offset), _) => whole(offset, "the offset")?,
                (None, sector) => {
                    let sector = whole(sector.unwrap_or_default(), "the sector")?;
                    sector
                        .checked_mul(512)
                        .ok_or_else(|| format!("sector {sector} is beyond 64 bits of bytes"))?
                }
            };
            return sink.bytes(offset, size.unwrap_or(1), about);
        };
        if self.places[Role::File as usize].is_none() {
            sink.object(
                block,
                u32::try_from(size.unwrap_or(0)).unwrap_or(u32::MAX),
                about,
            );
            return Ok(());
        }
        // A number within a file: a page of it.
        let Some(page) = super::super::block_of(about.file, block) else {
            return Err(format!(
                "block {block} of file {} is too large to be told apart",
                about.file
            ));
        };
        sink.object(
            page,
            u32::try_from(size.unwrap_or(0)).unwrap_or(u32::MAX),
            about,
        );
        Ok(())
    }
}
