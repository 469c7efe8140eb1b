//! Why a trace could not be read or simulated.

use std::fmt;
use std::io;
use std::path::PathBuf;

use larder_policy::PolicyError;

/// Where in a trace, after decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// Why a trace could not be read, with the place, or why it could not be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The file cannot be opened.
    #[error("trace {trace}: cannot be opened: {why}")]
    Open {
        /// The name that was given.
        trace: String,
        /// The system's message.
        why: io::Error,
    },
    /// It is a directory.
    #[error("trace {trace}: is a directory; name the files in it, one trace each")]
    Directory {
        /// The name that was given.
        trace: String,
    },
    /// Reading or decompressing failed.
    #[error("trace {trace}: reading failed after {at} bytes of contents: {why}")]
    Read {
        /// The name that was given.
        trace: String,
        /// Bytes that came before, after decompression.
        at: u64,
        /// The message of the system or the decompressor.
        why: io::Error,
    },
    /// The content is not what its format says.
    #[error("trace {trace}, {place}: {fault}")]
    Wrong {
        /// The name that was given.
        trace: String,
        /// Where.
        place: Place,
        /// A sentence.
        fault: String,
    },
    /// Nothing in it.
    #[error("trace {trace}: has no request in it ({bytes} bytes of contents)")]
    Empty {
        /// The name that was given.
        trace: String,
        /// Bytes of contents.
        bytes: u64,
    },
    /// The format is not recognised, or several fit.
    #[error("trace {trace}: {fault}; say which with --format ({formats})")]
    Format {
        /// The name that was given.
        trace: String,
        /// A sentence without its full stop.
        fault: String,
        /// The formats that could be meant.
        formats: String,
    },
    /// The columns of a table are not understood.
    #[error("trace {trace}, line 1: {fault}")]
    Columns {
        /// The name that was given.
        trace: String,
        /// What is not understood, and the option that explains it.
        fault: String,
    },
    /// More blocks, requests or memory than there is room for.
    #[error("trace {trace}: {fault}")]
    TooMuch {
        /// The name that was given.
        trace: String,
        /// What, and what to do.
        fault: String,
    },
    /// The file that takes what memory does not hold failed.
    #[error("trace {trace}: what memory does not hold of it cannot be kept in {}: {why}; name another directory with --spill", dir.display())]
    Spill {
        /// The name that was given.
        trace: String,
        /// The directory of the file.
        dir: PathBuf,
        /// The system's message.
        why: io::Error,
    },
    /// A workload that is named where a trace may stand has no such parameter, or not with this value.
    #[error("workload {workload}: {fault}")]
    Workload {
        /// Its name.
        workload: &'static str,
        /// A sentence: the parameter, and what is allowed.
        fault: String,
    },
    /// A rule cannot be made or has no memory left.
    #[error("{policy} with {size} blocks: {why}")]
    Rule {
        /// Its name.
        policy: String,
        /// Its size.
        size: usize,
        /// Why.
        why: PolicyError,
    },
    /// OPT was requested for a trace that is not kept, or of a modelled disk.
    #[error(
        "{policy} has to see the whole trace first; leave out --stream and --disk, or the rule"
    )]
    Future {
        /// Its name.
        policy: String,
    },
    /// A thread could not be made.
    #[error("a thread could not be started: {0}; ask for fewer with --threads")]
    Thread(io::Error),
}
