//! A sparse array of small numbers that grows where it is written: what a layer notes about each identifier.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
#[cfg(not(shuttle))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;

use crate::ids::IdError;

/// Bits of a word's number that one level resolves.
const FAN_BITS: u32 = 7;
const FAN: usize = 1 << FAN_BITS;

/// A node that is made at the first write below it. (An array of one, because a vector of one becomes that
/// without an allocation that could not fail softly.)
type Place = OnceBox<[Node; 1]>;

/// Both kinds have the same size: about 1 KiB.
enum Node {
    Inner([Place; FAN]),
    Leaf([AtomicU64; FAN]),
}

/// Fields of 1 to 64 bits (a power of two), numbered from 0, all zero at first. Nothing is stored where nothing was
/// written. Every method takes `&self` and is lock-free; with `shared = false` one uses no locked instruction.
pub(super) struct Fields {
    root: Place,
    /// By how much a word's number is shifted at the root.
    top: u32,
    /// The logarithm of the bits of a field.
    width: u32,
}

impl Fields {
    /// Fields for the numbers `0..=last`, each of at least `bits` bits. Takes constant time.
    pub(super) fn new(last: u64, bits: u32) -> Self {
        let width = bits.clamp(1, 64).next_power_of_two().trailing_zeros();
        let last_word = last >> (6 - width);
        let word_bits = u64::BITS - last_word.leading_zeros();
        Self {
            root: OnceBox::new(),
            top: word_bits.div_ceil(FAN_BITS).max(1) * FAN_BITS - FAN_BITS,
            width,
        }
    }

    /// The number of the word that holds a field, and by how much the field is shifted in it.
    #[inline]
    fn place(&self, at: u64) -> (u64, u32) {
        let per_word = 6 - self.width;
        let within = (at & ((1 << per_word) - 1)) as u32;
        (at >> per_word, within << self.width)
    }

    /// The bits of one field, at the lowest place.
    #[inline]
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - (1u32 << self.width))
    }

    #[inline]
    fn word(&self, number: u64) -> Option<&AtomicU64> {
        let mut node = self.root.get()?;
        let mut shift = self.top;
        loop {
            match &node[0] {
                Node::Inner(places) => node = places[slot(number, shift)].get()?,
                Node::Leaf(words) => return Some(&words[slot(number, 0)]),
            }
            shift = shift.saturating_sub(FAN_BITS);
        }
    }

    /// Makes room for a field, so that [`replace`](Self::replace) finds it.
    pub(super) fn make(&self, at: u64) -> Result<(), IdError> {
        let (number, _) = self.place(at);
        let mut shift = self.top;
        let mut place = &self.root;
        loop {
            let node = place.get_or_try_init(|| new_node(shift == 0))?;
            match &node[0] {
                Node::Inner(places) => place = &places[slot(number, shift)],
                Node::Leaf(_) => return Ok(()),
            }
            shift = shift.saturating_sub(FAN_BITS);
        }
    }

    /// The value of a field.
    #[inline]
    pub(super) fn get(&self, at: u64) -> u64 {
        let (number, shift) = self.place(at);
        self.word(number).map_or(0, |word| {
            (word.load(Ordering::Acquire) >> shift) & self.mask()
        })
    }

    /// Writes `new` where `old` stands; `false`, and nothing is written, where another value does or no room was made.
    #[inline]
    pub(super) fn replace(&self, at: u64, old: u64, new: u64, shared: bool) -> bool {
        debug_assert!(new <= self.mask());
        let (number, shift) = self.place(at);
        let Some(word) = self.word(number) else {
            return false;
        };
        let mask = self.mask() << shift;
        let mut seen = word.load(Ordering::Acquire);
        loop {
            if seen & mask != old << shift {
                return false;
            }
            let wanted = (seen & !mask) | (new << shift);
            if !shared {
                word.store(wanted, Ordering::Release);
                return true;
            }
            // Fails only when a neighbour in the word has changed, or this field.
            match word.compare_exchange_weak(seen, wanted, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Bytes of memory held.
    pub(super) fn bytes(&self) -> usize {
        self.root.get().map_or(0, |root| root[0].nodes()) * size_of::<Node>()
    }
}

#[inline]
fn slot(number: u64, shift: u32) -> usize {
    (number >> shift) as usize & (FAN - 1)
}

#[cold]
fn new_node(leaf: bool) -> Result<Box<[Node; 1]>, IdError> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).map_err(|_| IdError::OutOfMemory)?;
    one.push(if leaf {
        Node::Leaf([const { AtomicU64::new(0) }; FAN])
    } else {
        Node::Inner([const { OnceBox::new() }; FAN])
    });
    one.into_boxed_slice()
        .try_into()
        .map_err(|_| IdError::OutOfMemory)
}

impl Node {
    fn nodes(&self) -> usize {
        match self {
            Node::Inner(places) => {
                let below = places.iter().filter_map(OnceBox::get);
                1 + below.map(|node| node[0].nodes()).sum::<usize>()
            }
            Node::Leaf(_) => 1,
        }
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields")
            .field("bits", &(1u32 << self.width))
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

// A word of shuttle's can be used inside of its scheduler only.
#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn fields_of_every_width_are_kept_apart() {
        for bits in [1, 2, 3, 8, 13, 32, 33, 64] {
            for last in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
                for shared in [false, true] {
                    let fields = Fields::new(last, bits);
                    let mut model = BTreeMap::new();
                    let mut x = 1u64;
                    for _ in 0..300 {
                        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let near = x >> 59;
                        let at = [
                            near.min(last),
                            last - near.min(last),
                            (x ^ (x >> 7)) % last.max(1),
                        ][(x >> 40) as usize % 3];
                        let new = x >> (64 - bits);
                        let old = model.get(&at).copied().unwrap_or(0);
                        fields.make(at).unwrap();
                        assert!(!fields.replace(at, old ^ 1, new, shared));
                        assert!(fields.replace(at, old, new, shared), "{at} of {last}");
                        model.insert(at, new);
                    }
                    for (&at, &value) in &model {
                        assert_eq!(fields.get(at), value, "{bits} bits, {at} of {last}");
                    }
                }
            }
        }
    }

    #[test]
    fn memory_follows_what_is_written() {
        let fields = Fields::new(u64::MAX, 16);
        assert_eq!(fields.bytes(), 0);
        assert_eq!(fields.get(u64::MAX), 0);
        assert!(!fields.replace(5, 0, 1, true), "no room was made");
        fields.make(5).unwrap();
        let one = fields.bytes();
        assert!(one <= 10 * 1100);
        // Four fields a word, 128 words a leaf: the neighbours cost nothing.
        for at in 0..512 {
            fields.make(at).unwrap();
        }
        assert_eq!(fields.bytes(), one);
    }
}
