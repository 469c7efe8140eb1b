//! The age of a page in 2.4.0 to 2.4.9 (`include/linux/swap.h`, `mm/swap.c`).

/// A page starts with it (`PAGE_AGE_START`).
pub(super) const START: u8 = 2;
/// What a use adds (`PAGE_AGE_ADV`).
const ADVANCE: u8 = 3;
/// No page is older (`PAGE_AGE_MAX`).
pub(super) const MAX: u8 = 64;

/// `age_page_up_nolock`: a page at 0 is activated first, which makes it 2.
pub(super) const fn up(age: u8) -> u8 {
    let age = if age == 0 { START } else { age };
    if age + ADVANCE > MAX {
        MAX
    } else {
        age + ADVANCE
    }
}

/// `age_page_down_ageonly`: half, so that an age is forgotten in seven scans at most.
pub(super) const fn down(age: u8) -> u8 {
    age / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_rise_by_three_and_fall_by_half() {
        let mut age = START;
        let rise: Vec<u8> = (0..22)
            .map(|_| {
                age = up(age);
                age
            })
            .collect();
        assert_eq!(&rise[..3], [5, 8, 11]);
        assert_eq!(rise[19..], [62, 64, 64]);
        let fall: Vec<u8> = (0..8)
            .map(|_| {
                age = down(age);
                age
            })
            .collect();
        assert_eq!(fall, [32, 16, 8, 4, 2, 1, 0, 0]);
        assert_eq!(up(0), 5);
    }
}
