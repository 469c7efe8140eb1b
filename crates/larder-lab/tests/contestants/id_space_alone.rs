//! What a source of identifiers holds, as the heap counts it for the whole process.

use crate::alone::alone;
use larder_lab::contestants::ids::heap;
use larder_lab::experiments::id_space::ID_SPACE;
use larder_lab::measure::work;
use larder_lab::model::Params;

#[test]
#[cfg(target_env = "gnu")]
fn what_a_source_holds_is_counted_by_the_heap() {
    alone(
        "id_space_alone::what_a_source_holds_is_counted_by_the_heap",
        heap_counts,
    );
}

#[cfg(target_env = "gnu")]
fn heap_counts() {
    const BYTES: u64 = 1 << 24;
    let before = heap::in_use().expect("glibc");
    let block = std::hint::black_box(Vec::<u8>::with_capacity(BYTES as usize));
    let with = heap::in_use().expect("glibc");
    drop(block);
    let after = heap::in_use().expect("glibc");
    assert!(
        (BYTES..BYTES + 65536).contains(&(with - before)),
        "{before} {with}"
    );
    assert!(after.abs_diff(before) < 65536, "{before} {after}");

    let bits = |contestant: &str| {
        let params = Params::new()
            .with_text("shape", "batches")
            .with_text("rule", "cyclic")
            .with("count", 1 << 20)
            .with("live", 1 << 19)
            .with("turns", 4)
            .with("warm", 1)
            .with("budget_ms", 1000);
        let measures = work(&ID_SPACE, contestant, &params).expect("runs");
        measures.get("bits_per_id").expect("counted")
    };
    let stack = bits("stack");
    assert!((32.0..32.5).contains(&stack), "{stack}");
    let pidmap = bits("pidmap");
    assert!((1.0..1.02).contains(&pidmap), "{pidmap}");
}
