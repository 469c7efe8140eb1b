//! Each misuse of malloc by a program of its own process: which of the mallocs notice it, and what they say.

use crate::common::{Mode, Program, debug_library, has, library};
use crate::programs::undebugged;

/// What is said, with `@` for addresses; an empty text where the program runs to its end.
struct Misuse {
    word: &'static str,
    lean: &'static str,
    /// Where it is not the same.
    hardened: Option<&'static str>,
    /// How the message of debug mode begins.
    debug: &'static str,
    /// The same with guard pages.
    guard: &'static str,
}

const fn misuse(word: &'static str, lean: &'static str, debug: &'static str) -> Misuse {
    Misuse {
        word,
        lean,
        hardened: None,
        debug,
        guard: debug,
    }
}

const fn hidden(word: &'static str, hardened: &'static str, debug: &'static str) -> Misuse {
    Misuse {
        hardened: Some(hardened),
        ..misuse(word, "", debug)
    }
}

const DOUBLE: &str = "double free: free(@) of a block of 112 bytes that is free";
const FOREIGN: &str = "free(@): no block of this heap begins there";

const MISUSES: [Misuse; 19] = [
    misuse("twice at once", DOUBLE, "double free"),
    misuse("twice after another", DOUBLE, "double free"),
    misuse("twice around another", DOUBLE, "double free"),
    misuse("twice in two threads", DOUBLE, "double free"),
    misuse("twice around malloc", DOUBLE, "double free"),
    misuse("twice a large one", FOREIGN, "double free"),
    misuse("free on the stack", FOREIGN, "invalid free"),
    misuse("free of data", FOREIGN, "invalid free"),
    misuse(
        "free inside",
        "invalid free: free(@), which is 32 bytes into a block of 112",
        "invalid free",
    ),
    misuse(
        "free unaligned",
        "invalid free: free(@), which is 1 byte into a block of 112",
        "invalid free",
    ),
    misuse("free of another heap", FOREIGN, "invalid free"),
    misuse(
        "realloc of a freed",
        "double free: realloc(@) of a block of 112 bytes that is free",
        "double free",
    ),
    Misuse {
        hardened: Some("mismatched size: operator delete(@) with 24 bytes of a block of 100"),
        ..misuse(
            "delete with a wrong size",
            "mismatched size: operator delete(@) with 24 bytes of a block of 112",
            "mismatched size",
        )
    },
    hidden(
        "overflow by 1",
        "overflow: byte 0 after the end of a block of 100 bytes was written, seen by free(@)",
        "overflow",
    ),
    hidden(
        "overflow by 8",
        "overflow: byte 0 after the end of a block of 96 bytes was written, seen by free(@)",
        "overflow",
    ),
    hidden(
        "overflow by 400",
        "overflow: the end of the block at @ was written, seen by free(@)",
        "overflow",
    ),
    hidden(
        "underflow",
        "underflow: the bytes before the block at @ were written, or after that at @, seen by free(@)",
        "underflow",
    ),
    hidden(
        "write after free",
        "use after free: byte 40 of a free block of 100 bytes at @ was written, seen before its memory is used again",
        "use after free",
    ),
    Misuse {
        guard: "use after free",
        ..misuse("read after free", "", "")
    },
];

/// The line without the name in front, and with `@` for addresses.
fn normal(said: &str) -> String {
    let mut line = said.lines().next().unwrap_or_default().to_owned();
    while let Some(at) = line.find("0x") {
        let digits = line[at + 2..].find(|c: char| !c.is_ascii_hexdigit());
        let end = digits.map_or(line.len(), |n| at + 2 + n);
        line.replace_range(at..end, "@");
    }
    line.strip_prefix("larder: ").unwrap_or(&line).to_owned()
}

/// How many are noticed: what is said must be what `expected` makes of each.
fn noticed(
    mode: Mode,
    variables: &[(&str, &str)],
    said_as: impl Fn(&Misuse, &str) -> bool,
) -> Option<usize> {
    let program = Program::compile("misuses.c")?;
    let library = match variables
        .iter()
        .any(|(name, _)| *name == "LARDER_MALLOC_DEBUG")
    {
        true => debug_library(),
        false => library(),
    };
    let mut n = 0;
    for misuse in &MISUSES {
        let command = mode.command_on(library, &program.path);
        let (said, code) = undebugged(&command, misuse.word, variables);
        let said = normal(&said);
        let word = misuse.word;
        assert!(said_as(misuse, &said), "{word}, {mode:?}: {said}");
        // 134 is an abort; what is not noticed runs to its end.
        let ends = if said.is_empty() { 0 } else { 134 };
        assert_eq!(code, ends, "{word}, {mode:?}: {said}");
        n += usize::from(code != 0);
    }
    Some(n)
}

#[test]
fn each_wrong_free_is_noticed_at_once() {
    for mode in [Mode::PerThread, Mode::PerCpu, Mode::Locked, Mode::NoRseq] {
        let lean = noticed(mode, &[], |misuse, said| said == misuse.lean);
        assert!(lean.is_none_or(|lean| lean == 13), "{lean:?}");
    }
}

#[test]
fn hardened_mode_notices_writes_outside_of_blocks_too() {
    let hardened = noticed(
        Mode::PerThread,
        &[("LARDER_HARDENED", "1")],
        |misuse, said| said == misuse.hardened.unwrap_or(misuse.lean),
    );
    assert!(hardened.is_none_or(|n| n == 18), "{hardened:?}");
}

