//! Doubly linked lists through one array: each node is in at most one list.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::table::{NoMemory, grow, table};

/// No node.
pub const NONE: u32 = u32::MAX;

/// The array of the links of all nodes, which several lists share.
pub trait Linked {
    /// The node that came into the list after this one.
    fn newer(&self, node: u32) -> u32;

    /// The node that came into the list before this one.
    fn older(&self, node: u32) -> u32;

    /// Sets the newer neighbour of a node.
    fn set_newer(&mut self, node: u32, newer: u32);

    /// Sets the older neighbour of a node.
    fn set_older(&mut self, node: u32, older: u32);

    /// [`newer`](Self::newer) and [`older`](Self::older).
    #[inline]
    fn both(&self, node: u32) -> (u32, u32) {
        (self.newer(node), self.older(node))
    }

    /// [`set_newer`](Self::set_newer) and [`set_older`](Self::set_older).
    #[inline]
    fn set_both(&mut self, node: u32, newer: u32, older: u32) {
        self.set_newer(node, newer);
        self.set_older(node, older);
    }
}

#[derive(Debug, Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
}

const LOOSE: Link = Link {
    newer: NONE,
    older: NONE,
};

/// Links of 8 bytes a node.
#[derive(Debug)]
pub struct Links(Vec<Link>);

impl Links {
    /// Links for nodes below `nodes`.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(nodes: usize) -> Result<Self, NoMemory> {
        table(nodes, LOOSE).map(Self)
    }

    /// Makes room for nodes below `nodes`; lists stay as they are.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn grow(&mut self, nodes: usize) -> Result<(), NoMemory> {
        grow(&mut self.0, nodes, LOOSE)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Link>()
    }
}

impl Linked for Links {
    #[inline]
    fn newer(&self, node: u32) -> u32 {
        self.0[node as usize].newer
    }

    #[inline]
    fn older(&self, node: u32) -> u32 {
        self.0[node as usize].older
    }

    #[inline]
    fn set_newer(&mut self, node: u32, newer: u32) {
        self.0[node as usize].newer = newer;
    }

    #[inline]
    fn set_older(&mut self, node: u32, older: u32) {
        self.0[node as usize].older = older;
    }

    #[inline]
    fn both(&self, node: u32) -> (u32, u32) {
        let Link { newer, older } = self.0[node as usize];
        (newer, older)
    }

    #[inline]
    fn set_both(&mut self, node: u32, newer: u32, older: u32) {
        self.0[node as usize] = Link { newer, older };
    }
}

/// Links of 4 bytes a node, for at most 65,535 nodes; [`NONE`] by its low bits.
#[derive(Debug)]
pub struct Links16(Vec<[u16; 2]>);

impl Links16 {
    /// Links for nodes below `nodes`, which are at most 65,535.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(nodes: usize) -> Result<Self, NoMemory> {
        table(nodes, [u16::MAX; 2]).map(Self)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<[u16; 2]>()
    }

    #[inline]
    fn node(number: u16) -> u32 {
        match number {
            u16::MAX => NONE,
            node => node.into(),
        }
    }
}

impl Linked for Links16 {
    #[inline]
    fn newer(&self, node: u32) -> u32 {
        Self::node(self.0[node as usize][0])
    }

    #[inline]
    fn older(&self, node: u32) -> u32 {
        Self::node(self.0[node as usize][1])
    }

    #[inline]
    fn set_newer(&mut self, node: u32, newer: u32) {
        self.0[node as usize][0] = newer as u16;
    }

    #[inline]
    fn set_older(&mut self, node: u32, older: u32) {
        self.0[node as usize][1] = older as u16;
    }

    #[inline]
    fn both(&self, node: u32) -> (u32, u32) {
        let [newer, older] = self.0[node as usize];
        (Self::node(newer), Self::node(older))
    }

    #[inline]
    fn set_both(&mut self, node: u32, newer: u32, older: u32) {
        self.0[node as usize] = [newer as u16, older as u16];
    }
}

/// Links whose numbers are as short as their nodes allow: 4 bytes a node up to 65,535 nodes, 6 up to 2^24 - 1, 8 above.
#[derive(Debug)]
pub struct ShortLinks(Width);

/// The shortest are by far the most frequent, and take half the instructions.
#[derive(Debug)]
enum Width {
    Short(Links16),
    Wide(WideLinks),
}

const MOST_SHORT: usize = u16::MAX as usize;

