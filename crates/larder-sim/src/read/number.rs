//! Numbers and words in lines of text.

/// The text of bytes, for messages: short, and inert in a terminal.
pub(super) fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(40)];
    let mut text: String = String::from_utf8_lossy(cut).escape_debug().collect();
    if cut.len() < bytes.len() {
        text.push('…');
    }
    text
}

/// A whole number from 0, decimal, or hexadecimal with `0x`.
pub(super) fn whole(word: &[u8], what: &str) -> Result<u64, String> {
    let digits = word
        .strip_prefix(b"0x")
        .or_else(|| word.strip_prefix(b"0X"));
    let parsed = match digits {
        Some(hex) if !hex.is_empty() && hex[0] != b'+' => core::str::from_utf8(hex)
            .ok()
            .and_then(|t| u64::from_str_radix(t, 16).ok()),
        Some(_) => None,
        None => decimal(word),
    };
    parsed.ok_or_else(|| {
        let shown = shown(word);
        match word {
            [] => format!("{what} is missing"),
            [b'-', rest @ ..] if decimal(rest).is_some() => {
                format!("{what} is {shown}: negative numbers name nothing")
            }
            _ if word.iter().all(u8::is_ascii_digit) => {
                format!("{what} is {shown}: larger than 64 bits")
            }
            _ => format!("{what} is '{shown}', which is no whole number"),
        }
    })
}

/// A block's number. Keys that are hashes may be negative or longer than 64 bits.
pub(super) fn block(word: &[u8]) -> Result<u64, String> {
    whole(word, "the block").map_err(|why| {
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            format!("{why}; --text-ids takes blocks as names, whatever they are")
        } else {
            why
        }
    })
}

/// Decimal digits only.
pub(super) fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 20 {
        return None;
    }
    word.iter().try_fold(0_u64, |n, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| n.checked_mul(10)?.checked_add(u64::from(digit)))?
    })
}

/// A time in seconds with a fraction, as microseconds.
pub(super) fn seconds(word: &[u8], what: &str) -> Result<u64, String> {
    let text = core::str::from_utf8(word).ok();
    match text.and_then(|t| t.parse::<f64>().ok()) {
        Some(s) if s.is_finite() && (0.0..1e13).contains(&s) => Ok((s * 1e6).round() as u64),
        _ => Err(format!(
            "{what} is '{}', which is no time in seconds",
            shown(word)
        )),
    }
}

/// The columns of a line, parted by commas: so many, or an error.
pub(super) fn columns<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], String> {
    let mut columns = [&line[..0]; N];
    let mut n = 0;
    for column in line.split(|b| *b == b',') {
        if let Some(place) = columns.get_mut(n) {
            *place = trim(column);
        }
        n += 1;
    }
    if n == N {
        Ok(columns)
    } else {
        Err(format!("{n} columns instead of {N}"))
    }
}

/// A number that tells files apart.
pub(super) fn number_of_file(word: &[u8], what: &str) -> Result<u32, String> {
    let number = whole(word, what)?;
    u32::try_from(number).map_err(|_| format!("{what} is {number}: too large"))
}

/// Words between blanks.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
}

/// Without blanks at both ends.
pub(super) fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}
