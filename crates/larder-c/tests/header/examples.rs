//! The examples in C and C++, compiled against the header and run: plainly, with AddressSanitizer and under valgrind, with
//! the static library and with the shared one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{has, library, must};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What a program that links the static library needs beside it.
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

struct Example {
    compiler: &'static str,
    standard: &'static str,
    source: &'static str,
    /// Another library, whose header the compiler must have.
    needs: Option<&'static str>,
    says: &'static [&'static str],
}

const EXAMPLES: [Example; 9] = [
    Example {
        compiler: "cc",
        standard: "-std=c11",
        source: "examples/c/pages.c",
        needs: None,
        says: &[
            "a run of 5 pages",
            "too much: the limit is in use; raise it or give something back",
            "put of garbage: not the beginning of a page, an object or a segment that came from here",
            "limit 16777216 bytes",
            "\"limit_bytes\":16777216,",
            "done",
        ],
    },
    Example {
        compiler: "c++",
        standard: "-std=c++17",
        source: "examples/cpp/pages.cpp",
        needs: None,
        says: &[
            "refused: a limit of 1 bytes does not fit one page of 4096 bytes",
            "done",
        ],
    },
    Example {
        compiler: "cc",
        standard: "-std=c11",
        source: "examples/c/objects.c",
        needs: None,
        says: &[
            "port 1024, pair 40000",
            "  allocated      2 from 40000 on",
            "busy: the arena is not ended: 3 units are allocated",
            "size: arena ports: 2 units at 1024 were given back, but 1 were allocated there",
            "imported 1048576 units",
            "1000 connections, 1 constructed",
            "put of garbage: not the beginning",
            "cache connection: 16 bytes each, 256 in a slab",
            "all ended: yes",
            "the script has taken more than 256 KiB: yes",
            "a text",
            "after more than 900 objects: the limit is in use",
            "done",
        ],
    },
    Example {
        compiler: "c++",
        standard: "-std=c++17",
        source: "examples/cpp/heap.cpp",
        needs: None,
        says: &[
            "four maps",
            "aligned: yes",
            "all given back: yes",
            "the limit is std::bad_alloc",
            "the parser kept its buffer: yes",
            "refused: object cache: the constructor failed",
            "done",
        ],
    },
    Example {
        compiler: "cc",
        standard: "-std=c11",
        source: "examples/c/ids.c",
        needs: None,
        says: &[
            "descriptors 0, 1 and 10",
            "busy: identifier 10 is taken",
            "foreign: identifier 0 is not allocated",
            "again 0",
            "pid 300 came back after 100 others",
            "101 processes, 32367 numbers left",
            "busy: the range is not ended: 101 identifiers are allocated",
            "a late answer: handle 0x",
            "the request of now",
            "done",
        ],
    },
    Example {
        compiler: "c++",
        standard: "-std=c++17",
        source: "examples/cpp/ids.cpp",
        needs: None,
        says: &[
            "one owner each: yes, 0 left allocated",
            "the first session",
            "the old handle: stale",
            "another in its slot",
            "refused: all 2 identifiers are allocated",
            "done",
        ],
    },
    Example {
        compiler: "cc",
        standard: "-std=c11",
        source: "examples/c/blocks.c",
        needs: None,
        says: &[
            "8890 bytes, few writes",
            "the last is line 999",
            "LINE 0 of 4096 bytes",
            "again: not a handle of this kind",
            "a full disk: block cache: writing block 0 of file 1:",
            "1 block in memory, rule adaptive",
            "the disk is closed",
            "done",
        ],
    },
    Example {
        compiler: "c++",
        standard: "-std=c++17",
        source: "examples/cpp/blocks.cpp",
        needs: None,
        says: &[
            "each block was counted 200 times: yes",
            "the file ends where it was said: yes",
            "refused: block cache:",
            "done",
        ],
    },
    Example {
        compiler: "cc",
        standard: "-std=c11",
        source: "examples/c/sqlite.c",
        needs: Some("sqlite3"),
        says: &[
            "100000 rows, all of them there",
            "within 1048576 bytes: yes, pages left: yes",
            "again: larder's page cache is installed already",
            "all given back: yes",
            "done",
        ],
    },
];

/// Those that can be compiled here. A line on stderr says which cannot.
fn examples() -> impl Iterator<Item = &'static Example> {
    EXAMPLES.iter().filter(|example| {
        let Some(library) = example.needs else {
            return has(example.compiler);
        };
        let header = format!("{library}.h");
        let there = Command::new(example.compiler)
            .args(["-E", "-x", "c", "-include", &header, "/dev/null"])
            .output()
            .is_ok_and(|output| output.status.success());
        if !there {
            eprintln!("skipped: {} has no {header}", example.compiler);
        }
        there
    })
}

