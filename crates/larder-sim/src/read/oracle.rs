//! oracleGeneral: libCacheSim's records of 24 bytes, low byte first: u32 time in seconds, u64 object, u32 size, i64 request
//! at which the object is used next (-1 if never). Source: libCacheSim, `doc/` and its sample traces.

use super::super::sink::{About, Sink};
use super::Piece;

pub(crate) struct OracleGeneral;

impl Piece for OracleGeneral {
    fn width(&self) -> usize {
        24
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
        let bytes: &[u8; 24] = bytes.try_into().map_err(|_| "not 24 bytes".to_owned())?;
        let [
            t0,
            t1,
            t2,
            t3,
            i0,
            i1,
            i2,
            i3,
            i4,
            i5,
            i6,
            i7,
            s0,
            s1,
            s2,
            s3,
            n0,
            n1,
            n2,
            n3,
            n4,
            n5,
            n6,
            n7,
        ] = *bytes;
        let next = i64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        if next < -1 {
            return Err(format!(
                "the next access is {next}; it must be -1 or the number of a request: this is no oracleGeneral trace"
            ));
        }
        let about = About {
            time: u64::from(u32::from_le_bytes([t0, t1, t2, t3])),
            ..About::default()
        };
        let block = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        sink.object(block, u32::from_le_bytes([s0, s1, s2, s3]), about);
        Ok(())
    }
}
