//! The debug mode: each misuse has a program of its own, and the exact message that it must print.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Mode, Program, has};

/// Instructions of malloc and free of 64 bytes, and of the calls and the loop around them.
const PAIR: i64 = 57;
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

    /// How it ends: by abort, unless what it prints is a list of leaks.
    fn code(&self) -> i32 {
        let leaks = self.prints.starts_with("larder: leak");
        match self.options.split_once("leaks=") {
            Some((_, code)) if !self.prints.contains("none") => code.parse().unwrap(),
            _ if leaks => 0,
            _ => 134,
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
    let inner = mode.command_on(crate::common::debug_library(), &program.path);
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

/// The name in a function's name of C++.
fn plain(name: &str) -> &str {
    name.strip_prefix("_Z").map_or(name, |name| {
        name.trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_end_matches('v')
    })
}

/// Addresses become @1, @2 and so on, in the order in which they come; threads become T; frames become names, and what lies
/// below main is left out.
fn normal(text: &str) -> String {
    let mut addresses: Vec<String> = Vec::new();
    let mut lines = String::new();
    let mut below_main = false;
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix("    ") {
            let name = plain(frame.split(' ').next().unwrap());
            // Names in the C library depend on what the system has of its symbols.
            let named = !name.is_empty() && !name.starts_with('(') && !frame.contains("/libc.so");
            if !below_main && named {
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
    // One of them, while it is written: LARDER_TEST_ONLY=double_free.
    let only = std::env::var("LARDER_TEST_ONLY").unwrap_or_default();
    for case in Case::all().iter().filter(|c| c.name.contains(&only)) {
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
                .unwrap_or_else(|| 128 + ended.status.signal().unwrap());
            assert_eq!(code, case.code(), "{}", case.name);
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
    unharmed("replaced.cpp", "on", 100, 20);
    unharmed("lifetime.c", "on", 100, 100);
}

#[test]
fn threads_and_forks_do_too() {
    unharmed("threads.c", "on", 20, 2);
    unharmed("handover.c", "on", 10, 1);
    unharmed("forks.c", "on", 50, 10);
    unharmed("forks_signals.c", "on", 10, 0);
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

/// Whatever call for memory is refused, or there is no debug heap, which is told.
#[test]
fn no_memory_disturbs_no_program() {
    let Some(program) = Program::compile("refuse.c") else {
        return;
    };
    let mut command = debugged(Mode::PerThread, &program, "on");
    command.env("LARDER_TEST_WORK", "20");
    let said = Mode::PerThread.run(&mut command, &program);
    assert!(
        said.contains("ok\n") || said.contains("skipped: "),
        "{said}"
    );
    for line in said.lines().filter(|line| line.contains("larder:")) {
        assert_eq!(
            line,
            "larder: there is no memory for the debug heap; going on without it"
        );
    }
}

/// Runs a program of the folder per thread, with other options than its own.
fn misused(name: &str, options: &str) -> Option<Output> {
    let program = Program::compile(&format!("misuse/{name}"))?;
    Some(
        debugged(Mode::PerThread, &program, options)
            .output()
            .unwrap(),
    )
}

#[test]
fn the_process_goes_on_where_it_shall() {
    for (name, needle) in [
        ("double_free.c", "larder: double free"),
        ("free_middle.c", "larder: invalid free"),
        ("free_stack.c", "larder: invalid free"),
        ("overflow.c", "larder: overflow"),
        ("underflow.c", "larder: underflow"),
        ("write_after_free.c", "larder: use after free"),
        ("size_mismatch.c", "larder: mismatched size"),
        ("free_new.cpp", "larder: mismatched functions"),
        ("size_freed.c", "larder: use after free: malloc_usable_size"),
    ] {
        let Some(ended) = misused(name, "keep-going") else {
            return;
        };
        let said = err(&ended);
        assert_eq!(ended.status.code(), Some(0), "{name}: {said}");
        // Told once, and nothing else with it.
        assert_eq!(said.matches("larder: ").count(), 1, "{name}: {said}");
        assert!(said.starts_with(needle), "{name}: {said}");
    }
    // realloc answers NULL, which this program makes its exit code.
    let ended = misused("realloc_freed.c", "keep-going").unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", err(&ended));
    // A guard page is opened.
    for name in [
        "overflow_guard.c",
        "underflow_guard.c",
        "read_after_free_guard.c",
    ] {
        let ended = misused(name, "guard,keep-going").unwrap();
        let said = err(&ended);
        assert!(ended.status.code().is_some(), "{name}: {said}");
        assert!(said.contains("was touched, at 0x"), "{name}: {said}");
    }
}

#[test]
fn a_check_that_is_turned_off_is_off() {
    for (name, options) in [
        ("free_new.cpp", "no-families"),
        ("write_after_free.c", "no-fill"),
        ("write_after_free_at_exit.c", "no-fill"),
        ("double_free.c", "off"),
        ("leak_code.c", "on"),
    ] {
        let Some(ended) = misused(name, options) else {
            return;
        };
        let said = err(&ended);
        assert!(
            !said.contains("free(0x") || options == "off",
            "{name}: {said}"
        );
        assert!(!said.contains("larder: leak"), "{name}: {said}");
        if options != "off" {
            assert_eq!(
                (ended.status.code(), said.as_str()),
                (Some(0), ""),
                "{name}"
            );
        }
    }
    let Some(none) = misused("double_free.c", "frames=0") else {
        return;
    };
    assert!(!err(&none).contains("main"), "{}", err(&none));
    let wide = misused("overflow.c", "redzone=16,frames=2").unwrap();
    assert!(
        err(&wide).starts_with("larder: overflow: byte 3"),
        "{}",
        err(&wide)
    );
}

#[test]
fn allocations_fail_on_purpose() {
    let Some(program) = Program::compile("failures.c") else {
        return;
    };
    let count = |mode: Mode, options: &str| {
        let said = crate::common::must(&mut debugged(mode, &program, options));
        said.trim().parse::<u32>().unwrap()
    };
    for mode in [Mode::PerThread, Mode::PerCpu, Mode::Locked, Mode::NoRseq] {
        assert_eq!(count(mode, "on"), 0);
        // 1000 allocations of each of five functions.
        let every = count(mode, "fail=10,fail-after=100");
        assert!((490..=500).contains(&every), "{every}");
        let drawn = count(mode, "fail-chance=10,fail-after=100,seed=3");
        assert!((350..650).contains(&drawn), "{drawn}");
        assert_eq!(count(mode, "fail-chance=10,fail-after=100,seed=3"), drawn);
    }
}

#[test]
fn a_bad_word_is_one_line_and_the_others_hold() {
    let Some(ended) = misused("double_free.c", "on,guards") else {
        return;
    };
    let said = err(&ended);
    let first = said.lines().next().unwrap();
    assert!(
        first.starts_with(
            "larder: LARDER_MALLOC_DEBUG: there is no debug option \"guards\"; there are on, off"
        ),
        "{said}"
    );
    assert!(first.ends_with("; it is ignored"), "{said}");
    assert!(
        said.lines()
            .nth(1)
            .unwrap()
            .starts_with("larder: double free"),
        "{said}"
    );
    let ended = misused("overflow.c", "bogus").unwrap();
    assert_eq!(
        err(&ended).lines().count(),
        1,
        "no good word is left, so nothing is checked"
    );
}

/// Fault messages come from a handler of ours; a fault that is not ours ends the program as it did.
#[test]
fn other_faults_are_left_alone() {
    let Some(program) = Program::compile("fault.c") else {
        return;
    };
    for options in ["on", "guard"] {
        let ended = debugged(Mode::PerThread, &program, options)
            .output()
            .unwrap();
        let code = ended
            .status
            .code()
            .unwrap_or_else(|| 128 + ended.status.signal().unwrap());
        assert_eq!(
            (code, err(&ended).contains("larder")),
            (139, false),
            "{options}"
        );
    }
}

/// Code of the way that every call takes: it must not know of the debug mode, neither its state nor its functions. Only
/// where the compiler puts functions into each other is that code in one piece.
#[test]
fn the_fast_path_knows_nothing_of_it() {
    if cfg!(debug_assertions) || !has("objdump") {
        return;
    }
    for library in [crate::common::library(), crate::common::debug_library()] {
        let code = crate::common::must(
            Command::new("objdump")
                .args(["-d", "--no-show-raw-insn", "-M", "intel"])
                .arg(library),
        );
        for function in ["malloc", "free", "calloc", "_Znwm", "_ZdlPv", "_ZdlPvm"] {
            let from = code.find(&format!("<{function}>:\n")).unwrap();
            let body = &code[from..];
            let body = &body[..body.find("\n\n").unwrap_or(body.len())];
            assert!(
                body.contains("fs:"),
                "{function} asks for the thread's heap: {body}"
            );
            // The name of the crate is in the names of all its functions.
            let names = body.replace("larder_malloc_debug", "");
            assert!(!names.contains("debug"), "{function}: {body}");
        }
    }
}

/// Instructions of a pair do not depend on whether debugging is possible: the word of the thread's heap is read either
/// way. A higher count would be found here.
#[test]
fn a_pair_costs_no_more_than_before() {
    if cfg!(debug_assertions) || !has("valgrind") {
        return;
    }
    let Some(program) = Program::compile("pairs.c") else {
        return;
    };
    let instructions = |library: &Path, pairs: u32| {
        let out = program.dir.path().join(format!("callgrind.{pairs}"));
        crate::common::must(
            Command::new("valgrind")
                .args(["--tool=callgrind", "--trace-children=no"])
                .arg(format!("--callgrind-out-file={}", out.display()))
                .arg(&program.path)
                .arg(pairs.to_string())
                .env("LD_PRELOAD", library),
        );
        let text = std::fs::read_to_string(&out).unwrap();
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix("summary: "))
            .unwrap();
        line.trim().parse::<i64>().unwrap()
    };
    for library in [crate::common::library(), crate::common::debug_library()] {
        let pair = (instructions(library, 101_000) - instructions(library, 1_000)) / 100_000;
        println!("{pair} instructions for a pair and the loop around it");
        assert!((30..=PAIR).contains(&pair), "{pair}");
    }
}

/// The core utilities close standard error before the end, to see whether all was written.
#[test]
fn a_program_that_closes_standard_error_is_told_of() {
    let ended = Command::new("sort")
        .arg("/dev/null")
        .env("LD_PRELOAD", crate::common::debug_library())
        .env("LARDER_MALLOC_DEBUG", "leaks")
        .output()
        .unwrap();
    assert!(err(&ended).starts_with("larder: leak"), "{ended:?}");
}
