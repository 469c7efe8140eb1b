//! The ARC traces: lines `start count ignored request`, blocks of 512 bytes to 4 KiB that are used one after the other.
//!
//! A line is a request. The file's own fourth column is not used for that: in some of the published files it is 0 everywhere.

use super::super::sink::{About, Sink};
use super::LineParser;
use super::number::{trim, whole, words};

pub(super) struct Arc;

impl LineParser for Arc {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let mut columns = words(line);
        let mut next = |what| whole(columns.next().unwrap_or_default(), what);
        let start = next("the first block")?;
        let count = next("the number of blocks")?;
        next("the third column")?;
        next("the request")?;
        if columns.next().is_some() {
            return Err(
                "more than four columns; an ARC line is 'start count ignored request'".to_owned(),
            );
        }
        if count == 0 {
            return Err("the number of blocks is 0".to_owned());
        }
        sink.blocks(start, count, About::default())
    }
}

/// Could these be lines of ARC? The ignored column is 0 in every published file; other tables of four numbers have no such one.
pub(crate) fn plausible<'l>(mut lines: impl Iterator<Item = &'l [u8]>) -> bool {
    lines.all(|line| words(line).nth(2).is_none_or(|ignored| ignored == b"0"))
}
