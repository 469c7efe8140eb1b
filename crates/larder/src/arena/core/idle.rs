//! Imported spans that are free as a whole: kept for the next need, the oldest given back first.
//!
//! The list goes through the links back of such a span and of its one segment, which lead to each other in any other span.

use super::tag::{NONE, Tags};

/// A list of spans, in the order in which they became idle.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) oldest: u32,
    pub(super) newest: u32,
}

impl Idle {
    pub(super) fn new() -> Self {
        Self {
            oldest: NONE,
            newest: NONE,
        }
    }

    /// The spans, oldest first.
    pub(super) fn spans<'t>(&self, tags: Tags<'t>) -> impl Iterator<Item = u32> + 't {
        let mut at = self.oldest;
        core::iter::from_fn(move || {
            let span = (at != NONE).then_some(at)?;
            at = tags.get(span).prev();
            Some(span)
        })
    }

    /// Adds a span with one segment.
    pub(super) fn push(&mut self, tags: Tags<'_>, span: u32) {
        set_older(tags, span, self.newest);
        set_newer(tags, span, NONE);
        match self.newest {
            NONE => self.oldest = span,
            newest => set_newer(tags, newest, span),
        }
        self.newest = span;
    }

    /// Removes a span that is there, whose links back lead to its segment and from there again.
    pub(super) fn remove(&mut self, tags: Tags<'_>, span: u32) {
        let segment = tags.get(span).next();
        let (older, newer) = (tags.get(segment).prev(), tags.get(span).prev());
        match older {
            NONE => self.oldest = newer,
            older => set_newer(tags, older, newer),
        }
        match newer {
            NONE => self.newest = older,
            newer => set_older(tags, newer, older),
        }
        tags.get(span).set_prev(segment);
        tags.get(segment).set_prev(span);
    }
}

fn set_newer(tags: Tags<'_>, span: u32, to: u32) {
    tags.get(span).set_prev(to);
}

fn set_older(tags: Tags<'_>, span: u32, to: u32) {
    tags.get(tags.get(span).next()).set_prev(to);
}
