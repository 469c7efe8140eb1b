use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use larder::ids::{Allocate, IdError, Tenant, Tenants};

use super::support::{Failing, owned, shared};

#[test]
fn a_tenant_gets_no_more_than_its_limit() {
    let ids = Tenants::new(owned(0, 99));
    let (ann, bob) = (
        Tenant::new("ann", 3).unwrap(),
        Tenant::new("bob", 0).unwrap(),
    );
    for _ in 0..3 {
        ids.alloc(&ann).unwrap();
    }
    let refused = IdError::TenantLimit {
        tenant: "ann".to_owned(),
        held: 3,
        limit: 3,
    };
    assert_eq!(ids.alloc(&ann), Err(refused.clone()));
    assert_eq!(ids.alloc_at(&ann, 50), Err(refused));
    assert!(matches!(
        ids.alloc(&bob),
        Err(IdError::TenantLimit { limit: 0, .. })
    ));
    ids.free(&ann, 1).unwrap();
    assert_eq!(ids.alloc_at(&ann, 50), Ok(()));
    assert_eq!((ann.used(), bob.used(), ids.ids().allocated()), (3, 0, 3));
}

#[test]
fn a_tenant_above_its_new_limit_is_told_what_it_holds() {
    let ids = Tenants::new(owned(0, 99));
    let ann = Tenant::new("ann", 50).unwrap();
    for _ in 0..7 {
        ids.alloc(&ann).unwrap();
    }
    ann.set_limit(2);
    assert_eq!(
        ids.alloc(&ann).unwrap_err().to_string(),
        "ann holds 7 identifiers and may hold 2; free some, or raise the limit"
    );
}

#[test]
fn what_fails_below_is_not_counted() {
    let ids = Tenants::new(Failing::new(0, 1));
    let ann = Tenant::new("ann", 10).unwrap();
    ids.alloc(&ann).unwrap();
    assert_eq!(ids.alloc_at(&ann, 0), Err(IdError::Taken { id: 0 }));
    assert!(matches!(
        ids.alloc_at(&ann, 2),
        Err(IdError::OutOfRange { .. })
    ));
    ids.alloc(&ann).unwrap();
    assert_eq!(ids.alloc(&ann), Err(IdError::Full { allocated: 2 }));
    assert_eq!(ann.used(), 2);
    ids.ids().calls_left.set(0);
    assert_eq!(ids.free(&ann, 0), Err(IdError::OutOfMemory));
    assert_eq!(
        (ann.used(), ids.owns(&ann, 0)),
        (2, true),
        "it is still held"
    );
    ids.ids().calls_left.set(1);
    assert_eq!(ids.free(&ann, 0), Ok(()));
    assert_eq!(ann.used(), 1);
}

#[test]
fn a_tenant_frees_only_its_own() {
    let ids = Tenants::new(owned(0, 9));
    ids.ids().alloc_at(9).unwrap();
    let (ann, bob) = (Tenant::new("x", 9).unwrap(), Tenant::new("x", 9).unwrap());
    let id = ids.alloc(&ann).unwrap();
    let foreign = IdError::Foreign {
        id,
        tenant: "x".to_owned(),
    };
    assert_eq!(
        ids.free(&bob, id),
        Err(foreign),
        "of the same name, yet another"
    );
    assert_eq!(
        ids.free(&ann, 9),
        Err(IdError::NotAllocated { id: 9 }),
        "reserved, nobody's"
    );
    assert!(matches!(
        ids.free(&ann, 10),
        Err(IdError::OutOfRange { .. })
    ));
    assert_eq!(ids.free(&ann, id), Ok(()));
    assert_eq!(ids.free(&ann, id), Err(IdError::NotAllocated { id }));
    assert_eq!((ann.used(), bob.used()), (0, 0));
}

#[test]
fn a_dead_tenant_leaves_nothing() {
    let ids = Tenants::new(owned(0, 99));
    let (ann, bob) = (
        Tenant::new("ann", 99).unwrap(),
        Tenant::new("bob", 99).unwrap(),
    );
    for at in 0..40 {
        ids.alloc(if at % 3 == 0 { &bob } else { &ann }).unwrap();
    }
    assert_eq!(ids.free_all(&ann), Ok(26));
    assert_eq!((ann.used(), bob.used(), ids.ids().allocated()), (0, 14, 14));
    assert_eq!(ids.free_all(&ann), Ok(0));
}

#[test]
fn a_limit_can_be_changed() {
    let ids = Tenants::new(owned(0, 99));
    let ann = Tenant::new("ann", 5).unwrap();
    let held: Vec<_> = (0..5).map(|_| ids.alloc(&ann).unwrap()).collect();
    ann.set_limit(2);
    for (at, &id) in held.iter().enumerate() {
        assert_eq!(ids.alloc(&ann).is_ok(), at > 3, "with {} held", 5 - at);
        if at < 4 {
            ids.free(&ann, id).unwrap();
        }
    }
    ann.set_limit(u64::MAX);
    assert!(ids.alloc(&ann).is_ok());
}

#[test]
fn a_limit_holds_over_several_spaces() {
    let (pids, tags) = (Tenants::new(owned(0, 9)), Tenants::new(owned(0, 9)));
    let ann = Tenant::new("ann", 2).unwrap();
    pids.alloc(&ann).unwrap();
    tags.alloc(&ann).unwrap();
    assert!(matches!(pids.alloc(&ann), Err(IdError::TenantLimit { .. })));
}

#[test]
fn the_limit_is_exact_under_threads() {
    let ids = Tenants::new(shared(0, 999));
    let ann = Tenant::new("ann", 37).unwrap();
    for _ in 0..100 {
        let got = AtomicU64::new(0);
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    while ids.alloc(&ann).is_ok() {
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(
            (got.into_inner(), ann.used()),
            (37, 37),
            "all of it, and no more"
        );
        let freed: u64 = thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| ids.free_all(&ann).unwrap()))
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum()
        });
        assert_eq!((freed, ann.used(), ids.ids().allocated()), (37, 0, 0));
    }
}
