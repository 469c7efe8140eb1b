//! Words of bits: two functions that every bitmap here needs.

/// Word and bit of an identifier.
#[inline(always)]
pub(super) fn at(id: u64) -> (usize, u32) {
    ((id >> 6) as usize, (id & 63) as u32)
}

/// Words that hold `count` bits.
pub(super) fn words(count: u64) -> usize {
    count.div_ceil(64) as usize
}

/// `count` bits that are all set; those beyond are zero.
pub(super) fn all_set(count: u64) -> Vec<u64> {
    let mut words = vec![u64::MAX; words(count)];
    if let (Some(last), rest @ 1..) = (words.last_mut(), count & 63) {
        *last = (1 << rest) - 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_count_are_zero() {
        for count in [1, 63, 64, 65, 128, 1000] {
            let set = all_set(count);
            assert_eq!(set.len(), words(count));
            let ones: u64 = set.iter().map(|w| u64::from(w.count_ones())).sum();
            assert_eq!(ones, count);
            let (word, bit) = at(count - 1);
            assert_eq!(set[word] >> bit, 1);
        }
    }
}
