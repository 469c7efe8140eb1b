//! Imported spans that are free as a whole: kept for the next need, the oldest given back first.

use super::import::ImportedSpan;
use super::segments::Segments;
use super::tag::{NONE, Tags};

/// Of what is allocated, idle spans may amount to one part in so many.
const SHARE: u64 = 8;

/// A list through the spans' tags, in the order in which they became idle.
#[derive(Debug)]
pub(super) struct Idle {
    oldest: u32,
    newest: u32,
}

impl Idle {
    pub(super) fn new() -> Self {
        Self {
            oldest: NONE,
            newest: NONE,
        }
    }

    /// The spans, oldest first.
    pub(super) fn spans<'t>(&self, tags: &'t Tags) -> impl Iterator<Item = u32> + 't {
        let mut at = self.oldest;
        core::iter::from_fn(move || {
            let span = (at != NONE).then_some(at)?;
            at = tags.get(span).newer();
            Some(span)
        })
    }

    fn push(&mut self, tags: &Tags, span: u32) {
        tags.get(span).set_older(self.newest);
        tags.get(span).set_newer(NONE);
        match self.newest {
            NONE => self.oldest = span,
            newest => tags.get(newest).set_newer(span),
        }
        self.newest = span;
    }

    fn remove(&mut self, tags: &Tags, span: u32) {
        let (older, newer) = (tags.get(span).older(), tags.get(span).newer());
        match older {
            NONE => self.oldest = newer,
            older => tags.get(older).set_newer(newer),
        }
        match newer {
            NONE => self.newest = older,
            newer => tags.get(newer).set_older(older),
        }
    }
}

impl Segments<'_> {
    /// Notes that an imported span has become free as a whole.
    pub(super) fn rest(&mut self, span: u32) {
        let tags = &self.shared.tags;
        self.state.counts.idle += tags.get(span).size();
        self.state.idle.push(tags, span);
    }

    /// Notes that an idle span is used, or goes.
    pub(super) fn wake(&mut self, span: u32) {
        let tags = &self.shared.tags;
        self.state.counts.idle -= tags.get(span).size();
        self.state.idle.remove(tags, span);
    }

    /// Takes the oldest idle span out if more is idle than should be.
    ///
    /// The newest one is kept, so that one allocation back and forth does not import and give back each time, and so is an
    /// eighth of what is allocated.
    pub(super) fn excess(&mut self) -> Option<ImportedSpan> {
        let newest = self.state.idle.newest;
        let counts = &self.state.counts;
        let used = counts.total - counts.free;
        let kept = self.shared.tags.get(newest).size().max(used / SHARE);
        (newest != NONE && counts.idle > kept)
            .then(|| self.take_idle())
            .flatten()
    }

    /// Takes the oldest idle span out.
    pub(super) fn take_idle(&mut self) -> Option<ImportedSpan> {
        match self.state.idle.oldest {
            NONE => None,
            span => Some(self.remove_span(span)),
        }
    }
}
