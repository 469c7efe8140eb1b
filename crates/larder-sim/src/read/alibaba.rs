//! Alibaba's block traces of 2020: `device,R|W,offset,bytes,microseconds` (Li et al., IISWC 2020).

use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::number::{columns, number_of_file, shown, trim, whole};

pub(super) struct Alibaba;

const YEAR_2001: u64 = 1_000_000_000_000_000;

impl LineParser for Alibaba {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let [device, kind, offset, bytes, time] = columns(line)?;
        let file = number_of_file(device, "the device (column 1)")?;
        let kind = match kind {
            b"R" => Kind::Read,
            b"W" => Kind::Write,
            other => return Err(format!("column 2 is '{}', not R or W", shown(other))),
        };
        let offset = whole(offset, "the offset (column 3)")?;
        let bytes = whole(bytes, "the size (column 4)")?;
        let time = whole(time, "the time (column 5)")?;
        // So that no other table of five columns is taken for one of these.
        if time < YEAR_2001 {
            return Err(format!(
                "the time (column 5) is {time}: no microseconds since 1970"
            ));
        }
        sink.bytes(offset, bytes, About::new(time, kind, file))
    }
}
