//! Files by the numbers that the storage knows them by, and batches over them.

use std::collections::BTreeMap;
use std::fs::File as SystemFile;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;

use super::storage::{ReadPart, WritePart};
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
        mut parts: &mut [ReadPart<'_>],
        of: impl for<'f> Fn(&'f T, &[ReadPart<'_>]) -> Option<&'f SystemFile>,
    ) {
        while let Some(first) = parts.first() {
            let file = self.get(first.file);
            let len = run(parts, |part| (part.file, part.offset, part.into.len()));
            let (mine, others) = parts.split_at_mut(len);
            if let Ok(file) = &file
                && let Some(file) = of(file, mine)
            {
                read_run(file, mine);
            }
            parts = others;
        }
    }

    /// As [`read_many`](Self::read_many).
    pub(super) fn write_many(
        &self,
        mut parts: &mut [WritePart<'_>],
        of: impl for<'f> Fn(&'f T, &[WritePart<'_>]) -> Option<&'f SystemFile>,
    ) {
        while let Some(first) = parts.first() {
            let file = self.get(first.file);
            let len = run(parts, |part| (part.file, part.offset, part.from.len()));
            let (mine, others) = parts.split_at_mut(len);
            if let Ok(file) = &file
                && let Some(file) = of(file, mine)
            {
                write_run(file, mine);
            }
            parts = others;
        }
    }
}

/// As many parts, from the first on, as follow each other in one file and go into one call; at least one, if there is one.
fn run<P>(parts: &[P], place: impl Fn(&P) -> (FileId, u64, usize)) -> usize {
    let mut before = None;
    let follows = |part: &&P| {
        let (file, offset, len) = place(part);
        let end = before.replace((file, offset.saturating_add(len as u64)));
        end.is_none_or(|end| end == (file, offset))
    };
    parts.iter().take(MOST_PARTS).take_while(follows).count()
}

fn read_run(file: &SystemFile, parts: &mut [ReadPart<'_>]) {
    let Some(offset) = parts.first().map(|part| part.offset) else {
        return;
    };
    let mut into: Vec<IoSliceMut<'_>> = parts
        .iter_mut()
        .map(|part| IoSliceMut::new(part.into))
        .collect();
    let Ok(mut have) = rustix::io::preadv(file, &mut into, offset) else {
        return;
    };
    for part in parts {
        // A part that was not reached is tried again: the read may have been short for other reasons than the file's end.
        let mine = have.min(part.into.len());
        have -= mine;
        part.done = (mine > 0).then_some(Ok(mine));
    }
}

fn write_run(file: &SystemFile, parts: &mut [WritePart<'_>]) {
    let Some(offset) = parts.first().map(|part| part.offset) else {
        return;
    };
    let from: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part.from)).collect();
    let Ok(mut have) = rustix::io::pwritev(file, &from, offset) else {
        return;
    };
    for part in parts {
        // A part that was not reached is tried again: only it can say why.
        let mine = have.min(part.from.len());
        have -= mine;
        part.done = (mine > 0).then_some(Ok(mine));
    }
}
