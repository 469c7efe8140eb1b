//! The nodes that link large objects of one owner into a ring, in metadata.

use core::ptr::NonNull;

use super::meta::{BlockNumber, Meta};
use crate::os::lock::order::{Rank, Ranked};

/// The metadata of one object, or of the list itself.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Node {
    pub(super) previous: BlockNumber,
    pub(super) next: BlockNumber,
    /// The object's first page.
    pub(super) page: u32,
}

pub(super) const NODE: usize = size_of::<Node>();

/// What the family's lock for all these lists guards: the nodes' links.
#[derive(Debug)]
pub(super) struct Links;

impl Links {
    pub(super) fn node(meta: &Meta, number: BlockNumber) -> NonNull<Node> {
        meta.at(number).cast()
    }

    pub(super) fn read(&self, meta: &Meta, number: BlockNumber) -> Node {
        // SAFETY: a node that is linked, and links are read under the lock.
        unsafe { Self::node(meta, number).read() }
    }

    pub(super) fn write(&mut self, meta: &Meta, number: BlockNumber, node: Node) {
        // SAFETY: a block that was taken for a node; nodes are written under the lock.
        unsafe { Self::node(meta, number).write(node) };
    }

    /// A ring of one.
    pub(super) fn alone(&mut self, meta: &Meta, number: BlockNumber, page: u32) {
        let (previous, next) = (number, number);
        self.write(
            meta,
            number,
            Node {
                previous,
                next,
                page,
            },
        );
    }

    pub(super) fn link(&mut self, meta: &Meta, head: BlockNumber, number: BlockNumber, page: u32) {
        let mut first = self.read(meta, head);
        let next = core::mem::replace(&mut first.next, number);
        self.write(meta, head, first);
        let mut second = self.read(meta, next);
        second.previous = number;
        self.write(meta, next, second);
        let node = Node {
            previous: head,
            next,
            page,
        };
        self.write(meta, number, node);
    }

    pub(super) fn unlink(&mut self, meta: &Meta, number: BlockNumber) {
        let Node {
            previous,
            next,
            page,
        } = self.read(meta, number);
        let mut before = self.read(meta, previous);
        before.next = next;
        self.write(meta, previous, before);
        let mut after = self.read(meta, next);
        after.previous = previous;
        self.write(meta, next, after);
        self.alone(meta, number, page);
    }
}

impl Ranked for Links {
    const RANK: Rank = Rank::LargeList;
}
