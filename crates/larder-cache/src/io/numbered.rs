//! Files by the numbers that the storage knows them by, and batches over them.

use std::collections::BTreeMap;
use std::fs::File as SystemFile;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::sync::Arc;

use super::storage::{Part, ReadPart, WritePart};
use crate::key::FileId;
use crate::sync::Stored;
use larder::internal::RwLock;

/// Parts that go into one call: IOV_MAX.
const MOST_PARTS: usize = 1024;

/// Something for each number that was given one.
#[derive(Debug)]
pub(super) struct Numbered<T>(RwLock<Stored<BTreeMap<FileId, Arc<T>>>>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Numbered<T> {
    /// What had the number before is returned.
    pub(super) fn put(&self, id: FileId, file: T) -> Option<Arc<T>> {
        let file = Arc::new(file);
        self.0.write(|files| files.0.insert(id, file))
    }

    pub(super) fn take(&self, id: FileId) -> Option<Arc<T>> {
        self.0.write(|files| files.0.remove(&id))
    }

    /// # Errors
    /// `NotFound`: nothing has this number.
    pub(super) fn get(&self, id: FileId) -> io::Result<Arc<T>> {
        let file = self.0.read(|files| files.0.get(&id).cloned());
        file.ok_or_else(|| {
            let text = format!(
                "storage: no file was given as number {}; add or open it first",
                id.0
            );
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }

    /// Reads parts that follow each other with one call, of the file that `of` names for them. Those that it names none for, and
    /// what fails, are left to be tried part by part, so that each has its own error.
    pub(super) fn read_many(
        &self,
        parts: &mut [ReadPart<'_>],
        of: impl for<'f> Fn(&'f T, &[ReadPart<'_>]) -> Option<&'f SystemFile>,
    ) {
        self.many(parts, of, |file, offset, run| {
            let into = run.iter_mut().map(|part| IoSliceMut::new(part.bytes));
            rustix::io::preadv(file, &mut into.collect::<Vec<_>>(), offset)
        });
    }

    /// As [`read_many`](Self::read_many).
    pub(super) fn write_many(
        &self,
        parts: &mut [WritePart<'_>],
        of: impl for<'f> Fn(&'f T, &[WritePart<'_>]) -> Option<&'f SystemFile>,
    ) {
        self.many(parts, of, |file, offset, run| {
            let from = run.iter().map(|part| IoSlice::new(part.bytes));
            rustix::io::pwritev(file, &from.collect::<Vec<_>>(), offset)
        });
    }

    fn many<B: Deref<Target = [u8]>>(
        &self,
        mut parts: &mut [Part<B>],
        of: impl for<'f> Fn(&'f T, &[Part<B>]) -> Option<&'f SystemFile>,
        call: impl Fn(&SystemFile, u64, &mut [Part<B>]) -> rustix::io::Result<usize>,
    ) {
        while let Some(first) = parts.first() {
            let (file, offset) = (self.get(first.file), first.offset);
            let (run, others) = parts.split_at_mut(run(parts));
            parts = others;
            if let Ok(file) = &file
                && let Some(file) = of(file, run)
                && let Ok(mut have) = call(file, offset, run)
            {
                for part in run {
                    // A part that was not reached is tried again: a read may have been short for other reasons than the file's
                    // end, and only the part's own write can say why.
                    let mine = have.min(part.bytes.len());
                    have -= mine;
                    part.done = (mine > 0).then_some(Ok(mine));
                }
            }
        }
    }
}

/// As many parts, from the first on, as follow each other in one file and go into one call; at least one, if there is one.
fn run<B: Deref<Target = [u8]>>(parts: &[Part<B>]) -> usize {
    let mut before = None;
    let follows = |part: &&Part<B>| {
        let len = part.bytes.len() as u64;
        let end = before.replace((part.file, part.offset.saturating_add(len)));
        end.is_none_or(|end| end == (part.file, part.offset))
    };
    parts.iter().take(MOST_PARTS).take_while(follows).count()
}
