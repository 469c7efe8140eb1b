//! The power fails at any moment: what was synced is there, and nothing is mixed.
//!
//! Programs write through a daemon whose changes of the source are recorded. After each of them the source could be what is left. And
//! what was not synced a disk may lose, tear or write in another order: that is tried too. Names go as a journal keeps them, in order.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use larder_fs::{Control, MountOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::killed::Mountpoint;
use crate::recorder::{Change, Name, Object, Record, Recorder};
use crate::{directory, mounted};

/// How many moments are tried.
const CUTS: &str = "LARDER_FS_CUTS";
const WRITERS: usize = 2;
/// What a writer does before the record is looked at.
const STEPS: usize = 120;
/// Names of a writer, of which the last is that of files which are to replace others.
const SLOTS: [&str; 4] = ["a", "b", "c", "new"];
/// Bytes that say to which file, version and place they belong.
const CELL: usize = 16;
/// Cells of the longest file.
const MOST: usize = 2000;
const SECTOR: usize = 512;

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A file, a version of it, and a place in it.
fn cell(file: u32, version: u32, at: usize) -> [u8; CELL] {
    let at = at as u32;
    let check = (file ^ version.rotate_left(11) ^ at.rotate_left(22)).wrapping_mul(0x9e37_79b1) | 1;
    let mut bytes = [0; CELL];
    for (to, number) in bytes.chunks_mut(4).zip([file, version, at, check]) {
        to.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// What a program does with a file, in cells.
#[derive(Debug, Clone, Copy)]
enum What {
    Write(usize, usize),
    SetLen(usize),
    Punch(usize, usize),
}

/// What programs did with a file. An event's version is its number, from 1 on.
#[derive(Debug, Clone, Default)]
struct History {
    file: u32,
    /// With the length of the record at its beginning.
    events: Vec<(usize, What)>,
    done: usize,
    /// At this length of the record so many events were synced.
    synced: Vec<(usize, usize)>,
}

/// What a file may be.
struct Possible {
    /// The version of each cell at the last sync, none for a hole.
    cells: Vec<u32>,
    hole: Vec<bool>,
    lengths: std::ops::RangeInclusive<usize>,
    later: Vec<(u32, usize, usize)>,
}

impl History {
    fn after(&self, events: usize) -> Vec<u32> {
        let mut cells = Vec::new();
        for (version, (_, what)) in (1..).zip(&self.events[..events]) {
            match *what {
                What::Write(from, to) => {
                    cells.resize(cells.len().max(to), 0);
                    cells[from..to].fill(version);
                }
                What::SetLen(len) => cells.resize(len, 0),
                What::Punch(from, to) => cells[from..to].fill(0),
            }
        }
        cells
    }

    fn synced_at(&self, cut: usize) -> usize {
        let all = self.synced.iter().filter(|synced| synced.0 <= cut);
        all.map(|synced| synced.1).max().unwrap_or(0)
    }

    /// After a cut, where so many events were acknowledged. What a disk loses leaves holes where no program made them.
    fn possible(&self, cut: usize, least: usize, loses: bool) -> Possible {
        let cells = self.after(least);
        let begun = self.events.iter().filter(|event| event.0 < cut).count();
        let later = &self.events[least..begun.max(least)];
        let mut hole: Vec<_> = cells.iter().map(|&version| version == 0).collect();
        hole.resize(MOST, loses);
        let mut len = cells.len();
        let (mut shortest, mut longest) = (len, len);
        let mut written = Vec::new();
        for (version, (_, what)) in (least as u32 + 1..).zip(later) {
            match *what {
                What::Write(from, to) => {
                    hole[len.min(from)..from].fill(true);
                    len = len.max(to);
                    written.push((version, from, to));
                }
                What::SetLen(to) => {
                    if to > len || loses {
                        hole[len.min(to)..len.max(to)].fill(true);
                    }
                    len = to;
                }
                What::Punch(from, to) => hole[from..to].fill(true),
            }
            (shortest, longest) = (shortest.min(len), longest.max(len));
        }
        Possible {
            cells,
            hole,
            lengths: shortest..=longest,
            later: written,
        }
    }

    fn check(&self, found: &[u8], cut: usize, least: usize, loses: bool) -> Result<(), String> {
        let possible = self.possible(cut, least, loses);
        let len = found.len() / CELL;
        if !found.len().is_multiple_of(CELL) || !possible.lengths.contains(&len) {
            return Err(format!(
                "{} bytes, not {:?} times {CELL}",
                found.len(),
                possible.lengths
            ));
        }
        for (at, bytes) in found.chunks(CELL).enumerate() {
            if bytes == [0; CELL] && possible.hole[at] {
                continue;
            }
            let version = u32::from_ne_bytes(bytes[4..8].try_into().unwrap());
            if bytes != cell(self.file, version, at) {
                return Err(format!(
                    "cell {at} of {len} is mixed or not there: {bytes:?}"
                ));
            }
            let later = |event: &(u32, usize, usize)| {
                event.0 == version && (event.1..event.2).contains(&at)
            };
            if possible.cells.get(at) != Some(&version) && !possible.later.iter().any(later) {
                return Err(format!("cell {at} of {len} has version {version}"));
            }
        }
        Ok(())
    }
}

/// A file that a name leads to.
#[derive(Debug, Clone)]
struct Binding {
    file: Option<u32>,
    begun: usize,
    end: Option<usize>,
    /// It replaced another one when it had so many events.
    whole: usize,
}

#[derive(Debug, Clone)]
struct Slot {
    bindings: Vec<Binding>,
    synced: Vec<(usize, usize)>,
}

impl Slot {
    fn file(&self) -> Option<u32> {
        self.bindings.last().unwrap().file
    }
}

/// What one writer did in its directory.
#[derive(Debug)]
struct Model {
    files: BTreeMap<u32, History>,
    slots: Vec<Slot>,
}

impl Model {
    fn new() -> Self {
        let absent = Binding {
            file: None,
            begun: 0,
            end: Some(0),
            whole: 0,
        };
        let slot = Slot {
            bindings: vec![absent],
            synced: Vec::new(),
        };
        Self {
            files: BTreeMap::new(),
            slots: vec![slot; SLOTS.len()],
        }
    }

    /// Files and slots of which all is done: what a sync that begins now makes safe.
    fn done(&self) -> (Vec<(u32, usize)>, Vec<usize>) {
        let files = self.files.iter().map(|(&file, history)| {
            let done = history.done;
            (file, done)
        });
        let ended = |slot: &Slot| slot.bindings.iter().filter(|b| b.end.is_some()).count();
        (files.collect(), self.slots.iter().map(ended).collect())
    }

    fn synced_names(&mut self, cut: usize, done: &[usize]) {
        for (slot, &done) in self.slots.iter_mut().zip(done) {
            slot.synced.push((cut, done));
        }
    }

    /// Whether a name's content is possible after a cut.
    fn check(
        &self,
        slot: usize,
        found: Option<&[u8]>,
        cut: usize,
        loses: bool,
    ) -> Result<(), String> {
        let bindings = &self.slots[slot].bindings;
        let oldest = if loses {
            let synced = &self.slots[slot].synced;
            let synced = synced.iter().filter(|synced| synced.0 <= cut);
            synced.map(|synced| synced.1).max().unwrap_or(1) - 1
        } else {
            let ended = |binding: &Binding| binding.end.is_some_and(|end| end <= cut);
            bindings.iter().rposition(ended).unwrap_or(0)
        };
        let mut why = String::new();
        for binding in &bindings[oldest..] {
            if binding.begun >= cut && binding.begun > 0 && binding.end.is_none_or(|end| end > cut)
            {
                continue;
            }
            let checked = match (binding.file, found) {
                (None, None) => Ok(()),
                (Some(file), Some(found)) => {
                    let history = &self.files[&file];
                    let synced = history.synced_at(cut);
                    let least = if loses { 0 } else { binding.whole };
                    history
                        .check(found, cut, synced.max(least), loses)
                        .map_err(|error| format!("file {file}, {synced} events synced: {error}"))
                }
                (Some(file), None) => Err(format!("file {file} is not there")),
                (None, Some(_)) => Err("a file that was deleted is there".to_owned()),
            };
            match checked {
                Ok(()) => return Ok(()),
                Err(error) => why = format!("{why}; {error}"),
            }
        }
        Err(why)
    }
}

/// A program that works in a directory of its own.
struct Writer<'a> {
    at: PathBuf,
    record: &'a Record,
    model: &'a Mutex<Model>,
    random: Random,
    next: u32,
    open: Vec<Option<File>>,
}

impl Writer<'_> {
    /// The file under a name, by a descriptor that may be an old one.
    fn file(&mut self, slot: usize) -> File {
        if let Some(file) = self.open[slot].take_if(|_| self.random.one_in(3)) {
            return file;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.at.join(SLOTS[slot]));
        file.unwrap()
    }

    fn event(&self, file: u32, what: What) {
        let begun = self.record.len();
        let mut model = self.model.lock().unwrap();
        model
            .files
            .get_mut(&file)
            .unwrap()
            .events
            .push((begun, what));
    }

    /// What was begun with a file is done, and is safe if it was synced.
    fn done(&self, file: u32, synced: bool) {
        let cut = self.record.len();
        let mut model = self.model.lock().unwrap();
        let history = model.files.get_mut(&file).unwrap();
        history.done = history.events.len();
        if synced {
            history.synced.push((cut, history.done));
        }
    }

    fn bytes(&self, file: u32, from: usize, to: usize) -> Vec<u8> {
        let model = self.model.lock().unwrap();
        let version = model.files[&file].events.len() as u32;
        (from..to).flat_map(|at| cell(file, version, at)).collect()
    }

    fn len(&self, file: u32) -> usize {
        let model = self.model.lock().unwrap();
        let history = &model.files[&file];
        history.after(history.events.len()).len()
    }

    /// Names change while `work` is done.
    fn bind(&self, changes: &[(usize, Option<u32>, usize)], work: impl FnOnce()) {
        let begun = self.record.len();
        {
            let mut model = self.model.lock().unwrap();
            for &(slot, file, whole) in changes {
                model.slots[slot].bindings.push(Binding {
                    file,
                    begun,
                    end: None,
                    whole,
                });
            }
        }
        work();
        let end = self.record.len();
        let mut model = self.model.lock().unwrap();
        for &(slot, ..) in changes {
            model.slots[slot].bindings.last_mut().unwrap().end = Some(end);
        }
    }

    fn create(&mut self, slot: usize) -> u32 {
        self.next += 1;
        let file = self.next;
        let history = History {
            file,
            ..History::default()
        };
        self.model.lock().unwrap().files.insert(file, history);
        self.bind(&[(slot, Some(file), 0)], || {
            let new = File::create_new(self.at.join(SLOTS[slot]));
            drop(new.unwrap());
        });
        file
    }

    fn write(&mut self, slot: usize, file: u32, from: usize, to: usize) {
        self.event(file, What::Write(from, to));
        let bytes = self.bytes(file, from, to);
        let at = (from * CELL) as u64;
        let syncs = self.random.one_in(6);
        if syncs {
            use std::os::unix::fs::OpenOptionsExt;
            let mut options = OpenOptions::new();
            options.write(true).custom_flags(libc::O_DSYNC);
            let file = options.open(self.at.join(SLOTS[slot])).unwrap();
            file.write_all_at(&bytes, at).unwrap();
        } else {
            let file = self.file(slot);
            file.write_all_at(&bytes, at).unwrap();
            self.open[slot] = Some(file);
        }
        self.done(file, syncs);
    }

    /// By a mapping, which is synced.
    fn write_mapped(&mut self, slot: usize, file: u32, from: usize, to: usize) {
        let opened = self.file(slot);
        let len = self.len(file) * CELL;
        self.event(file, What::Write(from, to));
        let bytes = self.bytes(file, from, to);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping of a file that this thread alone changes, used within its length and unmapped once.
        unsafe {
            let at = mmap(std::ptr::null_mut(), len, protection, flags, &opened, 0).unwrap();
            let target = at.cast::<u8>().add(from * CELL);
            target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            msync(at, len, MsyncFlags::SYNC).unwrap();
            munmap(at, len).unwrap();
        }
        self.done(file, true);
    }

    fn sync(&mut self, slot: usize, file: u32) {
        let opened = self.file(slot);
        match self.random.one_in(2) {
            true => opened.sync_data().unwrap(),
            false => opened.sync_all().unwrap(),
        }
        self.done(file, true);
        self.open[slot] = Some(opened);
    }

    fn rename(&mut self, from: usize, to: usize) {
        let (whole, file, over) = {
            let model = self.model.lock().unwrap();
            let file = model.slots[from].file().unwrap();
            let over = model.slots[to].file().is_some();
            (model.files[&file].events.len(), file, over)
        };
        let whole = if over { whole } else { 0 };
        self.bind(&[(from, None, 0), (to, Some(file), whole)], || {
            fs::rename(self.at.join(SLOTS[from]), self.at.join(SLOTS[to])).unwrap();
        });
        self.open[to] = self.open[from].take();
    }

    fn sync_names(&self) {
        let done = self.model.lock().unwrap().done().1;
        File::open(&self.at).unwrap().sync_all().unwrap();
        let cut = self.record.len();
        self.model.lock().unwrap().synced_names(cut, &done);
    }

    fn read(&self, slot: usize, file: u32) {
        let found = fs::read(self.at.join(SLOTS[slot])).unwrap();
        let model = self.model.lock().unwrap();
        let history = &model.files[&file];
        let read = history.check(&found, usize::MAX, history.events.len(), false);
        read.unwrap_or_else(|error| panic!("reading file {file}: {error}"));
    }

    fn step(&mut self) {
        let slot = self.random.below(SLOTS.len() - 1);
        let file = self.model.lock().unwrap().slots[slot].file();
        let Some(file) = file else {
            let file = self.create(slot);
            let to = 1 + self.random.below(600);
            return self.write(slot, file, 0, to);
        };
        let len = self.len(file);
        let end = |random: &mut Random, from: usize| (from + 1 + random.below(500)).min(MOST);
        match self.random.below(20) {
            0..5 => {
                let from = self.random.below(len + 1).min(MOST - 1);
                let to = end(&mut self.random, from);
                self.write(slot, file, from, to);
            }
            5..8 if len < MOST => {
                let to = end(&mut self.random, len);
                self.write(slot, file, len, to);
            }
            // Behind its end, which leaves a hole.
            8 => {
                let from = (len + self.random.below(300)).min(MOST - 1);
                let to = end(&mut self.random, from);
                self.write(slot, file, from, to);
            }
            9 => {
                let to = self.random.below(len + 200).min(MOST);
                let opened = self.file(slot);
                self.event(file, What::SetLen(to));
                opened.set_len((to * CELL) as u64).unwrap();
                self.done(file, false);
            }
            10 if len > 0 => {
                let from = self.random.below(len);
                let to = end(&mut self.random, from).min(len);
                let opened = self.file(slot);
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                self.event(file, What::Punch(from, to));
                let (at, bytes) = (from * CELL, (to - from) * CELL);
                fallocate(opened.as_fd(), mode, at as u64, bytes as u64).unwrap();
                self.done(file, false);
            }
            11 if len > 0 => {
                let from = self.random.below(len);
                let to = end(&mut self.random, from).min(len);
                self.write_mapped(slot, file, from, to);
            }
            12..14 => self.sync(slot, file),
            14..16 => {
                let new = SLOTS.len() - 1;
                let file = self.create(new);
                let to = 1 + self.random.below(900);
                self.write(new, file, 0, to);
                if self.random.one_in(2) {
                    self.sync(new, file);
                }
                self.rename(new, slot);
            }
            16 => {
                let to = (slot + 1) % (SLOTS.len() - 1);
                self.rename(slot, to);
            }
            17 => {
                self.open[slot] = None;
                self.bind(&[(slot, None, 0)], || {
                    fs::remove_file(self.at.join(SLOTS[slot])).unwrap();
                });
            }
            18 => self.sync_names(),
            _ => self.read(slot, file),
        }
        // Time in which what is old is written.
        if self.random.one_in(4) {
            std::thread::sleep(Duration::from_millis(self.random.below(25) as u64));
        }
    }
}

