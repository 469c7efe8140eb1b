//! The text that blkparse prints by default: `major,minor cpu sequence seconds pid action RWBS sector + sectors [process]`.
//!
//! Only requests as they were queued (action Q) are taken: the same request appears again when it is inserted, issued and
//! completed. D and U in RWBS discard; readahead (A) counts as reading, since below a page cache it is a read.

use super::super::options::ReadOptions;
use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::names::Names;
use super::number::{decimal, seconds, shown, trim, whole, words};

pub(super) struct Blkparse {
    disks: Names,
    events: u64,
    queued: u64,
    /// blkparse ends with a summary.
    summary: bool,
}

const SECTOR: u64 = 512;

impl Blkparse {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            disks: Names::within(options.max_memory),
            events: 0,
            queued: 0,
            summary: false,
        }
    }
}

impl LineParser for Blkparse {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        let text = trim(line);
        if text.is_empty() {
            return Ok(());
        }
        if self.summary {
            // Where outputs were joined, the next one's events come after the summary.
            let device = words(text).next().unwrap_or_default();
            let parts = memchr::memchr(b',', device).map(|n| (&device[..n], &device[n + 1..]));
            if parts.is_none_or(|(a, b)| decimal(a).is_none() || decimal(b).is_none()) {
                return Ok(());
            }
            self.summary = false;
        }
        if self.events > 0 && (text.starts_with(b"CPU") || text.starts_with(b"Total")) {
            self.summary = true;
            return Ok(());
        }
        let mut columns = words(text);
        let mut next = || columns.next().unwrap_or_default();
        let disk = next();
        let (major, minor) = match memchr::memchr(b',', disk) {
            Some(n) => (&disk[..n], &disk[n + 1..]),
            None => (disk, &disk[..0]),
        };
        if decimal(major).is_none() || decimal(minor).is_none() {
            return Err(format!("'{}' is no device 'major,minor'", shown(disk)));
        }
        whole(next(), "the CPU")?;
        whole(next(), "the sequence number")?;
        let time = seconds(next(), "the time")?;
        whole(next(), "the process")?;
        let action = next();
        self.events += 1;
        if action != b"Q" {
            if action.is_empty() {
                return Err("the action is missing".to_owned());
            }
            return Ok(());
        }
        let flags = next();
        let kind = match flags {
            f if f.contains(&b'D') => Kind::Remove,
            f if f.contains(&b'R') => Kind::Read,
            f if f.contains(&b'W') => Kind::Write,
            [] => return Err("the flags (RWBS) are missing".to_owned()),
            // Flushes and messages move no data.
            _ => return Ok(()),
        };
        let sector = next();
        if sector.starts_with(b"[") {
            // A flush by itself has no place.
            return Ok(());
        }
        let sector = whole(sector, "the sector")?;
        if next() != b"+" {
            // A flush with a barrier has a sector and no length.
            return Ok(());
        }
        let sectors = whole(next(), "the number of sectors")?;
        let file = self.disks.number(disk)?;
        let scale = |n: u64| {
            n.checked_mul(SECTOR)
                .ok_or_else(|| format!("{n} sectors are beyond 64 bits of bytes"))
        };
        self.queued += 1;
        let about = About::new(time, kind, file);
        sink.bytes(scale(sector)?, scale(sectors)?, about)
    }

    fn end(&mut self, _: &mut Sink) -> Result<(), String> {
        if self.events > 0 && self.queued == 0 {
            return Err(format!(
                "none of the {} events is a queued request (action Q): run blktrace without a filter, or with -a queue",
                self.events
            ));
        }
        Ok(())
    }
}
