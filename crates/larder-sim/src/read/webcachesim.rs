//! webcachesim's text: `time id bytes` between blanks (Berger et al., NSDI 2017).

use super::super::sink::{About, Sink};
use super::LineParser;
use super::number::{block, trim, whole, words};

#[derive(Default)]
pub(super) struct Webcachesim {
    /// Time of the line before.
    before: u64,
}

impl LineParser for Webcachesim {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let mut words = words(line);
        let mut next = || words.next().unwrap_or_default();
        let time = whole(next(), "the time (column 1)")?;
        // So that not every table of three numbers is taken for one of these.
        if time < self.before {
            return Err(format!("the time (column 1) goes back to {time}"));
        }
        self.before = time;
        let id = block(next())?;
        let bytes = whole(next(), "the size (column 3)")?;
        if words.next().is_some() {
            return Err("more than three columns".to_owned());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        sink.object(
            id,
            bytes,
            About {
                time,
                ..About::default()
            },
        );
        Ok(())
    }
}
