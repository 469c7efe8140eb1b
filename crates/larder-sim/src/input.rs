//! Bytes of a trace: opened, decompressed, counted.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::SimError;

/// Bytes that format detection reads, and the least that a buffer holds.
pub(super) const HEAD: usize = 1 << 16;
/// Longest line. A file with longer lines is no trace.
const LONGEST_LINE: usize = 1 << 20;
const BUFFER: usize = 1 << 18;

/// The bytes of a trace, decompressed.
pub(super) struct Input {
    name: String,
    inner: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes before `buffer[0]`.
    before: u64,
    /// The whole content's length where it is known (a plain file).
    length: Option<u64>,
    eof: bool,
}

/// How far a file has been read, for a progress bar.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    done: Arc<AtomicU64>,
    total: u64,
}

impl Meter {
    /// Bytes of the file (compressed, where it is) that were read.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes of the file; 0 if unknown (a pipe).
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

struct Counted<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> Result<(Self, Meter), SimError> {
        let name = path.display().to_string();
        let done = Arc::new(AtomicU64::new(0));
        if path == Path::new("-") {
            let meter = Meter {
                done: done.clone(),
                total: 0,
            };
            let raw = Counted {
                inner: io::stdin(),
                done,
            };
            return Ok((Self::over("-".to_owned(), Box::new(raw), None)?, meter));
        }
        let open = |why| SimError::Open {
            trace: name.clone(),
            why,
        };
        let file = File::open(path).map_err(open)?;
        let meta = file.metadata().map_err(open)?;
        if meta.is_dir() {
            return Err(SimError::Directory { trace: name });
        }
        let length = meta.is_file().then_some(meta.len());
        let meter = Meter {
            done: done.clone(),
            total: length.unwrap_or(0),
        };
        let input = Self::over(name, Box::new(Counted { inner: file, done }), length)?;
        Ok((input, meter))
    }

    /// Any bytes, compressed or not.
    pub(super) fn over(
        name: String,
        mut raw: Box<dyn Read + Send>,
        length: Option<u64>,
    ) -> Result<Self, SimError> {
        let mut head = Vec::new();
        let fail = |why| SimError::Read {
            trace: name.clone(),
            at: 0,
            why,
        };
        (&mut raw).take(6).read_to_end(&mut head).map_err(fail)?;
        let kind = Packed::of(&head);
        let whole: Box<dyn Read + Send> = Box::new(io::Cursor::new(head).chain(raw));
        let inner: Box<dyn Read + Send> = match kind {
            Packed::No => whole,
            Packed::Gz => Box::new(flate2::read::MultiGzDecoder::new(
                io::BufReader::with_capacity(BUFFER, whole),
            )),
            Packed::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole)),
            Packed::Zst => Box::new(zstd::stream::read::Decoder::new(whole).map_err(fail)?),
        };
        Ok(Self {
            name,
            inner,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            before: 0,
            length: length.filter(|_| kind == Packed::No),
            eof: false,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Length of all contents where it is known before they are read.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Reads until at least `wanted` bytes are there or the end has come.
    fn want(&mut self, wanted: usize) -> Result<(), SimError> {
        while self.end - self.start < wanted && !self.eof {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.before += self.start as u64;
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            match self.inner.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => {
                    return Err(SimError::Read {
                        trace: self.name.clone(),
                        at: self.before + self.end as u64,
                        why,
                    });
                }
            }
        }
        Ok(())
    }

    /// The first bytes, without consuming them; true if that is all there is.
    pub(super) fn head(&mut self) -> Result<(&[u8], bool), SimError> {
        self.want(HEAD + 1)?;
        let there = &self.buffer[self.start..self.end];
        Ok((&there[..there.len().min(HEAD)], there.len() <= HEAD))
    }

    /// Some whole pieces of `width` bytes, at most `most` of them; an empty slice at the end. [`rest`](Self::rest) then returns the bytes
    /// that are left over.
    pub(super) fn pieces(&mut self, width: usize, most: usize) -> Result<&[u8], SimError> {
        self.want(width)?;
        let whole = ((self.end - self.start) / width).min(most) * width;
        self.start += whole;
        Ok(&self.buffer[self.start - whole..self.start])
    }

    /// Bytes that are there and not consumed.
    pub(super) fn rest(&self) -> usize {
        self.end - self.start
    }

    /// The next line without its end, or nothing at the end.
    pub(super) fn line(&mut self) -> Result<Option<&[u8]>, SimError> {
        let mut wanted = 1;
        loop {
            self.want(wanted)?;
            let there = &self.buffer[self.start..self.end];
            // Bytes that an earlier pass has searched need not be searched again.
            let found = memchr::memchr(b'\n', &there[wanted - 1..]).map(|n| n + wanted - 1);
            let (len, skip) = match found {
                Some(n) => (n, n + 1),
                None if self.eof && there.is_empty() => return Ok(None),
                None if self.eof => (there.len(), there.len()),
                None if there.len() > LONGEST_LINE => {
                    return Err(SimError::Wrong {
                        trace: self.name.clone(),
                        place: super::Place::Byte(self.offset()),
                        fault: format!(
                            "a line begins here that is longer than {LONGEST_LINE} bytes: this is no text"
                        ),
                    });
                }
                None => {
                    wanted = there.len() + 1;
                    continue;
                }
            };
            let from = self.start;
            self.start += skip;
            let line = &self.buffer[from..from + len];
            return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
        }
    }
}

/// How bytes are compressed, by their first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packed {
    No,
    Gz,
    Xz,
    Zst,
}

impl Packed {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, ..] => Self::Gz,
            [0xfd, b'7', b'z', b'X', b'Z', 0] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zst,
            _ => Self::No,
        }
    }
}
