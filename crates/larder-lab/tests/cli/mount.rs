//! Mounts: what is refused, and one from its beginning to its end. Where nothing can be mounted a test says so in a line.

use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::home::Home;

/// A mountpoint, at which nothing is mounted any more at the end, whatever happens.
struct At(PathBuf);

impl At {
    fn new(home: &Home, name: &str) -> Self {
        let path = home.path().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for At {
    fn drop(&mut self) {
        let quiet = || Stdio::null();
        let lazily = Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .stderr(quiet())
            .status();
        if !lazily.is_ok_and(|status| status.success()) {
            let _ = Command::new("fusermount3")
                .arg("-uz")
                .arg(&self.0)
                .stderr(quiet())
                .status();
        }
    }
}

/// The program, with its sockets in the home.
fn larder(home: &Home, words: &[&str]) -> (i32, String, String) {
    crate::home::finish(home.larder(words).env("XDG_RUNTIME_DIR", home.path()))
}

/// False, with a line that says why, where nothing can be mounted.
fn mounted(home: &Home, words: &[&str]) -> bool {
    let (code, out, err) = larder(home, words);
    if code == 4 && err.contains("FUSE") {
        eprintln!("skipped: {err}");
        return false;
    }
    assert_eq!((code, out.as_str()), (0, ""), "{words:?}: {err}");
    true
}

fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_cannot_be_mounted_is_refused_in_a_line() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("source/inner")).unwrap();
    fs::create_dir(home.path().join("at")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    for (words, code, part) in [
        (&["source"][..], 2, "MOUNTPOINT"),
        (&["none", "at"], 2, "source none"),
        (&["file", "at"], 2, "source file"),
        (&["source", "none"], 2, "mountpoint none"),
        (&["source", "file"], 2, "mountpoint file"),
        (&["source", "source/inner"], 2, "lie within each other"),
        (&["source/inner", "source"], 2, "lie within each other"),
        (&["source", "at", "--rule", "best"], 2, "there is no rule"),
        (
            &["source", "at", "--cache", "much"],
            2,
            "no number of bytes",
        ),
        (&["source", "at", "--cache", "4K"], 2, "at least"),
        (&["source", "at", "--dirty", "200%"], 2, "is no share"),
        (&["source", "at", "--dirty-age", "soon"], 2, "is not a time"),
        (
            &["source", "at", "--mode", "best"],
            2,
            "own, shared and bypass",
        ),
        (&["source", "at", "--coherence", "ttl=x"], 2, "exclusive"),
        (&["source", "at", "--threads", "0"], 2, "--threads"),
        (&["source", "at", "--trace", "none/x"], 5, "trace"),
    ] {
        let words = [&["mount"], words].concat();
        let (got, out, err) = larder(&home, &words);
        assert!(got == code && err.contains(part), "{words:?}: {got} {err}");
        assert!(out.is_empty(), "{words:?}: {out}");
    }
    for command in ["unmount", "sync", "drop", "mount-stats"] {
        let (code, _, err) = larder(&home, &[command, "at"]);
        assert!(
            code == 4 && err.contains("no larder mount answers"),
            "{command}: {err}"
        );
    }
    assert_eq!(own_mounts(&home), 0);
}

/// How many mounts `larder mounts` lists that are of this test: others of the same user may be there.
fn own_mounts(home: &Home) -> usize {
    let all = home_json(home, &["mounts", "--json"]);
    let is_own = |mount: &&serde_json::Value| {
        let at = mount["mountpoint"].as_str().unwrap();
        Path::new(at).starts_with(home.path())
    };
    all["mounts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_own)
        .count()
}

fn home_json(home: &Home, words: &[&str]) -> serde_json::Value {
    let (code, out, err) = larder(home, words);
    assert_eq!(code, 0, "{words:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_mount_is_written_synced_changed_and_unmounted() {
    let home = Home::new();
    let (source, at) = (home.path().join("source"), At::new(&home, "at"));
    fs::create_dir(&source).unwrap();
    let words = "mount source at --cache 8M --rule lirs --dirty-age 1h --trace t.csv -o noexec";
    if !mounted(&home, &words.split(' ').collect::<Vec<_>>()) {
        return;
    }
    fs::write(at.0.join("a"), vec![7; 100_000]).unwrap();
    assert_eq!(fs::read(at.0.join("a")).unwrap(), vec![7; 100_000]);
    let stats = || home_json(&home, &["mount-stats", "at", "--json"])["stats"].clone();
    let now = stats();
    assert_eq!(
        (&now["written_bytes"], &now["rule"]),
        (&100_000.into(), &"lirs".into())
    );
    assert!(now["dirty_bytes"].as_u64().unwrap() >= 100_000, "{now}");
    assert_eq!(larder(&home, &["sync", "at"]).0, 0);
    assert_eq!(stats()["dirty_bytes"], 0);
    assert_eq!(fs::read(source.join("a")).unwrap(), vec![7; 100_000]);
    assert_eq!(larder(&home, &["drop", "at"]).0, 0);
    assert_eq!(stats()["resident_bytes"], 0);
    let before = stats()["capacity_bytes"].as_u64().unwrap();
    let (code, _, err) = larder(&home, &["tune", "at", "--cache", "4M"]);
    assert!(code == 0 && err.contains("MiB for blocks"), "{err}");
    assert!(stats()["capacity_bytes"].as_u64().unwrap() < before);

    assert_eq!(own_mounts(&home), 1);
    let (_, text, _) = larder(&home, &["mount-stats", "at"]);
    assert!(
        text.contains("rule lirs") && text.contains("\n write "),
        "{text}"
    );
    let (_, text, _) = larder(&home, &["mount-stats", "at", "--prometheus"]);
    let line = "larder_mount_written_bytes_total{mountpoint=\"";
    assert!(
        text.contains(line) && text.contains("\"} 100000\n"),
        "{text}"
    );
    assert!(text.contains(",request=\"write\"} "), "{text}");

    // One source is one mount's, and so is a mountpoint.
    let other = At::new(&home, "other");
    let (code, _, err) = larder(&home, &["mount", "source", "other"]);
    assert!(code == 4 && err.contains("mounted already"), "{err}");
    drop(other);

    // Open files keep it.
    let open = fs::File::open(at.0.join("a")).unwrap();
    let (code, _, err) = larder(&home, &["unmount", "at"]);
    assert!(code != 0 && err.contains("in use"), "{err}");
    drop(open);
    fs::write(at.0.join("b"), "late").unwrap();
    let mut unmounted = larder(&home, &["unmount", "at"]);
    // The kernel tells of a closed file a moment later.
    soon("unmounted", || {
        if unmounted.2.contains("in use") {
            unmounted = larder(&home, &["unmount", "at"]);
        }
        !unmounted.2.contains("in use")
    });
    assert_eq!(unmounted.0, 0, "{}", unmounted.2);
    assert_eq!(fs::read_to_string(source.join("b")).unwrap(), "late");
    assert!(!at.0.join("b").exists());
    // At once both can be mounted again.
    for _ in 0..3 {
        assert!(mounted(&home, &["mount", "source", "at"]));
        assert_eq!(larder(&home, &["unmount", "at"]).0, 0);
    }
    assert!(home_json(&home, &["trace", "info", "t.csv", "--json"])["uses"].as_u64() >= Some(25));
}

/// Takes lines from a program until one has this at a place between blanks.
fn line_with(lines: &mut impl Iterator<Item = std::io::Result<String>>, place: usize, what: &str) {
    let has = |line: &String| {
        line.split("  ")
            .filter(|part| !part.is_empty())
            .nth(place)
            .map(str::trim)
            == Some(what)
    };
    let found = lines.take(1000).map(Result::unwrap).find(has);
    assert!(found.is_some(), "no line with {what}");
}

#[test]
fn a_watched_mount_says_what_happened_since_the_last_line() {
    let home = Home::new();
    fs::create_dir(home.path().join("source")).unwrap();
    let at = At::new(&home, "at");
    if !mounted(&home, &["mount", "source", "at", "--dirty-age", "1h"]) {
        return;
    }
    let watch = |more: &[&str]| {
        let words = [&["mount-stats", "at", "--watch=20ms"], more].concat();
        let mut command = home.larder(&words);
        command.env("XDG_RUNTIME_DIR", home.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = std::io::BufReader::new(child.stdout.take().unwrap());
        (child, std::io::BufRead::lines(out))
    };
    let (child, mut lines) = watch(&[]);
    line_with(&mut lines, 4, "written");
    line_with(&mut lines, 4, "0.0 MiB");
    fs::write(at.0.join("a"), vec![7; 3 << 20]).unwrap();
    line_with(&mut lines, 7, "3.0 MiB");
    // Only dirty bytes are those of now.
    line_with(&mut lines, 4, "0.0 MiB");
    line_with(&mut lines, 7, "3.0 MiB");

    let (json, mut records) = watch(&["--json"]);
    for _ in 0..2 {
        let record: serde_json::Value =
            serde_json::from_str(&records.next().unwrap().unwrap()).unwrap();
        assert_eq!(record["written_bytes"], 3 << 20);
    }
    // It ends with the mount, and says so.
    assert_eq!(larder(&home, &["unmount", "at"]).0, 0);
    drop((lines, records));
    for child in [child, json] {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn by_the_name_of_a_helper_it_mounts_as_a_line_of_fstab_says() {
    let home = Home::new();
    let (source, at) = (home.path().join("source"), At::new(&home, "at"));
    fs::create_dir(&source).unwrap();
    let helper = home.path().join("mount.larder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_larder"), &helper).unwrap();
    let mut command = Command::new(&helper);
    command.args([source.as_os_str(), at.0.as_os_str()]);
    command.args([
        "-n",
        "-o",
        "rw,nofail,cache=8M,rule=lirs,dirty_age=1h,noexec",
    ]);
    let command = command
        .env("XDG_RUNTIME_DIR", home.path())
        .env("HOME", home.path());
    let (code, out, err) = crate::home::finish(command);
    if code == 4 && err.contains("FUSE") {
        return eprintln!("skipped: {err}");
    }
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let own = mounts
        .lines()
        .find(|line| line.contains(at.0.to_str().unwrap()))
        .unwrap();
    assert!(
        own.contains("fuse.larder") && own.contains("noexec"),
        "{own}"
    );
    fs::write(at.0.join("a"), "dirty").unwrap();
    assert_eq!(content(&source.join("a")), "");
    let stats = home_json(&home, &["mount-stats", "at", "--json"])["stats"].clone();
    assert_eq!(stats["rule"], "lirs");
    assert!(stats["capacity_bytes"].as_u64() < Some(8 << 20), "{stats}");
    assert_eq!(larder(&home, &["unmount", "at"]).0, 0);
    assert_eq!(content(&source.join("a")), "dirty");
}

/// As root the test becomes another user, who must be able to run the program and to open /dev/fuse.
#[test]
fn a_user_who_is_not_root_mounts_and_cannot_bypass() {
    const NOBODY: u32 = 65534;
    let home = Home::new();
    let (source, at) = (home.path().join("source"), At::new(&home, "at"));
    fs::create_dir(&source).unwrap();
    let program = home.path().join("larder-of-nobody");
    crate::home::install(Path::new(env!("CARGO_BIN_EXE_larder")), &program);
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for path in [home.path(), &source, &at.0] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let user = |program: &Path, words: &[&str]| {
        let mut command = match is_root {
            true => Command::new("setpriv"),
            false => Command::new(program),
        };
        if is_root {
            let id = NOBODY.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
            command.arg(program);
        }
        command.args(words).current_dir(home.path());
        let command = command.env("HOME", home.path());
        crate::home::finish(command.env("XDG_RUNTIME_DIR", home.path()))
    };
    let (code, out, err) = user(&program, &["mount", "source", "at", "--dirty-age", "1h"]);
    if code == 4 && err.contains("FUSE") {
        return eprintln!("skipped: {err}");
    }
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let shell = |text| user(Path::new("sh"), &["-c", text]);
    assert_eq!(shell("echo dirty >at/a && cat at/a").1, "dirty\n");
    assert_eq!(content(&source.join("a")), "");
    let (code, out, err) = user(&program, &["mount-stats", "at"]);
    assert!(code == 0 && out.contains("mode own"), "{err}");
    assert_eq!(user(&program, &["unmount", "at"]).0, 0);
    assert_eq!(content(&source.join("a")), "dirty\n");
    let (code, _, err) = user(&program, &["mount", "source", "at", "--mode", "bypass"]);
    assert!(
        code == 2 && err.contains("mode bypass: the kernel"),
        "{code}: {err}"
    );
    assert_eq!(shell("ls at").1, "");
}

/// umount(8) returns while the program still writes back.
#[test]
fn after_another_programs_unmount_it_is_mounted_again_at_once() {
    let home = Home::new();
    let (source, at) = (home.path().join("source"), At::new(&home, "at"));
    fs::create_dir(&source).unwrap();
    for round in 0..5 {
        if !mounted(&home, &["mount", "source", "at", "--dirty-age", "1h"]) {
            return;
        }
        fs::write(at.0.join("a"), vec![round; 20 << 20]).unwrap();
        let unmounted = |mut command: Command| {
            command
                .arg(&at.0)
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        };
        let mut helper = Command::new("fusermount3");
        helper.arg("-u");
        assert!(unmounted(Command::new("umount")) || unmounted(helper));
    }
    assert!(mounted(&home, &["mount", "source", "at"]));
    assert_eq!(fs::read(at.0.join("a")).unwrap(), vec![4; 20 << 20]);
    assert_eq!(larder(&home, &["unmount", "at"]).0, 0);
}

/// A mount of `source` at `at` by a process in the foreground. None, with a line that says why, where nothing can be mounted.
fn in_the_foreground(home: &Home) -> Option<Child> {
    fs::create_dir(home.path().join("source")).unwrap();
    let mut command = home.larder(&["mount", "source", "at", "--foreground", "--dirty-age", "1h"]);
    command.env("XDG_RUNTIME_DIR", home.path());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let err = child.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(err), &mut said).unwrap();
    if said.contains("FUSE") {
        eprintln!("skipped: {said}");
        child.wait().unwrap();
        return None;
    }
    assert!(said.contains("mounted"), "{said}");
    Some(child)
}

fn terminate(child: &Child) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_signal_writes_back_and_unmounts() {
    let home = Home::new();
    let (source, at) = (home.path().join("source"), At::new(&home, "at"));
    let Some(mut child) = in_the_foreground(&home) else {
        return;
    };
    fs::write(at.0.join("a"), "dirty").unwrap();
    assert_eq!(content(&source.join("a")), "");
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert_eq!(content(&source.join("a")), "dirty");
    assert!(!at.0.join("a").exists());
}

#[test]
fn a_mount_works_without_its_socket() {
    let home = Home::new();
    let (source, at) = (home.path().join("source"), At::new(&home, "at"));
    let Some(mut child) = in_the_foreground(&home) else {
        return;
    };
    // A user whose sockets are elsewhere.
    let elsewhere = |words: &[&str]| {
        crate::home::finish(
            home.larder(words)
                .env("XDG_RUNTIME_DIR", home.path().join("none")),
        )
    };
    for command in ["unmount", "sync", "drop", "mount-stats"] {
        let (code, _, err) = elsewhere(&[command, "at"]);
        let says = err.contains("cannot be reached") && err.contains("`umount");
        assert!(code == 4 && says, "{command}: {err}");
    }
    let (code, _, err) = elsewhere(&["mounts"]);
    assert!(code == 0 && err.contains("at is mounted too"), "{err}");
    // With the folder, as when a user logs out. It is made anew.
    let (sockets, away) = (home.path().join("larder"), home.path().join("away"));
    fs::rename(&sockets, &away).unwrap();
    soon("it answers", || larder(&home, &["sync", "at"]).0 == 0);
    // And a file in its place, so that it cannot be: it is made elsewhere.
    fs::write(home.path().join("file"), "").unwrap();
    let exchange = |one: &str, other: &str| {
        let (one, other) = (home.path().join(one), home.path().join(other));
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    };
    exchange("file", "larder");
    soon("it answers", || larder(&home, &["sync", "at"]).0 == 0);
    fs::write(at.0.join("a"), "dirty").unwrap();
    assert_eq!(content(&at.0.join("a")), "dirty");
    assert_eq!(content(&source.join("a")), "");
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert_eq!(content(&source.join("a")), "dirty");
    assert!(!at.0.join("a").exists());
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
