//! Rules by name: those of the library, and OPT.

use larder_policy::{Policy, PolicyError, Visitor, rules, with_rule};

use super::cell::{Cell, Ruled};

/// A choice for `--policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// OPT by [`Opt`](super::Opt).
pub(crate) const OPT: &str = "opt";

/// Whether a rule must see the whole trace before it begins.
///
/// ```
/// assert!(larder_sim::knows_the_future("opt") && !larder_sim::knows_the_future("lru"));
/// ```
#[must_use]
pub fn knows_the_future(policy: &str) -> bool {
    policy == OPT
}

/// All rules of the library, then OPT.
#[must_use]
pub fn choices() -> Vec<Choice> {
    let mut all: Vec<Choice> = rules()
        .iter()
        .map(|r| Choice {
            name: r.name,
            about: r.about,
            source: r.source,
        })
        .collect();
    all.push(Choice {
        name: OPT,
        about: "the block whose next use is farthest away leaves: the best there can be",
        source: "Belady, IBM Systems Journal 5(2), 1966",
    });
    all
}

/// Names for `--policy`: `all` is every rule and OPT.
///
/// # Errors
/// [`PolicyError::Unknown`] with the names that there are.
pub fn names(asked: &[String]) -> Result<Vec<String>, PolicyError> {
    let known = choices();
    let mut names: Vec<String> = Vec::new();
    let add = |names: &mut Vec<String>, name: &str| {
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    };
    for name in asked.iter().map(|n| n.trim().to_lowercase()) {
        if name == "all" {
            known.iter().for_each(|c| add(&mut names, c.name));
        } else if known.iter().any(|c| c.name == name) {
            add(&mut names, &name);
        } else {
            let all: Vec<&str> = known.iter().map(|c| c.name).collect();
            return Err(PolicyError::Unknown {
                name,
                known: format!("{}, all", all.join(", ")),
            });
        }
    }
    Ok(names)
}

struct Make;

impl Visitor for Make {
    type Out = Result<Box<dyn Cell>, PolicyError>;

    fn visit<P: Policy>(self, _: &'static str, rule: P) -> Self::Out {
        Ok(Box::new(Ruled::new(rule)?))
    }
}

/// A cell under a rule of the library.
///
/// # Errors
/// [`PolicyError`].
pub fn make(name: &str, size: usize) -> Result<Box<dyn Cell>, PolicyError> {
    with_rule(name, size, Make)?
}