fn compile(example: &Example, dir: &Path, name: &str, words: &[&str]) -> PathBuf {
    let out = dir.join(name);
    must(
        Command::new(example.compiler)
            .args([
                example.standard,
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
            ])
            .arg("-I")
            .arg(Path::new(ROOT).join("include"))
            .arg(Path::new(ROOT).join(example.source))
            .arg("-o")
            .arg(&out)
            .args(words)
            .args(example.needs.map(|library| format!("-l{library}"))),
    );
    out
}

/// `sh` knows no `--version` everywhere.
fn starts_a_shell() -> bool {
    let there = Command::new("sh")
        .args(["-c", ":"])
        .status()
        .is_ok_and(|s| s.success());
    if !there {
        eprintln!("skipped: there is no sh");
    }
    there
}

fn check(example: &Example, said: &str) {
    for line in example.says {
        assert!(said.contains(line), "'{line}' is missing in: {said}");
    }
}

#[test]
fn they_run_with_the_static_library() {
    let archive = library("a");
    let dir = tempfile::tempdir().unwrap();
    for example in examples() {
        let mut words = vec![archive.to_str().unwrap()];
        words.extend(SYSTEM);
        let program = compile(example, dir.path(), "static", &words);
        check(example, &must(&mut Command::new(&program)));
        // Locked, as on a machine without restartable sequences.
        let locked = must(Command::new(&program).env("LARDER_MODE", "locked"));
        check(example, &locked);
        if has("valgrind") {
            let said = must(
                Command::new("valgrind")
                    .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
                    .args(["--errors-for-leak-kinds=definite", "--fair-sched=yes"])
                    .arg(&program),
            );
            check(example, &said);
        }
    }
}