/// Files or directories of a source in memory.
#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    /// What a disk has for sure.
    synced: Vec<u8>,
    /// Changes that it may lose.
    since: Vec<usize>,
}

type Names = BTreeMap<Name, Object>;

/// What the changes up to a moment make of an empty source.
#[derive(Default)]
struct Disk {
    contents: Vec<Content>,
    names: Names,
    synced_names: Names,
    /// The first change that these lack.
    names_since: usize,
}

fn change_bytes(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write {
            offset, bytes: new, ..
        } => write_bytes(bytes, *offset as usize, new),
        Change::SetLen { len, .. } => bytes.resize(*len as usize, 0),
        Change::Punch { offset, len, .. } => {
            let end = ((offset + len) as usize).min(bytes.len());
            let from = (*offset as usize).min(end);
            bytes[from..end].fill(0);
        }
        _ => unreachable!("it changes no content"),
    }
}

fn write_bytes(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    bytes.resize(bytes.len().max(at + new.len()), 0);
    bytes[at..at + new.len()].copy_from_slice(new);
}

fn change_names(names: &mut Names, change: &Change) {
    match change {
        Change::Make { name, object } => drop(names.insert(name.clone(), *object)),
        Change::Unlink { name } => drop(names.remove(name)),
        Change::Rename { from, to } => {
            if let Some(object) = names.remove(from) {
                names.insert(to.clone(), object);
            }
        }
        _ => {}
    }
}

