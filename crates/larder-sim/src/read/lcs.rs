//! lcs: libCacheSim's own format. A header between two magic words, then records, low byte first. The header has 1024 bytes
//! in files of 2024 and 8192 in later ones; the second magic word, in its last 8 bytes, tells which. The version says
//! how long a record is and what is in it (libCacheSim, `traceReader/customizedReader/lcs.h`, versions 1 to 8). The header of
//! 512 bytes with a format string, older still, is recognised and refused.

use super::super::record::{Kind, tenant_of};
use super::super::sink::{About, Sink};
use super::Piece;

/// The magic word, at both ends of the header.
pub(crate) const MAGIC: u64 = 0x1234_5678_9abc_def0;
/// Bytes of a record by version - 1: 3 fields and a next access; operation and tenant; sizes of 64 bits and a time to live;
/// then 1, 2, 4, 8 and 16 features.
const WIDTHS: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];

#[derive(Debug, Clone, Copy)]
pub(crate) struct LcsHeader {
    pub(crate) bytes: usize,
    version: u64,
    requests: Option<u64>,
}

fn word(head: &[u8], at: usize) -> Option<u64> {
    let bytes = head.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

impl LcsHeader {
    pub(crate) fn parse(head: &[u8]) -> Result<Self, String> {
        match word(head, 0) {
            Some(MAGIC) => {}
            Some(other) => {
                return Err(format!(
                    "the magic word of lcs is {MAGIC:#x}, but {other:#x} is here"
                ));
            }
            None => {
                return Err(
                    "an lcs trace begins with 8 bytes of magic; the file is shorter".to_owned(),
                );
            }
        }
        let bytes = [1024, 8192]
            .into_iter()
            .find(|size| word(head, size - 8) == Some(MAGIC))
            .ok_or("the header's second magic word is neither at byte 1016 nor at 8184: truncated, or of a version before 2024 that is not read")?;
        let version = word(head, 8).unwrap_or(0);
        if !(1..=WIDTHS.len() as u64).contains(&version) {
            return Err(format!(
                "lcs version {version} is not known; 1 to {} are",
                WIDTHS.len()
            ));
        }
        if bytes == 1024 && version > 2 {
            return Err(format!(
                "lcs version {version} does not go with a header of 1024 bytes"
            ));
        }
        // The statistics follow: their version, then the number of requests. 0 is "not counted".
        let requests = word(head, 24).filter(|n| *n != 0);
        if requests.is_some_and(|n| n > i64::MAX as u64) {
            return Err("the header's number of requests is negative".to_owned());
        }
        Ok(Self {
            bytes,
            version,
            requests,
        })
    }
}

pub(crate) struct Lcs {
    header: LcsHeader,
    width: usize,
}

impl Lcs {
    pub(crate) fn new(header: LcsHeader) -> Self {
        Self {
            header,
            width: WIDTHS[header.version as usize - 1],
        }
    }
}

/// libCacheSim's operations: get 1, gets 2, set 3 up to prepend 8, delete 9, incr 10, decr 11, read 12, write 13, update 14.
fn kind(op: u8) -> Kind {
    match op {
        3..=8 | 10 | 11 | 13 | 14 => Kind::Write,
        9 => Kind::Remove,
        _ => Kind::Read,
    }
}

impl Piece for Lcs {
    fn width(&self) -> usize {
        self.width
    }

    fn read(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
        let half = |at: usize| {
            let bytes = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes)
        };
        let full = |at| word(bytes, at).unwrap_or(0);
        let mut about = About {
            time: u64::from(half(0)),
            ..About::default()
        };
        let wide = self.header.version >= 3;
        if self.header.version >= 2 {
            let both = half(if wide { 20 } else { 16 });
            about.kind = kind(both as u8);
            about.tenant = tenant_of(u64::from(both >> 8));
        }
        let size = if wide { full(12) } else { u64::from(half(12)) };
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        sink.object(full(4), size, about);
        Ok(())
    }

    fn promised(&self) -> Option<u64> {
        self.header.requests
    }
}
