//! A trace as a stream of records.

use std::io::Read;
use std::path::Path;

use super::detect::detect;
use super::format::Format;
use super::input::{Input, Meter};
use super::read::{self, Lines, Pieces};
use super::record::Record;
use super::sink::Sink;
use super::workload::{Records, Spec};
use super::{Place, TraceError};

/// Approximate number of records per call of [`Trace::fill`].
pub const BATCH: usize = 4096;

/// How a trace is to be read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The format; detected if none.
    pub format: Option<Format>,
    /// Bytes of a block, for traces of byte ranges.
    pub block_size: u32,
    /// Columns of a CSV: `name=number` (from 1) or `name=heading`, names as `larder trace formats` lists them.
    pub columns: Option<String>,
    /// Delimiter of a CSV's columns; detected if none.
    pub delimiter: Option<char>,
    /// Identifiers of a CSV or a list may be any text.
    pub text_ids: bool,
    /// Uses of blocks to read; all if none.
    pub limit: Option<u64>,
    /// Each use counts as a request of its own.
    pub touches_apart: bool,
    /// Uses that count as a second for rules that age by time; 0 if time stands still.
    pub tick: u32,
    /// Most bytes of the trace that may be kept, however far it expands.
    pub max_memory: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            block_size: 4096,
            columns: None,
            delimiter: None,
            text_ids: false,
            limit: None,
            touches_apart: false,
            tick: 0,
            max_memory: u64::MAX,
        }
    }
}

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
/// # Ok::<(), larder_sim::TraceError>(())
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
    limit: u64,
    given: u64,
    over: bool,
}

/// The reader of a format.
pub(super) trait Parser: Send {
    /// Reads until there are some records; false at the end.
    fn step(&mut self, input: &mut Input, sink: &mut Sink) -> Result<bool, TraceError>;
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
    /// # Ok::<(), larder_sim::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// [`TraceError`]: not there, a directory, or of no format that is known; a parameter that a workload does not have.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, TraceError> {
        let spec = path.to_str().map(Spec::parse).transpose()?.flatten();
        match spec {
            Some(spec) => {
                let input = Input::over(
                    path.display().to_string(),
                    Box::new(std::io::empty()),
                    Some(0),
                )?;
                let made = Box::new(Generated(spec.records(options)?));
                Ok(Self::with(input, Meter::default(), options, None, made))
            }
            None => Self::file(path, options),
        }
    }

    /// Opens a file, whatever its name.
    pub(super) fn file(path: &Path, options: &ReadOptions) -> Result<Self, TraceError> {
        let (input, meter) = Input::open(path)?;
        Self::begin(input, meter, options)
    }

    /// Reads any bytes, compressed or not. `name` is for messages, and its ending helps to find the format.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn over(
        name: &str,
        bytes: impl Read + Send + 'static,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let input = Input::over(name.to_owned(), Box::new(bytes), None)?;
        Self::begin(input, Meter::default(), options)
    }

    fn begin(mut input: Input, meter: Meter, options: &ReadOptions) -> Result<Self, TraceError> {
        let (head, whole) = input.head()?;
        if head.is_empty() {
            return Err(TraceError::Empty {
                trace: input.name().to_owned(),
                bytes: 0,
            });
        }
        debug_assert!(whole || head.len() == super::input::HEAD);
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
            limit: options.limit.unwrap_or(u64::MAX),
            given: 0,
            over: false,
        }
    }

    /// Adds the next records, some thousands at a time; false when there are no more.
    ///
    /// # Errors
    /// [`TraceError`] with the line or byte. The records before it have been added.
    pub fn fill(&mut self, records: &mut Vec<Record>) -> Result<bool, TraceError> {
        if self.over {
            return Ok(false);
        }
        self.sink.records.clear();
        let more = self.parser.step(&mut self.input, &mut self.sink);
        let room = usize::try_from(self.limit - self.given).unwrap_or(usize::MAX);
        let take = self.sink.records.len().min(room);
        records.extend_from_slice(&self.sink.records[..take]);
        self.given += take as u64;
        if self.given == self.limit {
            self.over = true;
            return Ok(take > 0);
        }
        if !more? {
            self.over = true;
            if self.given == 0 {
                return Err(TraceError::Empty {
                    trace: self.input.name().to_owned(),
                    bytes: self.input.offset(),
                });
            }
            return Ok(take > 0);
        }
        Ok(true)
    }

    /// The format, given or detected; none for a workload.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.format
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
    fn step(&mut self, _: &mut Input, sink: &mut Sink) -> Result<bool, TraceError> {
        sink.records.extend(self.0.by_ref().take(BATCH));
        Ok(sink.records.len() == BATCH)
    }
}

/// The reader of a format. `input` stands at the beginning.
fn parser(
    format: Format,
    input: &mut Input,
    options: &ReadOptions,
) -> Result<Box<dyn Parser>, TraceError> {
    let wrong = |input: &Input, fault: String| TraceError::Wrong {
        trace: input.name().to_owned(),
        place: Place::Byte(0),
        fault,
    };
    Ok(match format {
        Format::OracleGeneral => Box::new(Pieces::new(read::OracleGeneral)),
        Format::Lcs => {
            let header = {
                let (head, _) = input.head()?;
                read::LcsHeader::parse(head)
            };
            let header = header.map_err(|fault| wrong(input, fault))?;
            input.pieces(header.bytes, 1)?;
            Box::new(Pieces::new(read::Lcs::new(header)))
        }
        Format::Vscsi1 => Box::new(Pieces::new(read::Vscsi::<1>)),
        Format::Vscsi2 => Box::new(Pieces::new(read::Vscsi::<2>)),
        Format::U32le => Box::new(Pieces::new(read::U32::<false>)),
        Format::U32be => Box::new(Pieces::new(read::U32::<true>)),
        Format::I32le => Box::new(Pieces::new(read::I32::<false>)),
        Format::I32be => Box::new(Pieces::new(read::I32::<true>)),
        Format::U64le => Box::new(Pieces::new(read::U64::<false>)),
        Format::U64be => Box::new(Pieces::new(read::U64::<true>)),
        Format::I64le => Box::new(Pieces::new(read::I64::<false>)),
        Format::I64be => Box::new(Pieces::new(read::I64::<true>)),
        Format::Csv => {
            let csv = {
                let (head, _) = input.head()?;
                read::Csv::new(head, options)
            };
            let csv = csv.map_err(|fault| TraceError::Columns {
                trace: input.name().to_owned(),
                fault,
            })?;
            Box::new(Lines::new(csv))
        }
        text => Box::new(Lines::new(
            read::text(text, options).map_err(|fault| wrong(input, fault))?,
        )),
    })
}
