//! vscsi: records of VMware's vscsiStats, low byte first, as CloudPhysics published and libCacheSim reads them.
//!
//! | version | record |
//! |---|---|
//! | 1, 32 bytes | u32 number, u32 bytes, u32 segments, u16 command, u16 version, u64 sector, u64 microseconds |
//! | 2, 40 bytes | u16 command, u16 version, u32 number, u32 bytes, u32 segments, u64 sector, u64 microseconds, u64 response time |
//!
//! The version is the upper byte of its field; the command is SCSI's.

use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::Piece;

/// Bytes of a sector.
const SECTOR: u64 = 512;

pub(crate) struct Vscsi<const VERSION: u16>;

struct Fields {
    command: u16,
    version: u16,
    bytes: u32,
    sector: u64,
    time: u64,
}

fn fields<const VERSION: u16>(b: &[u8]) -> Option<Fields> {
    let short = |at: usize| Some(u16::from_le_bytes(b.get(at..at + 2)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
    let full = |at: usize| Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?));
    Some(if VERSION == 1 {
        Fields {
            command: short(12)?,
            version: short(14)?,
            bytes: half(4)?,
            sector: full(16)?,
            time: full(24)?,
        }
    } else {
        Fields {
            command: short(0)?,
            version: short(2)?,
            bytes: half(8)?,
            sector: full(16)?,
            time: full(24)?,
        }
    })
}

/// READ and WRITE of 6, 10, 12 and 16 bytes; UNMAP and WRITE SAME free or fill blocks.
fn kind(command: u16) -> Option<Kind> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Kind::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e | 0x41 | 0x93 => Some(Kind::Write),
        0x42 => Some(Kind::Remove),
        _ => None,
    }
}

impl<const VERSION: u16> Piece for Vscsi<VERSION> {
    fn width(&self) -> usize {
        if VERSION == 1 { 32 } else { 40 }
    }

    fn read(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
        let f = fields::<VERSION>(bytes).ok_or("not a whole record")?;
        if f.version >> 8 != VERSION {
            return Err(format!(
                "the version field is {:#06x}, not {VERSION} in its upper byte: this is no record of vscsi{VERSION}",
                f.version
            ));
        }
        // Commands that move no blocks (INQUIRY, TEST UNIT READY) are passed over.
        let Some(kind) = kind(f.command) else {
            return Ok(());
        };
        let offset = f
            .sector
            .checked_mul(SECTOR)
            .ok_or_else(|| format!("sector {} is beyond 64 bits of bytes", f.sector))?;
        let about = About {
            time: f.time,
            kind,
            ..About::default()
        };
        sink.bytes(offset, u64::from(f.bytes), about)
    }
}

/// Could these be records of this version? All that are whole must say so.
pub(crate) fn plausible<const VERSION: u16>(head: &[u8]) -> bool {
    let width = Vscsi::<VERSION>.width();
    let mut records = head.chunks_exact(width).peekable();
    records.peek().is_some()
        && records.all(|r| {
            fields::<VERSION>(r).is_some_and(|f| f.version >> 8 == VERSION && f.command < 0x100)
        })
}
