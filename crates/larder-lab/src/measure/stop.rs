//! When a group has seen enough. Significance is never a reason.

use super::Group;
use crate::model::{Sample, StopReason};

/// Looks at a group after a complete round.
///
/// `samples` are those of the group alone, complete rounds only.
pub(super) fn decide(
    _group: &Group,
    rounds: u32,
    max_rounds: u32,
    _samples: &[&Sample],
) -> Option<StopReason> {
    (rounds >= max_rounds).then_some(StopReason::Rounds)
}
