//! Tencent's block storage: `seconds,sector,sectors,0|1,volume`, where 1 is a write (Zhang et al., OSCA, USENIX ATC 2020).

use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::number::{columns, number_of_file, shown, trim, whole};

pub(super) struct Tencent;

const YEAR_2001: u64 = 1_000_000_000;
const SECTOR: u64 = 512;

impl LineParser for Tencent {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let [time, sector, sectors, kind, volume] = columns(line)?;
        let time = whole(time, "the time (column 1)")?;
        // So that no other table of five numbers is taken for one of these.
        if time < YEAR_2001 {
            return Err(format!(
                "the time (column 1) is {time}: no seconds since 1970"
            ));
        }
        let bytes = |word, what| {
            let sectors = whole(word, what)?;
            let bytes = sectors.checked_mul(SECTOR);
            bytes.ok_or_else(|| format!("{what} is {sectors}: beyond 64 bits of bytes"))
        };
        let offset = bytes(sector, "the sector (column 2)")?;
        let len = bytes(sectors, "the number of sectors (column 3)")?;
        let kind = match kind {
            b"0" => Kind::Read,
            b"1" => Kind::Write,
            other => return Err(format!("column 4 is '{}', not 0 or 1", shown(other))),
        };
        let file = number_of_file(volume, "the volume (column 5)")?;
        sink.bytes(offset, len, About::new(time, kind, file))
    }
}
