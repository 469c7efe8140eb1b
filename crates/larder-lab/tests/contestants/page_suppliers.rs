//! Every supplier hands out pages: aligned, distinct, writable, zero where zeros are promised.

use std::collections::HashSet;
use std::ptr::NonNull;

use larder_lab::contestants::supply::{
    ArrayStacks, Cluster, ClusterWhole, Counting, PoolHandles, PoolPerCpu, Supplier, Supply,
    SystemMalloc, Unbuffered, page_size,
};

fn honest<S: Supplier>(supplier: S, name: &str) {
    let bytes = page_size();
    let mut supplier = Counting::new(supplier);
    for turn in 0..3 {
        let mut pages: Vec<NonNull<u8>> = Vec::new();
        for i in 0..300 {
            let zeroed = i % 2 == 1;
            let page = if zeroed {
                supplier.get_zeroed()
            } else {
                supplier.get()
            };
            let page = page.unwrap_or_else(|| panic!("{name} has no page {i} in turn {turn}"));
            assert_eq!(page.as_ptr() as usize % bytes, 0, "{name}");
            // SAFETY: a page that is ours until it is put back.
            let text = unsafe { std::slice::from_raw_parts_mut(page.as_ptr(), bytes) };
            assert!(
                !zeroed || text.iter().all(|&byte| byte == 0),
                "{name} in turn {turn}"
            );
            text.fill((i % 251) as u8 + 1);
            pages.push(page);
        }
        let distinct: HashSet<_> = pages.iter().collect();
        assert_eq!(distinct.len(), pages.len(), "{name}");
        for (i, page) in pages.into_iter().enumerate() {
            // SAFETY: as above; then put back once.
            unsafe {
                let text = std::slice::from_raw_parts(page.as_ptr(), bytes);
                assert!(
                    text.iter().all(|&byte| byte == (i % 251) as u8 + 1),
                    "{name}: pages overlap"
                );
                supplier.put(page);
            }
        }
    }
    assert_eq!(supplier.counts().gets, 900);
    assert_eq!(supplier.counts().zeroed, 450);
    assert_eq!(supplier.counts().most_out, 300);
}

#[test]
fn every_supplier_hands_out_honest_pages() {
    honest(Unbuffered::default(), "unbuffered");
    honest(Cluster::new(17).expect("a cluster"), "cluster");
    honest(
        ClusterWhole::new(17, false).expect("a cluster"),
        "cluster-whole",
    );
    honest(
        ClusterWhole::new(64, true).expect("a cluster"),
        "cluster-populate",
    );
    honest(SystemMalloc::default(), "malloc");
    honest(
        ArrayStacks { pages: 300 }.local().expect("pages"),
        "array-stack",
    );
    for pages in [None, Some(1), Some(64), Some(4096)] {
        let pool = PoolPerCpu::new(pages).expect("a pool");
        honest(pool.local().expect("a way in"), "pool");
        let pool = PoolHandles::new(pages).expect("a pool");
        honest(pool.local().expect("a handle"), "pool-handle");
    }
    #[cfg(feature = "peers")]
    {
        use larder_lab::contestants::supply::{Jemalloc, Mimalloc};
        honest(Mimalloc::default(), "mimalloc");
        honest(Jemalloc::default(), "jemalloc");
    }
}

#[test]
fn a_pool_of_no_pages_per_cluster_is_refused() {
    assert!(PoolPerCpu::new(Some(0)).is_err());
    assert!(PoolHandles::new(Some(0)).is_err());
}
