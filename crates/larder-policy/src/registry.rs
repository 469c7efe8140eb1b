//! Every rule by its name.

use super::{Policy, PolicyError};

/// A rule with a name.
pub trait Named: Policy + Sized {
    /// The name by which it is asked for, in lower case.
    const NAME: &'static str;

    /// Where the rule is described.
    const SOURCE: &'static str;

    /// What it does, in one line.
    const ABOUT: &'static str;
}

/// What is known of a rule before one is made.
///
/// ```
/// let lru = larder_policy::rules().iter().find(|rule| rule.name == "lru").unwrap();
/// assert!(lru.about.contains("longest ago"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// [`Named::NAME`].
    pub name: &'static str,
    /// [`Named::SOURCE`].
    pub source: &'static str,
    /// [`Named::ABOUT`].
    pub about: &'static str,
}

impl Info {
    const fn of<P: Named>() -> Self {
        Self {
            name: P::NAME,
            source: P::SOURCE,
            about: P::ABOUT,
        }
    }
}

/// Generic code that needs the type of a rule.
///
/// ```
/// use larder_policy::{Policy, PolicyError, Visitor, with_rule, replay::Replay};
///
/// struct Loop;
/// impl Visitor for Loop {
///     type Out = Result<u64, PolicyError>;
///     fn visit<P: Policy>(self) -> Self::Out {
///         let mut cache = Replay::<P>::new(10)?;
///         (0..100).for_each(|at| drop(cache.access(at % 10, at)));
///         Ok(cache.hits())
///     }
/// }
/// assert_eq!(with_rule("lru", Loop)??, 90);
/// # Ok::<(), PolicyError>(())
/// ```
pub trait Visitor {
    /// What it returns.
    type Out;

    /// Called with the rule's type.
    fn visit<P: Named>(self) -> Self::Out;
}

/// The table: one line for each rule, in the order in which lists show them. It makes [`rules`] and [`with_rule`].
macro_rules! table {
    ($($rule:ty,)*) => {
        static RULES: &[Info] = &[$(Info::of::<$rule>(),)*];

        /// Calls `visitor` with the type of the rule of this name.
        ///
        /// # Errors
        /// [`PolicyError::Unknown`], which names all rules.
        ///
        /// ```
        /// use larder_policy::{Policy, PolicyError, Visitor, with_rule};
        ///
        /// struct Bytes(usize);
        /// impl Visitor for Bytes {
        ///     type Out = Result<usize, PolicyError>;
        ///     fn visit<P: Policy>(self) -> Self::Out {
        ///         Ok(P::new(self.0)?.bytes())
        ///     }
        /// }
        /// assert!(with_rule("clock", Bytes(1000))?? < with_rule("lru", Bytes(1000))??);
        /// assert!(matches!(with_rule("best", Bytes(1000)), Err(PolicyError::Unknown { .. })));
        /// # Ok::<(), PolicyError>(())
        /// ```
        pub fn with_rule<V: Visitor>(name: &str, visitor: V) -> Result<V::Out, PolicyError> {
            $(if name == <$rule as Named>::NAME {
                return Ok(visitor.visit::<$rule>());
            })*
            Err(unknown(name))
        }
    };
}

table! {
    super::Fifo,
    super::Lru,
    super::Adaptive,
    super::Clock,
    super::Gclock,
    super::Lru2,
    super::TwoQ,
    super::Mq,
    super::LfuDa,
    super::Arc,
    super::Car,
    super::Lirs,
    super::ClockPro,
    super::WTinyLfu,
    super::WTinyLfuClimbing,
    super::Hyperbolic,
    super::LeCaR,
    super::Cacheus,
    super::S3Fifo,
    super::S3FifoOneBit,
    super::Clock2QPlus,
    super::Sieve,
    super::Linux247,
    super::Linux247UseOnce,
    super::Linux248,
    super::Linux2416,
    super::TwoList,
    super::Mglru,
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
        fn visit<P: Named>(self) -> Self::Out {
            P::NAME
        }
    }

    #[test]
    fn every_rule_is_found_by_its_own_name_and_described() {
        for (at, rule) in RULES.iter().enumerate() {
            assert_eq!(with_rule(rule.name, Name).unwrap(), rule.name);
            assert!(!rule.source.is_empty() && !rule.about.is_empty());
            assert_eq!(rule.name, rule.name.to_lowercase());
            assert!(RULES[..at].iter().all(|other| other.name != rule.name));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = with_rule("lur", Name).unwrap_err().to_string();
        assert!(
            error.contains("\"lur\"") && error.contains("fifo, lru"),
            "{error}"
        );
    }
}
