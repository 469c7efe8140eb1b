//! Instant, best and next fit: which free segment a request is cut from.

use super::list::Lists;
use super::segments::Segments;
use super::tag::{Kind, NONE};
use super::want::{Fit, Want};

/// Free segments that an instant fit looks at, beyond those that are certain to do, before a source is asked. It bounds
/// the time; the search is completed before a request fails.
const LOOKS: usize = 32;

/// How much work a search may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Bounded under instant fit: there is a source.
    Bounded,
    /// Until there is a fit or certainly none.
    Full,
}

/// A free segment and the address in it.
pub(crate) type Place = Option<(u32, u64)>;

impl Segments<'_> {
    /// Finds a place for a request.
    pub(crate) fn find(&self, want: &Want, fit: Fit, effort: Effort) -> Place {
        match fit {
            Fit::Instant => self.instant(want, effort),
            Fit::Best => self.best(want),
            Fit::Next => self.next(want),
        }
    }

    fn place_in(&self, want: &Want, tag: u32) -> Place {
        let it = self.tags.get(tag);
        want.place(it.start(), it.last()).map(|addr| (tag, addr))
    }

    /// The first segment of the first list whose segments are all large enough: a bit scan and a load.
    fn instant(&self, want: &Want, effort: Effort) -> Place {
        let tags = self.tags;
        let lists = &self.state.lists;
        if let Some(enough) = want.enough(self.table.quantum) {
            // Rounded up: below that, a list has segments that are too small.
            let first = lists.first_from(Lists::of(enough) + u32::from(!enough.is_power_of_two()));
            if first != NONE
                && let place @ Some(_) = self.place_in(want, first)
            {
                return place;
            }
        }
        let looks = match effort {
            Effort::Bounded => LOOKS,
            Effort::Full => usize::MAX,
        };
        lists
            .filled_from(Lists::of(want.size))
            .flat_map(|n| lists.segments(tags, n))
            .take(looks)
            .find_map(|tag| self.place_in(want, tag))
    }

    /// The smallest segment in which there is a fit: in the first list that has one, since later ones have larger.
    fn best(&self, want: &Want) -> Place {
        let tags = self.tags;
        let lists = &self.state.lists;
        lists.filled_from(Lists::of(want.size)).find_map(|n| {
            let mut best: Option<(u64, (u32, u64))> = None;
            for tag in lists.segments(tags, n) {
                let size = tags.get(tag).size();
                if best.is_none_or(|(smallest, _)| size < smallest)
                    && let Some(place) = self.place_in(want, tag)
                {
                    best = Some((size, place));
                    if size == want.size {
                        break;
                    }
                }
            }
            best.map(|(_, place)| place)
        })
    }

    /// The first fit after the last allocation's end, in the order of addresses, which begins again at its end.
    fn next(&self, want: &Want) -> Place {
        let tags = self.tags;
        let from = match self.state.rotor.last {
            None => return self.walk_to(want, self.state.index.first(tags), NONE),
            Some(last) => last,
        };
        let at = self.rotor_segment(from);
        if at == NONE {
            // Its span is gone. The order goes on with the next one.
            let span = self.state.index.ceiling(tags, from);
            return self.walk_to(want, span, NONE);
        }
        // What lies in the segment of the last allocation, but after its end, comes first; what lies before, last.
        if tags.get(at).kind() == Kind::Free
            && let Some(min) = from.checked_add(1)
        {
            let mut after = *want;
            after.min = want.min.max(min);
            if after.min <= after.max
                && let place @ Some(_) = self.place_in(&after, at)
            {
                return place;
            }
        }
        self.walk_to(want, at, at)
    }

    /// The first fit in the segments after `at`, a segment or a span, once around up to and with `end`.
    fn walk_to(&self, want: &Want, at: u32, end: u32) -> Place {
        let tags = self.tags;
        let mut at = if at == NONE {
            self.state.index.first(tags)
        } else {
            at
        };
        let counts = &self.state.counts;
        // Every segment and every span once, and the first one again.
        for _ in 0..=counts.segments + counts.spans {
            if at == NONE {
                return None;
            }
            let next = tags.get(at).next();
            at = if tags.get(next).kind().is_span() {
                match self.state.index.after(tags, next) {
                    NONE => self.state.index.first(tags),
                    span => span,
                }
            } else {
                next
            };
            // A span's own tag is passed on the way to its first segment.
            if tags.get(at).kind() == Kind::Free
                && let place @ Some(_) = self.place_in(want, at)
            {
                return place;
            }
            if at == end && end != NONE {
                return None;
            }
        }
        None
    }

    /// The segment that contains the end of the last allocation. Constant time, unless allocations by other rules have
    /// cut that segment since.
    fn rotor_segment(&self, last: u64) -> u32 {
        let tags = self.tags;
        let hint = self.state.rotor.hint;
        let contains = |tag: u32| {
            let it = tags.get(tag);
            it.start() <= last && it.last() >= last
        };
        let kind = tags.get(hint).kind();
        if (kind == Kind::Free || kind.is_taken()) && contains(hint) {
            return hint;
        }
        let span = self.span_of(last);
        if span == NONE {
            return NONE;
        }
        let mut at = tags.get(span).next();
        while at != span && !contains(at) {
            at = tags.get(at).next();
        }
        if at == span { NONE } else { at }
    }
}
