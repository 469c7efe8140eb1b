//! A client with the mix of dbench's loadfile, for machines that do not have the file.

use super::super::{Kind, Record, block_of};
use super::draw::Draw;

/// Pages of the seed files that are copied, three times each turn (`SEED\SMALL.FIL`, `MEDIUM.FIL`, `LARGE.FIL`).
const SEEDS: [u64; 3] = [80, 256, 457];
/// Times that each is read in a turn.
const COPIES: [u32; 3] = [4, 3, 3];
/// Pages of the documents that are opened, by their place in the loadfile's list of files; read in 4 KiB pieces.
const DOCUMENTS: [u64; 12] = [20, 33, 8, 45, 27, 124, 62, 153, 16, 71, 90, 32];
/// Pages that stay and are never used again: those with which the client fills its directory.
const FILLER: u64 = 3_200;
/// Pages of the files that a turn creates, writes, reads a little and removes: those of the loadfile's 57 unlinked files.
const TEMPORARY: [u64; 21] = [
    1, 1, 3, 21, 19, 4, 5, 8, 13, 17, 11, 14, 22, 2, 1, 7, 1, 3, 20, 32, 16,
];
/// Requests read 15 pages at once when they copy, and write 16.
const READ_RUN: u64 = 15;
const WRITE_RUN: u64 = 16;
/// File numbers of one client.
const FILES_OF_A_CLIENT: u32 = 1 << 14;

/// One client of a file server. It fills its directory (5,200 pages, 3,200 of them never asked for again), then makes `turns`
/// turns: documents read page by page and saved, small files created, read again and unlinked, three seed files read in long
/// runs and copied, the copies removed. A turn's pages read and unlinked are near those of the loadfile of dbench 4.0 (3,060
/// read and 910 unlinked in each of its 129 turns), pages written a little above half (of 2,010); which document comes next is
/// drawn, with popular ones more often.
///
/// Clients have files of their own: at most 1,024 clients and, of each, 500 turns; later turns use the numbers of early ones
/// again. The request numbers count from 0.
///
/// ```
/// use larder_sim::{Kind, workload::dbench_client};
/// let pages = |kind| dbench_client(1, 0, 10).filter(|record| record.kind == kind).count();
/// assert!(pages(Kind::Read) > 20_000 && pages(Kind::Write) > 12_000 && pages(Kind::Remove) > 6_000);
/// ```
pub fn dbench_client(seed: u64, client: u16, turns: u32) -> impl Iterator<Item = Record> + Send {
    let mut maker = Maker {
        draw: Draw::new(seed, 100 + u64::from(client)),
        base: u32::from(client % 1024) * FILES_OF_A_CLIENT,
        temporary: 0,
        request: 0,
        records: Vec::new(),
    };
    let mut turn = 0;
    let fill = maker.fill();
    fill.into_iter().chain(
        core::iter::from_fn(move || {
            (turn < turns).then(|| {
                turn += 1;
                maker.turn()
            })
        })
        .flatten(),
    )
}

struct Maker {
    draw: Draw,
    base: u32,
    temporary: u32,
    request: u32,
    records: Vec<Record>,
}

impl Maker {
    /// A request for some pages of a file.
    fn request(&mut self, kind: Kind, file: u32, first: u64, pages: u64) {
        let (file, request) = (self.base + file, self.request);
        self.request = self.request.wrapping_add(1);
        let of_page = |page| {
            Some(Record {
                block: block_of(file, page)?,
                request,
                bytes: 4096,
                file,
                kind,
                ..Record::default()
            })
        };
        self.records
            .extend((first..first + pages).filter_map(of_page));
    }

    fn runs(&mut self, kind: Kind, file: u32, pages: u64, run: u64) {
        for first in (0..pages).step_by(run as usize) {
            self.request(kind, file, first, run.min(pages - first));
        }
    }

    fn seed(index: usize) -> u32 {
        index as u32
    }

    fn document(index: usize) -> u32 {
        10 + index as u32
    }

    /// A number for a file that is removed soon.
    fn temporary(&mut self) -> u32 {
        self.temporary = (self.temporary + 1) % (FILES_OF_A_CLIENT - 100);
        100 + self.temporary
    }

    fn fill(&mut self) -> Vec<Record> {
        for (index, pages) in SEEDS.into_iter().enumerate() {
            self.runs(Kind::Write, Self::seed(index), pages, WRITE_RUN);
        }
        for (index, pages) in DOCUMENTS.into_iter().enumerate() {
            self.runs(Kind::Write, Self::document(index), pages, WRITE_RUN);
        }
        for filler in 0..FILLER / 256 {
            self.runs(Kind::Write, 50 + filler as u32, 256, WRITE_RUN);
        }
        core::mem::take(&mut self.records)
    }

    fn turn(&mut self) -> Vec<Record> {
        // Parts of a turn in random order, as of several persons that work independently.
        let mut parts: Vec<u32> = (0..TEMPORARY.len() as u32 + 10).collect();
        for at in (1..parts.len()).rev() {
            parts.swap(at, self.draw.below(at as u64 + 1) as usize);
        }
        for part in parts {
            match TEMPORARY.get(part as usize) {
                Some(&pages) => self.scratch(pages),
                None => self.copy(part - TEMPORARY.len() as u32),
            }
            self.look();
        }
        core::mem::take(&mut self.records)
    }

    /// A document is opened: its first page, and sometimes all of it; a change is saved.
    fn look(&mut self) {
        for _ in 0..8 {
            let popular = self.draw.below(DOCUMENTS.len() as u64);
            let index = self.draw.below(popular + 1) as usize;
            let (file, pages) = (Self::document(index), DOCUMENTS[index]);
            self.request(Kind::Read, file, 0, 1);
            if self.draw.below(12) == 0 {
                (1..pages).for_each(|page| self.request(Kind::Read, file, page, 1));
            } else {
                let page = self.draw.below(pages);
                self.request(Kind::Read, file, page, 1);
            }
            if self.draw.below(4) == 0 {
                self.request(Kind::Write, file, 0, 1);
            }
        }
    }

    /// A file that is created, used and removed.
    fn scratch(&mut self, pages: u64) {
        let file = self.temporary();
        self.runs(Kind::Write, file, pages, WRITE_RUN);
        self.request(Kind::Read, file, 0, 1);
        for _ in 0..2 {
            self.request(Kind::Write, file, 0, 1);
        }
        self.request(Kind::Read, file, 0, 1);
        self.request(Kind::Remove, file, 0, pages);
    }

    /// A seed file is read in long runs; the first reading of each in a turn is a copy, which is removed.
    fn copy(&mut self, number: u32) {
        let mut number = number;
        let index = (0..SEEDS.len()).find(|&index| match number.checked_sub(COPIES[index]) {
            Some(rest) => {
                number = rest;
                false
            }
            None => true,
        });
        let Some(index) = index else { return };
        self.runs(Kind::Read, Self::seed(index), SEEDS[index], READ_RUN);
        if number == 0 {
            let file = self.temporary();
            self.runs(Kind::Write, file, SEEDS[index], WRITE_RUN);
            self.request(Kind::Remove, file, 0, SEEDS[index]);
        }
    }
}
