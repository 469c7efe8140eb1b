//! The number of mappings of the process, which page-by-page unmapping may exhaust.

use std::fs;

/// Mappings of the process (lines of `/proc/self/maps`); `None` where they cannot be read.
#[must_use]
pub fn mappings() -> Option<u64> {
    let text = fs::read("/proc/self/maps").ok()?;
    u64::try_from(text.iter().filter(|&&byte| byte == b'\n').count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::{Mapper, page_size};

    #[test]
    fn a_hole_in_a_mapping_makes_one_more() {
        let mapper = Mapper::new();
        let region = mapper.map(64 * page_size(), false).expect("64 pages");
        let before = mappings().expect("Linux");
        // Other tests map and unmap at the same time, so many holes are made and a few would do.
        for i in (1..63).step_by(2) {
            // SAFETY: a page of ours in the middle of the region.
            unsafe { mapper.unmap(region.add(i * page_size()), page_size()) };
        }
        assert!(mappings().expect("Linux") > before + 15);
    }
}
