//! Tests that need a process of their own: the program of tests runs itself again, with one test and a role for it.

use std::panic::Location;
use std::process::{Command, Output};

/// Environment variable that tells a program of tests that runs again what to do.
const ROLE: &str = "LARDER_TEST_ROLE";

/// Runs one test of this program again in a process of its own. The test is one of the file that calls this.
#[track_caller]
pub(crate) fn command(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .arg(path_of(test, Location::caller().file()))
        .args([
            "--exact",
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, role);
    command
}

/// The name of a test with its modules, as the harness knows it: `tests/ids/layers/guard.rs` is `layers::guard`.
fn path_of(test: &str, file: &str) -> String {
    let (_, inside) = file.rsplit_once("/tests/").unwrap();
    let modules = inside.trim_end_matches(".rs").split('/').skip(1);
    let modules = modules.filter(|&module| module != "main" && module != "mod");
    modules.chain([test]).collect::<Vec<_>>().join("::")
}

/// The same process under a tool: `valgrind`, or a shell that sets a limit.
pub(crate) fn under(tool: &str, arguments: &[&str], child: &Command) -> Command {
    let mut command = Command::new(tool);
    command
        .args(arguments)
        .arg(child.get_program())
        .args(child.get_args());
    for (name, value) in child.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// What this process was re-executed for, if it was.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs a test again in a process of its own and checks that it passes there.
#[track_caller]
pub(crate) fn run(test: &str, role: &str) -> String {
    check(&mut command(test, role))
}

/// Runs a test by its [`command`] to the end, however it ends. There must be such a test.
pub(crate) fn ended(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("running 1 test"),
        "{command:?} runs no test: {output:?}"
    );
    output
}

/// Runs a test by its [`command`], which must pass; returns what it printed.
pub(crate) fn check(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = ended(command);
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(
        status.success(),
        "{command:?} ended with {status}\n{stdout}\n{stderr}"
    );
    stdout.into_owned()
}
