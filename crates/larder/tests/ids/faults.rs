//! A system without memory: an error, nothing lost, and all is well when memory is there again.

use std::sync::Arc;

use crate::common::modes;
use crate::spaces::*;
use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, Random};
use larder::ids::{IdError, IdSpace, Rule};
use larder::os::Linux;
use larder::os::rseq::Mode;
use larder::os::testing::{Failing, Hooked};

fn starve<R: Rule<Order: Send>>(rule: R, mode: Mode, many: usize) {
    for first in 0..7 {
        let system = Arc::new(Hooked::new(Linux, Failing::from(first, many)));
        let ids = IdSpace::builder(0u64..1000, rule.clone())
            .mode(mode)
            .system(system.clone())
            .build()
            .unwrap();
        let mut held = Vec::new();
        for turn in 0..900_u64 {
            if turn % 3 < 2 && held.len() < 900 {
                match ids.alloc() {
                    Ok(id) => held.push(id),
                    Err(error) => {
                        assert_eq!(error, IdError::OutOfMemory);
                        assert_eq!(ids.allocated(), held.len() as u64);
                    }
                }
            } else if let Some(id) = held.pop() {
                ids.free(id).unwrap();
                assert!(ids.free(id).is_err());
            }
            assert_eq!(ids.alloc_at(1000), ids.free(1000));
        }
        assert_eq!(ids.allocated(), held.len() as u64);
        for id in held {
            ids.free(id).unwrap();
        }
        // Without magazines the space works on its map alone; where not even that was possible, nothing was handed out.
        if many < 100 || ids.alloc().map(|id| ids.free(id)).is_ok() {
            assert_holds(&ids, 1000);
        }
    }
}

#[test]
fn a_refusal_is_an_error_and_passes() {
    for_all!(starve(1));
    for_all!(starve(3));
}

#[test]
fn a_space_goes_on_without_memory_for_magazines() {
    for_all!(starve(usize::MAX / 2));
}
