//! `run`: another program on larder's malloc, and what it allocated.

mod names;
mod profile;
mod said;
mod sqlite;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::{Args, ValueEnum};
use larder::heap::debug::Options;
use larder::internal::heap::{cache_bytes, decay_time, reaper_interval};
use larder::settings::Settings;
use serde_json::json;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output;
use super::output::print_json;
use crate::preload::larder::{MALLOC, MALLOC_DEBUG};
use profile::{Alive, Files};
use said::Said;
use sqlite::{PageCache, Pages, Preloaded};

/// Run a program on larder's malloc, and say what it allocated.
#[derive(Debug, Args)]
#[command(after_help = "\
The program runs as it would without larder, and larder exits with its exit code, or with 128 + n where signal n ended it. \
After its end larder prints on standard error, or into --out, what the program allocated. A program that is linked statically \
or runs with another user's rights loads no library; one that ends by a signal or by _exit reports nothing.

--heap-profile and --leaks sample allocations, one for each 2 MiB or so, with the stack of the call. The programs measured \
took 0.5 to 1.4 % more instructions. All numbers are estimates; what an estimate says of a few samples is rough.

--debug records every block, puts guard bytes around it and checks them. On a misuse (a write outside of a block or into a \
freed one, a double free, a free of a wrong pointer, a wrong size, alignment or function) the library prints the stacks of \
the allocation and of the free, and aborts the program: exit code 134. `leaks` lists the blocks that nothing points to at \
the end; `fail=N` makes every N-th allocation fail. docs/malloc.md has all options.

--sqlite also gives libsqlite3.so larder's page cache (docs/sqlite.md), and says what it did. SQLite that is linked into the \
program keeps its own.

Examples:
  larder run -- python3 script.py
  larder run --stats --mode per-cpu -- make -j8
  larder run --json --out stats.json -- ./server
  larder run --reap 10 -- ./server
  larder run --settings larder.toml -- ./server
  larder run --guard-samples -- ./server
  larder run --debug on,leaks=3 -- ./test
  larder run --debug guard=100,keep-going -- ./server
  larder run --heap-profile heap.pb.gz -- ./server && go tool pprof -http=: heap.pb.gz
  larder run --leaks -- ./test
  larder run --sqlite=s3-fifo,256M -- sqlite3 big.db

Exit codes of larder's own: 2 wrong usage, 4 the library or the program is missing, 5 a file cannot be written.")]
pub(super) struct Run {
    /// Where the magazines are: one set for each thread, for each CPU, or for each CPU under a lock [default: the library's].
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<Mode>,
    /// Check every block, by words with commas between them: on, redzone=BYTES, quarantine=BYTES, no-fill, frames=N, guard,
    /// guard=N, no-families, leaks, leaks=CODE, fail=N, fail-chance=N, fail-after=N, seed=N, keep-going.
    #[arg(long, value_name = "OPTIONS", value_parser = debug_options)]
    debug: Option<String>,
    /// Start a thread that returns unused memory to the system every SECONDS seconds, 0.01 to 86400. Memory counts as unused
    /// after two such passes, and not before the time of --decay.
    #[arg(long, value_name = "SECONDS", value_parser = reap_seconds)]
    reap: Option<String>,
    /// Keep free memory for so many milliseconds, up to 86400000; 0 returns it at once, `never` keeps it [default: 1000].
    #[arg(long, value_name = "MS", value_parser = decay_ms)]
    decay: Option<String>,
    /// Keep at most so many bytes of free memory beside as much as is in use; K, M or G may follow [default: 64M, more where
    /// memory that was returned is needed again soon].
    #[arg(long, value_name = "BYTES", value_parser = cached)]
    cache: Option<String>,
    /// Take what is set neither here nor in the environment from this file of `larder settings`. The program gets it as
    /// LARDER_SETTINGS, which its page pools read, and SQLite's page cache.
    #[arg(long, env = "LARDER_SETTINGS", value_name = "FILE")]
    settings: Option<PathBuf>,
    /// End the program on overflows and on writes to freed blocks, too, when the block is freed; a pair of malloc and free takes
    /// ten times the instructions.
    #[arg(long, conflicts_with_all = ["debug", "mode", "heap_profile", "leaks"])]
    hardened: bool,
    /// Place a few random blocks between inaccessible pages: one for each BYTES, 1 to 1 GiB [default: 2097152]. A misuse of one
    /// is reported with its stacks.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "on",
        value_parser = guard_bytes, conflicts_with_all = ["debug", "hardened"])]
    guard_samples: Option<String>,
    /// Write a profile of the heap here, for `go tool pprof` and others: which stacks allocated how much, and what of it lived at the
    /// end. Other processes that the program started have their number behind the name.
    #[arg(long, value_name = "FILE.pb.gz", conflicts_with = "debug")]
    heap_profile: Option<PathBuf>,
    /// List the stacks that allocated most of what lived at the end, by the same samples.
    #[arg(long, conflicts_with = "debug")]
    leaks: bool,
    /// Mean bytes between samples, 1 to 1 GiB [default: 2097152].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    heap_profile_interval: Option<u32>,
    /// Also preload SQLite's page cache, with a replacement rule [default: adaptive], a budget of all connections in bytes, where K, M
    /// or G may follow [default: none], or both.
    #[arg(long, value_name = "RULE,BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    sqlite: Option<PageCache>,
    /// Also print the size classes.
    #[arg(long)]
    stats: bool,
    /// The library to preload [default: liblarder_malloc.so, or with --debug liblarder_malloc_debug.so, beside this program, where
    /// `cargo` builds it at need, or in ../lib from there].
    #[arg(long, env = "LARDER_MALLOC", value_name = "FILE")]
    library: Option<PathBuf>,
    /// Write the report here instead of to standard error.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    program: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    PerThread,
    PerCpu,
    Locked,
}

