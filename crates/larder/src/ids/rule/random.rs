//! Any free one.

use core::fmt;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Order, Rule, Shape};
use crate::ids::IdError;
use crate::ids::map::Map;

/// Offsets that are tried before the free ones are counted.
const TRIES: usize = 32;

/// Each free identifier is next with equal chance, as RFC 6056 wants it of ports: what comes next cannot be guessed
/// from what came before.
///
/// A freed identifier may come back at the very next allocation, with a chance of one in the number of free ones.
/// Eight offsets are tried; when all are taken the free ones are counted, and the one of a random rank is taken: both
/// are uniform, and neither goes on without end. The count costs at most 192 steps up to 2^24 identifiers, and looks at
/// each chunk of 65536 that is in use beyond.
///
/// The generator is ChaCha with 8 rounds. It is as unpredictable as the seed: take it from the system's generator
/// (`Random::from_system`), and never twice, unless a run is to be repeated.
///
/// ```
/// use larder::ids::{Ids, rule::Random};
///
/// let mut ports = Ids::new(49152u16..=65535, Random::new([7; 32]))?;
/// let port = ports.alloc()?;
/// assert!(ports.range().contains(port.into()));
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Random {
    seed: [u8; 32],
}

impl Random {
    /// With this seed.
    ///
    /// ```
    /// # use larder::ids::{Ids, rule::Random};
    /// let draw = || Ids::new(0u16..1000, Random::new([7; 32]))?.alloc();
    /// assert_eq!(draw()?, draw()?, "the same seed, the same run");
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed }
    }

    /// With a seed of the system's generator (`getrandom`): another one each time, which cannot be guessed.
    ///
    /// # Errors
    /// The system has no generator, or forbids its use. Nothing weaker is taken instead.
    ///
    /// ```
    /// use larder::ids::{IdSpace, rule::Random};
    ///
    /// let ports = IdSpace::new(49152u16..=65535, Random::from_system()?)?;
    /// assert!(ports.range().contains(ports.alloc()?.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn from_system() -> std::io::Result<Self> {
        let mut seed = [0; 32];
        crate::os::random::fill(&mut seed).map_err(|error| {
            let text = std::format!(
                "no seed from the system's generator: {error}; allow getrandom, or give a seed to `Random::new`"
            );
            std::io::Error::new(error.kind(), text)
        })?;
        Ok(Self { seed })
    }
}

/// Does not show the seed, which is a secret.
impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

impl Rule for Random {
    type Order = RandomOrder;

    /// A freed identifier does not come back to the thread that freed it, or the next one could be guessed: it goes through
    /// the map.
    const SHAPE: Shape = Shape::InOrder;

    fn order(&self, last: u64) -> Result<RandomOrder, IdError> {
        Ok(RandomOrder {
            free: Map::new(last),
            random: ChaCha8Rng::from_seed(self.seed),
            last,
        })
    }
}

/// What keeps [`Random`].
///
/// [`Order`] shows what it can do.
pub struct RandomOrder {
    free: Map,
    random: ChaCha8Rng,
    last: u64,
}

impl RandomOrder {
    /// A number up to `most`, each with equal chance: Lemire's method of 2019.
    #[inline]
    fn up_to(&mut self, most: u64) -> u64 {
        let Some(count) = most.checked_add(1) else {
            return self.random.next_u64();
        };
        loop {
            let wide = u128::from(self.random.next_u64()) * u128::from(count);
            let low = wide as u64;
            // 2^64 modulo the count is below the count, so the division is rare.
            if low >= count || low >= count.wrapping_neg() % count {
                return (wide >> 64) as u64;
            }
        }
    }
}

impl fmt::Debug for RandomOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RandomOrder")
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}

impl Order for RandomOrder {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        let free = self.last.wrapping_add(1).wrapping_sub(self.free.taken());
        if free == 0 && self.free.taken() != 0 || self.free.taken() == u64::MAX {
            return Ok(None);
        }
        for _ in 0..TRIES {
            let at = self.up_to(self.last);
            if self.free.take(at)? {
                return Ok(Some(at));
            }
        }
        let rank = self.up_to(free.wrapping_sub(1));
        let Some(at) = self.free.select(rank) else {
            return Ok(None);
        };
        self.free.take(at)?;
        Ok(Some(at))
    }

    #[inline]
    fn give_quickly(&mut self, at: u64) -> bool {
        at <= self.last && self.free.give_quickly(at)
    }

    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        self.free.give(at)
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        !self.free.is_free(at)
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        self.free.first_taken(first, last)
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.free.take_span(first, last)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        self.free.next_free(from)
    }

    fn taken(&self) -> u64 {
        self.free.taken()
    }

    fn bytes(&self) -> usize {
        self.free.bytes()
    }
}
