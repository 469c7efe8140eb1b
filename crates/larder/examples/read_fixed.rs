//! Reads a file through pages that io_uring knows by number:
//! `cargo run -p larder --features io-uring --example read_fixed [FILE]`.
//!
//! Without an argument it reads its own executable. What came through the ring is compared with what an ordinary read
//! finds.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;

use io_uring::IoUring;
use larder::pages::{FixedBuffers, PagePool};

/// Requests that are under way at the same time, each with a page.
const DEPTH: u16 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => std::env::current_exe()?,
    };
    let mut ring = match IoUring::new(u32::from(DEPTH)) {
        Ok(ring) => ring,
        Err(error) => {
            println!("io_uring is not permitted here ({error}); nothing was read");
            return Ok(());
        }
    };
    let file = File::open(&path)?;
    let length = file.metadata()?.len();

    let pool = PagePool::new()?;
    let mut pages = Vec::new();
    pool.get_many(&mut pages, usize::from(DEPTH))?;
    let size = pool.page_size() as u64;
    let mut buffers = FixedBuffers::register(&ring, pages)?;

    let (mut sum, mut bytes) = (0_u64, 0_u64);
    let mut offset = 0;
    while offset < length {
        // One page for each request, and never more than there are pages.
        let batch = u16::try_from((length - offset).div_ceil(size).min(u64::from(DEPTH)))?;
        for number in 0..batch {
            let at = offset + u64::from(number) * size;
            let request = buffers
                .read(number, file.as_raw_fd(), at, u32::try_from(size)?)
                .ok_or("no such page")?
                .user_data(u64::from(number));
            // SAFETY: the ring is the one that the pages are registered with, file and pages stay until the request has
            // completed, and no code looks at the pages before.
            unsafe { ring.submission().push(&request)? };
        }
        ring.submit_and_wait(usize::from(batch))?;
        for done in ring.completion() {
            let number = u16::try_from(done.user_data())?;
            let n = usize::try_from(done.result())
                .map_err(|_| std::io::Error::from_raw_os_error(-done.result()))?;
            let page = buffers.page(number).ok_or("no such page")?;
            sum = page[..n]
                .iter()
                .fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)));
            bytes += n as u64;
        }
        offset += u64::from(batch) * size;
    }
    pool.put_many(buffers.unregister(&ring)?);

    let mut plain = Vec::new();
    File::open(&path)?.read_to_end(&mut plain)?;
    let expected = plain
        .iter()
        .fold(0_u64, |sum, &byte| sum.wrapping_add(u64::from(byte)));
    println!(
        "{bytes} bytes of {} through {DEPTH} registered pages, sum {sum}",
        path.display()
    );
    if (bytes, sum) != (plain.len() as u64, expected) {
        return Err(format!(
            "an ordinary read finds {} bytes, sum {expected}",
            plain.len()
        )
        .into());
    }
    Ok(())
}
