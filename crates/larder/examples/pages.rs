//! A short tour of the page pool: `cargo run -p larder --example pages`.

use std::error::Error;
use std::time::Duration;

use larder::pages::{ClusterSize, HelperConfig, PagePool};

fn main() -> Result<(), Box<dyn Error>> {
    let pool = PagePool::builder()
        .limit_bytes(32 << 20)
        .decay(Duration::from_secs(5))
        .build()?;
    println!(
        "pages of {} bytes in clusters of {}, stocks {}",
        pool.page_size(),
        pool.cluster_pages(),
        larder::os::rseq::mode()
    );

    // For a consumer that overwrites the page: whatever a former owner left is in it.
    let mut block = pool.get()?;
    block.fill(0xA5);
    drop(block);

    // For a consumer that needs zeroes.
    let table = pool.get_zeroed()?;
    assert!(table.iter().all(|&byte| byte == 0));

    // Many at once, contiguous ones, and a stock of one's own for a hot loop.
    let mut many = Vec::new();
    pool.get_many(&mut many, 1000)?;
    let run = pool.get_run(16)?;
    let mut handle = pool.handle()?;
    for _ in 0..100_000 {
        let page = handle.get()?;
        handle.put(page);
    }
    println!(
        "in hand: {} pages and a run of {} bytes",
        many.len() + 1,
        run.len()
    );

    // A page goes to another thread and comes back by being dropped there.
    std::thread::spawn(move || drop(table))
        .join()
        .map_err(|_| "the thread panicked")?;

    // The cluster size can be changed while the pool runs; a helper zeroes pages ahead of need.
    pool.set_cluster(ClusterSize::pages(64)?);
    pool.start_helper(HelperConfig {
        prezero_pages: 64,
        ..HelperConfig::default()
    })?;

    // Past the limit a get is an error, not a surprise.
    let mut rest = Vec::new();
    let error = loop {
        match pool.get() {
            Ok(page) => rest.push(page),
            Err(error) => break error,
        }
    };
    println!("after {} more: {error}", rest.len());

    drop((many, rest, run, handle));
    let stats = pool.stats();
    println!(
        "{} gets from a CPU's magazines, {} misses, {} system calls for memory",
        stats.hits,
        stats.misses,
        stats.system_calls()
    );
    println!("{} bytes given back", pool.trim());
    Ok(())
}
