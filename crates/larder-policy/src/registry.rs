//! Every rule by its name.

use super::{
    Adaptive, Arc, Cacheus, Car, Clock, ClockPro, Hyperbolic, LeCaR, LfuDa, Linux247, Linux2416,
    Lirs, Lru, Lru2, Mglru, Mq, Policy, PolicyError, S3Fifo, Sieve, TwoList, TwoQ, WTinyLfu,
};

/// What is known of a rule before one is made.
///
/// ```
/// let lru = larder_policy::rules().iter().find(|rule| rule.name == "lru").unwrap();
/// assert!(lru.about.contains("longest ago"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// The name by which it is asked for, in lower case.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where the rule is described.
    pub source: &'static str,
}

/// Generic code that needs a rule's type.
///
/// ```
/// use larder_policy::{Policy, PolicyError, Visitor, with_rule, replay::Replay};
///
/// struct Loop;
/// impl Visitor for Loop {
///     type Out = Result<u64, PolicyError>;
///     fn visit<P: Policy>(self, _name: &'static str, rule: P) -> Self::Out {
///         let mut cache = Replay::new(rule)?;
///         (0..100).for_each(|at| drop(cache.access(at % 10, at)));
///         Ok(cache.hits())
///     }
/// }
/// assert_eq!(with_rule("lru", 10, Loop)??, 90);
/// # Ok::<(), PolicyError>(())
/// ```
pub trait Visitor {
    /// What it returns.
    type Out;

    /// Called with a new rule and the name that the registry has for it.
    fn visit<P: Policy>(self, name: &'static str, rule: P) -> Self::Out;
}

/// The table: name, constructor, sentence and source of each rule, in the order in which lists show them. It makes [`rules`] and
/// [`with_rule`].
macro_rules! table {
    ($($name:literal: $make:path, $about:literal, $source:literal;)*) => {
        static RULES: &[Info] = &[$(Info { name: $name, about: $about, source: $source },)*];

        /// Makes the rule of this name for `capacity` frames and calls `visitor` with it.
        ///
        /// # Errors
        /// [`PolicyError`]: no such rule, a capacity that no rule can have, or no memory.
        ///
        /// ```
        /// use larder_policy::{Policy, PolicyError, Visitor, with_rule};
        ///
        /// struct Bytes;
        /// impl Visitor for Bytes {
        ///     type Out = usize;
        ///     fn visit<P: Policy>(self, _name: &'static str, rule: P) -> usize {
        ///         rule.bytes()
        ///     }
        /// }
        /// assert!(with_rule("clock", 1000, Bytes)? < with_rule("lru", 1000, Bytes)?);
        /// assert!(matches!(with_rule("best", 1000, Bytes), Err(PolicyError::Unknown { .. })));
        /// # Ok::<(), PolicyError>(())
        /// ```
        pub fn with_rule<V: Visitor>(
            name: &str,
            capacity: usize,
            visitor: V,
        ) -> Result<V::Out, PolicyError> {
            match name {
                $($name => Ok(visitor.visit($name, $make(capacity)?)),)*
                _ => Err(unknown(name)),
            }
        }
    };
}

table! {
    "fifo": Lru::fifo, "the block that came first leaves first", "folklore";
    "lru": Lru::new, "the block that was used longest ago leaves", "folklore; Denning, CACM 11(5), 1968";
    "adaptive": Adaptive::new,
        "two queues, a correlation window and ghosts, with the proportions that do best in miniature",
        "larder; after S3-FIFO (SOSP 2023), Clock2Q+ (arXiv 2511.21958), LIRS (SIGMETRICS 2002) and SHARDS (FAST 2015)";
    "clock": Clock::new,
        "a hand takes the first block that was not used since it last came by",
        "Corbato, A Paging Experiment with the Multics System, 1968";
    "gclock": Clock::gclock,
        "a hand counts down each block's uses, at most 5, and takes the first without",
        "Smith, ACM TODS 3(3), 1978; PostgreSQL, src/backend/storage/buffer/freelist.c";
    "lru-2": Lru2::new,
        "the block whose last use but one is longest ago leaves",
        "O'Neil, O'Neil, Weikum, SIGMOD 1993";
    "2q": TwoQ::new,
        "a FIFO of a quarter for new blocks; LRU for those that came back within half a cache",
        "Johnson and Shasha, VLDB 1994";
    "mq": Mq::new,
        "eight LRU queues by the logarithm of the uses; the unused sink, ghosts keep their count",
        "Zhou, Philbin, Li, USENIX 2001";
    "lfu-da": LfuDa::new,
        "the block with the fewest uses leaves; newcomers start where it ended",
        "Arlitt, Cherkasova, Dilley, Friedrich, Jin, WISP 1999";
    "arc": Arc::new,
        "two LRU lists, seen once and seen again; ghosts that come back move the border",
        "Megiddo and Modha, FAST 2003";
    "car": Car::new, "ARC with two clocks: a hit only sets a bit", "Bansal and Modha, FAST 2004";
    "lirs": Lirs::new,
        "keeps blocks whose last two uses were close together; the others pass through 1 %",
        "Jiang and Zhang, SIGMETRICS 2002";
    "clock-pro": ClockPro::new,
        "LIRS as a clock: cold pages are on test, and become hot when they are used in time",
        "Jiang, Chen, Zhang, USENIX 2005";
    "w-tinylfu": WTinyLfu::new,
        "an LRU window of 1 %; behind it only what was seen more often than what it puts out",
        "Einziger, Friedman, Manes, ACM TOS 13(4), 2017";
    "w-tinylfu-climbing": WTinyLfu::climbing,
        "W-TinyLFU whose window grows and shrinks by hill climbing",
        "Einziger, Eytan, Friedman, Manes, Middleware 2018";
    "hyperbolic": Hyperbolic::new,
        "of 64 drawn blocks the one with the fewest uses for its time in memory leaves",
        "Blankstein, Sen, Freedman, USENIX 2017";
    "lecar": LeCaR::new,
        "LRU or LFU chooses, by chance; regret moves their chances",
        "Vietri et al., HotStorage 2018";
    "cacheus": Cacheus::new,
        "a scan-resistant LRU or a churn-resistant LFU chooses, by chance; regret moves their chances",
        "Rodriguez et al., FAST 2021";
    "s3-fifo": S3Fifo::new,
        "a small FIFO for new blocks; two uses take them on to the main FIFO",
        "Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023";
    "s3-fifo-1bit": S3Fifo::one_bit,
        "a small FIFO for new blocks; a use takes them on to the main FIFO",
        "Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023";
    "clock2q+": S3Fifo::clock2q_plus,
        "S3-FIFO with one bit, which uses soon after the arrival do not set",
        "Zhai et al., Clock2Q+, arXiv 2511.21958, VLDB 2026";
    "sieve": Sieve::new,
        "a hand sifts a FIFO: the used stay where they are, the first unused leaves",
        "Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024";
    "linux-2.4.7": Linux247::new,
        "active ring with ages, inactive dirty and clean lists, drop-behind",
        "Linux 2.4.7, mm/vmscan.c, mm/swap.c, mm/filemap.c (20 July 2001)";
    "linux-2.4.7-use-once": Linux247::use_once,
        "2.4.7, but a block starts inactive and is rescued at the tail if used again",
        "D. Phillips, Optimization for use-once pages, patch against 2.4.7 (26 July 2001)";
    "linux-2.4.8": Linux247::merged,
        "2.4.7 with use-once, promoted at the second use",
        "Linux 2.4.8 and 2.4.9, mm/filemap.c (August 2001)";
    "linux-2.4.16": Linux2416::new,
        "active and inactive list, promoted at the second use, no ages",
        "Linux 2.4.16, mm/vmscan.c, mm/filemap.c (November 2001)";
    "linux-two-list": TwoList::new,
        "active and inactive list, second use, refaults by their distance",
        "Linux 6.x, mm/swap.c, mm/workingset.c, mm/vmscan.c, without CONFIG_LRU_GEN";
    "mglru": Mglru::new,
        "four generations; tiers of uses, kept if they refault more than others",
        "Linux 6.14 to 6.18 with CONFIG_LRU_GEN, mm/vmscan.c, mm/workingset.c, mm/swap.c";
}

/// All rules.
///
/// ```
/// for rule in larder_policy::rules() {
///     println!("{:12} {} ({})", rule.name, rule.about, rule.source);
/// }
/// ```
pub fn rules() -> &'static [Info] {
    RULES
}

