//! The suite of small programs, with the system's malloc and with this one in every mode.
//!
//! Each program checks itself and prints "ok". The system's malloc comes first, to see that the program itself is right.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Mode, Program, debug_library, has, library};

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
fn what_the_heap_holds_is_the_same_by_every_function() {
    suite("info.c", 100, plain);
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
fn resident_memory_stays_within_what_is_live() {
    // Left to itself the malloc keeps more and more of what soon comes again.
    suite("churn.c", 5, |command, _| {
        command.env("LARDER_MALLOC_CACHE", "64M");
    });
}

#[test]
fn the_child_of_a_busy_process_goes_on() {
    suite("forks.c", 10, plain);
}

/// A thread that reads a line waits for memory with its stream locked, and one that flushes all streams waits for that stream.
#[test]
fn a_process_whose_threads_use_streams_may_fork() {
    suite("forks_streams.c", 10, plain);
}

#[test]
fn a_signal_handler_may_fork() {
    suite("forks_signals.c", 0, plain);
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

/// Not of blocks, but of threads and mappings, as docs/malloc.md says.
#[test]
fn a_limit_on_addresses_stops_what_is_no_block() {
    exhaust(&["addresses"]);
}

#[test]
fn memory_of_one_size_serves_another() {
    exhaust(&["64", "1000", "5000", "70000", "3000000"]);
}

/// A limit is met at the call that happens to come next. Here each call that asks the system for memory is refused in turn,
/// from the process's first one on: alone, and with all that follow.
#[test]
fn each_call_for_memory_may_be_refused() {
    let Some(program) = Program::compile("refuse.c") else {
        return;
    };
    for (mode, percent) in [
        (Mode::System, "10"),
        (Mode::PerThread, "100"),
        (Mode::PerCpu, "100"),
        (Mode::Locked, "50"),
    ] {
        let mut command = mode.command(&program.path);
        command.env("LARDER_TEST_WORK", percent);
        if mode != Mode::System {
            command.env("LARDER_TEST_STRICT", "1");
        }
        let said = mode.run(&mut command, &program);
        if said.contains("skipped: ") {
            eprint!("{said}");
            return;
        }
        assert!(said.contains("ok\n"), "{mode:?}: {said}");
        let refused = said
            .lines()
            .find_map(|line| line.strip_prefix("refused ")?.parse::<u32>().ok());
        assert!(
            mode == Mode::System || refused.is_some_and(|n| n > 50),
            "{mode:?}: {said}"
        );
    }
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

/// The thread that loads a library holds the loader's lock while the constructors run.
#[test]
fn a_constructor_waits_for_a_thread_that_allocates() {
    let Some(plugin) = Program::compile("plugin_starts.cpp") else {
        return;
    };
    suite("opener.c", 100, |command, _| {
        command.arg(&plugin.path);
    });
}

/// The C++ library is then in no scope of names that the malloc sees.
#[test]
fn an_extension_of_a_program_in_c_may_throw() {
    let Some(plugin) = Program::compile("plugin_throws.cpp") else {
        return;
    };
    suite("opener.c", 100, |command, _| {
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

#[test]
fn a_program_may_have_a_malloc_inside() {
    suite("own_malloc.c", 20, plain);
}

/// What programs call, under the names that they call; whatever else left would take another library's place.
#[test]
fn nothing_else_leaves_the_library() {
    if !has("nm") {
        return;
    }
    for library in [library(), debug_library()] {
        let all = crate::common::must(
            Command::new("nm")
                .args(["-D", "--defined-only", "--format=posix"])
                .arg(library),
        );
        let names = all
            .lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|name| !name.starts_with("_Zn") && !name.starts_with("_Zd"))
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(
            names,
            "aligned_alloc calloc free free_aligned_sized free_sized larder_heap_profile_write mallinfo mallinfo2 malloc \
             malloc_info malloc_stats malloc_trim malloc_usable_size mallopt \
             memalign posix_memalign pvalloc realloc reallocarray valloc"
        );
        assert_eq!(all.matches("_Zn").count(), 8);
        assert_eq!(all.matches("_Zd").count(), 12);
    }
}

/// The loader must not have to make room for thread-local variables at run time: that calls malloc.
#[test]
fn it_is_bound_at_once_and_stays() {
    if !has("readelf") {
        return;
    }
    for (library, name) in [
        (library(), "liblarder_malloc.so"),
        (debug_library(), "liblarder_malloc_debug.so"),
    ] {
        let dynamic = crate::common::must(Command::new("readelf").args(["-dW"]).arg(library));
        assert!(dynamic.contains("NODELETE"), "{dynamic}");
        assert!(
            dynamic.contains("BIND_NOW") || dynamic.contains("NOW"),
            "{dynamic}"
        );
        assert!(dynamic.contains(&format!("[{name}]")), "{dynamic}");
        // To load another library takes as long as all else of the start. See the module `unwind`.
        let lean = cfg!(target_arch = "x86_64") && name == "liblarder_malloc.so";
        assert!(
            !lean || dynamic.matches("(NEEDED)").count() == 1,
            "{dynamic}"
        );
    }
}

/// Nor may it be asked where such a variable is: after a `dlopen` its answer may call malloc. So all of them lie at fixed
/// distances from the thread pointer, and no code asks the loader.
#[test]
fn thread_local_variables_need_no_call_of_the_loader() {
    if !cfg!(target_arch = "x86_64") || !has("readelf") {
        return;
    }
    for library in [library(), debug_library()] {
        let read = |what: &str| {
            crate::common::must(Command::new("readelf").args([what, "-W"]).arg(library))
        };
        let (symbols, dynamic, relocations) = (read("--dyn-syms"), read("-d"), read("-r"));
        assert!(
            symbols.contains("malloc"),
            "this is no table of symbols: {symbols}"
        );
        assert!(!symbols.contains("__tls_get_addr"), "{symbols}");
        assert!(dynamic.contains("STATIC_TLS"), "{dynamic}");
        assert!(relocations.contains("R_X86_64_TPOFF64"), "{relocations}");
        assert!(!relocations.contains("TLSDESC"), "{relocations}");
    }
}

/// A page that is used maps those around it: what every program runs must not lie among what hardly any does.
#[cfg(ordered)]
#[test]
fn what_every_program_runs_lies_together() {
    if !has("objdump") {
        return;
    }
    let symbols = crate::common::must(Command::new("objdump").arg("-t").arg(library()));
    let is_together = |line: &str| line.contains(" F .text.often\t");
    for name in [
        "6larder7objects",
        "6larder8magazine",
        "6larder5pages",
        "6larder4heap9one_owner",
        "6larder4heap7classes",
        "larder..os..linux..Linux",
        " malloc",
        " free",
        " calloc",
        " realloc",
        " posix_memalign",
        " malloc_usable_size",
        " _Znwm",
        " _ZdlPvm",
        " pthread_atfork",
    ] {
        let is_meant = |line: &&str| match name.starts_with(' ') {
            true => line.ends_with(name),
            false => line.contains(name) && line.contains(" F "),
        };
        let (together, elsewhere): (Vec<_>, Vec<_>) = symbols
            .lines()
            .filter(is_meant)
            .partition(|line| is_together(line));
        assert!(!together.is_empty(), "no function is named {name}");
        assert_eq!(elsewhere, [""; 0], "{name}");
    }
    let often = symbols.lines().filter(|line| is_together(line)).count();
    let all = symbols
        .lines()
        .filter(|line| line.contains(" F .text"))
        .count();
    assert!(2 * often < all, "{often} of {all} functions");
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
        crate::common::must(&mut command)
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

#[test]
fn a_report_that_cannot_be_written_is_told_in_a_line() {
    let long = "x".repeat(libc::PATH_MAX as usize);
    for (path, said) in [
        (
            "/no/such/folder/stats",
            "larder: LARDER_MALLOC_STATS: /no/such/folder/stats cannot be written: No such file or directory (os error 2)\n",
        ),
        (
            "/dev/full",
            "larder: LARDER_MALLOC_STATS: /dev/full cannot be written: No space left on device (os error 28)\n",
        ),
        (
            &long,
            "larder: LARDER_MALLOC_STATS: the path is too long; it is ignored\n",
        ),
    ] {
        // Not one of those that close standard error before they end.
        let ended = Command::new("true")
            .env("LD_PRELOAD", library())
            .env("LARDER_MALLOC_STATS", path)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), said);
        assert!(ended.status.success());
    }
}

/// Runs the program that misuses the heap as a word says, without debug mode: what it said, and how it ended. The process
/// that aborts leaves no core behind: writing it takes longest.
pub(crate) fn undebugged(
    command: &Command,
    word: &str,
    variables: &[(&str, &str)],
) -> (String, i32) {
    let ended = Command::new("sh")
        .args(["-c", "ulimit -c 0; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .arg(word)
        .env_remove("LARDER_MALLOC_DEBUG")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    // `timeout` answers with what the shell would say.
    let code = ended.status.code();
    let code = code.unwrap_or_else(|| 128 + ended.status.signal().unwrap());
    (String::from_utf8_lossy(&ended.stderr).into_owned(), code)
}

#[test]
fn what_is_wrong_is_told_without_debug_mode_and_ends_the_process() {
    let Some(program) = Program::compile("undebugged.c") else {
        return;
    };
    for mode in [Mode::PerThread, Mode::PerCpu, Mode::Locked, Mode::NoRseq] {
        for (word, message) in [
            (
                "foreign",
                "larder: free(0x123450): no block of this heap begins there\n",
            ),
            (
                "realloc_foreign",
                "larder: realloc(0x123451): no block of this heap begins there\n",
            ),
        ] {
            let (said, code) = undebugged(&mode.command(&program.path), word, &[]);
            // 134 is an abort.
            assert_eq!((said.as_str(), code), (message, 134), "{word}, {mode:?}");
        }
        let fine = undebugged(&mode.command(&program.path), "nothing", &[]);
        assert_eq!(fine, (String::new(), 0), "{mode:?}");
    }
}

/// A program that asks for it gets a thread that returns memory while the program makes no calls, in the child of a fork too; other
/// programs have none. Of a GiB in blocks from 4 KiB to 8 MiB that two threads free, which then rest, a tenth stays at most.
#[test]
fn memory_goes_back_without_a_call() {
    let Some(program) = Program::compile("reaper.c") else {
        return;
    };
    for mode in Mode::ALL {
        // Valgrind's own memory is resident too, and it does not give back what the program does.
        if mode == Mode::Valgrind {
            continue;
        }
        let mut command = mode.command(&program.path);
        if mode != Mode::System {
            command.env("LARDER_MALLOC_REAPER", "0.1");
        }
        let said = mode.run(&mut command, &program);
        assert!(said.contains("ok\n"), "{mode:?}: {said}");
    }
    let count = |library: &Path, variables: &[(&str, &str)]| {
        let mut command = Mode::PerThread.command_on(library, &program.path);
        crate::common::must(command.arg("count").envs(variables.iter().copied()))
    };
    let reaper = [("LARDER_MALLOC_REAPER", "5")];
    assert!(count(library(), &[]).contains("threads 1\n"));
    assert!(count(library(), &reaper).contains("threads 2\n"));
    assert!(count(debug_library(), &reaper).contains("threads 2\n"));
    // In debug mode what is freed is kept on purpose.
    let debug = [
        ("LARDER_MALLOC_REAPER", "5"),
        ("LARDER_MALLOC_DEBUG", "on,frames=0"),
    ];
    assert!(count(debug_library(), &debug).contains("threads 1\n"));
}

/// What stays of 512 MiB that were freed is the constant and what is known of the blocks, or what the variables say.
#[test]
fn free_memory_is_bounded_without_a_call() {
    let Some(program) = Program::compile("retention.c") else {
        return;
    };
    let kept = |size: &str, variables: &[(&str, &str)]| {
        let mut command = Mode::PerThread.command(&program.path);
        let said = crate::common::must(command.arg(size).envs(variables.iter().copied()));
        let kib = said.lines().find_map(|line| line.strip_prefix("resident "));
        kib.and_then(|kib| kib.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("{said}"))
            >> 10
    };
    for size in ["4096", "65536", "2097152"] {
        // Of blocks of a page a sixteenth is known of them, in slabs and magazines. Marks go with the pages.
        let known = 16 + 512 / 16;
        let bound = kept(size, &[]);
        assert!(bound <= 64 + known, "{size}: {bound} MiB");
        let more = kept(size, &[("LARDER_MALLOC_CACHE", "200M")]);
        assert!((190..200 + known).contains(&more), "{size}: {more} MiB");
        let none = kept(size, &[("LARDER_MALLOC_DECAY", "0")]);
        assert!(none <= 18, "{size}: {none} MiB");
        let all = kept(size, &[("LARDER_MALLOC_DECAY", "never")]);
        assert!(all >= 500, "{size}: {all} MiB");
    }
}

/// The thread is no reason for a process to stay whose other threads have all ended.
#[test]
fn the_thread_does_not_keep_the_process() {
    let Some(program) = Program::compile("reaper.c") else {
        return;
    };
    let mut command = Mode::PerThread.command(&program.path);
    command.arg("leave").env("LARDER_MALLOC_REAPER", "0.05");
    assert!(crate::common::must(&mut command).contains("ok\n"));
}

#[test]
fn an_interval_that_is_none_is_told_in_a_line() {
    let Some(program) = Program::compile("undebugged.c") else {
        return;
    };
    let command = Mode::PerThread.command(&program.path);
    let long = "x".repeat(500);
    let told = |word: &str| {
        format!(
            "larder: LARDER_MALLOC_REAPER: \"{word}\" is no number of seconds from 0.01 to 86400; it is ignored\n"
        )
    };
    for (word, said) in [
        ("0", told("0")),
        ("soon\n", told("soon\\n")),
        (&long, told(&format!("{}...", &long[..64]))),
        ("2.5", String::new()),
        ("", String::new()),
    ] {
        let ended = undebugged(&command, "nothing", &[("LARDER_MALLOC_REAPER", word)]);
        assert_eq!(ended, (said, 0), "{word:?}");
    }
    for (variable, is) in [
        (
            "LARDER_MALLOC_DECAY",
            "no number of milliseconds from 0 to 86400000, and not \"never\"",
        ),
        (
            "LARDER_MALLOC_CACHE",
            "no number of bytes, which may end in K, M or G",
        ),
    ] {
        let said = format!("larder: {variable}: \"soon\" is {is}; it is ignored\n");
        let ended = undebugged(&command, "nothing", &[(variable, "soon")]);
        assert_eq!(ended, (said, 0));
    }
}

#[test]
fn a_wish_for_checks_is_answered_by_the_library_that_has_them() {
    let Some(program) = Program::compile("undebugged.c") else {
        return;
    };
    let command = Mode::PerThread.command(&program.path);
    let line = "larder: LARDER_MALLOC_DEBUG: nothing is checked here; preload liblarder_malloc_debug.so instead, or build with larder's feature debug-heap\n";
    for (words, said) in [
        ("on", line),
        ("leaks, guard", line),
        ("", ""),
        (" , ", ""),
        ("on,off", ""),
    ] {
        let ended = undebugged(&command, "nothing", &[("LARDER_MALLOC_DEBUG", words)]);
        assert_eq!(ended, (said.to_owned(), 0), "{words:?}");
    }
}

#[test]
fn a_mode_that_does_not_exist_is_told_in_a_line() {
    let Some(program) = Program::compile("undebugged.c") else {
        return;
    };
    let mut command = Command::new("env");
    command.args(["-u", "LARDER_MODE", "-u", "GLIBC_TUNABLES"]);
    command.arg(format!("LD_PRELOAD={}", library().display()));
    command.arg(&program.path);
    let long = "x".repeat(500);
    let told = |word: &str| {
        format!(
            "larder: LARDER_MALLOC_MODE: there is no mode \"{word}\"; there are per-thread, per-cpu, locked; it is ignored\n"
        )
    };
    for (word, said) in [
        ("per-cup", told("per-cup")),
        ("per-thread\n", told("per-thread\\n")),
        (&long, told(&format!("{}...", &long[..64]))),
        ("per-cpu", String::new()),
        ("", String::new()),
    ] {
        // `sh` and `env` run without the library.
        let ended = undebugged(&command, "nothing", &[("LARDER_MALLOC_MODE", word)]);
        assert_eq!(ended, (said, 0), "{word:?}");
    }
}

/// The library and a plugin behind it, for a program that is run as `Mode::run` runs it.
fn beside(plugin: &Program, program: &Program, variables: &[&str]) -> Command {
    let mut command = Command::new("env");
    for name in ["LARDER_MODE", "LARDER_MALLOC_MODE", "GLIBC_TUNABLES"] {
        command.args(["-u", name]);
    }
    let both = format!("{}:{}", library().display(), plugin.path.display());
    command.arg(format!("LD_PRELOAD={both}"));
    command.args(variables).arg(&program.path);
    command
}

/// Without a key for the threads' heaps the CPUs' stocks serve, under locks, and the report must not say otherwise.
#[test]
fn the_mode_is_that_of_a_process_without_keys() {
    let (Some(program), Some(plugin)) = (
        Program::compile("undebugged.c"),
        Program::compile("plugin_keys.c"),
    ) else {
        return;
    };
    // It looks into the report.
    let said = Mode::Locked.run(&mut beside(&plugin, &program, &[]), &program);
    assert!(said.contains("ok\n"), "{said}");
}

/// A small system may have no library that walks stacks.
#[cfg(target_arch = "x86_64")]
#[test]
fn without_the_unwinder_samples_have_no_stacks() {
    let (Some(program), Some(plugin)) = (
        Program::compile("undebugged.c"),
        Program::compile("plugin_no_unwinder.c"),
    ) else {
        return;
    };
    let line = "larder: libgcc_s.so.1 cannot be loaded; samples have no stacks\n";
    let profile = [
        "LARDER_HEAP_PROFILE=/dev/null",
        "LARDER_HEAP_PROFILE_INTERVAL=1",
    ];
    for (variables, line) in [
        (profile.as_slice(), line),
        (&["LARDER_GUARD_SAMPLES=1"], line),
        (&[], ""),
    ] {
        let mut command = beside(&plugin, &program, variables);
        let said = Mode::PerThread.run(&mut command, &program);
        assert_eq!(said, format!("ok\n{line}"), "{variables:?}");
    }
}

/// The heap is made by the process's only thread. Whatever it starts on the way, to try the restartable sequences, must not
/// wait for the heap.
#[test]
fn nobody_waits_while_the_heap_is_made() {
    let (Some(program), Some(plugin)) = (
        Program::compile("undebugged.c"),
        Program::compile("plugin_naps.c"),
    ) else {
        return;
    };
    for (mode, variables) in [
        (Mode::PerThread, [].as_slice()),
        (Mode::PerCpu, &["LARDER_MALLOC_MODE=per-cpu"]),
        (Mode::Locked, &["LARDER_MALLOC_MODE=locked"]),
    ] {
        let said = mode.run(&mut beside(&plugin, &program, variables), &program);
        assert!(said.contains("naps 0\n"), "{mode:?}: {said}");
    }
}
