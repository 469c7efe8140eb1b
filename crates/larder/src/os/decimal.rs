//! Plain decimal numbers. The standard library's parser of floating-point numbers takes 17 KB, which each process with the malloc loads.

/// A number such as `12`, `0.25` or `.5` in billionths; `None` for anything else, and for what is too large. Digits beyond the ninth
/// after the point are cut off.
pub(crate) fn billionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.len() + part.len() == 0 {
        return None;
    }
    let places = part.bytes().chain(core::iter::repeat(b'0')).take(9);
    whole
        .bytes()
        .chain(places)
        .try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_and_nothing_else() {
        for (text, number) in [
            ("12", Some(12_000_000_000)),
            ("0.25", Some(250_000_000)),
            (".5", Some(500_000_000)),
            ("1.", Some(1_000_000_000)),
            ("0.0000000019", Some(1)),
            ("18446744073", Some(18_446_744_073_000_000_000)),
            ("18446744074", None),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("-1", None),
            ("1e3", None),
            ("nan", None),
        ] {
            assert_eq!(billionths(text), number, "{text}");
        }
    }
}
