//! The debug mode: each misuse has a program of its own, and the exact message that it must print.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Mode, Program, has};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/misuse");

/// A program of the folder: the options that its first comment names, and what its last one says that it prints.
struct Case {
    name: String,
    options: String,
    prints: String,
}

impl Case {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let (_, options) = text.split_once(" * options: ").unwrap();
        let (_, prints) = text.split_once("/* prints:\n").unwrap();
        Self {
            name: format!("misuse/{}", path.file_name().unwrap().to_str().unwrap()),
            options: options.split_once(" */").unwrap().0.to_owned(),
            prints: prints.split_once("*/").unwrap().0.to_owned(),
        }
    }

    fn all() -> Vec<Self> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(FOLDER)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_none_or(|e| e != "h"))
            .collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

/// A program in debug mode. The process that aborts leaves no core behind: writing it takes longest.
fn debugged(mode: Mode, program: &Program, options: &str) -> Command {
    let inner = mode.command(&program.path);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -c 0; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("LARDER_MALLOC_DEBUG", options);
    command
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Addresses become @1, @2 and so on, in the order in which they come; threads become T; frames become names, and what lies
/// below main is left out.
fn normal(text: &str) -> String {
    let mut addresses: Vec<String> = Vec::new();
    let mut lines = String::new();
    let mut below_main = false;
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix("    ") {
            let name = frame.split(['+', ' ']).next().unwrap();
            if !below_main && !name.is_empty() && !name.starts_with('(') {
                lines += &format!("    {name}\n");
            }
            below_main |= name == "main";
            continue;
        }
        below_main = false;
        let mut rest = line;
        while let Some(at) = rest.find("0x") {
            let digits = rest[at + 2..]
                .find(|c: char| !c.is_ascii_hexdigit())
                .map_or(rest.len(), |n| at + 2 + n);
            let address = rest[at..digits].to_owned();
            let number = addresses
                .iter()
                .position(|a| *a == address)
                .unwrap_or_else(|| {
                    addresses.push(address);
                    addresses.len() - 1
                });
            lines += &rest[..at];
            lines += &format!("@{}", number + 1);
            rest = &rest[digits..];
        }
        match rest.split_once("thread ") {
            Some((before, _)) => lines += &format!("{before}thread T:"),
            None => lines += rest,
        }
        lines += "\n";
    }
    lines
}

#[test]
fn each_misuse_prints_its_message_and_ends() {
    for case in Case::all() {
        let Some(program) = Program::compile(&case.name) else {
            return;
        };
        for mode in [Mode::PerThread, Mode::PerCpu, Mode::Locked, Mode::NoRseq] {
            let ended = debugged(mode, &program, &case.options).output().unwrap();
            assert_eq!(normal(&err(&ended)), case.prints, "{}, {mode:?}", case.name);
            // `timeout` answers with what the shell would say.
            let code = ended
                .status
                .code()
                .unwrap_or(128 + ended.status.signal().unwrap());
            assert_eq!(code, 134, "{}: it must abort", case.name);
        }
    }
}

/// Programs that misuse nothing: the suite of the malloc.
fn unharmed(name: &str, options: &str, share: u32, valgrind: u32) {
    let Some(program) = Program::compile(name) else {
        return;
    };
    let plugin = (name == "lifetime.c").then(|| Program::compile("plugin.c").unwrap());
    for mode in Mode::ALL {
        let share = if mode == Mode::Valgrind {
            valgrind
        } else {
            share
        };
        if mode == Mode::System || share == 0 || (mode == Mode::Valgrind && !has("valgrind")) {
            continue;
        }
        let mut command = debugged(mode, &program, options);
        command.env("LARDER_TEST_WORK", share.to_string());
        command.env("LARDER_TEST_STRICT", "1");
        command.args(plugin.iter().map(|plugin| &plugin.path));
        let said = mode.run(&mut command, &program);
        assert!(said.starts_with("ok\n"), "{name}, {mode:?}: {said}");
        // Valgrind has words of its own.
        assert!(!said.contains("larder:"), "{name}, {mode:?}: {said}");
    }
}

#[test]
fn programs_without_misuse_run_as_before() {
    unharmed("contract.c", "on", 100, 100);
    unharmed("sizes.c", "on", 20, 1);
    unharmed("operators.cpp", "on", 100, 20);
    unharmed("lifetime.c", "on", 100, 100);
}

#[test]
fn threads_and_forks_do_too() {
    unharmed("threads.c", "on", 20, 2);
    unharmed("handover.c", "on", 10, 1);
    unharmed("forks.c", "on", 50, 10);
    // Under valgrind the next signal is there before the last one is done with.
    unharmed("signals.c", "on,quarantine=100K", 5, 0);
    unharmed("affinity.c", "on", 10, 2);
}

#[test]
fn guard_pages_disturb_no_program() {
    unharmed("contract.c", "guard", 100, 0);
    unharmed("sizes.c", "guard=3,quarantine=1M", 10, 1);
    unharmed("threads.c", "guard=10", 10, 0);
    unharmed("forks.c", "guard=20", 20, 0);
}
