//! Serialisation: ranges, widths, handles, snapshots. What is read is checked as if it came from a caller.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use ::serde::de::{Error as _, SeqAccess, Visitor};
use ::serde::ser::Error as _;
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(target_has_atomic = "64")]
use super::{Handle, Widths};
use super::{IdRange, Snapshot};

/// As `[first, last]`.
impl Serialize for IdRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.first(), self.last()].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IdRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [first, last] = <[u64; 2]>::deserialize(deserializer)?;
        Self::new(first, last).map_err(D::Error::custom)
    }
}

/// As its number.
#[cfg(target_has_atomic = "64")]
impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.raw())
    }
}

#[cfg(target_has_atomic = "64")]
impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::from_raw)
    }
}

/// As `[word, index]`, in bits.
#[cfg(target_has_atomic = "64")]
impl Serialize for Widths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.word(), self.index()].serialize(serializer)
    }
}

#[cfg(target_has_atomic = "64")]
impl<'de> Deserialize<'de> for Widths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [word, index] = <[u32; 2]>::deserialize(deserializer)?;
        Self::new(word, index).map_err(D::Error::custom)
    }
}

/// A snapshot for people: without the checksum, which is for files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Readable<'a> {
    range: IdRange,
    rule: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<u64>,
    runs: Runs<'a>,
}

/// Runs as `[[first, last], …]`, written as they are decoded and read as they come.
enum Runs<'a> {
    Of(&'a Snapshot),
    Read(Vec<IdRange>),
}

impl Serialize for Runs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Of(snapshot) => serializer.collect_seq(snapshot.runs()),
            Self::Read(runs) => serializer.collect_seq(runs),
        }
    }
}

impl<'de> Deserialize<'de> for Runs<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ascending;

        impl<'de> Visitor<'de> for Ascending {
            type Value = Vec<IdRange>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("ranges in ascending order that do not touch")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<IdRange>, A::Error> {
                // Grows with what comes, whatever the input says of its length.
                let mut runs: Vec<IdRange> = Vec::new();
                while let Some(run) = seq.next_element::<IdRange>()? {
                    let before = runs.last().map(|run| run.last().checked_add(1));
                    if before.is_some_and(|end| end.is_none_or(|end| run.first() <= end)) {
                        return Err(A::Error::custom(alloc::format!(
                            "the run {run} touches the one before or is out of order"
                        )));
                    }
                    runs.try_reserve(1).map_err(A::Error::custom)?;
                    runs.push(run);
                }
                Ok(runs)
            }
        }

        deserializer.deserialize_seq(Ascending).map(Self::Read)
    }
}

/// In formats that people read (JSON, TOML) as range, rule, cursor and runs; in others as the bytes of
/// [`to_bytes`](Snapshot::to_bytes).
impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.to_bytes().map_err(S::Error::custom)?);
        }
        let readable = Readable {
            range: self.range(),
            rule: Cow::Borrowed(self.rule()),
            cursor: self.cursor(),
            runs: Runs::Of(self),
        };
        readable.serialize(serializer)
    }
}

/// At most [`MOST_IDS`](Snapshot::MOST_IDS) identifiers.
impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_bytes(Bytes);
        }
        let Readable {
            range,
            rule,
            cursor,
            runs,
        } = Readable::deserialize(deserializer)?;
        let Runs::Read(runs) = runs else {
            return Err(D::Error::custom("no runs were read"));
        };
        let count = runs.iter().map(|run| run.len()).sum::<u128>();
        if count > u128::from(Self::MOST_IDS) {
            return Err(D::Error::custom(alloc::format!(
                "{count} identifiers are more than {}",
                Self::MOST_IDS
            )));
        }
        let runs = runs.into_iter().map(|run| (run.first(), run.last()));
        Self::from_runs(range, rule.into_owned(), cursor, runs).map_err(D::Error::custom)
    }
}

/// The bytes of a snapshot, however the format hands them over.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Snapshot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a snapshot")
    }

    fn visit_bytes<E: ::serde::de::Error>(self, bytes: &[u8]) -> Result<Snapshot, E> {
        Snapshot::from_bytes(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Snapshot, A::Error> {
        let mut bytes: Vec<u8> = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.try_reserve(1).map_err(A::Error::custom)?;
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