impl Disk {
    fn apply(&mut self, number: usize, change: &Change) {
        match change {
            Change::Make { .. } | Change::Unlink { .. } | Change::Rename { .. } => {
                change_names(&mut self.names, change);
            }
            Change::Write { object, .. }
            | Change::SetLen { object, .. }
            | Change::Punch { object, .. } => {
                let content = self.content(*object);
                change_bytes(&mut content.bytes, change);
                content.since.push(number);
            }
            Change::Sync { object } => {
                let is_directory = *object == 0 || self.names.keys().any(|name| name.0 == *object);
                self.content(*object).sync();
                if is_directory {
                    self.sync_names(number);
                }
            }
            Change::SyncAll => {
                self.contents.iter_mut().for_each(Content::sync);
                self.sync_names(number);
            }
        }
    }

    fn content(&mut self, object: Object) -> &mut Content {
        let len = self.contents.len().max(object + 1);
        self.contents.resize_with(len, Content::default);
        &mut self.contents[object]
    }

    fn sync_names(&mut self, number: usize) {
        self.synced_names.clone_from(&self.names);
        self.names_since = number;
    }

    /// The files in directories of the source: those of the directory's name, and of their own.
    fn tree(names: &Names, bytes: impl Fn(Object) -> Vec<u8>) -> Tree {
        let mut tree = Tree::new();
        for ((directory, name), &object) in names {
            if *directory == 0 {
                tree.entry(name.clone()).or_default();
                continue;
            }
            let above = names.iter().find(|(_, above)| **above == *directory);
            if let Some(((0, above), _)) = above {
                let files = tree.entry(above.clone()).or_default();
                files.insert(name.clone(), bytes(object));
            }
        }
        tree
    }

