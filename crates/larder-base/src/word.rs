//! Offsets as words and bits.

/// The word and the bit of an offset.
#[inline]
pub fn split(at: u64) -> (usize, u64) {
    ((at / 64) as usize, 1 << (at % 64))
}

/// The offset of the lowest bit of `word` at index `w`.
#[inline]
pub fn join(w: usize, word: u64) -> u64 {
    w as u64 * 64 + u64::from(word.trailing_zeros())
}

/// The words that `first..=last` touches, and which of their bits.
pub fn masks(first: u64, last: u64) -> impl Iterator<Item = (usize, u64)> {
    (first / 64..=last / 64).map(move |w| {
        let low = if w == first / 64 { first % 64 } else { 0 };
        let high = if w == last / 64 { last % 64 } else { 63 };
        (w as usize, (u64::MAX << low) & (u64::MAX >> (63 - high)))
    })
}

/// The bit of `word` that has `rank` bits below it, or how much of the rank is left beyond the word.
pub fn nth(word: u64, rank: u64) -> Result<u64, u64> {
    let count = u64::from(word.count_ones());
    if rank >= count {
        return Err(rank - count);
    }
    let rest = (0..rank).fold(word, |rest, _| rest & (rest - 1));
    Ok(u64::from(rest.trailing_zeros()))
}
