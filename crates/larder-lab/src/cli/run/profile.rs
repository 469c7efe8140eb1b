//! What the program's malloc sampled: the profile for pprof, and the stacks of what lived at the end.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::super::failure::{Failure, Outcome};
use super::names::Names;

/// Stacks that are listed.
const LISTED: usize = 20;
/// Frames of each.
const FRAMES: usize = 16;

/// The folder into which each process writes its profile; gone at the end.
pub(super) struct Files(PathBuf);

impl Files {
    pub(super) fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir();
        for turn in 0..100_u32 {
            let path = folder.join(format!("larder-heap-{}-{turn}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(written(&folder, &e)),
            }
        }
        Err(written(&folder, &io::ErrorKind::AlreadyExists.into()))
    }

    /// As the library wants it.
    pub(super) fn pattern(&self) -> PathBuf {
        self.0.join("%p")
    }

    /// Compresses the profiles: the program's to `path`, those of other processes to the same with their number.
    pub(super) fn save(&self, path: &Path, own: u32) -> Outcome {
        let mut any = false;
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let process = entry.file_name();
            let mut to = path.as_os_str().to_owned();
            if process == *own.to_string() {
                any = true;
            } else {
                to.push(".");
                to.push(process);
            }
            compress(&entry.path(), Path::new(&to)).map_err(|e| written(Path::new(&to), &e))?;
        }
        if !any {
            silent();
        }
        Ok(())
    }

    /// What of the program lived at its end.
    pub(super) fn alive(&self, own: u32) -> Result<Alive, Failure> {
        let path = self.0.join(own.to_string());
        match fs::read(&path) {
            Ok(bytes) => Ok(Alive::read(&bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                silent();
                Ok(Alive::default())
            }
            Err(e) => Err(Failure::io(format!(
                "{} cannot be read: {e}",
                path.display()
            ))),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn written(path: &Path, e: &io::Error) -> Failure {
    Failure::io(format!("{} cannot be written: {e}", path.display()))
}

fn silent() {
    let _ = writeln!(
        io::stderr(),
        "larder: the program wrote no heap profile: it ended by a signal or _exit, or the library was not loaded"
    );
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mut to = GzEncoder::new(File::create(to)?, Compression::default());
    io::copy(&mut from, &mut to)?;
    to.finish().map(drop)
}

/// Stacks that allocated what lived at the end, by samples.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Alive {
    /// Bytes of all.
    bytes: u64,
    /// How many there are.
    stacks: usize,
    /// Most bytes first.
    largest: Vec<Stack>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Stack {
    bytes: u64,
    blocks: u64,
    /// The innermost first.
    frames: Vec<String>,
}

/// The fields of a message by their number: numbers, and what has a length.
#[derive(Default)]
struct Message<'a> {
    numbers: Vec<(u64, u64)>,
    parts: Vec<(u64, &'a [u8])>,
}

impl<'a> Message<'a> {
    /// What there is up to the first field that is none.
    fn read(mut bytes: &'a [u8]) -> Self {
        let mut all = Self::default();
        while let Some(key) = varint(&mut bytes) {
            let Some(n) = varint(&mut bytes) else { break };
            match key & 7 {
                0 => all.numbers.push((key >> 3, n)),
                2 => match bytes.split_at_checked(usize::try_from(n).unwrap_or(usize::MAX)) {
                    Some((part, rest)) => {
                        all.parts.push((key >> 3, part));
                        bytes = rest;
                    }
                    None => break,
                },
                _ => break,
            }
        }
        all
    }

    fn all(&self, field: u64) -> impl Iterator<Item = u64> {
        let of = move |&(number, n): &(u64, u64)| (number == field).then_some(n);
        self.numbers.iter().filter_map(of)
    }

    fn number(&self, field: u64) -> u64 {
        self.all(field).next().unwrap_or(0)
    }

    fn parts(&self, field: u64) -> impl Iterator<Item = &'a [u8]> {
        let of = move |&(number, part): &(u64, &'a [u8])| (number == field).then_some(part);
        self.parts.iter().filter_map(of)
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(n);
        }
    }
    None
}

impl Alive {
    /// Of a profile in pprof's format, as the library writes it.
    fn read(bytes: &[u8]) -> Self {
        let profile = Message::read(bytes);
        let strings: Vec<&[u8]> = profile.parts(6).collect();
        let mappings: HashMap<u64, Message<'_>> = profile
            .parts(3)
            .map(Message::read)
            .map(|m| (m.number(1), m))
            .collect();
        let locations: HashMap<u64, Message<'_>> = profile
            .parts(4)
            .map(Message::read)
            .map(|m| (m.number(1), m))
            .collect();
        let mut stacks: Vec<(u64, u64, Vec<u64>)> = profile
            .parts(2)
            .map(Message::read)
            .filter_map(|sample| {
                let values: Vec<u64> = sample.all(2).collect();
                let &[_, _, blocks, bytes] = values.as_slice() else {
                    return None;
                };
                (bytes > 0).then(|| (bytes, blocks, sample.all(1).collect()))
            })
            .collect();
        stacks.sort_by(|a, b| b.cmp(a));
        let mut names = Names::default();
        let mut frames = |id: &u64| {
            let location = locations.get(id);
            let at = location.map_or(0, |location| location.number(3));
            let mapping = location.and_then(|location| mappings.get(&location.number(2)));
            let Some(mapping) = mapping else {
                return vec![format!("{at:#x}")];
            };
            let file = strings
                .get(mapping.number(5) as usize)
                .copied()
                .unwrap_or_default();
            let file = String::from_utf8_lossy(file).into_owned();
            let offset = at
                .wrapping_sub(mapping.number(2))
                .wrapping_add(mapping.number(4));
            let place = format!("({file}+{offset:#x})");
            let found = names.at(Path::new(&file), offset);
            if found.is_empty() {
                return vec![place];
            }
            found.iter().map(|name| format!("{name} {place}")).collect()
        };
        let largest = stacks
            .iter()
            .take(LISTED)
            .map(|(bytes, blocks, calls)| Stack {
                bytes: *bytes,
                blocks: *blocks,
                frames: calls.iter().flat_map(&mut frames).take(FRAMES).collect(),
            });
        Self {
            largest: largest.collect(),
            bytes: stacks
                .iter()
                .fold(0, |sum, (bytes, ..)| sum.saturating_add(*bytes)),
            stacks: stacks.len(),
        }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Outcome {
        for stack in &self.largest {
            writeln!(
                out,
                "larder: alive: about {} bytes in {} blocks:",
                stack.bytes, stack.blocks
            )?;
            for frame in &stack.frames {
                // Names come from the program.
                let frame: String = frame.chars().filter(|c| !c.is_control()).collect();
                writeln!(out, "    {frame}")?;
            }
        }
        writeln!(
            out,
            "larder: alive: about {} bytes from {} stacks",
            self.bytes, self.stacks
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_profile_is_empty_or_read_as_far_as_it_goes() {
        // A sample of four values without a place, another field, and one that is cut off.
        let sample = [0x12, 10, 8, 5, 16, 9, 16, 90, 16, 3, 16, 30];
        let whole = Alive::read(&sample);
        assert_eq!((whole.bytes, whole.stacks), (30, 1));
        assert_eq!(whole.largest[0].frames, ["0x0"]);
        let cut = [&sample[..], &[0x58, 1, 0x12, 100, 8]].concat();
        assert_eq!(Alive::read(&cut), whole);
        for end in 0..sample.len() {
            assert_eq!(Alive::read(&sample[..end]), Alive::default());
        }
        assert_eq!(Alive::read(&[0xff; 40]), Alive::default());
    }
}