impl ShortLinks {
    /// Links for nodes below `nodes`.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(nodes: usize) -> Result<Self, NoMemory> {
        Ok(Self(match nodes {
            0..=MOST_SHORT => Width::Short(Links16::new(nodes)?),
            _ => Width::Wide(WideLinks::new(nodes)?),
        }))
    }

    /// Makes room for nodes below `nodes`; lists stay as they are.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn grow(&mut self, nodes: usize) -> Result<(), NoMemory> {
        let new = match &mut self.0 {
            Width::Short(short) if nodes <= MOST_SHORT => {
                return grow(&mut short.0, nodes, [u16::MAX; 2]);
            }
            Width::Short(short) => WideLinks::copy(short, short.0.len(), nodes)?,
            Width::Wide(wide) if nodes <= wide.most() => {
                return grow(&mut wide.bytes, WideLinks::len(nodes, wide.width), u8::MAX);
            }
            Width::Wide(wide) => WideLinks::copy(wide, wide.nodes(), nodes)?,
        };
        self.0 = Width::Wide(new);
        Ok(())
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Width::Short(short) => short.bytes(),
            Width::Wide(wide) => wide.bytes.capacity(),
        }
    }
}

impl Linked for ShortLinks {
    #[inline]
    fn newer(&self, node: u32) -> u32 {
        match &self.0 {
            Width::Short(short) => short.newer(node),
            Width::Wide(wide) => wide.newer(node),
        }
    }

    #[inline]
    fn older(&self, node: u32) -> u32 {
        match &self.0 {
            Width::Short(short) => short.older(node),
            Width::Wide(wide) => wide.older(node),
        }
    }

    #[inline]
    fn set_newer(&mut self, node: u32, newer: u32) {
        match &mut self.0 {
            Width::Short(short) => short.set_newer(node, newer),
            Width::Wide(wide) => wide.set_newer(node, newer),
        }
    }

    #[inline]
    fn set_older(&mut self, node: u32, older: u32) {
        match &mut self.0 {
            Width::Short(short) => short.set_older(node, older),
            Width::Wide(wide) => wide.set_older(node, older),
        }
    }

    #[inline]
    fn both(&self, node: u32) -> (u32, u32) {
        match &self.0 {
            Width::Short(short) => short.both(node),
            Width::Wide(wide) => wide.both(node),
        }
    }

    #[inline]
    fn set_both(&mut self, node: u32, newer: u32, older: u32) {
        match &mut self.0 {
            Width::Short(short) => short.set_both(node, newer, older),
            Width::Wide(wide) => wide.set_both(node, newer, older),
        }
    }
}

/// Links of 6 bytes a node up to 2^24 - 1 nodes, and of 8 above.
#[derive(Debug)]
struct WideLinks {
    bytes: Vec<u8>,
    /// Bytes of a number.
    width: usize,
    /// The largest number, which stands for none.
    none: u32,
    /// The bits of a node's two numbers.
    pair: u64,
}

impl WideLinks {
    fn new(nodes: usize) -> Result<Self, NoMemory> {
        let width = if nodes <= 0xff_ffff { 3 } else { 4 };
        Ok(Self {
            bytes: table(Self::len(nodes, width), u8::MAX)?,
            width,
            none: u32::MAX >> (32 - 8 * width),
            pair: u64::MAX >> (64 - 16 * width),
        })
    }

    /// The links of the first `len` nodes, with room for nodes below `nodes`.
    fn copy(from: &impl Linked, len: usize, nodes: usize) -> Result<Self, NoMemory> {
        let mut new = Self::new(nodes)?;
        for node in 0..len as u32 {
            let (newer, older) = from.both(node);
            new.set_both(node, newer, older);
        }
        Ok(new)
    }

    /// Two numbers are read and written as a word of 8 bytes, one as a word of 4.
    fn len(nodes: usize, width: usize) -> usize {
        nodes * 2 * width + 8 - 2 * width
    }

    fn nodes(&self) -> usize {
        (self.bytes.len() + 2 * self.width - 8) / (2 * self.width)
    }

    /// Most nodes for numbers of this width.
    fn most(&self) -> usize {
        self.none as usize
    }

    #[inline]
    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_le_bytes(word)
    }

    /// The word of a node's two numbers, the newer one in its low bits.
    #[inline]
    fn both_at(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(word)
    }

    /// The node of a number.
    #[inline]
    fn node(&self, word: u32) -> u32 {
        match word & self.none {
            none if none == self.none => NONE,
            node => node,
        }
    }

    #[inline]
    fn get(&self, number: usize) -> u32 {
        self.node(self.word(number * self.width))
    }

    #[inline]
    fn set(&mut self, number: usize, node: u32) {
        let at = number * self.width;
        let word = self.word(at) & !self.none | node & self.none;
        self.bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
}

impl Linked for WideLinks {
    #[inline]
    fn newer(&self, node: u32) -> u32 {
        self.get(node as usize * 2)
    }

