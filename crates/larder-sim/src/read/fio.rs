//! fio's iolog. Version 2: `file action [offset length]`; version 3 puts a time before it, in microseconds: fio 3.33 writes
//! 301501 after a think time of 300 ms. Actions that move bytes: read, write, trim; add, open, close, sync, datasync and wait
//! are passed over (fio's manual, "Trace file format").

use super::super::options::ReadOptions;
use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::names::Names;
use super::number::{shown, trim, whole, words};

pub(super) struct Fio {
    version: u8,
    files: Names,
}

impl Fio {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            version: 0,
            files: Names::within(options.max_memory),
        }
    }
}

impl LineParser for Fio {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if self.version == 0 {
            self.version = match trim(line) {
                b"fio version 2 iolog" => 2,
                b"fio version 3 iolog" => 3,
                other => {
                    return Err(format!(
                        "'{}': an iolog begins with 'fio version 2 iolog' or 'fio version 3 iolog'",
                        shown(other)
                    ));
                }
            };
            return Ok(());
        }
        if trim(line).is_empty() {
            return Ok(());
        }
        let mut columns = words(line);
        let mut next = || columns.next().unwrap_or_default();
        let time = match self.version {
            3 => whole(next(), "the time")?,
            _ => 0,
        };
        let name = next();
        if name.is_empty() {
            return Err("the file's name is missing".to_owned());
        }
        let kind = match next() {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"trim" => Kind::Remove,
            b"add" | b"open" | b"close" | b"sync" | b"datasync" | b"sync_file_range" | b"wait" => {
                return Ok(());
            }
            other => {
                return Err(format!(
                    "the action is '{}', which fio does not have",
                    shown(other)
                ));
            }
        };
        let offset = whole(next(), "the offset")?;
        let bytes = whole(next(), "the length")?;
        let file = self.files.number(name)?;
        sink.bytes(offset, bytes, About::new(time, kind, file))
    }

    fn end(&mut self, _: &mut Sink) -> Result<(), String> {
        if self.version == 0 {
            return Err("the first line of an iolog is missing".to_owned());
        }
        Ok(())
    }
}
