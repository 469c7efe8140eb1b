//! Doubly linked lists through one array whose numbers are as short as the frames allow.

use super::super::PolicyError;
use super::super::table::{grow, table};

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// The links of all nodes, which two lists share: 4 bytes a node up to 65,535 nodes, 6 up to 2^24 - 1, 8 above.
#[derive(Debug)]
pub(super) struct Links {
    bytes: Vec<u8>,
    /// Bytes of a number.
    width: usize,
    /// The largest number, which stands for none.
    none: u32,
}

fn width(nodes: usize) -> usize {
    match nodes {
        0..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

impl Links {
    pub(super) fn new(nodes: usize) -> Result<Self, PolicyError> {
        let width = width(nodes);
        Ok(Self {
            bytes: table(Self::len(nodes, width), u8::MAX)?,
            width,
            none: u32::MAX >> (32 - 8 * width),
        })
    }

    /// A number is read and written as a word of 4 bytes.
    fn len(nodes: usize, width: usize) -> usize {
        nodes * 2 * width + 4 - width
    }

    fn nodes(&self) -> usize {
        self.bytes.len() / (2 * self.width)
    }

    pub(super) fn grow(&mut self, nodes: usize) -> Result<(), PolicyError> {
        if width(nodes) <= self.width {
            return grow(&mut self.bytes, Self::len(nodes, self.width), u8::MAX);
        }
        let mut new = Self::new(nodes)?;
        for node in 0..self.nodes() as u32 {
            new.set_newer(node, self.newer(node));
            new.set_older(node, self.older(node));
        }
        *self = new;
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    #[inline]
    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_le_bytes(word)
    }

    #[inline]
    fn get(&self, number: usize) -> u32 {
        match self.word(number * self.width) & self.none {
            none if none == self.none => NONE,
            node => node,
        }
    }

    #[inline]
    fn set(&mut self, number: usize, node: u32) {
        let at = number * self.width;
        let word = self.word(at) & !self.none | node & self.none;
        self.bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    fn newer(&self, node: u32) -> u32 {
        self.get(node as usize * 2)
    }

    fn older(&self, node: u32) -> u32 {
        self.get(node as usize * 2 + 1)
    }

    fn set_newer(&mut self, node: u32, newer: u32) {
        self.set(node as usize * 2, newer);
    }

    fn set_older(&mut self, node: u32, older: u32) {
        self.set(node as usize * 2 + 1, older);
    }
}

/// A list: its two ends. Nodes come in at the newest end.
#[derive(Debug)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

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

    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Puts a loose node at the newest end.
    #[inline]
    pub(super) fn push_newest(&mut self, links: &mut Links, node: u32) {
        links.set_newer(node, NONE);
        links.set_older(node, self.newest);
        match self.newest {
            NONE => self.oldest = node,
            before => links.set_newer(before, node),
        }
        self.newest = node;
        self.len += 1;
    }

    /// Takes a node of this list out.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut Links, node: u32) {
        let (newer, older) = (links.newer(node), links.older(node));
        match newer {
            NONE => self.newest = older,
            newer => links.set_older(newer, older),
        }
        match older {
            NONE => self.oldest = newer,
            older => links.set_newer(older, newer),
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

    /// The nodes from the oldest on.
    pub(super) fn iter<'l>(&self, links: &'l Links) -> impl Iterator<Item = u32> + use<'l> {
        let some = |node| (node != NONE).then_some(node);
        core::iter::successors(some(self.oldest), move |&node| some(links.newer(node)))
    }

    /// Walks the list both ways and counts.
    pub(super) fn check(&self, links: &Links, name: &str) -> Result<(), String> {
        let (mut before, mut count) = (NONE, 0);
        for node in self.iter(links) {
            if links.older(node) != before {
                return Err(format!(
                    "{name}: node {node} does not point back to {before}"
                ));
            }
            count += 1;
            if count > self.len {
                return Err(format!("{name}: more than its {} nodes", self.len));
            }
            before = node;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_are_kept_and_lists_survive_growth() {
        for nodes in [0xffff, 0x1_0000, 0xff_ffff] {
            let mut links = Links::new(nodes).unwrap();
            let bytes = if nodes == 0xffff { 4 } else { 6 };
            assert_eq!(links.bytes() / nodes, bytes, "{nodes}");
            let last = nodes as u32 - 1;
            let mut list = List::new();
            for node in [last, 0, last - 1, 1] {
                list.push_newest(&mut links, node);
            }
            list.unlink(&mut links, 0);
            list.renew(&mut links, last);
            let order = [last - 1, 1, last];
            list.check(&links, "list").unwrap();
            assert!(list.iter(&links).eq(order));
            links.grow(nodes + 1).unwrap();
            list.check(&links, "grown").unwrap();
            assert!(list.iter(&links).eq(order));
            list.push_newest(&mut links, nodes as u32);
            list.check(&links, "with the new one").unwrap();
        }
    }
}
