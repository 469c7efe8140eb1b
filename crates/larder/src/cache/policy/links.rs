//! Doubly linked lists through one array: each node is in at most one list.

use super::table::{grow, table};
use super::{FrameState, Frames, PolicyError};

/// No node.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
}

const LOOSE: Link = Link {
    newer: NONE,
    older: NONE,
};

/// The links of all nodes, which several lists share.
#[derive(Debug)]
pub(super) struct Links(Vec<Link>);

impl Links {
    pub(super) fn new(nodes: usize) -> Result<Self, PolicyError> {
        table(nodes, LOOSE).map(Self)
    }

    pub(super) fn grow(&mut self, nodes: usize) -> Result<(), PolicyError> {
        grow(&mut self.0, nodes, LOOSE)
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Link>()
    }

    /// The node that came into the list after this one.
    #[inline]
    pub(super) fn newer(&self, node: u32) -> u32 {
        self.0[node as usize].newer
    }

    /// The node that came into the list before this one.
    #[inline]
    pub(super) fn older(&self, node: u32) -> u32 {
        self.0[node as usize].older
    }
}

/// A list: its two ends. Nodes come in at the newest end, as a rule.
#[derive(Debug)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

#[allow(dead_code)]
impl List {
    pub(super) const fn new() -> Self {
        Self {
            newest: NONE,
            oldest: NONE,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn newest(&self) -> u32 {
        self.newest
    }

    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Puts a loose node at the newest end.
    #[inline]
    pub(super) fn push_newest(&mut self, links: &mut Links, node: u32) {
        links.0[node as usize] = Link {
            newer: NONE,
            older: self.newest,
        };
        match self.newest {
            NONE => self.oldest = node,
            before => links.0[before as usize].newer = node,
        }
        self.newest = node;
        self.len += 1;
    }

    /// Puts a loose node at the oldest end.
    #[inline]
    pub(super) fn push_oldest(&mut self, links: &mut Links, node: u32) {
        links.0[node as usize] = Link {
            newer: self.oldest,
            older: NONE,
        };
        match self.oldest {
            NONE => self.newest = node,
            after => links.0[after as usize].older = node,
        }
        self.oldest = node;
        self.len += 1;
    }

    /// Takes a node of this list out.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut Links, node: u32) {
        let Link { newer, older } = links.0[node as usize];
        match newer {
            NONE => self.newest = older,
            newer => links.0[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => links.0[older as usize].newer = newer,
        }
        self.len -= 1;
    }

    /// Makes a node of this list the newest.
    #[inline]
    pub(super) fn renew(&mut self, links: &mut Links, node: u32) {
        if self.newest != node {
            self.unlink(links, node);
            self.push_newest(links, node);
        }
    }

    /// The oldest node that may leave.
    #[inline]
    pub(super) fn oldest_loose<F: Frames>(&self, links: &Links, frames: &F) -> u32 {
        let mut at = self.oldest;
        while at != NONE && frames.state(at) == FrameState::Pinned {
            at = links.newer(at);
        }
        at
    }

    /// The nodes from the oldest on.
    pub(super) fn iter<'l>(&self, links: &'l Links) -> impl Iterator<Item = u32> + use<'l> {
        let mut at = self.oldest;
        core::iter::from_fn(move || {
            let node = at;
            (node != NONE).then(|| {
                at = links.newer(node);
                node
            })
        })
    }

    /// Walks the list both ways and counts.
    pub(super) fn check(&self, links: &Links, name: &str) -> Result<(), String> {
        let (mut before, mut count) = (NONE, 0);
        let mut at = self.oldest;
        while at != NONE {
            if links.older(at) != before {
                return Err(format!("{name}: node {at} does not point back to {before}"));
            }
            count += 1;
            if count > self.len {
                return Err(format!("{name}: more than its {} nodes", self.len));
            }
            (before, at) = (at, links.newer(at));
        }
        if before != self.newest || count != self.len {
            return Err(format!(
                "{name}: {count} nodes up to {before}, but {} up to {} are noted",
                self.len, self.newest
            ));
        }
        Ok(())
    }
}
