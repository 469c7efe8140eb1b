//! SPC, as the UMass repository publishes it: `unit,sector,bytes,opcode,seconds`, opcode r or w; more columns are ignored
//! (Storage Performance Council, I/O trace file format, revision 1.0.1).

use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::number::{number_of_file, seconds, shown, trim, whole};

pub(super) struct Spc;

const SECTOR: u64 = 512;

impl LineParser for Spc {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let mut columns = line.split(|b| *b == b',').map(trim);
        let mut next = || columns.next().unwrap_or_default();
        let file = number_of_file(next(), "the unit (column 1)")?;
        let sector = whole(next(), "the sector (column 2)")?;
        let bytes = whole(next(), "the size (column 3)")?;
        let kind = match next() {
            b"r" | b"R" => Kind::Read,
            b"w" | b"W" => Kind::Write,
            other => {
                return Err(format!(
                    "the opcode (column 4) is '{}', not r or w",
                    shown(other)
                ));
            }
        };
        let time = seconds(next(), "the time (column 5)")?;
        let offset = sector
            .checked_mul(SECTOR)
            .ok_or_else(|| format!("sector {sector} is beyond 64 bits of bytes"))?;
        sink.bytes(offset, bytes, About::new(time, kind, file))
    }
}
