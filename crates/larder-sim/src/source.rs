//! A trace as a stream of records.

use std::io::{self, ErrorKind::NotFound, Read};
use std::path::Path;

use super::detect::{detect, is_binary};
use super::format::Format;
use super::input::{HEAD, Input, Meter};
use super::options::ReadOptions;
use super::parser::{BATCH, Parser};
use super::read::parser;
use super::record::Record;
use super::sink::Sink;
use super::workload::{Records, Spec, hint};
use super::{SimError, SpillTo};

/// The mark that some programs put before UTF-8, which is no part of the text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// A trace that is being read.
///
/// ```
/// use larder_sim::{Format, ReadOptions, Trace};
///
/// let text: &[u8] = b"7\n8\n7\n";
/// let options = ReadOptions { format: Some(Format::Txt), ..ReadOptions::default() };
/// let mut trace = Trace::over("three lines", text, &options)?;
/// let mut records = Vec::new();
/// while trace.fill(&mut records)? {}
/// assert_eq!(records.iter().map(|r| r.block).collect::<Vec<_>>(), [7, 8, 7]);
/// # Ok::<(), larder_sim::SimError>(())
/// ```
pub struct Trace {
    input: Input,
    parser: Box<dyn Parser>,
    sink: Sink,
    format: Option<Format>,
    meter: Meter,
    touches_apart: bool,
    tick: u32,
    max_memory: u64,
    spill: Option<SpillTo>,
    limit: u64,
    given: u64,
    over: bool,
}

impl Trace {
    /// Opens a file, `-` for standard input, or makes a workload (`zipf:blocks=1000`, see [`Spec`]).
    ///
    /// ```
    /// use larder_sim::{ReadOptions, Trace};
    /// let mut trace = Trace::open("scan:requests=5".as_ref(), &ReadOptions::default())?;
    /// let mut records = Vec::new();
    /// while trace.fill(&mut records)? {}
    /// assert_eq!((trace.format(), records.len()), (None, 5));
    /// # Ok::<(), larder_sim::SimError>(())
    /// ```
    ///
    /// # Errors
    /// [`SimError`]: not there, a directory, or of no format that is known; a parameter that a workload does not have.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, SimError> {
        let spec = path.to_str().map(Spec::parse).transpose()?.flatten();
        match spec {
            Some(spec) => {
                let input =
                    Input::over(path.display().to_string(), Box::new(io::empty()), Some(0))?;
                let made = Box::new(Generated(spec.records(options)?));
                Ok(Self::with(input, Meter::default(), options, None, made))
            }
            None => {
                let (input, meter) = Input::open(path).map_err(|why| match (why, hint(path)) {
                    (SimError::Open { trace, why }, Some(hint)) if why.kind() == NotFound => {
                        let why = io::Error::new(NotFound, hint);
                        SimError::Open { trace, why }
                    }
                    (why, _) => why,
                })?;
                Self::begin(input, meter, options)
            }
        }
    }

    /// Reads any bytes, compressed or not. `name` is for messages, and its ending helps to find the format.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn over(
        name: &str,
        bytes: impl Read + Send + 'static,
        options: &ReadOptions,
    ) -> Result<Self, SimError> {
        let input = Input::over(name.to_owned(), Box::new(bytes), None)?;
        Self::begin(input, Meter::default(), options)
    }

    fn begin(mut input: Input, meter: Meter, options: &ReadOptions) -> Result<Self, SimError> {
        let text = options.format.is_none_or(Format::is_text);
        let (head, _) = input.head()?;
        if text && head.starts_with(MARK) && !is_binary(head) {
            input.pieces(MARK.len(), 1)?;
        }
        let (head, whole) = input.head()?;
        if head.is_empty() {
            return Err(SimError::Empty {
                trace: input.name().to_owned(),
                bytes: 0,
            });
        }
        debug_assert!(whole || head.len() == HEAD);
        let format = match options.format {
            Some(format) => format,
            None => detect(&mut input, options)?,
        };
        let parser = parser(format, &mut input, options)?;
        Ok(Self::with(input, meter, options, Some(format), parser))
    }

    fn with(
        input: Input,
        meter: Meter,
        options: &ReadOptions,
        format: Option<Format>,
        parser: Box<dyn Parser>,
    ) -> Self {
        let mut sink = Sink::new(options.block_size);
        sink.records.reserve(BATCH);
        Self {
            parser,
            input,
            sink,
            format,
            meter,
            touches_apart: options.touches_apart,
            tick: options.tick,
            max_memory: options.max_memory,
            spill: options.spill.clone(),
            limit: options.limit.unwrap_or(u64::MAX),
            given: 0,
            over: false,
        }
    }

    /// Adds the next records, some thousands at a time; false when there are no more.
    ///
    /// # Errors
    /// [`SimError`] with the line or byte. The records before it have been added.
    pub fn fill(&mut self, records: &mut Vec<Record>) -> Result<bool, SimError> {
        let more = self.step();
        records.extend_from_slice(self.records());
        more
    }

    /// Reads the next [`records`](Self::records), some thousands at a time; false when there are no more.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill).
    pub(super) fn step(&mut self) -> Result<bool, SimError> {
        self.sink.records.clear();
        if self.over {
            return Ok(false);
        }
        let more = self.parser.step(&mut self.input, &mut self.sink);
        let room = usize::try_from(self.limit - self.given).unwrap_or(usize::MAX);
        self.sink.records.truncate(room);
        let taken = self.sink.records.len();
        self.given += taken as u64;
        if self.given == self.limit {
            self.over = true;
            return Ok(taken > 0);
        }
        if !more? {
            self.over = true;
            if self.given == 0 {
                return Err(SimError::Empty {
                    trace: self.input.name().to_owned(),
                    bytes: self.input.offset(),
                });
            }
            return Ok(taken > 0);
        }
        Ok(true)
    }

    /// What the latest [`step`](Self::step) has read.
    pub(super) fn records(&self) -> &[Record] {
        &self.sink.records
    }

    /// The format, given or detected; none for a workload.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Whether a record's time is in microseconds, as the format or the heading of a table's column says. Otherwise it is in
    /// the unit of the trace, mostly seconds.
    #[must_use]
    pub fn in_microseconds(&self) -> bool {
        self.format.is_some_and(Format::in_microseconds) || self.parser.in_microseconds()
    }

    /// Whether each use counts as a request of its own, as requested.
    #[must_use]
    pub fn touches_apart(&self) -> bool {
        self.touches_apart
    }

    /// Uses that count as a second, as requested; 0 if time stands still.
    #[must_use]
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// Most bytes of it that may be kept, as requested.
    #[must_use]
    pub fn max_memory(&self) -> u64 {
        self.max_memory
    }

    /// Where the rest of it goes, as requested.
    #[must_use]
    pub fn spill(&self) -> Option<&SpillTo> {
        self.spill.as_ref()
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        self.input.name()
    }

    /// How far the file has been read.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// A workload.
struct Generated(Records);

impl Parser for Generated {
    fn step(&mut self, _: &mut Input, sink: &mut Sink) -> Result<bool, SimError> {
        sink.records.extend(self.0.by_ref().take(BATCH));
        Ok(sink.records.len() == BATCH)
    }
}
