//! File descriptors: `dup` and `close` while many are open. The lowest free one is next.

use std::fs::File;
use std::os::fd::OwnedFd;

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::contestants::getpid::Random31;
use crate::contestants::timing::{ns_per_op, thread_cpu_ns};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Descriptors closed and opened again in one go.
const BATCH: usize = 64;
/// Batches.
const BATCHES: usize = 40;
/// Descriptors that the process has beside ours.
const OTHERS: u64 = 64;

/// Descriptors of this process.
#[derive(Debug, Clone, Copy)]
pub struct Descriptors;

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
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: self.0.current,
                maximum: self.0.maximum,
            },
        );
    }
}

impl Contestant for Descriptors {
    fn name(&self) -> &'static str {
        "kernel-descriptors"
    }

    fn about(&self) -> &'static str {
        "this kernel: close a random descriptor and dup again; the time is of one dup, its system call included"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let open = params.count("open")?;
        ensure!(open > BATCH, "open is {open}; it is more than {BATCH}");
        let _limit = Limit::raise(open as u64 + OTHERS)?;
        let null = File::open("/dev/null").context("/dev/null cannot be opened")?;
        let mut held: Vec<OwnedFd> = Vec::with_capacity(open);
        while held.len() < open {
            held.push(rustix::io::dup(&null).context("no further descriptor; raise ulimit -n")?);
        }
        let mut random = Random31::new(3);
        let (mut taking, mut giving) = (0, 0);
        let mut dying = Vec::with_capacity(BATCH);
        for _ in 0..BATCHES {
            for _ in 0..BATCH {
                dying.push(held.swap_remove(random.draw() as usize % held.len()));
            }
            let clock = thread_cpu_ns();
            dying.clear();
            giving += thread_cpu_ns() - clock;
            let clock = thread_cpu_ns();
            for _ in 0..BATCH {
                held.push(rustix::io::dup(&null)?);
            }
            taking += thread_cpu_ns() - clock;
        }
        let pairs = (BATCH * BATCHES) as u64;
        Ok(Measures::new()
            .with("us_per_alloc", ns_per_op(taking.max(1), pairs) / 1e3)
            .with("us_per_free", ns_per_op(giving, pairs) / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_descriptors_and_leaves_the_limit_as_it_was() {
        let before = getrlimit(Resource::Nofile).current;
        let measures = Descriptors.run(&Params::new().with("open", 200)).unwrap();
        assert!(measures.get("us_per_alloc").unwrap() > 0.0);
        assert_eq!(getrlimit(Resource::Nofile).current, before);
        assert!(Descriptors.run(&Params::new().with("open", 3)).is_err());
        let error = Descriptors
            .run(&Params::new().with("open", 1 << 40))
            .unwrap_err();
        assert!(error.to_string().contains("ulimit -Hn"), "{error}");
    }
}
