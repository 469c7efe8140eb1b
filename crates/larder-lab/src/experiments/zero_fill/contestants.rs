//! Everything that `zero-fill` runs.

use crate::contestants::mapping::bill::{Bill, Source};
use crate::contestants::mapping::cycle::Cycle;
use crate::contestants::mapping::placed::Placed;
use crate::contestants::mapping::pool::{self, Ask, PoolBill};
use crate::contestants::mapping::region::{self, Region};
use crate::contestants::mapping::steps::{self, Stepped};
use crate::contestants::mapping::{user_fault, ways, zeroing};
use crate::measure::Contestant;

/// The ways to get a block, his first.
pub(super) fn ways() -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(Cycle::<ways::MapUnmap>::new()),
        Box::new(Cycle::<ways::MapPopulate>::new()),
        Box::new(Cycle::<ways::DontNeed>::new()),
        Box::new(Cycle::<ways::DontNeedPopulate>::new()),
        Box::new(Cycle::<ways::Free>::new()),
        Box::new(Cycle::<ways::Memfd>::new()),
        Box::new(Cycle::<ways::SmallThp>::new()),
        Box::new(Cycle::<ways::Thp>::new()),
        Box::new(Cycle::<pool::PoolBlocks<true>>::new()),
        Box::new(Cycle::<pool::PoolBlocks<false>>::new()),
    ]
}

/// The steps of a fault.
pub(super) fn steps() -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(Stepped::<steps::WriteFault>::new()),
        Box::new(Stepped::<steps::ReadFault>::new()),
        Box::new(steps::KernelZeroing),
        Box::new(Stepped::<steps::AroundShared>::new()),
        Box::new(Stepped::<user_fault::InstallZero>::new()),
        Box::new(Stepped::<user_fault::Move>::new()),
        Box::new(Stepped::<steps::NullCall>::new()),
    ]
}

/// The ways to get a large region, plain first.
pub(super) fn regions() -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(Region::<region::Plain>::new()),
        Box::new(Region::<region::ByDefault>::new()),
        Box::new(Region::<region::Populate>::new()),
        Box::new(Region::<region::SmallThp>::new()),
        Box::new(Region::<region::Thp>::new()),
        Box::new(Region::<region::ThpPopulate>::new()),
        Box::new(Region::<pool::PoolRegion<true>>::new()),
        Box::new(Region::<pool::PoolRegion<false>>::new()),
    ]
}

/// The supplies of the consumer's bill.
pub(super) fn supplies() -> Vec<Box<dyn Contestant>> {
    Source::ALL
        .into_iter()
        .map(|source| Box::new(Bill(source)) as Box<dyn Contestant>)
        .chain(
            [Ask::Zeroed, Ask::Sparse, Ask::Dirty]
                .map(|ask| Box::new(PoolBill(ask)) as Box<dyn Contestant>),
        )
        .collect()
}

/// All of them.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all = ways();
    all.push(Box::new(Placed));
    all.extend(steps());
    all.push(Box::new(zeroing::InPlace));
    all.extend(supplies());
    all.extend(regions());
    all
}
