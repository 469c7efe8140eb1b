//! oracleGeneral: libCacheSim's records of 24 bytes, low byte first: u32 time in seconds, u64 object, u32 size, i64 request
//! at which the object is used next (-1 if never). Source: libCacheSim, `doc/` and its sample traces.

use super::super::sink::Sink;
use super::Piece;

pub(crate) struct OracleGeneral;

/// Bytes of a record.
const WIDTH: usize = 24;

/// Time, object, size, next use.
#[inline]
fn fields(bytes: &[u8; WIDTH]) -> (u32, u64, u32, i64) {
    let (words, _) = bytes.as_chunks();
    let word = |at: usize| u32::from_le_bytes(words[at]);
    let long = |at| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
    (word(0), long(1), word(3), long(4).cast_signed())
}

impl Piece for OracleGeneral {
    fn width(&self) -> usize {
        WIDTH
    }

    fn read(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
        self.read_all(bytes, sink).map_err(|(_, why)| why)
    }

    /// All at once, since this is the format of large traces.
    fn read_all(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), (usize, String)> {
        let (records, _) = bytes.as_chunks();
        let mut wrong = false;
        sink.objects(records.iter().map(|bytes| {
            let (time, block, size, next) = fields(bytes);
            wrong |= next < -1;
            (u64::from(time), block, size)
        }));
        let first = match wrong {
            true => records.iter().position(|bytes| fields(bytes).3 < -1),
            false => None,
        };
        let Some(at) = first else {
            return Ok(());
        };
        sink.take_back(records.len() - at);
        Err((
            at * WIDTH,
            format!(
                "the next access is {}; it must be -1 or the number of a request: this is no oracleGeneral trace",
                fields(&records[at]).3
            ),
        ))
    }
}
