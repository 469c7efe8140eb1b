//! How a trace is to be read.

use super::SpillTo;
use super::format::Format;

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
    /// Whether a file that strace saw mapped counts as read, over the whole range of the mapping.
    pub mapped: bool,
    /// Uses of blocks to read; all if none.
    pub limit: Option<u64>,
    /// Each use counts as a request of its own.
    pub touches_apart: bool,
    /// Uses that count as a second for rules that age by time; 0 if time stands still.
    pub tick: u32,
    /// Most bytes of the trace that may be kept in memory, however far it expands.
    pub max_memory: u64,
    /// Where the rest of it goes; it is refused if none.
    pub spill: Option<SpillTo>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            block_size: 4096,
            columns: None,
            delimiter: None,
            text_ids: false,
            mapped: true,
            limit: None,
            touches_apart: false,
            tick: 0,
            max_memory: u64::MAX,
            spill: None,
        }
    }
}
