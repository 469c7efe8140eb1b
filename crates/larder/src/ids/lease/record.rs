//! One durable number as bytes that show when they were torn.

/// A number with the count of how often it was stored. Everything is little-endian:
///
/// | at | bytes | what |
/// |---|---|---|
/// | 0 | 8 | `larderLS` |
/// | 8 | 4 | version: 1 |
/// | 12 | 8 | how often it was stored |
/// | 20 | 8 | the number |
/// | 28 | 4 | CRC-32 (ISO-HDLC) of everything before |
///
/// ```
/// use larder::ids::LeaseRecord;
///
/// let record = LeaseRecord { sequence: 7, next: 1001 };
/// let mut bytes = record.to_bytes();
/// assert_eq!(LeaseRecord::from_bytes(&bytes), Some(record));
/// bytes[20] ^= 1;
/// assert_eq!(LeaseRecord::from_bytes(&bytes), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Larger for what was stored later.
    pub sequence: u64,
    /// The first identifier that was never leased.
    pub next: u64,
}

const HEAD: &[u8; 12] = b"larderLS\x01\0\0\0";

impl LeaseRecord {
    /// Bytes of a record.
    pub const BYTES: usize = 32;

    /// The record as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..12].copy_from_slice(HEAD);
        bytes[12..20].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.next.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a record; `None` for bytes that are none, whatever is wrong with them.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (covered, checksum) = bytes.split_last_chunk()?;
        if covered.first_chunk() != Some(HEAD)
            || crc32fast::hash(covered) != u32::from_le_bytes(*checksum)
        {
            return None;
        }
        let (sequence, next) = (covered[12..].first_chunk()?, covered[20..].first_chunk()?);
        Some(Self {
            sequence: u64::from_le_bytes(*sequence),
            next: u64::from_le_bytes(*next),
        })
    }
}
