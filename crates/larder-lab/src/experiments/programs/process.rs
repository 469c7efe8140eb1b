//! A program's work: commands started one after the other and waited for, and what they cost and wrote.

use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use sha2::{Digest, Sha256};

use crate::experiments::scratch::{Scratch, which};
use crate::model::Measures;

/// Wall time.
pub(super) const SECONDS: &str = "seconds";
/// User and system time.
pub(super) const CPU: &str = "cpu_seconds";
/// Largest resident set.
pub(super) const PEAK: &str = "peak_bytes";
/// Faults.
pub(super) const FAULTS: &str = "faults";
/// What a program wrote, as a number.
pub const OUTPUT: &str = "output";

/// The file that has what the last command wrote.
pub(super) const SAID: &str = "larder-stdout";

/// A real program and its work.
#[derive(Debug)]
pub(super) struct Program {
    /// Name of its group.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) about: &'static str,
    /// Executables without which it is skipped.
    pub(super) tools: &'static [&'static str],
    /// What else it needs and does not find.
    pub(super) lacks: fn() -> Option<String>,
    /// How much it does for some tenths of a second: enough that its start weighs little.
    pub(super) scale: i64,
    /// Whether it takes part in the quick form.
    pub(super) quick: bool,
    /// Does it, on this malloc.
    pub(super) run: fn(&Shop, &Malloc) -> anyhow::Result<Measures>,
}

impl Program {
    /// Why it cannot run here.
    pub(super) fn missing(&self) -> Option<String> {
        let tools = self.tools.iter().copied();
        let missing: Vec<_> = tools.filter(|tool| which(tool).is_none()).collect();
        match missing.as_slice() {
            [] => (self.lacks)(),
            [one] => Some(format!("{one} is not installed")),
            several => Some(format!("{} are not installed", several.join(" and "))),
        }
    }
}

/// Where a program works: a folder with its input and its output, and how much it has to do.
#[derive(Debug)]
pub(super) struct Shop {
    scratch: Scratch,
    /// How much the program has to do; 1 is least.
    pub(super) scale: usize,
}

impl Shop {
    /// An empty one.
    ///
    /// # Errors
    /// Nothing can be written where temporary files go.
    pub(super) fn open(scale: usize) -> anyhow::Result<Self> {
        let scratch = Scratch::open("programs")?;
        Ok(Self { scratch, scale })
    }
}

impl Deref for Shop {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

/// Runs commands one after the other.
///
/// # Errors
/// One cannot be started, does not load the malloc, or fails.
pub(super) fn commands(shop: &Shop, malloc: &Malloc, steps: &[Step]) -> anyhow::Result<Measures> {
    let mut output = Output::default();
    let spent = malloc.run(shop, steps, &mut output)?;
    Ok(measures(spent, output))
}

/// Which malloc the programs get.
#[derive(Debug, Clone, Default)]
pub(super) struct Malloc(Option<PathBuf>);

/// A command of a program's work.
#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    /// The executable.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) words: Vec<String>,
    /// What stands on its standard input.
    pub(super) input: Option<PathBuf>,
    /// Variables beside those that every command gets.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Files that it writes and that must be the same with every malloc.
    pub(super) results: Vec<PathBuf>,
}

