//! What the kernel charges a process for: getrusage(2).

use crate::model::Measures;

/// Resource usage of this process so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// CPU seconds in user mode.
    pub user_seconds: f64,
    /// CPU seconds in the kernel.
    pub system_seconds: f64,
    /// Page faults served without input or output.
    pub minor_faults: f64,
    /// Page faults that waited for input or output.
    pub major_faults: f64,
    /// Times that the process gave the CPU up.
    pub voluntary_switches: f64,
    /// Times that the CPU was taken away from it: the trace that noise leaves.
    pub involuntary_switches: f64,
    /// Largest resident set so far, bytes.
    pub max_rss_bytes: f64,
    /// The calling thread on its CPU, or waiting for one: `None` where the kernel does not count it.
    pub schedule: Option<Schedule>,
}

/// What the scheduler counted for one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Schedule {
    /// Seconds on a CPU.
    pub ran_seconds: f64,
    /// Seconds in which the thread was ready to run and another one had the CPU.
    pub waited_seconds: f64,
}

impl Schedule {
    fn of_this_thread() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut ns = text.split_whitespace().map(str::parse::<f64>);
        let (ran, waited) = (ns.next()?.ok()?, ns.next()?.ok()?);
        Some(Self {
            ran_seconds: ran / 1e9,
            waited_seconds: waited / 1e9,
        })
    }
}

/// Other threads of the process may use this share of its CPU time; with more, a wait may be of its own making.
const OTHER_THREADS: f64 = 0.05;

/// Seconds by which the two clocks may differ: the one of the process is read to the microsecond and split in two.
const ROUNDING: f64 = 1e-4;

impl Usage {
    /// Usage of this process, all threads, until now; the schedule is that of the calling thread.
    #[must_use]
    pub fn of_this_process() -> Self {
        // SAFETY: rusage is plain integers, for which all zeroes is a value.
        let mut r: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live rusage; RUSAGE_SELF with a valid pointer cannot fail, and if it did,
        // the zeroes above would stay.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut r) };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        Self {
            user_seconds: seconds(r.ru_utime),
            system_seconds: seconds(r.ru_stime),
            minor_faults: r.ru_minflt as f64,
            major_faults: r.ru_majflt as f64,
            voluntary_switches: r.ru_nvcsw as f64,
            involuntary_switches: r.ru_nivcsw as f64,
            // Linux counts it in KiB.
            max_rss_bytes: r.ru_maxrss as f64 * 1024.0,
            schedule: Schedule::of_this_thread(),
        }
    }

    /// Seconds in which others kept the calling thread from a CPU; `None` where the process ran threads of its own,
    /// which wait for each other.
    fn waited_since(self, before: Self) -> Option<f64> {
        let (now, then) = (self.schedule?, before.schedule?);
        let all =
            self.user_seconds + self.system_seconds - before.user_seconds - before.system_seconds;
        let ran = now.ran_seconds - then.ran_seconds;
        (all <= ran * (1.0 + OTHER_THREADS) + ROUNDING)
            .then(|| (now.waited_seconds - then.waited_seconds).max(0.0))
    }

    /// Adds what happened between `before` and `self` to the measures, under names that begin with `proc.`.
    ///
    /// The largest resident set is not a difference: it is that of the process until the end of the work.
    #[must_use]
    pub fn since(self, before: Self, measures: Measures) -> Measures {
        let measures = match self.waited_since(before) {
            Some(waited) => measures.with("proc.waited_seconds", waited),
            None => measures,
        };
        measures
            .with("proc.user_seconds", self.user_seconds - before.user_seconds)
            .with(
                "proc.system_seconds",
                self.system_seconds - before.system_seconds,
            )
            .with("proc.minor_faults", self.minor_faults - before.minor_faults)
            .with("proc.major_faults", self.major_faults - before.major_faults)
            .with(
                "proc.voluntary_switches",
                self.voluntary_switches - before.voluntary_switches,
            )
            .with(
                "proc.involuntary_switches",
                self.involuntary_switches - before.involuntary_switches,
            )
            .with("proc.max_rss_bytes", self.max_rss_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_memory_is_charged_as_faults_and_resident_set() {
        let before = Usage::of_this_process();
        // More than any malloc keeps for reuse, so that the pages are new ones.
        let mut memory = vec![0u8; 64 << 20];
        for page in memory.chunks_mut(4096) {
            page[0] = 1;
        }
        std::hint::black_box(&memory);
        let m = Usage::of_this_process().since(before, Measures::new());
        // Huge pages may serve them with a handful of faults, so one is all that is certain.
        assert!(m.get("proc.minor_faults").unwrap() >= 1.0);
        assert!(m.get("proc.max_rss_bytes").unwrap() >= 64e6);
        assert!(m.0.values().all(|v| v.is_finite() && *v >= 0.0));
    }

    #[test]
    fn a_process_with_threads_of_its_own_does_not_say_that_others_kept_it_waiting() {
        let before = Usage::of_this_process();
        let spin = || (0..40_000_000_u64).fold(0, |a, b| std::hint::black_box(a ^ b));
        std::hint::black_box(std::thread::spawn(spin).join().unwrap());
        let m = Usage::of_this_process().since(before, Measures::new());
        assert_eq!(m.get("proc.waited_seconds"), None);
    }
}
