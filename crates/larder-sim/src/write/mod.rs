//! Traces written: oracleGeneral, CSV, text and bare numbers.

mod output;

use super::format::Number;
use super::record::LAST_TENANT;
use super::{Format, Kind, Record};

pub use output::Output;

/// Formats that can be written.
pub const WRITABLE: [Format; 11] = [
    Format::OracleGeneral,
    Format::Csv,
    Format::Txt,
    Format::U32le,
    Format::U32be,
    Format::I32le,
    Format::I32be,
    Format::U64le,
    Format::U64be,
    Format::I64le,
    Format::I64be,
];

/// Records and fields that a format cannot hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Removals that were left out.
    pub removals: u64,
    /// Readahead that was left out.
    pub readahead: u64,
    /// Changes of a block's state, and seconds, that were left out.
    pub states: u64,
    /// Writes that became plain uses.
    pub writes: u64,
    /// Uses that belonged to one request with others.
    pub grouped: u64,
    /// Uses whose file, other than file 0, is not kept beside the block.
    pub files: u64,
    /// Uses whose process or tenant, other than tenant 0, is not kept, or was too large for a [`Record`].
    pub tenants: u64,
    /// Uses with a time that is not kept.
    pub times: u64,
    /// Uses with a number of bytes that is not kept.
    pub sizes: u64,
}

/// Makes bytes of records.
#[derive(Debug)]
pub struct Encoder {
    format: Format,
    microseconds: bool,
    /// Divides times: 1 or a million, and more where 32 bits would not do.
    clock: u64,
    /// Time 0 of the new trace.
    origin: u64,
    lost: Lost,
    last: Option<u32>,
    written: u64,
}

impl Encoder {
    /// For a format, from a trace whose time is in microseconds or not ([`Trace::in_microseconds`](crate::Trace::in_microseconds)).
    #[must_use]
    pub fn new(format: Format, microseconds: bool) -> Self {
        Self {
            format,
            microseconds,
            clock: if microseconds && format == Format::OracleGeneral {
                1_000_000
            } else {
                1
            },
            origin: 0,
            lost: Lost::default(),
            last: None,
            written: 0,
        }
    }

    /// Makes times from `least` to `most` fit into oracleGeneral's 32 bits: counted from the first one where they are too
    /// large, and in a unit that is coarser by a power of a thousand where they still are. The factor, if anything changed.
    pub fn fit_times(&mut self, least: u64, most: u64) -> Option<u64> {
        let fits = |span: u64, clock: u64| span / clock <= u64::from(u32::MAX);
        if self.format != Format::OracleGeneral || fits(most, self.clock) {
            return None;
        }
        let mut factor = 1;
        while !fits(most - least, self.clock * factor) {
            factor *= 1000;
        }
        self.origin = least;
        self.clock *= factor;
        Some(factor)
    }

    /// The header.
    pub fn begin(&self, bytes: &mut Vec<u8>) {
        if self.format == Format::Csv {
            let time = if self.microseconds { "time_us" } else { "time" };
            bytes.extend_from_slice(time.as_bytes());
            bytes.extend_from_slice(b",id,size,op,request,tenant_number,file_number\n");
        }
    }

    /// Whether this record is written.
    #[must_use]
    pub fn keeps(&self, record: &Record) -> bool {
        self.format == Format::Csv || record.kind.is_use()
    }

    /// Appends a record. `next` is the number of the written record at which its block comes again (oracleGeneral only).
    ///
    /// # Errors
    /// A sentence: a number that the format cannot hold.
    pub fn record(
        &mut self,
        record: &Record,
        next: Option<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), String> {
        use std::io::Write;
        if !self.keeps(record) {
            match record.kind {
                Kind::Remove => self.lost.removals += 1,
                kind if kind.is_state() => self.lost.states += 1,
                _ => self.lost.readahead += 1,
            }
            return Ok(());
        }
        if self.format != Format::Csv {
            self.lost.writes += u64::from(record.kind == Kind::Write);
            self.lost.grouped += u64::from(self.last == Some(record.request));
            self.lost.files += u64::from(record.file > 0);
            if self.format != Format::OracleGeneral {
                self.lost.times += u64::from(record.time > 0);
                self.lost.sizes += u64::from(record.bytes > 0);
            }
        }
        let first_lost = if self.format == Format::Csv {
            LAST_TENANT
        } else {
            1
        };
        self.lost.tenants += u64::from(record.tenant >= first_lost);
        self.last = Some(record.request);
        let n = self.written;
        self.written += 1;
        let block = record.block;
        match self.format {
            Format::OracleGeneral => {
                let time = u32::try_from(record.time.saturating_sub(self.origin) / self.clock)
                    .map_err(|_| {
                        format!(
                            "use {n}: time {} is too large for the 32 bits of oracleGeneral",
                            record.time
                        )
                    })?;
                bytes.extend_from_slice(&time.to_le_bytes());
                bytes.extend_from_slice(&block.to_le_bytes());
                bytes.extend_from_slice(&record.bytes.to_le_bytes());
                let next = next.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX));
                bytes.extend_from_slice(&next.to_le_bytes());
            }
            Format::Csv => {
                let op = record.kind.name();
                writeln!(
                    bytes,
                    "{},{block},{},{op},{},{},{}",
                    record.time, record.bytes, record.request, record.tenant, record.file
                )
                .map_err(|e| e.to_string())?;
            }
            Format::Txt => writeln!(bytes, "{block}").map_err(|e| e.to_string())?,
            other => {
                let Some(Number { bits, signed, big }) = other.number() else {
                    return Err(format!("larder does not write {}", other.name()));
                };
                if block > u64::MAX >> (64 - bits + u32::from(signed)) {
                    return Err(format!(
                        "use {n}: block {block} is too large for {}; --dense numbers blocks from 0",
                        other.name()
                    ));
                }
                let width = bits as usize / 8;
                if big {
                    bytes.extend_from_slice(&block.to_be_bytes()[8 - width..]);
                } else {
                    bytes.extend_from_slice(&block.to_le_bytes()[..width]);
                }
            }
        }
        Ok(())
    }

    /// What could not be written, so far.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Records that were written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}