    /// What is left if the disk had done all.
    fn whole(&self) -> Tree {
        Self::tree(&self.names, |object| {
            let content = self.contents.get(object);
            content.map_or_else(Vec::new, |content| content.bytes.clone())
        })
    }

    /// What is left if it had not.
    fn torn(&self, record: &[Change], cut: usize, random: &mut Random) -> Tree {
        let mut names = self.synced_names.clone();
        let until = self.names_since + random.below(cut - self.names_since + 1);
        for change in &record[self.names_since..until] {
            change_names(&mut names, change);
        }
        let random = std::cell::RefCell::new(random);
        Self::tree(&names, |object| {
            let Some(content) = self.contents.get(object) else {
                return Vec::new();
            };
            let random = &mut **random.borrow_mut();
            let mut since = content.since.clone();
            if random.one_in(2) {
                for at in (1..since.len()).rev() {
                    since.swap(at, random.below(at + 1));
                }
            }
            // Of so many one is there.
            let share = [1, 2, 10, usize::MAX][random.below(4)];
            let mut bytes = content.synced.clone();
            for change in since.into_iter().map(|number| &record[number]) {
                let Change::Write {
                    offset, bytes: new, ..
                } = change
                else {
                    if random.one_in(share) {
                        change_bytes(&mut bytes, change);
                    }
                    continue;
                };
                let (mut at, mut new) = (*offset as usize, &new[..]);
                while !new.is_empty() {
                    let (sector, others) = new.split_at(new.len().min(SECTOR - at % SECTOR));
                    if random.one_in(share) {
                        write_bytes(&mut bytes, at, sector);
                    }
                    (at, new) = (at + sector.len(), others);
                }
            }
            bytes
        })
    }
}

