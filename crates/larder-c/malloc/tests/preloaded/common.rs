//! The library, the programs' compilation, and the modes in which they run.

// Each file of tests uses some of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Whether a program can be started here. A line on stderr says so when not.
pub(crate) fn has(program: &str) -> bool {
    let there = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: there is no {program}");
    }
    there
}

/// Runs a command that must succeed, for at most so long that only a program that hangs is ended; returns what it printed.
pub(crate) fn must(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    said
}

/// The malloc, built once for all tests of a file.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    built(&LIBRARY, "larder-malloc")
}

/// The malloc that checks.
pub(crate) fn debug_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    built(&LIBRARY, "larder-malloc-debug")
}

/// A shared object of a package. Each is built by itself: the features of what one command builds are merged.
fn built(library: &'static OnceLock<PathBuf>, package: &str) -> &'static Path {
    library.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--lib", "-p", package]);
        cargo.arg("--message-format=json-render-diagnostics");
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let output = cargo.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|m| {
                m["target"]["src_path"]
                    .as_str()
                    .is_some_and(|p| p.starts_with(ROOT))
            })
            .find_map(|m| {
                m["filenames"].as_array()?.iter().find_map(|f| {
                    let path = Path::new(f.as_str()?);
                    path.extension()
                        .is_some_and(|e| e == "so")
                        .then(|| path.to_owned())
                })
            })
            .unwrap()
    })
}

/// A compiled program of the suite.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) dir: tempfile::TempDir,
}

impl Program {
    /// `None`, with a line on stderr, where there is no compiler. A name that begins with `plugin` becomes a library.
    pub(crate) fn compile(name: &str) -> Option<Self> {
        let misuse = name.starts_with("misuse/");
        let cpp = Path::new(name).extension().is_some_and(|e| e == "cpp");
        let (compiler, standard) = if cpp {
            ("c++", "-std=c++17")
        } else {
            ("cc", "-std=c11")
        };
        if !has(compiler) {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut command = Command::new(compiler);
        command
            .args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
            // The compiler shall not know what malloc is: it would remove the calls that are tested.
            .args(["-fno-builtin", "-Wno-use-after-free", "-pthread"])
            .arg(Path::new(ROOT).join("tests/programs").join(name))
            .arg("-o")
            .arg(&path);
        if name.starts_with("plugin") {
            command.args(["-shared", "-fPIC"]);
        }
        if misuse {
            // Names for the stacks. What is wrong with the program is the point of it.
            command.args(["-rdynamic", "-w", "-fno-optimize-sibling-calls"]);
        }
        must(command.arg("-ldl"));
        Some(Self { path, dir })
    }
}

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// With the malloc of the C library: is the program right?
    System,
    /// Preloaded, magazines for each thread: the default.
    PerThread,
    /// Preloaded, magazines for each CPU.
    PerCpu,
    /// Preloaded, locked.
    Locked,
    /// Preloaded, with restartable sequences turned off in the C library.
    NoRseq,
    /// Preloaded, under valgrind, which has no restartable sequences. Its tool checks nothing: what is tested is the program.
    Valgrind,
}

impl Mode {
    pub(crate) const ALL: [Self; 6] = [
        Self::System,
        Self::PerThread,
        Self::PerCpu,
        Self::Locked,
        Self::NoRseq,
        Self::Valgrind,
    ];

    /// The program's command in this mode, with a clean environment. A program that hangs is ended: `timeout` and `env`
    /// themselves run without the library.
    pub(crate) fn command(self, program: &Path) -> Command {
        self.command_on(library(), program)
    }

    /// The same with another library.
    pub(crate) fn command_on(self, library: &Path, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "240", "env"]);
        for name in ["LARDER_MODE", "LARDER_MALLOC_MODE", "GLIBC_TUNABLES"] {
            command.args(["-u", name]);
        }
        if self != Self::System {
            command.arg(format!("LD_PRELOAD={}", library.display()));
        }
        command.args(match self {
            Self::System | Self::PerThread | Self::Valgrind => [].as_slice(),
            Self::PerCpu => &["LARDER_MALLOC_MODE=per-cpu"],
            Self::Locked => &["LARDER_MALLOC_MODE=locked"],
            Self::NoRseq => &[
                "GLIBC_TUNABLES=glibc.pthread.rseq=0",
                "LARDER_MALLOC_MODE=per-cpu",
            ],
        });
        if self == Self::Valgrind {
            command.args(["valgrind", "--tool=none", "--quiet", "--fair-sched=yes"]);
        }
        command.arg(program);
        command
    }

    /// Runs it and looks into the report: was it this malloc, and in the mode that was meant?
    pub(crate) fn run(self, command: &mut Command, program: &Program) -> String {
        let report = program.dir.path().join(format!("{self:?}.stats"));
        command.env("LARDER_MALLOC_STATS", &report);
        let said = must(command);
        if self == Self::System {
            assert!(!report.exists(), "the system's malloc writes no report");
            return said;
        }
        let text = std::fs::read_to_string(&report)
            .unwrap_or_else(|e| panic!("{self:?}: no report, so it was not preloaded: {e}"));
        let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let mode = line["mode"].as_str().unwrap();
        let meant = match self {
            Self::PerCpu if rseq() => "per-cpu",
            // Without restartable sequences there is no such mode, and the report must say so.
            Self::PerCpu | Self::Locked | Self::NoRseq => "locked",
            _ => "per-thread",
        };
        assert_eq!(mode, meant, "{self:?}");
        said
    }
}

/// Whether the C library registers threads for restartable sequences here, and larder uses them.
fn rseq() -> bool {
    matches!(larder::os::rseq::mode(), larder::os::rseq::Mode::PerCpu(_))
}
