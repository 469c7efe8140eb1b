//! One block a line; a line with `*` is a mark and means nothing here (LIRS traces); blank lines and `#` lines are skipped.

use super::super::options::ReadOptions;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::names::Names;
use super::number::{block, decimal, shown, trim};

pub(super) struct Txt {
    names: Option<Names>,
}

impl Txt {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            names: options.text_ids.then(|| Names::within(options.max_memory)),
        }
    }
}

impl LineParser for Txt {
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if let (Some(block), None) = (decimal(line), &self.names) {
            sink.object(block, 0, About::default());
            return Ok(());
        }
        let word = trim(line);
        if word.is_empty() || word == b"*" || word[0] == b'#' {
            return Ok(());
        }
        let block = match &mut self.names {
            Some(names) => u64::from(names.number(word)?),
            None if word.iter().any(u8::is_ascii_whitespace) => {
                return Err(format!("'{}': one number a line is expected", shown(word)));
            }
            None => block(word)?,
        };
        sink.object(block, 0, About::default());
        Ok(())
    }
}
