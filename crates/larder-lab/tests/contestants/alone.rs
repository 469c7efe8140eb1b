//! A test in a process of its own: what other tests take and give back would be counted with it.

use std::process::Command;

/// Tells the process that it runs one test alone.
const ALONE: &str = "LARDER_TEST_ALONE";

/// Runs `body` in a process of its own: this program again, with the one test that calls this. `test` is its name without
/// the program's, as `--list` prints it.
#[track_caller]
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{test} alone ended with {}\n{said}\n{errors}",
        output.status
    );
    print!("{said}");
}
