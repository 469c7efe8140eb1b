//! How the bits of a handle are shared between index and generation.

use alloc::format;

use crate::ids::IdError;

/// The bits of a handle: `index` of them at the low end, the generation in the rest of a `word`.
///
/// ```
/// use larder::ids::Widths;
///
/// let nvme = Widths::new(16, 12)?;     // 4096 command tags, generations of 4 bits
/// assert_eq!((nvme.generation(), nvme.last_index()), (4, 4095));
/// assert_eq!(Widths::W16, nvme);
/// assert!(Widths::new(16, 16).is_err(), "no bit is left for the generation");
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Widths {
    word: u8,
    index: u8,
}

impl Widths {
    /// 16 bits: 12 of index, 4 of generation, as the tags of NVMe.
    pub const W16: Widths = Widths {
        word: 16,
        index: 12,
    };
    /// 32 bits: 20 of index, 12 of generation.
    pub const W32: Widths = Widths {
        word: 32,
        index: 20,
    };
    /// 64 bits: 32 of index, 32 of generation.
    pub const W64: Widths = Widths {
        word: 64,
        index: 32,
    };

    /// Handles of `word` bits (8 to 64), of which `index` (at least 1, and fewer than all) tell slots apart.
    ///
    /// ```
    /// # use larder::ids::Widths;
    /// assert_eq!(Widths::new(32, 20)?, Widths::W32);
    /// assert!(Widths::new(65, 20).is_err());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`].
    pub fn new(word: u32, index: u32) -> Result<Self, IdError> {
        if !(8..=64).contains(&word) || !(1..word).contains(&index) {
            return Err(IdError::Invalid {
                what: format!("a handle of {word} bits with {index} bits of index"),
                advice: "give 8 to 64 bits, of which index and generation get at least one each",
            });
        }
        // Both were just seen to be at most 64.
        Ok(Self {
            word: word as u8,
            index: index as u8,
        })
    }

    /// Bits of the whole handle.
    ///
    /// ```
    /// # use larder::ids::Widths;
    /// assert_eq!(Widths::W16.word(), 16);
    /// ```
    pub fn word(self) -> u32 {
        self.word.into()
    }

    /// Bits of the index.
    ///
    /// ```
    /// # use larder::ids::Widths;
    /// assert_eq!(Widths::W16.index(), 12);
    /// ```
    pub fn index(self) -> u32 {
        self.index.into()
    }

    /// Bits of the generation.
    ///
    /// ```
    /// # use larder::ids::Widths;
    /// assert_eq!(Widths::W16.generation(), 4);
    /// ```
    pub fn generation(self) -> u32 {
        self.word() - self.index()
    }

    /// The largest index that fits.
    ///
    /// ```
    /// # use larder::ids::Widths;
    /// assert_eq!(Widths::W16.last_index(), 4095);
    /// ```
    pub fn last_index(self) -> u64 {
        u64::MAX >> (64 - self.index())
    }

    /// The largest generation that fits.
    ///
    /// ```
    /// # use larder::ids::Widths;
    /// assert_eq!(Widths::W16.last_generation(), 15);
    /// ```
    pub fn last_generation(self) -> u64 {
        u64::MAX >> (64 - self.generation())
    }

    /// Index and generation in one word. Both must fit.
    #[inline]
    pub(super) fn join(self, index: u64, generation: u64) -> u64 {
        generation << self.index() | index
    }

    /// Index and generation of a word; `None` when bits beyond the handle's are set.
    #[inline]
    pub(super) fn split(self, raw: u64) -> Option<(u64, u64)> {
        let generation = raw >> self.index();
        (generation <= self.last_generation()).then_some((raw & self.last_index(), generation))
    }
}
