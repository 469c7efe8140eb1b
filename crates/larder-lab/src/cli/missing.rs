//! `list --missing`: what this machine lacks, and what brings it.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use super::failure::Outcome;
use super::global::Global;
use super::output::plain;
use super::output::print_json;
use crate::experiments::programs::{self, PROGRAMS};
use crate::machine;
use crate::measure::{Depth, Experiment, PlanRequest};

/// Words of which a sentence has one when it says what brings the thing. A plan also tells what it leaves out by design,
/// and that no machine has.
const REMEDIES: [&str; 9] = [
    "install",
    "build",
    "LARDER_",
    "as root",
    "sysctl",
    "needs Linux",
    "permission",
    "needs glibc",
    "CPU;",
];

/// Tools that no experiment asks for.
const TOOLS: [(&str, &[&str], &str, &str); 2] = [
    (
        "strace",
        &["strace"],
        "larder trace record",
        "strace is not installed; install it (Debian: apt install strace) to record the file uses of a command",
    ),
    (
        "Chromium",
        &[
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ],
        "cargo test",
        "Chromium is not installed; install it (Debian: apt install chromium) to test the report's page, or name it in LARDER_CHROMIUM",
    ),
];

/// Something that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Missing {
    what: String,
    why: String,
    wanted_by: Vec<String>,
}

pub(super) fn print(
    global: &Global,
    experiments: &[Box<dyn Experiment>],
    with_tools: bool,
    out: &mut dyn Write,
) -> Outcome {
    let mut all = Vec::new();
    for e in experiments {
        collect(e.as_ref(), &mut all);
    }
    if with_tools {
        tools(&|name| on_path(name), &mut all);
    }
    if global.json {
        let list: Vec<_> = all
            .iter()
            .map(|m| json!({ "what": m.what, "why": m.why, "wanted_by": m.wanted_by }))
            .collect();
        return print_json(out, &json!({ "schema": 1, "missing": list }));
    }
    if all.is_empty() {
        writeln!(out, "Nothing is missing.")?;
    }
    for m in &all {
        let wanted = m.wanted_by.join(", ");
        writeln!(
            out,
            "{}: {} ({})",
            plain(&m.what),
            plain(&m.why),
            plain(&wanted)
        )?;
    }
    Ok(())
}

/// What an experiment lacks: contestants, and what its plan at full depth leaves out.
fn collect(e: &dyn Experiment, all: &mut Vec<Missing>) {
    let machine = machine::capture();
    let plan = e.plan(&PlanRequest {
        depth: Depth::Full,
        machine: &machine,
        seed: 1,
    });
    for contestant in e.contestants() {
        if let Err(why) = contestant.available() {
            add(all, contestant.name(), &why, e.name());
        }
    }
    // A plan without a malloc to compare looks for no program.
    let absent = match e.name() == PROGRAMS.name() {
        true => programs::absent(),
        false => Vec::new(),
    };
    for skipped in plan.skipped.into_iter().chain(absent) {
        if REMEDIES.iter().any(|word| skipped.why.contains(word)) {
            add(all, &skipped.what, &skipped.why, e.name());
        }
    }
}

/// A thing with one reason is one line for all that want it; so are two things with the same reason.
fn add(all: &mut Vec<Missing>, what: &str, why: &str, wanted_by: &str) {
    let mut why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    if why.ends_with("is not installed") {
        why.push_str("; install it");
    } else if why.ends_with("are not installed") {
        why.push_str("; install them");
    } else if why.ends_with("is installed") {
        why.push_str("; install one");
    }
    match all.iter_mut().find(|m| m.why == why) {
        Some(known) => {
            if !known.what.split(", ").any(|w| w == what) {
                known.what = format!("{}, {what}", known.what);
            }
            if !known.wanted_by.iter().any(|w| w == wanted_by) {
                known.wanted_by.push(wanted_by.to_owned());
            }
        }
        None => all.push(Missing {
            what: what.to_owned(),
            why,
            wanted_by: vec![wanted_by.to_owned()],
        }),
    }
}

fn tools(here: &dyn Fn(&str) -> bool, all: &mut Vec<Missing>) {
    for (what, names, wanted_by, why) in TOOLS {
        if !names.iter().any(|name| here(name)) {
            add(all, what, why, wanted_by);
        }
    }
}

fn on_path(name: &str) -> bool {
    let named = name == "chromium" && std::env::var_os("LARDER_CHROMIUM").is_some();
    let path = std::env::var_os("PATH").unwrap_or_default();
    named
        || std::env::split_paths(&path)
            .any(|folder: std::path::PathBuf| Path::new(&folder).join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    #[test]
    fn a_reason_is_one_line() {
        let mut all = Vec::new();
        add(&mut all, "pair", "install\n it", "one");
        add(&mut all, "pair", "install it", "two");
        add(&mut all, "cycle", "install it", "two");
        add(&mut all, "pair", "build it", "two");
        let lines: Vec<_> = all
            .iter()
            .map(|m| (m.what.as_str(), m.wanted_by.len()))
            .collect();
        assert_eq!(lines, [("pair, cycle", 2), ("pair", 1)]);
        assert_eq!(all[0].why, "install it");
    }

    #[test]
    fn what_is_left_out_by_design_is_not_missing() {
        let mut all = Vec::new();
        for e in experiments::all() {
            collect(e.as_ref(), &mut all);
        }
        for m in &all {
            assert!(
                !m.what.starts_with("idr at") && !m.what.contains("walk a list"),
                "{m:?}"
            );
            assert!(
                !m.why.contains("--full") && !m.what.contains("range-alloc"),
                "{m:?}"
            );
        }
    }

    #[test]
    fn tools_are_missing_by_name() {
        let mut all = Vec::new();
        tools(&|_| true, &mut all);
        assert_eq!(all, []);
        tools(&|name| name == "google-chrome", &mut all);
        assert_eq!(
            all.iter().map(|m| m.what.as_str()).collect::<Vec<_>>(),
            ["strace"]
        );
    }
}
