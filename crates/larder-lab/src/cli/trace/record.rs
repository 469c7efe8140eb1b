//! `trace record`: a command under strace, and what it read and wrote as a trace.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::Args;

use super::convert;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output;
use crate::cli::run::code;
use crate::cli::sim::args::Mapped;
use crate::cli::sim::sim_fault;
use larder_sim::{Counts, Format, Output, ReadOptions, Trace};

/// What the reader of strace's text follows.
const CALLS: &str = "trace=open,openat,openat2,creat,close,close_range,read,readv,pread64,preadv,preadv2,write,writev,pwrite64,\
pwritev,pwritev2,sendfile,copy_file_range,lseek,dup,dup2,dup3,fcntl,fstat,newfstatat,statx,mmap,fallocate,truncate,ftruncate,unlink,unlinkat,rename,renameat,renameat2,chdir,\
clone,clone3,fork,vfork,execve,execveat";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder trace record -o build.csv.zst -- make -j2
  larder trace record -o build.strace.gz -- make      keep strace's own text
  larder sim build.strace.gz --mmap none              the same without what was mapped
  larder sim build.csv.zst

A command that fails gives larder its exit code (128 + n where signal n ended it), also where no trace can be made of what it \
did. Where larder fails before the command runs, or the command succeeds and no trace can be made of it, the code is one of \
those that `larder --help` lists.")]
pub(super) struct Record {
    /// The new trace; its name says format and compression as for convert, or .strace.
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Bytes of a block.
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    block_size: u32,
    /// What a mapping counts as: strace does not show the pages that were touched.
    #[arg(long, value_enum, default_value_t = Mapped::Whole, value_name = "WHAT")]
    mmap: Mapped,
    /// The program that follows system calls.
    #[arg(long, value_name = "PROGRAM", default_value = "strace")]
    strace: PathBuf,
    /// The command.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<std::ffi::OsString>,
}

/// A file that is deleted at the end.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(super) fn run(global: &Global, args: &Record) -> Outcome {
    let (status, kept) = record(global, args)?;
    match code(status) {
        0 => kept,
        // The command's own code, whatever it means: the commands' failures have no such thing.
        code => {
            if let Err(failure) = kept {
                failure.report();
            }
            std::process::exit(code)
        }
    }
}

/// Runs the command to its end; how it ended, and whether a trace of it is there.
fn record(global: &Global, args: &Record) -> Result<(ExitStatus, Outcome), Failure> {
    let name = args
        .out
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let keep_text = name.split('.').skip(1).any(|p| p == "strace");
    let to = if keep_text {
        Format::Strace
    } else {
        convert::target(None, &args.out)?
    };
    let mut text = args.out.as_os_str().to_owned();
    text.push(format!(".{}.calls", std::process::id()));
    let text = Temporary(PathBuf::from(text));
    // Before the command runs for an hour: can something be written there?
    std::fs::File::create(&text.0)
        .map_err(|e| Failure::io(format!("{} cannot be written: {e}", text.0.display())))?;
    let mut strace = Command::new(&args.strace);
    // -y says what each descriptor is; -s 1 keeps data out of the text (paths are printed whole).
    strace.args([
        "-f",
        "-y",
        "-qq",
        "-ttt",
        "-s",
        "1",
        "-e",
        "signal=none",
        "-e",
        CALLS,
        "-o",
    ]);
    strace.arg(&text.0).arg("--").args(&args.command);
    // A Ctrl-C is the command's; larder stays to write what it did until then.
    let _ = ctrlc::set_handler(|| {});
    let status = strace.status().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::refused(format!(
            "{} is not there: install strace (Debian and Fedora: package strace), or say --strace PROGRAM",
            args.strace.display()
        )),
        _ => Failure::refused(format!("{} cannot be started: {e}", args.strace.display())),
    })?;
    if !status.success() {
        output::hint(
            global,
            &format!("the command ended with {status}; what it did until then is kept"),
        );
    }
    let kept = keep(global, args, &text.0, to).map_err(|why| rescued(&text.0, &args.out, why));
    Ok((status, kept))
}

/// A command is not always run again at will: where no trace can be made of what strace wrote, its text stays.
fn rescued(text: &Path, out: &Path, why: Failure) -> Failure {
    let mut name = out.as_os_str().to_owned();
    name.push(".strace");
    match (why, std::fs::rename(text, &name)) {
        (Failure::Because(code, why), Ok(())) => {
            let name = Path::new(&name).display();
            Failure::Because(code, format!("{why}; what strace wrote is kept in {name}"))
        }
        (why, _) => why,
    }
}

/// Makes the trace of strace's text.
fn keep(global: &Global, args: &Record, text: &Path, to: Format) -> Outcome {
    let options = ReadOptions {
        format: Some(Format::Strace),
        block_size: args.block_size,
        mapped: args.mmap == Mapped::Whole,
        ..ReadOptions::default()
    };
    let counted = |mapped| {
        let options = ReadOptions {
            mapped,
            ..options.clone()
        };
        Trace::open(text, &options).and_then(|trace| Counts::of(trace, |_| {}))
    };
    let counts = counted(options.mapped).map_err(sim_fault)?;
    if to == Format::Strace {
        copy(text, &args.out)?;
    } else {
        // The file is a part of a block's number, which 32 bits do not hold.
        let dense = matches!(
            to,
            Format::U32le | Format::U32be | Format::I32le | Format::I32be
        );
        convert::convert(global, text, &args.out, to, dense, &options)?;
    }
    output::hint(
        global,
        &format!(
            "{}: {} uses of {} blocks",
            args.out.display(),
            counts.uses,
            counts.blocks
        ),
    );
    if options.mapped {
        // Nothing but mappings: then there is no trace without them.
        let without = counted(false).map_or(0, |counts| counts.uses);
        if counts.uses > without {
            let mapped = counts.uses - without;
            output::hint(
                global,
                &format!(
                    "{mapped} of these uses are pages of mappings, touched or not; --mmap none leaves them out"
                ),
            );
        }
    }
    Ok(())
}

/// The text as it is, compressed as the new name says.
fn copy(from: &Path, to: &Path) -> Outcome {
    use std::io::Read;
    let fail = |e: std::io::Error| Failure::io(format!("{} cannot be written: {e}", to.display()));
    let mut file = std::fs::File::open(from).map_err(fail)?;
    let mut out = Output::create(to).map_err(fail)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(fail)? {
            0 => break,
            n => out.write(&buffer[..n]).map_err(fail)?,
        }
    }
    out.finish().map_err(fail)
}
