//! Ranges, handles and snapshots for serde.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use ::serde::de::Error as _;
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(target_has_atomic = "64")]
use super::{Handle, Widths};
use super::{IdRange, Snapshot};

/// Serialises a type as another one, and makes it from that one if it is a value of the type.
macro_rules! as_another {
    ($type:ty, $other:ty, $this:ident => $into:expr, $from:pat => $try:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                <$other>::serialize(&$into, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $from = <$other>::deserialize(deserializer)?;
                $try.map_err(D::Error::custom)
            }
        }
    };
}

as_another!(IdRange, [u64; 2],
    range => [range.first(), range.last()],
    [first, last] => IdRange::new(first, last));

#[cfg(target_has_atomic = "64")]
as_another!(Handle, u64,
    handle => handle.raw(),
    raw => Ok::<_, super::IdError>(Handle::from_raw(raw)));

#[cfg(target_has_atomic = "64")]
as_another!(Widths, [u32; 2],
    widths => [widths.word(), widths.index()],
    [word, index] => Widths::new(word, index));

/// A snapshot by its parts.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts<'a> {
    range: IdRange,
    rule: Cow<'a, str>,
    #[serde(default)]
    cursor: Option<u64>,
    runs: Vec<IdRange>,
}

as_another!(Snapshot, Parts<'_>,
    snapshot => Parts {
        range: snapshot.range(),
        rule: Cow::Borrowed(snapshot.rule()),
        cursor: snapshot.cursor(),
        runs: snapshot.runs().collect(),
    },
    Parts { range, rule, cursor, runs } =>
        Snapshot::checked(range, String::from(rule), cursor, runs, Snapshot::MOST_IDS));
