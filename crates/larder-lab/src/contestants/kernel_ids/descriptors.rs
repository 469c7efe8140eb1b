//! File descriptors: `dup` and `close` while many are open. The lowest free one is next.

use std::fs::File;
use std::os::fd::OwnedFd;

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::pairs;
use crate::contestants::getpid::Random31;
use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Descriptors closed and opened again in one go.
const BATCH: usize = 64;
/// Batches.
const BATCHES: u64 = 40;
/// Descriptors that the process has beside ours.
const OTHERS: u64 = 64;

/// The limit of open files as it was, put back at the end.
struct Limit(Rlimit);

impl Limit {
    /// Raises the soft limit to `need`, if the hard one allows.
    fn raise(need: u64) -> anyhow::Result<Self> {
        let before = getrlimit(Resource::Nofile);
        if before.current.is_some_and(|now| now < need) {
            let raised = Rlimit {
                current: Some(need),
                maximum: before.maximum,
            };
            setrlimit(Resource::Nofile, raised).with_context(|| {
                format!("{need} open files are more than this user may have; raise the hard limit (ulimit -Hn)")
            })?;
        }
        Ok(Self(before))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // Lowering a soft limit is always allowed.
        let _ = setrlimit(Resource::Nofile, Rlimit { ..self.0 });
    }
}

/// Descriptors of this process.
pub(super) fn contestant() -> Box<dyn Contestant> {
    bench(
        "kernel-descriptors",
        "this kernel: close a random descriptor and dup again; the time is of one dup, its system call included",
        run,
    )
}

fn run(params: &Params) -> anyhow::Result<Measures> {
    let open = params.count("open")?;
    ensure!(open > BATCH, "open is {open}; it is more than {BATCH}");
    let _limit = Limit::raise(open as u64 + OTHERS)?;
    let null = File::open("/dev/null").context("/dev/null cannot be opened")?;
    let mut held: Vec<OwnedFd> = Vec::with_capacity(open);
    while held.len() < open {
        held.push(rustix::io::dup(&null).context("no further descriptor; raise ulimit -n")?);
    }
    let again = || Ok(rustix::io::dup(&null)?);
    pairs(&mut held, Random31::new(3), (BATCH, BATCHES), again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_descriptors_and_leaves_the_limit_as_it_was() {
        let before = getrlimit(Resource::Nofile).current;
        let measures = run(&Params::new().with("open", 200)).unwrap();
        assert!(measures.get("us_per_alloc").unwrap() > 0.0);
        assert_eq!(getrlimit(Resource::Nofile).current, before);
        assert!(run(&Params::new().with("open", 3)).is_err());
        let error = run(&Params::new().with("open", 1 << 40)).unwrap_err();
        assert!(error.to_string().contains("ulimit -Hn"), "{error}");
    }
}