impl Content {
    fn sync(&mut self) {
        self.synced.clone_from(&self.bytes);
        self.since.clear();
    }
}

/// Directories with files.
type Tree = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

fn check(models: &[Mutex<Model>], tree: &Tree, cut: usize, loses: bool) -> Result<(), String> {
    for (writer, model) in models.iter().enumerate() {
        let model = model.lock().unwrap();
        let files = tree
            .get(writer.to_string().as_bytes())
            .ok_or("a directory is not there")?;
        for (slot, name) in SLOTS.iter().enumerate() {
            let found = files.get(name.as_bytes()).map(Vec::as_slice);
            let checked = model.check(slot, found, cut, loses);
            checked.map_err(|error| format!("{writer}/{name}{error}"))?;
        }
    }
    Ok(())
}

/// A tree of files, as it is below a directory.
fn read_tree(root: &Path) -> Tree {
    let name = |path: &Path| path.file_name().unwrap().as_encoded_bytes().to_vec();
    let paths = |path: &Path| -> Vec<_> {
        let all = fs::read_dir(path).unwrap();
        all.map(|entry| entry.unwrap().path()).collect()
    };
    let files = |path: PathBuf| {
        let files = paths(&path)
            .into_iter()
            .map(|file| (name(&file), fs::read(&file).unwrap()));
        (name(&path), files.collect())
    };
    paths(root).into_iter().map(files).collect()
}