impl Mode {
    /// As the library's environment variable wants it.
    fn name(self) -> &'static str {
        match self {
            Self::PerThread => "per-thread",
            Self::PerCpu => "per-cpu",
            Self::Locked => "locked",
        }
    }
}

pub(super) fn run(global: &Global, args: &Run, out: &mut dyn Write) -> Outcome {
    let hint = &mut |line: &str| output::hint(global, line);
    let library = match args.debug {
        None => MALLOC,
        Some(_) => MALLOC_DEBUG,
    };
    let library = library
        .find_or_build(args.library.as_deref(), hint)
        .map_err(Failure::refused)?;
    let settings = args.settings.as_deref().map(Settings::read);
    let settings = settings.transpose().map_err(Failure::io)?;
    let page_cache = args.sqlite.as_ref().map(|asked| {
        let measured = settings.as_ref().map(Settings::cache);
        asked.find(measured, hint)
    });
    let page_cache = page_cache.transpose()?;
    let [program, words @ ..] = args.program.as_slice() else {
        return Err(Failure::usage("name the program to run"));
    };
    let lines = Lines::new()?;
    // A Ctrl-C is the program's; larder stays to say what it allocated.
    let _ = ctrlc::set_handler(|| {});
    let mut command = Command::new(program);
    command
        .args(words)
        .env("LD_PRELOAD", preload(library, page_cache.as_ref()))
        .env("LARDER_MALLOC_STATS", &lines.0);
    if let Some((file, settings)) = args.settings.as_ref().zip(settings.as_ref()) {
        let unset = |name: &&'static str| std::env::var_os(name).is_none();
        let words = settings.malloc().environment().into_iter();
        command.envs(words.filter(|(name, _)| unset(name)));
        command.env("LARDER_SETTINGS", file);
    }
    if args.hardened {
        command.env("LARDER_HARDENED", "on");
    }
    if let Some(bytes) = &args.guard_samples {
        command.env("LARDER_GUARD_SAMPLES", bytes);
    }
    if let Some(mode) = args.mode {
        command.env("LARDER_MALLOC_MODE", mode.name());
    }
    if let Some(seconds) = &args.reap {
        command.env("LARDER_MALLOC_REAPER", seconds);
    }
    if let Some(ms) = &args.decay {
        command.env("LARDER_MALLOC_DECAY", ms);
    }
    if let Some(bytes) = &args.cache {
        command.env("LARDER_MALLOC_CACHE", bytes);
    }
    if let Some(options) = &args.debug {
        command.env("LARDER_MALLOC_DEBUG", options);
    }
    let files = match args.heap_profile.is_some() || args.leaks {
        true => Some(Files::new()?),
        false => None,
    };
    if let Some(files) = &files {
        command.env("LARDER_HEAP_PROFILE", files.pattern());
        if let Some(bytes) = args.heap_profile_interval {
            command.env("LARDER_HEAP_PROFILE_INTERVAL", bytes.to_string());
        }
    }
    if let Some(page_cache) = &page_cache {
        page_cache.environment(&mut command);
    }
    out.flush()?;
    let mut child = command.spawn().map_err(|e| {
        Failure::refused(format!(
            "{} cannot be run: {e}",
            Path::new(program).display()
        ))
    })?;
    let pid = child.id();
    let status = child
        .wait()
        .map_err(|e| Failure::io(format!("the program's end cannot be waited for: {e}")))?;
    let said = Said::read(&lines.read()?, pid);
    // Before the end of this process, which runs no destructors.
    drop(lines);
    let alive = files.map(|files| {
        if let Some(path) = &args.heap_profile {
            files.save(path, pid)?;
        }
        args.leaks.then(|| files.alive(pid)).transpose()
    });
    let alive = alive.transpose()?.flatten();
    let pages = page_cache.map(Preloaded::said).transpose()?;
    tell(
        global,
        args,
        (&said, alive.as_ref(), pages.as_ref()),
        status,
    )?;
    match code(status) {
        0 => Ok(()),
        // The program's own code, whatever it means: the commands' failures have no such thing.
        code => std::process::exit(code),
    }
}

