//! What the columns of a CSV are, by their headings or by `--columns`.

use super::number::{shown, trim};

/// Possible delimiters of columns.
pub(super) const DELIMITERS: [u8; 4] = *b",;\t|";

/// What a column can be, with the headings that say so. `host` is none of them: disks of two hosts may have one number.
const ROLES: [(Role, &[&str]); 12] = [
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
    (Role::Tenant, &["tenant", "client", "pid"]),
    (Role::Request, &["request", "request_id"]),
    (Role::FileNumber, &["file_number"]),
    (Role::TenantNumber, &["tenant_number"]),
    (Role::TimeMicroseconds, &["time_us"]),
];

/// Headings of a size where no column is headed like one in [`ROLES`]; else they are passed over.
const OTHER_SIZES: [&str; 4] = ["size_bytes", "length_bytes", "request_size", "req_size"];

/// Headings of columns that never name a block, so that they are left out silently.
const PASSED_OVER: &str = " date datetime day hour weekday start_time end_time finish arrival issue complete completion \
 latency lat response response_time service_time duration elapsed delay wait \
 key_size keysize value_size val_size valsize object_size req_size request_size resp_size response_size \
 ttl expiry expiration status result ret errno error hit miss cache_status flags priority prio \
 queue_depth qd cpu core process thread comm command user_agent content_type mime method \
 next_access_vtime next_access next_vtime next vtime frequency freq cost seq sequence comment ";

/// Units at the end of a heading.
const UNITS: [&str; 10] = [
    "_us", "_ms", "_ns", "_s", "_sec", "_seconds", "_usec", "_msec", "_nsec", "_bytes",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Id,
    Offset,
    Sector,
    Size,
    Op,
    Time,
    File,
    Tenant,
    Request,
    /// A number that is kept as it is. A block's `id` is whole without it; an `offset` is within it.
    FileNumber,
    /// The same for a tenant.
    TenantNumber,
    /// A time whose unit is said.
    TimeMicroseconds,
}

const BLOCKS: [Role; 3] = [Role::Id, Role::Offset, Role::Sector];

/// The role of each column.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// By role: the column, from 0. A file may be named by several columns; this is its first.
    pub(super) places: [Option<usize>; 12],
    /// The columns that name the file together.
    pub(super) file: Vec<usize>,
    /// The first line is no data.
    pub(super) header: bool,
}

fn role(heading: &str) -> Option<Role> {
    let heading = heading.to_ascii_lowercase();
    ROLES
        .iter()
        .find(|(_, names)| names.contains(&heading.as_str()))
        .map(|(role, _)| *role)
}

/// Whether a column of this heading cannot be a part of the block's name. An empty one is a table's row number.
fn passed_over(heading: &str) -> bool {
    let mut plain = heading.to_ascii_lowercase().replace([' ', '-'], "_");
    plain.truncate(plain.find(['(', '[']).unwrap_or(plain.len()));
    let plain = plain.trim_matches('_');
    let bare = UNITS
        .iter()
        .find_map(|unit| plain.strip_suffix(unit))
        .unwrap_or(plain);
    plain.is_empty()
        || [plain, bare].iter().any(|word| {
            PASSED_OVER.contains(&format!(" {word} "))
                || matches!(role(word), Some(Role::Size | Role::Op | Role::Time))
        })
}

/// Whether a first line names a block's column, with any delimiter.
pub(crate) fn names_a_block(first: &[u8]) -> bool {
    first.split(|b| DELIMITERS.contains(b)).any(|cell| {
        core::str::from_utf8(unquoted(trim(cell)))
            .is_ok_and(|cell| role(cell).is_some_and(|role| BLOCKS.contains(&role)))
    })
}

/// Headings for a message, and a mark where there are more.
fn quoted<'h>(headings: impl ExactSizeIterator<Item = &'h String>, most: usize) -> String {
    let more = if headings.len() > most { ", …" } else { "" };
    let named: Vec<_> = headings
        .take(most)
        .map(|heading| format!("'{}'", shown(heading.as_bytes())))
        .collect();
    named.join(", ") + more
}

pub(super) fn unquoted(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"\"")
        .and_then(|c| c.strip_suffix(b"\""))
        .unwrap_or(cell)
}

impl Columns {
    #[inline]
    pub(super) fn of(&self, role: Role) -> Option<usize> {
        self.places[role as usize]
    }

    /// The column of the time: one of a unit that is not known where there are both.
    pub(super) fn time(&self) -> Option<usize> {
        self.of(Role::Time).or(self.of(Role::TimeMicroseconds))
    }

    pub(super) fn in_microseconds(&self) -> bool {
        self.of(Role::Time).is_none() && self.of(Role::TimeMicroseconds).is_some()
    }

    /// Gives a column the role that its heading says.
    fn set_role(&mut self, role: Role, at: usize, heading: &str) -> Result<(), String> {
        match self.places[role as usize].replace(at) {
            Some(_) => Err(format!(
                "two columns are headed like '{}': choose with --columns",
                shown(heading.as_bytes())
            )),
            None => Ok(()),
        }
    }