impl Step {
    /// A command without input.
    pub(super) fn new(program: PathBuf, words: &[&str]) -> Self {
        Self {
            program,
            words: words.iter().map(|w| (*w).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// With a file on its standard input.
    pub(super) fn reads(mut self, file: PathBuf) -> Self {
        self.input = Some(file);
        self
    }

    /// With a variable.
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// With a file that must be the same with every malloc.
    pub(super) fn makes(mut self, file: PathBuf) -> Self {
        self.results.push(file);
        self
    }
}

/// What commands cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spent {
    /// Wall seconds.
    pub(super) seconds: f64,
    /// User and system seconds.
    pub(super) cpu: f64,
    /// Largest resident set, bytes.
    pub(super) peak: f64,
    /// Faults, minor and major.
    pub(super) faults: f64,
}

impl Spent {
    /// The one after the other.
    pub(super) fn then(self, other: Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            cpu: self.cpu + other.cpu,
            peak: self.peak.max(other.peak),
            faults: self.faults + other.faults,
        }
    }
}

/// Everything that a program wrote, as a number.
#[derive(Debug, Default)]
pub(super) struct Output(Sha256);

impl Output {
    /// Adds bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a file, piece by piece: this process is to stay small.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn add_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let mut file =
            File::open(path).with_context(|| format!("{} was not written", path.display()))?;
        let mut piece = [0; 16 << 10];
        let mut all = 0_u64;
        loop {
            let n = file.read(&mut piece)?;
            if n == 0 {
                break;
            }
            self.0.update(&piece[..n]);
            all += n as u64;
        }
        self.0.update(all.to_le_bytes());
        Ok(())
    }

    /// 52 bits of it, which a measure can hold. Never 0.
    pub(super) fn number(self) -> f64 {
        let digest = self.0.finalize();
        let bits = digest
            .iter()
            .take(8)
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        ((bits >> 12) | 1) as f64
    }
}

/// The measures of a program's work.
pub(super) fn measures(spent: Spent, output: Output) -> Measures {
    Measures::new()
        .with(SECONDS, spent.seconds)
        .with(CPU, spent.cpu)
        .with(PEAK, spent.peak)
        .with(FAULTS, spent.faults)
        .with(OUTPUT, output.number())
}

impl Malloc {
    /// That of this file, loaded before the C library.
    pub(super) fn preloaded(path: &str) -> Self {
        Self(Some(path.into()))
    }

    /// A command on this malloc, in the shop, with an environment in which its output is always the same.
    pub(super) fn command(&self, shop: &Shop, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(shop.folder())
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("HOME", shop.folder())
            .env("TMPDIR", shop.folder())
            .stdin(Stdio::null());
        match &self.0 {
            Some(library) => command.env("LD_PRELOAD", library),
            None => command.env_remove("LD_PRELOAD"),
        };
        command
    }

    /// Makes sure that a program loads the library: the dynamic linker goes on without what it cannot load.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn check(&self, shop: &Shop, program: &Path) -> anyhow::Result<()> {
        let Some(library) = &self.0 else {
            return Ok(());
        };
        // ld.so(8): lists what it loads, and does not run the program.
        let listed = self
            .command(shop, program)
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .output()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        let text = String::from_utf8_lossy(&listed.stdout);
        ensure!(
            text.lines()
                .any(|line| line.contains(&*library.to_string_lossy()) && line.contains("(0x")),
            "{} was not loaded into {}: {}",
            library.display(),
            program.display(),
            String::from_utf8_lossy(&listed.stderr)
                .lines()
                .next()
                .unwrap_or("it may be linked statically")
        );
        Ok(())
    }

    /// Runs the steps one after the other and adds what they wrote to `output`.
    ///
    /// # Errors
    /// One cannot be started, does not load the malloc, or fails.
    pub(super) fn run(
        &self,
        shop: &Shop,
        steps: &[Step],
        output: &mut Output,
    ) -> anyhow::Result<Spent> {
        for step in steps {
            self.check(shop, &step.program)?;
        }
        let mut spent = Spent::default();
        for step in steps {
            spent = spent.then(self.step(shop, step, output)?);
        }
        Ok(spent)
    }

    fn step(&self, shop: &Shop, step: &Step, output: &mut Output) -> anyhow::Result<Spent> {
        let (said, complained) = (shop.path(SAID), shop.path("larder-stderr"));
        let mut command = self.command(shop, &step.program);
        command
            .args(&step.words)
            .envs(step.variables.iter().map(|(name, value)| (name, value)))
            // A pipe would have to be read meanwhile, on a CPU that may be the program's.
            .stdout(File::create(&said)?)
            .stderr(File::create(&complained)?);
        if let Some(input) = &step.input {
            let file =
                File::open(input).with_context(|| format!("{} cannot be read", input.display()))?;
            command.stdin(file);
        }
        let begin = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("{} cannot be run", step.program.display()))?;
        let (status, mut spent) = wait(child)?;
        spent.seconds = begin.elapsed().as_secs_f64();
        if !status.success() {
            let text = std::fs::read(&complained).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let last = text.lines().rfind(|l| !l.trim().is_empty());
            bail!(
                "{} ended with {status}: {}",
                step.program.display(),
                last.unwrap_or("it said nothing")
            );
        }
        output.add_file(&said)?;
        for file in &step.results {
            output.add_file(file)?;
        }
        Ok(spent)
    }
}

