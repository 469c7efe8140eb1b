//! Memory in use is read to the page.

use crate::alone::alone;
use larder_lab::contestants::timing::{resident_bytes, resident_bytes_roughly};

#[test]
fn memory_in_use_is_visible_to_the_page() {
    alone("resident::memory_in_use_is_visible_to_the_page", || {
        let page = larder::os::page_size();
        let mut pages = vec![0u8; 400 * page];
        let before = resident_bytes();
        for at in (0..pages.len()).step_by(page) {
            pages[at] = 1;
        }
        let gained = resident_bytes().saturating_sub(before);
        assert!(
            gained >= (399 * page) as u64,
            "{gained} bytes for 400 pages: {}",
            std::hint::black_box(&pages).len()
        );
        assert!(resident_bytes_roughly() > 0);
    });
}
