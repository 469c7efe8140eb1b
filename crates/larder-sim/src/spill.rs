//! A file without a name, for what memory does not hold: appended by any thread, read from any place.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::SimError;

/// Where a trace goes that does not fit in its memory, and how much of it.
///
/// ```
/// use larder_sim::{Loaded, ReadOptions, SpillTo, Trace};
///
/// let text: String = (0..3000).map(|n| format!("{}\n", n % 7)).collect();
/// let spill = SpillTo { dir: std::env::temp_dir(), most: 1 << 20 };
/// let options = ReadOptions { max_memory: 40 << 10, spill: Some(spill), ..ReadOptions::default() };
/// let trace = Trace::over("t.txt", std::io::Cursor::new(text), &options)?;
/// let trace = Loaded::from_trace(trace, |_| {})?;
/// assert_eq!((trace.records(), trace.spilled()), (3000, 0)); // the last part is kept
/// # Ok::<(), larder_sim::SimError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SpillTo {
    /// The directory of the file. It has no name there, and is gone when the program ends, however it ends.
    pub dir: PathBuf,
    /// Most bytes.
    pub most: u64,
}

/// The file, which is made when something comes.
#[derive(Debug)]
pub(super) struct Spill {
    trace: String,
    to: SpillTo,
    file: OnceLock<File>,
    end: AtomicU64,
}

impl Spill {
    pub(super) fn new(trace: &str, to: &SpillTo) -> Self {
        Self {
            trace: trace.to_owned(),
            to: to.clone(),
            file: OnceLock::new(),
            end: AtomicU64::new(0),
        }
    }

    /// Bytes in it.
    pub(super) fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn fault(&self, why: io::Error) -> SimError {
        SimError::Spill {
            trace: self.trace.clone(),
            dir: self.to.dir.clone(),
            why,
        }
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        static MADE: AtomicU64 = AtomicU64::new(0);
        let n = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!(".larder-{}-{n}", std::process::id());
        let path = self.to.dir.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        fs::remove_file(&path)?;
        // Of two threads that come first together one drops its own, which has no name either.
        Ok(self.file.get_or_init(|| file))
    }

    /// Appends; the place.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<u64, SimError> {
        let len = bytes.len() as u64;
        let most = self.to.most;
        let room = |end: u64| end.checked_add(len).filter(|end| *end <= most);
        let at = self
            .end
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        let Ok(at) = at else {
            return Err(SimError::TooMuch {
                trace: self.trace.clone(),
                fault: format!(
                    "it takes more than its memory and the {} MiB that it may take in {}; raise --max-spill or \
                     --max-memory, name a directory with more room with --spill, or take a part with --limit",
                    most >> 20,
                    self.to.dir.display()
                ),
            });
        };
        self.file()
            .and_then(|file| file.write_all_at(bytes, at))
            .map_err(|why| self.fault(why))?;
        Ok(at)
    }

    /// Reads back what was written there.
    pub(super) fn read(&self, at: u64, len: usize) -> Result<Vec<u8>, SimError> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| self.fault(io::ErrorKind::OutOfMemory.into()))?;
        bytes.resize(len, 0);
        self.file()
            .and_then(|file| file.read_exact_at(&mut bytes, at))
            .map_err(|why| self.fault(why))?;
        Ok(bytes)
    }
}

/// Numbers as bytes.
pub(super) fn append(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
}

/// Numbers that [`append`] wrote.
pub(super) fn numbers(bytes: &[u8]) -> Vec<u32> {
    let (whole, _) = bytes.as_chunks::<4>();
    whole.iter().map(|n| u32::from_le_bytes(*n)).collect()
}