/// What is left is mounted again, and works.
fn mount_again(tree: &Tree) -> Tree {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let (source, at) = (directory(), directory());
    for (name, files) in tree {
        let path = source.path().join(OsStr::from_bytes(name));
        fs::create_dir(&path).unwrap();
        for (name, bytes) in files {
            fs::write(path.join(OsStr::from_bytes(name)), bytes).unwrap();
        }
    }
    let mount = MountOptions::new(source.path(), at.path()).cache_bytes(1 << 20);
    let mount = mount.mount().unwrap();
    let found = read_tree(at.path());
    let file = File::create(at.path().join("file")).unwrap();
    file.write_all_at(b"text", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs::read(source.path().join("file")).unwrap(), b"text");
    drop(file);
    mount.unmount().unwrap();
    found
}

/// Programs at work, and what the record says. None where a process cannot be traced.
fn work(seed: u64) -> Option<(Vec<Mutex<Model>>, Vec<Change>, usize)> {
    let (source, at) = (directory(), directory());
    let _mountpoint = Mountpoint(at.path());
    // One that writes back all the time, and one that does so when it must.
    let more = ["", ":shared:1048576"][seed as usize % 2];
    let recorder = Recorder::start(source.path(), at.path(), more)?;
    let record = &*recorder.record;
    for writer in 0..WRITERS {
        fs::create_dir(at.path().join(writer.to_string())).unwrap();
    }
    File::open(at.path()).unwrap().sync_all().unwrap();
    let begin = record.len();
    let models: Vec<_> = (0..WRITERS).map(|_| Mutex::new(Model::new())).collect();
    let control = Control::connect(at.path()).unwrap();
    std::thread::scope(|scope| {
        for (writer, model) in models.iter().enumerate() {
            let mut writer = Writer {
                at: at.path().join(writer.to_string()),
                record,
                model,
                random: Random::new(seed * WRITERS as u64 + writer as u64 + 1),
                next: writer as u32 * 1_000_000,
                open: SLOTS.map(|_| None).into(),
            };
            scope.spawn(move || (0..STEPS).for_each(|_| writer.step()));
        }
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(150));
            let done = models.iter().map(|model| model.lock().unwrap().done());
            let done: Vec<_> = done.collect();
            control.sync().unwrap();
            let cut = record.len();
            for (model, (files, names)) in models.iter().zip(done) {
                let mut model = model.lock().unwrap();
                for (file, done) in files {
                    let history = model.files.get_mut(&file).unwrap();
                    history.synced.push((cut, done));
                }
                model.synced_names(cut, &names);
            }
        }
    });
    control.unmount().unwrap();
    let record = recorder.end();
    let mut disk = Disk::default();
    for (number, change) in record.iter().enumerate() {
        disk.apply(number, change);
    }
    let same = disk.whole() == read_tree(source.path());
    assert!(same, "the record has all that changed the source");
    Some((models, record, begin))
}