#[test]
fn debug_mode_notices_the_same_and_reads_by_guard_pages() {
    let begins =
        |said: &str, with: &str| said.is_empty() == with.is_empty() && said.starts_with(with);
    let debug = noticed(
        Mode::PerThread,
        &[("LARDER_MALLOC_DEBUG", "on")],
        |misuse, said| begins(said, misuse.debug),
    );
    let guard = noticed(
        Mode::PerThread,
        &[("LARDER_MALLOC_DEBUG", "guard")],
        |misuse, said| begins(said, misuse.guard),
    );
    let counts = debug.zip(guard);
    assert!(counts.is_none_or(|n| n == (18, 19)), "{counts:?}");
}

/// Each misuse of a block between guard pages, how it ends, and whether the block was freed.
#[test]
fn a_guarded_block_is_not_misused_unnoticed() {
    let Some(program) = Program::compile("misuses.c") else {
        return;
    };
    for (word, begins, code, freed) in [
        (
            "read behind",
            "overflow: byte 0 after the end of a block of 96 bytes was read, at @",
            139,
            false,
        ),
        (
            "read before",
            "underflow: byte 0 before a block of 96 bytes was read, at @",
            139,
            false,
        ),
        // The fault comes where the block is beside the inaccessible page. Else the block's free tells.
        (
            "overflow by 1",
            "overflow: byte 0 after the end of a block of 100 bytes was written, seen by free(@)",
            134,
            false,
        ),
        (
            "overflow by 8",
            "overflow: byte 0 after the end of a block of 96 bytes was written, ",
            0,
            false,
        ),
        (
            "underflow",
            "underflow: byte 7 before a block of 96 bytes was written, ",
            0,
            false,
        ),
        (
            "read after free",
            "use after free: byte 40 of a free block of 100 bytes was read, at @",
            139,
            true,
        ),
        (
            "read after free, handled",
            "use after free: byte 40 of a free block of 100 bytes was read, at @",
            7,
            true,
        ),
        (
            "write after free",
            "use after free: byte 40 of a free block of 100 bytes was written, at @",
            139,
            true,
        ),
        (
            "twice in two threads",
            "double free: free(@) of a block of 100 bytes that is free",
            134,
            true,
        ),
        (
            "realloc of a freed",
            "double free: realloc(@) of a block of 100 bytes that is free",
            134,
            true,
        ),
        (
            "free unaligned",
            "invalid free: free(@), which is 1 byte into a block of 100",
            134,
            false,
        ),
        (
            "delete with a wrong size",
            "mismatched size: operator delete(@) with 24 bytes of a block of 100",
            134,
            false,
        ),
    ] {
        for mode in [Mode::PerThread, Mode::PerCpu, Mode::Locked] {
            let command = mode.command(&program.path);
            let (said, ended) = undebugged(&command, word, &[("LARDER_GUARD_SAMPLES", "1")]);
            assert!(
                normal(&said).starts_with(begins),
                "{word}, {mode:?}: {said}"
            );
            let seen = said.contains("seen by free");
            let code = match code {
                0 if seen => 134,
                0 => 139,
                code => code,
            };
            assert_eq!(ended, code, "{word}, {mode:?}: {said}");
            // Each of the stacks leads to the program.
            let stacks = ["  here:\n", ", allocated:\n", "  freed:\n"].map(|of| {
                let calls = said.split_once(of).map_or("", |(_, calls)| calls);
                calls
                    .lines()
                    .take_while(|line| line.starts_with("    "))
                    .any(|line| line.contains("/program+0x"))
            });
            assert_eq!(stacks, [true, true, freed], "{word}, {mode:?}: {said}");
        }
    }
}

/// Programs that misuse nothing: the suite of the malloc.
fn disturbs_no_program(variable: &str, value: &str, signals: u32) {
    for (name, share) in [
        ("contract.c", 100),
        ("sizes.c", 20),
        ("beside.c", 100),
        ("operators.cpp", 100),
        ("replaced.cpp", 100),
        ("lifetime.c", 100),
        ("threads.c", 20),
        ("handover.c", 10),
        ("forks.c", 50),
        ("forks_signals.c", 20),
        ("signals.c", signals),
        ("affinity.c", 10),
    ] {
        let Some(program) = Program::compile(name) else {
            continue;
        };
        let plugin = (name == "lifetime.c").then(|| Program::compile("plugin.c").unwrap());
        let mut command = Mode::PerThread.command(&program.path);
        command
            .env(variable, value)
            .env("LARDER_TEST_WORK", share.to_string())
            .env("LARDER_TEST_STRICT", "1")
            .args(plugin.iter().map(|plugin| &plugin.path));
        let said = Mode::PerThread.run(&mut command, &program);
        assert!(said.starts_with("ok\n"), "{name}: {said}");
        assert!(!said.contains("larder:"), "{name}: {said}");
    }
    if has("perl") {
        let words =
            "my %h; for my $i (1..100000) { $h{$i % 9999} = [\"x$i\", $i]; } print scalar(keys %h)";
        let mut perl = std::process::Command::new("perl");
        perl.args(["-e", words]).env(variable, value);
        assert_eq!(
            crate::common::must(perl.env("LD_PRELOAD", library())),
            "9999"
        );
    }
}

#[test]
fn hardened_mode_disturbs_no_program() {
    disturbs_no_program("LARDER_HARDENED", "on", 20);
}

#[test]
fn guarded_blocks_disturb_no_program() {
    // Each block while there are slots, and one of some dozens of small ones.
    for bytes in ["1", "4000"] {
        disturbs_no_program("LARDER_GUARD_SAMPLES", bytes, 1);
    }
}