/// Words that the library would ignore are refused here.
fn debug_options(text: &str) -> Result<String, String> {
    let mut first = None;
    let options = Options::read(text, &mut |bad| {
        first.get_or_insert_with(|| bad.to_string());
    });
    match first {
        Some(bad) => Err(bad),
        None if options.is_none() && !text.split(',').any(|w| matches!(w.trim(), "off" | "0")) => {
            Err("say `on`, or what to check".to_owned())
        }
        None => Ok(text.to_owned()),
    }
}

/// What the library would ignore is refused here.
fn reap_seconds(text: &str) -> Result<String, String> {
    said(
        text,
        reaper_interval,
        "a number of seconds from 0.01 to 86400",
    )
}

fn decay_ms(text: &str) -> Result<String, String> {
    said(
        text,
        decay_time,
        "a number of milliseconds up to 86400000, or `never`",
    )
}

fn cached(text: &str) -> Result<String, String> {
    said(text, cache_bytes, "a number of bytes; K, M or G may follow")
}

fn guard_bytes(text: &str) -> Result<String, String> {
    let read = |text: &str| match text {
        "on" => Some(0),
        number => number
            .parse()
            .ok()
            .filter(|n| (1..=1_u32 << 30).contains(n)),
    };
    said(
        text,
        read,
        "a number of bytes from 1 to 1073741824, or nothing",
    )
}

fn said<T>(text: &str, read: fn(&str) -> Option<T>, wanted: &str) -> Result<String, String> {
    match read(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("say {wanted}")),
    }
}

/// The libraries before whatever is preloaded already.
fn preload(malloc: PathBuf, page_cache: Option<&Preloaded>) -> OsString {
    let mut all = malloc.into_os_string();
    if let Some(page_cache) = page_cache {
        all.push(":");
        all.push(page_cache.library());
    }
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|o| !o.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// What a shell would say.
pub(super) fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}

fn tell(
    global: &Global,
    args: &Run,
    (said, alive, pages): (&Said, Option<&Alive>, Option<&Pages>),
    status: ExitStatus,
) -> Outcome {
    let mut text = Vec::new();
    if global.json {
        let json = json!({
            "schema": 1,
            "program": args.program.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>(),
            "exit_code": status.code(),
            "signal": status.signal(),
            "allocated": said.own,
            "others": said.others,
            "alive": alive,
            "sqlite": pages,
        });
        print_json(&mut text, &json)?;
    } else {
        said.print(args.stats, &mut text)?;
        if let Some(alive) = alive {
            alive.print(&mut text)?;
        }
        if let Some(pages) = pages {
            pages.print(&mut text)?;
        }
    }
    match &args.out {
        Some(path) => output::write_file(path, &String::from_utf8_lossy(&text)),
        None => {
            // Stderr may be closed, and the program has done its work.
            let _ = io::stderr().write_all(&text);
            Ok(())
        }
    }
}

/// The file into which each process writes its line; gone at the end.
struct Lines(PathBuf);

impl Lines {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir();
        let fail = |e| {
            Failure::io(format!(
                "{} cannot be written: {e}; TMPDIR names another folder",
                folder.display()
            ))
        };
        for turn in 0..100_u32 {
            let path = folder.join(format!("larder-run-{}-{turn}", std::process::id()));
            // A new file: neither an existing one nor the target of a link.
            match std::fs::File::create_new(&path) {
                Ok(_) => return Ok(Self(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(fail(e)),
            }
        }
        Err(fail(io::ErrorKind::AlreadyExists.into()))
    }

    fn read(&self) -> Result<String, Failure> {
        // A program may have written anything there.
        std::fs::read(&self.0)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|e| Failure::io(format!("{} cannot be read: {e}", self.0.display())))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
