//! Huge pages for tables that are accessed at random: they need fewer of the processor's address translations.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::{HugeAdvice, Linux, Span, System};

/// The size of a huge page on all machines whose pages have 4 KiB.
const HUGE: usize = 2 << 20;

/// Asks for huge pages for the whole ones of 2 MiB in `memory`, before it is written for the first time. It is advice, and
/// costs a small table nothing.
pub fn want<T>(memory: &mut [MaybeUninit<T>]) {
    let range = memory.as_mut_ptr_range();
    let first = range.start.cast::<u8>();
    let skip = first.addr().next_multiple_of(HUGE) - first.addr();
    let len = size_of_val(memory).saturating_sub(skip) / HUGE * HUGE;
    if len == 0 || cfg!(miri) {
        return;
    }
    if let Some(at) = NonNull::new(first.wrapping_add(skip)) {
        // SAFETY: the span is within memory that is borrowed exclusively, and advice changes no contents. The advice stays when
        // the memory goes back to its allocator, and does no harm there.
        let _ = unsafe { Linux.advise_huge(Span { at, len }, HugeAdvice::Want) };
    }
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;

    /// What the kernel says of the mapping of an address: the flag `hg` stands for advice taken.
    fn advised(at: usize) -> bool {
        let all = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in all.lines() {
            let range = line.split_whitespace().next().unwrap();
            if let Some((from, to)) = range.split_once('-') {
                let hex = |word| usize::from_str_radix(word, 16);
                inside =
                    matches!((hex(from), hex(to)), (Ok(from), Ok(to)) if (from..to).contains(&at));
            } else if inside && range == "VmFlags:" {
                return line.split_whitespace().any(|flag| flag == "hg");
            }
        }
        false
    }

    #[test]
    fn whole_huge_pages_are_asked_for_and_no_others() {
        let mut memory: Vec<u64> = Vec::new();
        memory.reserve_exact(4 * HUGE / 8);
        let from = memory.as_ptr().addr();
        want(memory.spare_capacity_mut());
        let first = from.next_multiple_of(HUGE);
        if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            assert!(advised(first) && advised(first + 3 * HUGE - 1));
        }
        assert!(!advised(first - 1) && !advised(first + 3 * HUGE));

        let mut small: Vec<u8> = Vec::new();
        small.reserve_exact(HUGE - 1);
        want(small.spare_capacity_mut());
        assert!(!advised(small.as_ptr().addr().next_multiple_of(4096)));
    }
}
