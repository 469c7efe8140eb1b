//! How long, and how much, free memory of the program's heap stays, where the environment says so.

use core::time::Duration;

use super::mode::environment;
use crate::os::say::say_ignored;

/// Milliseconds that may be asked for: a day.
const MOST_DECAY: u64 = 86_400_000;

/// What `LARDER_MALLOC_DECAY` may say: milliseconds from 0 to 86400000, or `never`. `None` is anything else.
#[must_use]
pub fn decay_time(word: &str) -> Option<Duration> {
    if word == "never" {
        return Some(Duration::MAX);
    }
    let ms = digits(word)?;
    (ms <= MOST_DECAY).then(|| Duration::from_millis(ms))
}

/// What `LARDER_MALLOC_CACHE` may say: bytes, or so many K, M or G of them. `None` is anything else.
#[must_use]
pub fn cache_bytes(word: &str) -> Option<usize> {
    let (number, shift) = match word.as_bytes().last()? {
        b'K' => (&word[..word.len() - 1], 10),
        b'M' => (&word[..word.len() - 1], 20),
        b'G' => (&word[..word.len() - 1], 30),
        _ => (word, 0),
    };
    let bytes = digits(number)?.checked_mul(1 << shift)?;
    usize::try_from(bytes).ok()
}

fn digits(word: &str) -> Option<u64> {
    // A sign is none.
    let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| word.parse().ok())?
}

/// What the environment asks for: the time, and the bytes beside a share of what is in use. A word that means nothing is
/// reported in a line.
pub(super) fn chosen() -> (Option<Duration>, Option<usize>) {
    let decay = read(
        c"LARDER_MALLOC_DECAY",
        decay_time,
        "no number of milliseconds from 0 to 86400000, and not \"never\"",
    );
    let cache = read(
        c"LARDER_MALLOC_CACHE",
        cache_bytes,
        "no number of bytes, which may end in K, M or G",
    );
    (decay, cache)
}

fn read<T>(
    variable: &core::ffi::CStr,
    parse: impl FnOnce(&str) -> Option<T>,
    why: &str,
) -> Option<T> {
    let word = environment(variable).filter(|word| !word.is_empty())?;
    let value = core::str::from_utf8(word).ok().and_then(parse);
    if value.is_none() {
        say_ignored(variable.to_str().unwrap_or_default(), word, why);
    }
    value
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_bytes_are_numbers() {
        assert_eq!(decay_time("250"), Some(Duration::from_millis(250)));
        assert_eq!(decay_time("0"), Some(Duration::ZERO));
        assert_eq!(decay_time("never"), Some(Duration::MAX));
        for odd in ["", "-1", "+1", "1s", "1.5", "86400001", "Never"] {
            assert_eq!(decay_time(odd), None, "{odd}");
        }
        assert_eq!(cache_bytes("0"), Some(0));
        assert_eq!(cache_bytes("3K"), Some(3 << 10));
        assert_eq!(cache_bytes("2G"), Some(2 << 30));
        for odd in [
            "",
            "K",
            "-1",
            "1k",
            "1MB",
            "99999999999999999999",
            "99999999999G",
        ] {
            assert_eq!(cache_bytes(odd), None, "{odd}");
        }
    }
}
