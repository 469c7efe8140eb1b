//! The shared part of the readers of binary records.

use super::super::input::Input;
use super::super::parser::{BATCH, Parser};
use super::super::sink::Sink;
use super::super::{Place, SimError};

/// Reads one record of fixed width.
pub(crate) trait Piece: Send {
    /// Bytes of a record.
    fn width(&self) -> usize;

    /// Reads it; `bytes` is exactly that long.
    fn read(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), String>;

    /// Reads whole records. An error comes with the byte where its record begins; those before it have been read.
    fn read_all(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), (usize, String)> {
        let width = self.width();
        for (n, bytes) in bytes.chunks_exact(width).enumerate() {
            self.read(bytes, sink).map_err(|why| (n * width, why))?;
        }
        Ok(())
    }

    /// The number of records in the header.
    fn promised(&self) -> Option<u64> {
        None
    }
}

/// A reader of records as a parser.
pub(crate) struct Pieces<P> {
    piece: P,
    read: u64,
}

impl<P: Piece> Pieces<P> {
    pub(crate) fn new(piece: P) -> Self {
        Self { piece, read: 0 }
    }
}

impl<P: Piece> Parser for Pieces<P> {
    fn step(&mut self, input: &mut Input, sink: &mut Sink) -> Result<bool, SimError> {
        let width = self.piece.width();
        let from = input.offset();
        let name = |input: &Input| input.name().to_owned();
        let mut fault = None;
        let pieces = input.pieces(width, BATCH)?;
        let whole = pieces.len();
        if let Err((at, why)) = self.piece.read_all(pieces, sink) {
            fault = Some((from + at as u64, why));
        }
        self.read += (whole / width) as u64;
        if fault.is_none() && whole == 0 {
            let rest = input.rest();
            if rest > 0 {
                let why = format!(
                    "the trace ends within a record: {rest} bytes are left, a record has {width}; the file is truncated or of another format"
                );
                fault = Some((input.offset(), why));
            } else if let Some(promised) = self.piece.promised().filter(|p| *p != self.read) {
                let why = format!(
                    "the header promises {promised} requests, but {} are there; the file is truncated or its header is wrong",
                    self.read
                );
                fault = Some((input.offset(), why));
            }
        }
        match fault {
            Some((byte, fault)) => Err(SimError::Wrong {
                trace: name(input),
                place: Place::Byte(byte),
                fault,
            }),
            None => Ok(whole > 0),
        }
    }
}