struct Boxed;

impl Visitor for Boxed {
    type Out = Box<dyn Policy>;

    fn visit<P: Policy>(self, _: &'static str, rule: P) -> Self::Out {
        Box::new(rule)
    }
}

/// The rule of this name for `capacity` frames.
///
/// # Errors
/// [`PolicyError`]: no such rule, a capacity that no rule can have, or no memory.
///
/// ```
/// use larder_policy::{Arrival, Block, Policy, PolicyError, Reason, rule};
///
/// let mut chosen = rule("lru", 2)?;
/// for frame in 0..2 {
///     let admission = chosen.miss(Block(7), None, Reason::Demand);
///     chosen.insert(frame, Arrival::demand(Block(7), 0, admission));
/// }
/// let mut gone = Vec::new();
/// assert_eq!(chosen.evict(&mut gone, 1), 1);
/// assert_eq!(gone, [0]);
/// assert!(matches!(rule("lru", 0), Err(PolicyError::Capacity { frames: 0, .. })));
/// # Ok::<(), PolicyError>(())
/// ```
pub fn rule(name: &str, capacity: usize) -> Result<Box<dyn Policy>, PolicyError> {
    with_rule(name, capacity, Boxed)
}

fn unknown(name: &str) -> PolicyError {
    let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    PolicyError::Unknown {
        name: name.to_owned(),
        known: known.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;
    impl Visitor for Name {
        type Out = &'static str;
        fn visit<P: Policy>(self, name: &'static str, _: P) -> Self::Out {
            name
        }
    }

    #[test]
    fn every_rule_is_found_by_its_own_name_and_described() {
        for (at, rule) in RULES.iter().enumerate() {
            assert_eq!(with_rule(rule.name, 1, Name).unwrap(), rule.name);
            assert!(!rule.source.is_empty() && !rule.about.is_empty());
            assert_eq!(rule.name, rule.name.to_lowercase());
            assert!(RULES[..at].iter().all(|other| other.name != rule.name));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = with_rule("lur", 1, Name).unwrap_err().to_string();
        assert!(
            error.contains("\"lur\"") && error.contains("fifo, lru"),
            "{error}"
        );
    }
}
