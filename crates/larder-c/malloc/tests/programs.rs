//! The suite of small programs, with the system's malloc and with this one in every mode.
//!
//! Each program checks itself and prints "ok". The system's malloc comes first, to see that the program itself is right.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Mode, Program, has, library};

/// Runs a program in every mode. `share` is the percentage of the work that valgrind gets; 0 leaves it out.
fn suite(name: &str, share: u32, prepare: impl Fn(&mut Command, bool)) {
    let Some(program) = Program::compile(name) else {
        return;
    };
    for mode in Mode::ALL {
        if mode == Mode::Valgrind && (share == 0 || !has("valgrind")) {
            continue;
        }
        let mut command = mode.command(&program.path);
        if mode == Mode::Valgrind {
            command.env("LARDER_TEST_WORK", share.to_string());
        }
        if mode != Mode::System {
            command.env("LARDER_TEST_STRICT", "1");
        }
        prepare(&mut command, mode != Mode::System);
        let said = mode.run(&mut command, &program);
        assert!(said.contains("ok\n"), "{name}, {mode:?}: {said}");
    }
}

fn plain(_: &mut Command, _: bool) {}

#[test]
fn every_function_keeps_its_contract() {
    suite("contract.c", 100, plain);
}

#[test]
fn blocks_do_not_overlap_and_keep_what_is_written() {
    suite("sizes.c", 2, plain);
}

#[test]
fn objects_outlive_a_thousand_threads() {
    suite("threads.c", 5, plain);
}

#[test]
fn objects_go_from_thread_to_thread() {
    suite("handover.c", 2, plain);
}

#[test]
fn the_child_of_a_busy_process_goes_on() {
    suite("forks.c", 10, plain);
}

/// Until there is no more, of one size after the other. Not under valgrind, whose own memory counts against the limit.
fn exhaust(sizes: &[&str]) {
    suite("limit.c", 0, |command, larder| {
        command.args(sizes);
        if larder {
            command.env("LARDER_TEST_RESERVES", "1");
        }
    });
}

#[test]
fn out_of_memory_is_an_answer() {
    for size in ["64", "1000", "5000", "70000", "3000000"] {
        exhaust(&[size]);
    }
    exhaust(&["3000000", "70000"]);
}

#[test]
fn memory_of_one_size_serves_another() {
    exhaust(&["64", "1000", "5000", "70000", "3000000"]);
}

/// The limit on addresses, in place before the program starts.
#[test]
fn it_starts_within_a_small_address_space() {
    let Some(program) = Program::compile("sizes.c") else {
        return;
    };
    for mode in [Mode::System, Mode::PerThread, Mode::PerCpu, Mode::Locked] {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -v 400000; exec \"$@\"", "sh"]);
        let command = mode.command(&program.path);
        limited.arg(command.get_program()).args(command.get_args());
        let said = mode.run(&mut limited, &program);
        assert!(said.contains("ok\n"), "{mode:?}: {said}");
    }
}

#[test]
fn signals_interrupt_at_any_place() {
    suite("signals.c", 2, plain);
}

#[test]
fn threads_are_moved_between_cpus() {
    suite("affinity.c", 5, plain);
}

#[test]
fn allocation_outside_of_main() {
    let Some(plugin) = Program::compile("plugin.c") else {
        return;
    };
    suite("lifetime.c", 100, |command, _| {
        command.arg(&plugin.path);
    });
}

#[test]
fn the_operators_of_cpp() {
    suite("operators.cpp", 20, plain);
}

#[test]
fn operators_that_the_program_replaces_are_called_by_all_forms() {
    suite("replaced.cpp", 20, plain);
}

/// What programs call, under the names that they call; whatever else left would take another library's place.
#[test]
fn nothing_else_leaves_the_library() {
    if !has("nm") {
        return;
    }
    let names: String = common::must(
        Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(library()),
    )
    .lines()
    .filter_map(|line| line.split(' ').next())
    .filter(|name| !name.starts_with("_Zn") && !name.starts_with("_Zd"))
    .collect::<Vec<_>>()
    .join(" ");
    assert_eq!(
        names,
        "aligned_alloc calloc free free_aligned_sized free_sized malloc malloc_trim malloc_usable_size \
         memalign posix_memalign pvalloc realloc reallocarray valloc"
    );
    let operators = common::must(
        Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(library()),
    );
    assert_eq!(operators.matches("_Zn").count(), 8);
    assert_eq!(operators.matches("_Zd").count(), 12);
}

/// The loader must not have to make room for thread-local variables at run time: that calls malloc.
#[test]
fn it_is_bound_at_once_and_stays() {
    if !has("readelf") {
        return;
    }
    let dynamic = common::must(Command::new("readelf").args(["-dW"]).arg(library()));
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    assert!(
        dynamic.contains("BIND_NOW") || dynamic.contains("NOW"),
        "{dynamic}"
    );
    assert!(dynamic.contains("liblarder_malloc.so"), "{dynamic}");
}

/// One line at the end of each process that is asked for it, and none where not.
#[test]
fn the_report_is_one_line_per_process() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stats");
    let list = |asked: bool, file: &Path| {
        let mut command = Command::new("ls");
        command.arg("/").env("LD_PRELOAD", library());
        if asked {
            command.env("LARDER_MALLOC_STATS", file);
        }
        common::must(&mut command)
    };
    for asked in [true, true, false] {
        list(asked, &file);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_ne!(lines[0]["pid"], lines[1]["pid"]);
    for line in &lines {
        for number in [
            "held_bytes",
            "out_bytes",
            "metadata_bytes",
            "peak_resident_bytes",
            "minor_faults",
        ] {
            assert!(
                line[number].as_u64().is_some_and(|n| n > 0),
                "{number}: {text}"
            );
        }
        assert!(!line["classes"].as_array().unwrap().is_empty(), "{text}");
    }
    // A place that cannot be written is no reason to disturb the program.
    assert!(list(true, Path::new("/no/such/folder/stats")).contains("usr"));
}