/// Waits for a child; what it and its children cost is what the kernel says, but for the wall time.
///
/// # Errors
/// It cannot be waited for.
pub(super) fn wait(child: Child) -> anyhow::Result<(ExitStatus, Spent)> {
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live variables; the child is ours and has not been waited for.
        let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if got == pid {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("the program's end cannot be waited for");
        }
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let spent = Spent {
        seconds: 0.0,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak: usage.ru_maxrss as f64 * 1024.0,
        faults: (usage.ru_minflt + usage.ru_majflt) as f64,
    };
    Ok((ExitStatus::from_raw(status), spent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::scratch::tool;

    fn ran(words: &[&str]) -> anyhow::Result<(Spent, f64)> {
        let shop = Shop::open(1)?;
        let step = Step::new(tool("sh")?, words);
        let mut output = Output::default();
        let spent = Malloc::default().run(&shop, &[step], &mut output)?;
        Ok((spent, output.number()))
    }

    #[test]
    fn equal_words_are_equal_numbers_and_others_are_not() {
        let (spent, one) = ran(&["-c", "echo one"]).expect("runs");
        assert!(spent.seconds > 0.0 && spent.peak > 0.0 && spent.faults > 0.0);
        assert_eq!(ran(&["-c", "echo one; echo two >&2"]).expect("runs").1, one);
        assert_ne!(ran(&["-c", "echo two"]).expect("runs").1, one);
        assert!(one.fract() == 0.0 && one < 2_f64.powi(52));
    }

    #[test]
    fn a_result_belongs_to_what_was_written() {
        let shop = Shop::open(1).expect("room");
        let number = |text: &str| {
            let file = shop.path("result");
            let script = format!("printf {text} > result");
            let step = Step::new(tool("sh").expect("sh"), &["-c", &script]).makes(file);
            let mut output = Output::default();
            Malloc::default()
                .run(&shop, &[step], &mut output)
                .map(|_| output.number())
        };
        assert_eq!(number("a").expect("runs"), number("a").expect("runs"));
        assert_ne!(number("a").expect("runs"), number("b").expect("runs"));
    }

    #[test]
    fn a_program_that_fails_is_an_error_with_its_last_words() {
        let error = ran(&["-c", "echo no room >&2; exit 3"]).expect_err("fails");
        assert!(error.to_string().contains("no room"), "{error}");
        let error = ran(&["-c", "kill -9 $$"]).expect_err("killed");
        assert!(error.to_string().contains("signal: 9"), "{error}");
        let shop = Shop::open(1).expect("room");
        let step = Step::new("/no/such/program".into(), &[]);
        assert!(
            Malloc::default()
                .run(&shop, &[step], &mut Output::default())
                .is_err()
        );
    }

    #[test]
    fn a_malloc_that_is_not_loaded_is_an_error() {
        let shop = Shop::open(1).expect("room");
        let file = shop.write("libnothing.so", "no library").expect("written");
        let malloc = Malloc::preloaded(&file.to_string_lossy());
        let step = Step::new(tool("sh").expect("sh"), &["-c", "echo one"]);
        let error = malloc
            .run(&shop, &[step], &mut Output::default())
            .expect_err("not loaded");
        assert!(error.to_string().contains("was not loaded"), "{error}");
    }
}