    #[inline]
    fn older(&self, node: u32) -> u32 {
        self.get(node as usize * 2 + 1)
    }

    #[inline]
    fn set_newer(&mut self, node: u32, newer: u32) {
        self.set(node as usize * 2, newer);
    }

    #[inline]
    fn set_older(&mut self, node: u32, older: u32) {
        self.set(node as usize * 2 + 1, older);
    }

    #[inline]
    fn both(&self, node: u32) -> (u32, u32) {
        let word = self.both_at(node as usize * 2 * self.width);
        let older = (word >> (8 * self.width)) as u32;
        (self.node(word as u32), self.node(older))
    }

    #[inline]
    fn set_both(&mut self, node: u32, newer: u32, older: u32) {
        let at = node as usize * 2 * self.width;
        let (newer, older) = (u64::from(newer & self.none), u64::from(older & self.none));
        let word = self.both_at(at) & !self.pair | newer | older << (8 * self.width);
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

/// A list: its two ends. Nodes usually enter at the newest end.
///
/// ```
/// use larder_base::list::{Links, List};
///
/// let mut links = Links::new(3)?;
/// let mut list = List::new();
/// for node in [2, 0, 1] {
///     list.push_newest(&mut links, node);
/// }
/// list.renew(&mut links, 2);
/// assert!(list.iter(&links).eq([0, 1, 2]));
/// # Ok::<(), larder_base::table::NoMemory>(())
/// ```
#[derive(Debug)]
pub struct List {
    newest: u32,
    oldest: u32,
    len: u32,
    /// Of these, how many are parked.
    parked: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            newest: NONE,
            oldest: NONE,
            len: 0,
            parked: 0,
        }
    }

    /// How many nodes are in, parked ones among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// No node is in but parked ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// How many nodes are parked.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.parked as usize
    }

    /// The node that came last, or [`NONE`].
    #[must_use]
    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// The node that came first, or [`NONE`].
    #[must_use]
    pub fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Puts a node that is in no list at the newest end.
    #[inline]
    pub fn push_newest<L: Linked>(&mut self, links: &mut L, node: u32) {
        links.set_both(node, NONE, self.newest);
        match self.newest {
            NONE => self.oldest = node,
            before => links.set_newer(before, node),
        }
        self.newest = node;
        self.len += 1;
    }

    /// Puts a node that is in no list at the oldest end.
    #[inline]
    pub fn push_oldest<L: Linked>(&mut self, links: &mut L, node: u32) {
        links.set_both(node, self.oldest, NONE);
        match self.oldest {
            NONE => self.newest = node,
            after => links.set_older(after, node),
        }
        self.oldest = node;
        self.len += 1;
    }

    /// Takes a node of this list out.
    #[inline]
    pub fn unlink<L: Linked>(&mut self, links: &mut L, node: u32) {
        let (newer, older) = links.both(node);
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

    /// Takes the oldest node out; [`NONE`] if there is none.
    #[inline]
    pub fn pop_oldest<L: Linked>(&mut self, links: &mut L) -> u32 {
        let oldest = self.oldest;
        if oldest != NONE {
            self.oldest = links.newer(oldest);
            match self.oldest {
                NONE => self.newest = NONE,
                next => links.set_older(next, NONE),
            }
            self.len -= 1;
        }
        oldest
    }

    /// Makes a node of this list the newest.
    #[inline]
    pub fn renew<L: Linked>(&mut self, links: &mut L, node: u32) {
        if self.newest != node {
            self.unlink(links, node);
            self.push_newest(links, node);
        }
    }

    /// Takes a node of this list out of the order. It counts as one of the list; until it is unparked, nothing else is called with it.
    pub fn park<L: Linked>(&mut self, links: &mut L, node: u32) {
        self.unlink(links, node);
        self.len += 1;
        self.parked += 1;
    }

    /// Puts a parked node back, as the newest.
    pub fn unpark<L: Linked>(&mut self, links: &mut L, node: u32) {
        self.len -= 1;
        self.parked -= 1;
        self.push_newest(links, node);
    }

    /// The nodes that are not parked, from the oldest on.
    pub fn iter<'l, L: Linked>(&self, links: &'l L) -> impl Iterator<Item = u32> + use<'l, L> {
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
    ///
    /// # Errors
    /// A sentence that begins with `name` and says which node is wrong.
    pub fn check<L: Linked>(&self, links: &L, name: &str) -> Result<(), String> {
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
        if before != self.newest || count + self.parked != self.len {
            return Err(format!(
                "{name}: {count} nodes up to {before}, but {} up to {} are noted, {} of them parked",
                self.len, self.newest, self.parked
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
            let mut links = ShortLinks::new(nodes).unwrap();
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