    /// Columns by their headings. A column that is not understood is an error, not a guess: it could distinguish blocks.
    pub(super) fn found(headings: &[String]) -> Result<Self, String> {
        let mut columns = Self {
            header: true,
            ..Self::default()
        };
        let mut unknown = Vec::new();
        for (at, heading) in headings.iter().enumerate() {
            match role(heading) {
                Some(role) => columns.set_role(role, at, heading)?,
                None if passed_over(heading) => {}
                None => unknown.push(at),
            }
        }
        if columns.of(Role::Size).is_none() {
            for (at, heading) in headings.iter().enumerate() {
                if OTHER_SIZES.contains(&heading.to_ascii_lowercase().as_str()) {
                    columns.set_role(Role::Size, at, heading)?;
                }
            }
        }
        columns.file.extend(columns.of(Role::File));
        columns.one_block()?;
        columns.with_size(headings)?;
        if unknown.is_empty() {
            Ok(columns)
        } else {
            Err(columns.unclear(headings, &unknown))
        }
    }

    /// Columns as the user names them; the others are ignored silently.
    pub(super) fn asked(text: &str, headings: &[String], text_ids: bool) -> Result<Self, String> {
        let mut columns = Self::default();
        for pair in text.split(',') {
            let why = || format!("'{pair}' in --columns is not NAME=NUMBER or NAME=HEADING");
            let (name, place) = pair.split_once('=').ok_or_else(why)?;
            let role = role(name.trim()).ok_or_else(|| {
                format!("'{name}' in --columns is no column that is known; there are id, offset, sector, size, op, time, time_us, file, tenant, request, file_number, tenant_number")
            })?;
            let at = match role {
                Role::File => {
                    for part in place.split('+') {
                        let at = columns.place(part, pair, headings)?;
                        columns.file.push(at);
                    }
                    columns.file[0]
                }
                _ => columns.place(place, pair, headings)?,
            };
            if columns.places[role as usize].replace(at).is_some() {
                return Err(format!("'{name}' is twice in --columns"));
            }
        }
        columns.one_block()?;
        columns.with_size(headings)?;
        // A first line whose block is no number is a heading, unless blocks are texts.
        let block = BLOCKS.iter().find_map(|role| columns.of(*role));
        if let (Some(at), false) = (block, text_ids) {
            let cell = headings.get(at).map_or("", String::as_str);
            columns.header |= cell.starts_with(|c: char| c.is_ascii_alphabetic());
        }
        Ok(columns)
    }

    /// A column by its number from 1 or its heading.
    fn place(&mut self, place: &str, pair: &str, headings: &[String]) -> Result<usize, String> {
        let place = place.trim();
        match place.parse::<usize>() {
            Ok(0) => Err(format!("'{pair}' in --columns: columns are counted from 1")),
            Ok(n) => Ok(n - 1),
            Err(_) => {
                self.header = true;
                headings
                    .iter()
                    .position(|h| h.eq_ignore_ascii_case(place))
                    .ok_or_else(|| {
                        format!(
                            "no column is headed '{place}'; there are {}",
                            shown(headings.join(", ").as_bytes())
                        )
                    })
            }
        }
    }

    /// Exactly one column names the block, and at most one the file and the tenant.
    fn one_block(&self) -> Result<(), String> {
        for (name, number) in [
            (Role::File, Role::FileNumber),
            (Role::Tenant, Role::TenantNumber),
        ] {
            if self.of(name).and(self.of(number)).is_some() {
                return Err(format!(
                    "{} and {} are both there: choose with --columns",
                    ROLES[name as usize].1[0], ROLES[number as usize].1[0]
                ));
            }
        }
        match BLOCKS.iter().filter(|r| self.of(**r).is_some()).count() {
            0 => Err("no column says which block: name one as id, offset (bytes) or sector (512 bytes) with --columns, for instance --columns time=1,id=2,size=3".to_owned()),
            1 => Ok(()),
            _ => Err("several columns say which block (id, offset, sector): choose with --columns".to_owned()),
        }
    }

    /// A request that begins at an offset or a sector has a size.
    fn with_size(&self, headings: &[String]) -> Result<(), String> {
        let begin = [Role::Offset, Role::Sector]
            .into_iter()
            .find_map(|role| Some((role, self.of(role)?)));
        let Some((role, at)) = begin else {
            return Ok(());
        };
        if self.of(Role::Size).is_some() {
            return Ok(());
        }
        let name = ROLES[role as usize].1[0];
        Err(format!(
            "no column says how many bytes a request has from its {name} on; there are {}: name the size with --columns, for instance --columns {name}={},size=NUMBER",
            quoted(headings.iter(), 16),
            at + 1
        ))
    }

    /// The message where columns are not understood: the whole option with them, ready to be changed.
    fn unclear(&self, headings: &[String], unknown: &[usize]) -> String {
        let name = |at: usize| match headings[at].as_str() {
            plain
                if plain.starts_with(|c: char| c.is_ascii_alphabetic())
                    && plain
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
            {
                plain.to_owned()
            }
            _ => (at + 1).to_string(),
        };
        let option = |file: &[usize]| {
            let mut pairs = Vec::new();
            if !file.is_empty() {
                let parts: Vec<_> = file.iter().map(|at| name(*at)).collect();
                pairs.push(format!("file={}", parts.join("+")));
            }
            for (role, names) in ROLES.iter().filter(|(role, _)| *role != Role::File) {
                if let Some(at) = self.of(*role) {
                    let word = if *role == Role::Id { "block" } else { names[0] };
                    pairs.push(format!("{word}={}", name(at)));
                }
            }
            format!("--columns {}", pairs.join(","))
        };
        let with: Vec<_> = self.file.iter().chain(unknown).copied().collect();
        format!(
            "larder does not know what the column {} is, and it may be a part of the block's name: say {} if it is, {} if it is not",
            quoted(unknown.iter().map(|at| &headings[*at]), 4),
            option(&with),
            option(&self.file)
        )
    }
}
