//! dbench's loadfile: what one client does.

use super::super::sink::Sink;
use super::super::workload::Operations;
use super::lines::LineParser;

/// The lines of a loadfile, by [`Operations`].
pub(super) struct Dbench(Operations);

impl Dbench {
    pub(super) fn new(block_size: u32) -> Self {
        Self(Operations::new(0, u64::from(block_size)))
    }
}

impl LineParser for Dbench {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        let text = core::str::from_utf8(line)
            .map_err(|why| format!("is no text: byte {} is none of UTF-8", why.valid_up_to()))?;
        self.0.line(text)?;
        sink.records.extend(self.0.queue.drain(..));
        Ok(())
    }
}
