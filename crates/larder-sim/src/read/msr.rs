//! MSR Cambridge: `timestamp,host,disk,Read|Write,offset,bytes,response`; timestamps count 100 ns since 1601 (SNIA IOTTA 388).

use super::super::options::ReadOptions;
use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::names::Names;
use super::number::{columns, shown, trim, whole};

pub(super) struct Msr {
    disks: Names,
    key: Vec<u8>,
    begin: Option<u64>,
}

impl Msr {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            disks: Names::within(options.max_memory),
            key: Vec::new(),
            begin: None,
        }
    }
}

impl LineParser for Msr {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let [ticks, host, disk, kind, offset, bytes, _response] = columns(line)?;
        let ticks = whole(ticks, "the timestamp (column 1)")?;
        whole(disk, "the disk (column 3)")?;
        self.key.clear();
        self.key.extend_from_slice(host);
        self.key.push(b',');
        self.key.extend_from_slice(disk);
        let file = self.disks.number(&self.key)?;
        let kind = match kind {
            k if k.eq_ignore_ascii_case(b"read") => Kind::Read,
            k if k.eq_ignore_ascii_case(b"write") => Kind::Write,
            other => return Err(format!("column 4 is '{}', not Read or Write", shown(other))),
        };
        let offset = whole(offset, "the offset (column 5)")?;
        let bytes = whole(bytes, "the size (column 6)")?;
        let begin = *self.begin.get_or_insert(ticks);
        let time = ticks.saturating_sub(begin) / 10;
        sink.bytes(offset, bytes, About::new(time, kind, file))
    }
}
