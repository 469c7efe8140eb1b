//! The shared part of the readers of text.

use super::super::input::Input;
use super::super::parser::{BATCH, Parser};
use super::super::sink::Sink;
use super::super::{Place, SimError};

/// Reads one line. An error is a sentence; the caller adds the line's number.
pub(crate) trait LineParser: Send {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String>;

    /// After the last line.
    fn end(&mut self, sink: &mut Sink) -> Result<(), String> {
        let _ = sink;
        Ok(())
    }

    /// As [`Parser::in_microseconds`].
    fn in_microseconds(&self) -> bool {
        false
    }
}

impl LineParser for Box<dyn LineParser> {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        (**self).line(line, sink)
    }

    fn end(&mut self, sink: &mut Sink) -> Result<(), String> {
        (**self).end(sink)
    }

    fn in_microseconds(&self) -> bool {
        (**self).in_microseconds()
    }
}

/// A reader of lines as a parser.
pub(crate) struct Lines<P> {
    parser: P,
    number: u64,
}

impl<P: LineParser> Lines<P> {
    pub(crate) fn new(parser: P) -> Self {
        Self { parser, number: 0 }
    }

    /// The line of the first error in these lines, and the error; none if they can be read. Stops when there are many records.
    pub(crate) fn first_fault<'l>(
        &mut self,
        lines: impl Iterator<Item = &'l [u8]>,
        sink: &mut Sink,
    ) -> Option<(Place, String)> {
        for line in lines {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if sink.records.len() >= BATCH {
                break;
            }
            self.number += 1;
            if let Err(fault) = self.parser.line(line, sink) {
                return Some((Place::Line(self.number), fault));
            }
        }
        None
    }
}

impl<P: LineParser> Parser for Lines<P> {
    fn step(&mut self, input: &mut Input, sink: &mut Sink) -> Result<bool, SimError> {
        while sink.records.len() < BATCH {
            let fault = match input.line()? {
                Some(line) => {
                    self.number += 1;
                    self.parser.line(line, sink).err()
                }
                None => match self.parser.end(sink) {
                    Ok(()) => return Ok(false),
                    Err(fault) => Some(fault),
                },
            };
            if let Some(fault) = fault {
                return Err(SimError::Wrong {
                    trace: input.name().to_owned(),
                    place: Place::Line(self.number),
                    fault,
                });
            }
        }
        Ok(true)
    }

    fn in_microseconds(&self) -> bool {
        self.parser.in_microseconds()
    }
}