#[test]
fn they_run_under_address_sanitizer() {
    let archive = library("a");
    let dir = tempfile::tempdir().unwrap();
    for example in examples() {
        let mut words = vec!["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        words.push(archive.to_str().unwrap());
        words.extend(SYSTEM);
        let probe = dir.path().join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
        let sanitizer = Command::new(example.compiler)
            .args(["-fsanitize=address,undefined", "-x", "c", "-o"])
            .arg(dir.path().join("probe"))
            .arg(&probe)
            .output()
            .is_ok_and(|o| o.status.success());
        if !sanitizer {
            eprintln!("skipped: {} has no AddressSanitizer", example.compiler);
            continue;
        }
        let program = compile(example, dir.path(), "asan", &words);
        // A leak of the library's or the example's is an error as well.
        let said = must(Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=1"));
        check(example, &said);
    }
}

#[test]
fn what_the_guide_shows_compiles() {
    if !has("cc") {
        return;
    }
    let guide = std::fs::read_to_string(Path::new(ROOT).join("../../docs/c-api.md")).unwrap();
    let blocks: Vec<&str> = guide
        .split("```c\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(block, _)| block))
        .collect();
    assert!(!blocks.is_empty(), "the guide shows no C");
    let dir = tempfile::tempdir().unwrap();
    for block in blocks {
        let file = dir.path().join("guide.c");
        std::fs::write(&file, block).unwrap();
        must(
            Command::new("cc")
                .args([
                    "-std=c11",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pedantic",
                    "-fsyntax-only",
                ])
                .arg("-I")
                .arg(Path::new(ROOT).join("include"))
                .arg(&file),
        );
    }
}

#[test]
fn the_script_installs_what_pkg_config_finds() {
    if !(has("cc") && has("pkg-config") && starts_a_shell()) {
        return;
    }
    let shared = library("so");
    let dir = tempfile::tempdir().unwrap();
    must(
        Command::new("sh")
            .arg(Path::new(ROOT).join("install.sh"))
            .arg("--from")
            .arg(shared.parent().unwrap())
            .arg("--prefix")
            .arg(dir.path()),
    );
    let pkg = |words: &[&str]| {
        must(
            Command::new("pkg-config")
                .args(words)
                .arg("larder")
                .env("PKG_CONFIG_PATH", dir.path().join("lib/pkgconfig")),
        )
    };
    assert_eq!(pkg(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));
    let flags = pkg(&["--cflags", "--libs"]);
    let words: Vec<&str> = flags.split_whitespace().collect();
    let mut program = PathBuf::new();
    for example in examples() {
        program = compile(example, dir.path(), "shared", &words);
        let said = must(Command::new(&program).env("LD_LIBRARY_PATH", dir.path().join("lib")));
        check(example, &said);
    }
    // The name that the loader looks for is the library's, not this package's.
    let needed =
        String::from_utf8_lossy(&std::fs::read(&program).unwrap()).contains("liblarder.so.0");
    assert!(needed, "the program does not ask for liblarder.so.0");
    // Linked statically, as the documentation says, it needs no library where it runs.
    let flags = pkg(&["--static", "--cflags", "--libs"]);
    let words: Vec<&str> = flags
        .split_whitespace()
        .map(|word| {
            if word == "-llarder" {
                "-l:liblarder.a"
            } else {
                word
            }
        })
        .collect();
    assert!(words.contains(&"-l:liblarder.a"), "{flags}");
    let program = compile(&EXAMPLES[0], dir.path(), "whole", &words);
    check(&EXAMPLES[0], &must(&mut Command::new(&program)));
}

/// A folder with what is built of this package, and of no other.
fn built() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for ending in ["so", "a"] {
        let file = library(ending);
        let name = dir.path().join(file.file_name().unwrap());
        std::os::unix::fs::symlink(&file, name).unwrap();
    }
    dir
}

/// Installs from a folder into a stage; returns what was said.
fn stage_from(built: &Path, stage: &Path) -> String {
    must(
        Command::new("sh")
            .arg(Path::new(ROOT).join("install.sh"))
            .arg("--from")
            .arg(built)
            .args(["--prefix", "/opt/larder"])
            .env("DESTDIR", stage),
    )
}

#[test]
fn a_package_is_staged_under_destdir_and_names_the_final_prefix() {
    if !starts_a_shell() {
        return;
    }
    let built = built();
    let stage = tempfile::tempdir().unwrap();
    stage_from(built.path(), stage.path());
    let root = stage.path().join("opt/larder");
    for file in [
        "include/larder.h",
        "lib/liblarder.a",
        "lib/liblarder.so",
        "lib/liblarder.so.0",
    ] {
        assert!(root.join(file).exists(), "{file}");
    }
    let pc = std::fs::read_to_string(root.join("lib/pkgconfig/larder.pc")).unwrap();
    assert!(
        pc.starts_with("prefix=/opt/larder\n") && !pc.contains('@'),
        "{pc}"
    );
}

/// What is preloaded is of other packages, so it may be missing; what it is does not matter to the script.
#[test]
fn what_is_preloaded_is_installed_where_it_is_built() {
    if !starts_a_shell() {
        return;
    }
    let built = built();
    let stage = tempfile::tempdir().unwrap();
    for (package, name) in [
        ("larder-malloc", "liblarder_malloc.so"),
        ("larder-malloc-debug", "liblarder_malloc_debug.so"),
        ("larder-sqlite-preload", "liblarder_sqlite_preload.so"),
    ] {
        let installed = stage.path().join("opt/larder/lib").join(name);
        let said = stage_from(built.path(), stage.path());
        let how = format!("it is built with: cargo build --release -p {package}\n");
        assert!(said.contains(&how) && !installed.exists(), "{said}");
        std::fs::write(built.path().join(name), "a library").unwrap();
        let said = stage_from(built.path(), stage.path());
        assert!(!said.contains(name), "{said}");
        assert_eq!(std::fs::read_to_string(&installed).unwrap(), "a library");
    }
}

#[test]
fn the_shared_library_exports_its_functions_and_nothing_else() {
    if !has("nm") {
        return;
    }
    let shared = library("so");
    let listed = must(
        Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(&shared),
    );
    let names: Vec<&str> = listed.lines().filter_map(|l| l.split(' ').next()).collect();
    assert!(names.contains(&"larder_pool_get"), "{names:?}");
    let others: Vec<_> = names.iter().filter(|n| !n.starts_with("larder_")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// The kernel reads the addresses of its restartable sequences, and helper threads run in it.
#[test]
fn the_shared_library_stays_when_a_program_closes_it() {
    if !has("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("close.c"), dir.path().join("close"));
    let text = "
        #include <dlfcn.h>
        int main(int argc, char **argv) {
          void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
          if (!library || dlclose(library)) return 1;
          return dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) ? 0 : 2;
        }
    ";
    std::fs::write(&source, text).unwrap();
    must(
        Command::new("cc")
            .arg(&source)
            .args(["-ldl", "-o"])
            .arg(&program),
    );
    must(Command::new(&program).arg(library("so")));
}
