//! The sink of the parsers.

use super::record::{Kind, MOST_FILES, MOST_PAGES, Record, block_of};

/// Blocks that one request may have: 4 GiB in blocks of 4 KiB. A trace with larger requests is broken.
pub(super) const MOST_BLOCKS: u64 = 1 << 20;

/// Takes requests from a parser, cuts them into blocks and numbers them.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) records: Vec<Record>,
    request: u32,
    block_size: u64,
}

/// A request without its blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About {
    pub(super) time: u64,
    pub(super) kind: Kind,
    pub(super) file: u32,
    pub(super) tenant: u16,
}

impl About {
    pub(super) fn new(time: u64, kind: Kind, file: u32) -> Self {
        Self {
            time,
            kind,
            file,
            tenant: 0,
        }
    }
}

impl Sink {
    pub(super) fn new(block_size: u32) -> Self {
        Self {
            records: Vec::new(),
            request: 0,
            block_size: u64::from(block_size.max(1)),
        }
    }

    /// A request for one thing with a number of its own.
    #[inline]
    pub(super) fn object(&mut self, block: u64, bytes: u32, about: About) {
        self.records.push(Record {
            block,
            time: about.time,
            request: self.request,
            bytes,
            file: about.file,
            tenant: about.tenant,
            kind: about.kind,
        });
        self.request = self.request.wrapping_add(1);
    }

    /// Requests that read: times, numbers of their own, bytes.
    #[inline]
    pub(super) fn objects(&mut self, objects: impl ExactSizeIterator<Item = (u64, u64, u32)>) {
        let first = self.request;
        self.request = first.wrapping_add(objects.len() as u32);
        let objects = objects.enumerate();
        self.records
            .extend(objects.map(|(n, (time, block, bytes))| Record {
                block,
                time,
                request: first.wrapping_add(n as u32),
                bytes,
                ..Record::default()
            }));
    }

    /// The last requests, of one record each, were none.
    pub(super) fn take_back(&mut self, requests: usize) {
        self.records
            .truncate(self.records.len().saturating_sub(requests));
        self.request = self.request.wrapping_sub(requests as u32);
    }

    /// A request for `count` blocks from `first` on.
    pub(super) fn blocks(&mut self, first: u64, count: u64, about: About) -> Result<(), String> {
        if count > MOST_BLOCKS {
            return Err(format!(
                "a request of {count} blocks; more than {MOST_BLOCKS} are taken for a broken trace"
            ));
        }
        if first.checked_add(count).is_none() {
            return Err(format!(
                "{count} blocks from block {first} on pass the largest number of 64 bits"
            ));
        }
        for block in first..first + count {
            self.object(block, 0, about);
            self.request = self.request.wrapping_sub(1);
        }
        self.request = self.request.wrapping_add(1);
        Ok(())
    }

    /// A request for bytes of a file: the blocks that they touch, one request.
    pub(super) fn bytes(&mut self, offset: u64, len: u64, about: About) -> Result<(), String> {
        if len == 0 {
            return Ok(());
        }
        let too_far = || {
            format!(
                "{len} bytes from byte {offset} of file {} on: files up to number {MOST_FILES} and {MOST_PAGES} blocks of {} bytes can be told apart",
                about.file, self.block_size
            )
        };
        let end = offset.checked_add(len).ok_or_else(too_far)?;
        let (first, last) = (offset / self.block_size, (end - 1) / self.block_size);
        if last - first >= MOST_BLOCKS {
            return Err(format!(
                "a request of {len} bytes; more than {MOST_BLOCKS} blocks of {} bytes are taken for a broken trace",
                self.block_size
            ));
        }
        let base = block_of(about.file, first).ok_or_else(too_far)?;
        block_of(about.file, last).ok_or_else(too_far)?;
        for page in first..=last {
            let from = offset.max(page * self.block_size);
            let to = end.min((page + 1).saturating_mul(self.block_size));
            self.records.push(Record {
                block: base + (page - first),
                time: about.time,
                request: self.request,
                bytes: u32::try_from(to - from).unwrap_or(u32::MAX),
                file: about.file,
                tenant: about.tenant,
                kind: about.kind,
            });
        }
        self.request = self.request.wrapping_add(1);
        Ok(())
    }

    /// The next request has this number.
    pub(super) fn number(&mut self, request: u32) {
        self.request = request;
    }

    pub(super) fn block_size(&self) -> u64 {
        self.block_size
    }
}