#[test]
fn a_power_cut_loses_nothing_that_was_synced() {
    let Some(first) = mounted(|options| options) else {
        return;
    };
    drop(first);
    let wanted = std::env::var(CUTS).map_or(2000, |text| text.parse().expect("a number of cuts"));
    let (mut cuts, mut synced, mut seed) = (0, 0, 0);
    while cuts < wanted {
        let Some((models, record, begin)) = work(seed) else {
            return;
        };
        let mut random = Random::new(seed + 1);
        let mut disk = Disk::default();
        let fail = |cut: usize, what: &str, error: &str| -> ! {
            let last: Vec<_> = record[cut.saturating_sub(8)..cut]
                .iter()
                .map(brief)
                .collect();
            panic!(
                "seed {seed}, {what} after {cut} changes: {error}\n{}",
                last.join("\n")
            )
        };
        for cut in 0..=record.len() {
            if cut > 0 {
                disk.apply(cut - 1, &record[cut - 1]);
            }
            if cut < begin {
                continue;
            }
            let whole = disk.whole();
            if let Err(error) = check(&models, &whole, cut, false) {
                fail(cut, "all that was done", &error);
            }
            let torn = disk.torn(&record, cut, &mut random);
            if let Err(error) = check(&models, &torn, cut, true) {
                fail(cut, "a part of what was not synced", &error);
            }
            if random.one_in(record.len() / 4) {
                for tree in [whole, torn] {
                    assert!(mount_again(&tree) == tree, "the mount's tree");
                }
            }
            cuts += 2;
        }
        let files = |model: &Mutex<Model>| -> usize {
            let model = model.lock().unwrap();
            model.files.values().map(|file| file.synced.len()).sum()
        };
        synced += models.iter().map(files).sum::<usize>();
        seed += 1;
    }
    println!("{cuts} power cuts, {seed} records: none of {synced} syncs of a file lost anything");
    assert!(synced > 0, "something was synced");
}

/// A change, without its bytes.
fn brief(change: &Change) -> String {
    match change {
        Change::Write {
            object,
            offset,
            bytes,
        } => format!(
            "Write {{ object: {object}, offset: {offset}, {} bytes }}",
            bytes.len()
        ),
        other => format!("{other:?}"),
    }
}
