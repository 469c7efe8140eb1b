//! The lines that the processes write when they end.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::super::failure::Outcome;
use crate::report::number;

/// A size class at the end of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Class {
    size: u64,
    held_bytes: u64,
    out: u64,
    slabs: u64,
}

/// One process, as it wrote. Fields that an older library does not know are zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Process {
    pid: u32,
    mode: String,
    held_bytes: u64,
    out_bytes: u64,
    large_bytes: u64,
    metadata_bytes: u64,
    bootstrap_bytes: u64,
    peak_resident_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
    classes: Vec<Class>,
}

/// The program and the processes that it started.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) own: Option<Process>,
    pub(super) others: Vec<Process>,
}

impl Said {
    /// The last line of `pid` is the program's: an earlier one was written before it became another program.
    pub(super) fn read(text: &str, pid: u32) -> Self {
        let mut said = Self::default();
        for line in text.lines() {
            let Ok(process) = serde_json::from_str::<Process>(line) else {
                continue;
            };
            if process.pid == pid {
                said.own = Some(process);
            } else {
                said.others.push(process);
            }
        }
        said
    }

    pub(super) fn print(&self, classes: bool, out: &mut dyn Write) -> Outcome {
        let Some(own) = &self.own else {
            writeln!(
                out,
                "larder: the program did not say what it allocated: the library was not loaded (the loader says why), it is linked statically, runs with another user's rights, or ended by a signal or _exit"
            )?;
            return Ok(());
        };
        let mode: String = own.mode.chars().filter(|c| !c.is_control()).collect();
        writeln!(
            out,
            "larder: {mode}; resident at most {}; faults {} minor, {} major",
            bytes(own.peak_resident_bytes),
            own.minor_faults,
            own.major_faults
        )?;
        writeln!(
            out,
            "larder: at its end the heap held {}: {} in slabs and large blocks ({} large), {} of its own",
            bytes(own.held_bytes),
            bytes(own.out_bytes),
            bytes(own.large_bytes),
            bytes(own.metadata_bytes)
        )?;
        if !self.others.is_empty() {
            let most = self.others.iter().map(|p| p.peak_resident_bytes).max();
            writeln!(
                out,
                "larder: {} more processes, the largest {}",
                self.others.len(),
                bytes(most.unwrap_or(0))
            )?;
        }
        if classes {
            writeln!(
                out,
                "{:>10} {:>12} {:>12} {:>8}",
                "size", "held", "out of slabs", "slabs"
            )?;
            for class in &own.classes {
                writeln!(
                    out,
                    "{:>10} {:>12} {:>12} {:>8}",
                    class.size,
                    bytes(class.held_bytes),
                    class.out,
                    class.slabs
                )?;
            }
        }
        Ok(())
    }
}

fn bytes(n: u64) -> String {
    number::number(n as f64, "B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_program_counts_and_garbage_does_not() {
        let text = "{\"pid\":7,\"mode\":\"per-cpu\",\"held_bytes\":1}\nrubbish\n{\"pid\":8}\n{\"pid\":7,\"held_bytes\":2}\n{\"pid\":";
        let said = Said::read(text, 7);
        assert_eq!(said.own.as_ref().map(|p| p.held_bytes), Some(2));
        assert_eq!(said.others.len(), 1);
        assert_eq!(Said::read(text, 9).own, None);
    }

    #[test]
    fn a_silent_program_is_said_to_be_silent() {
        let mut out = Vec::new();
        assert!(Said::default().print(true, &mut out).is_ok());
        let out = String::from_utf8_lossy(&out);
        assert!(out.contains("did not say") && out.contains("the library was not loaded"));
    }
}
