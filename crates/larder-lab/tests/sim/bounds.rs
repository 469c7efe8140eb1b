//! Endless and expanding traces stop at the stated bound; what keeps nothing of a trace has none.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::home::{Home, finish};

/// 24 MiB of zeros in a few KiB.
fn bomb(home: &Home) {
    let packed = zstd::stream::encode_all(std::io::repeat(0).take(24 << 20), 3).unwrap();
    assert!(packed.len() < 16 << 10);
    std::fs::write(home.path().join("bomb.zst"), packed).unwrap();
}

fn refused(command: &mut Command) {
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let (code, out, err) = finish(command);
    assert_eq!(code, 4, "{words:?}: {err}");
    assert!(
        err.contains("more than the 3 MiB")
            && err.contains("--max-memory")
            && err.contains("--limit"),
        "{words:?}: {err}"
    );
    // None of these commands has that option, or it is there already.
    assert!(!err.contains("--stream"), "{words:?}: {err}");
    assert_eq!(out, "", "{words:?}");
}

#[test]
fn what_expands_or_never_ends_stops_at_the_bound() {
    let home = Home::new();
    bomb(&home);
    let within = |policy| {
        let none = ["--max-memory", "3M", "--max-spill", "0"];
        [&["--policy", policy, "--size", "10"][..], &none].concat()
    };
    let sim = within("opt");
    for format in ["u32le", "u64be", "oracleGeneral"] {
        for more in [&["--format", format][..], &["--format", format, "--mrc"]] {
            refused(home.larder(&["sim", "bomb.zst"]).args(&sim).args(more));
        }
    }
    refused(
        home.larder(&["sim", "/dev/zero", "--format", "i32le"])
            .args(&sim),
    );
    refused(home.larder(&["sim", "zipf:requests=1e12"]).args(&sim));
    refused(
        home.larder(&["sim", "run", "--shard", "1/1", "zipf:requests=1e12"])
            .args(&sim),
    );
    // Where other rules are asked for as well, there is a way without the one that keeps the trace.
    let (_, _, err) = finish(
        home.larder(&["sim", "zipf:requests=1e12"])
            .args(within("lru,opt")),
    );
    assert!(err.contains("leave opt out of --policy"), "{err}");
    // A rule that needs no future keeps nothing of it.
    let (code, out, err) = finish(
        home.larder(&["sim", "bomb.zst", "--format", "u32le"])
            .args(within("lru")),
    );
    assert!(
        code == 0 && out.contains("6291456 uses of 1 blocks"),
        "{err}"
    );
    // OPT's future is kept, and so are the numbers of blocks.
    let convert = [
        "trace",
        "convert",
        "--format",
        "u32le",
        "--max-memory",
        "3M",
    ];
    refused(home.larder(&convert).args(["bomb.zst", "x.oracleGeneral"]));
    for words in [
        &["trace", "info", "scan:requests=1e12"][..],
        &[
            "trace",
            "convert",
            "--dense",
            "scan:requests=1e12",
            "x.u32le",
        ],
        &[
            "sim",
            "--stream",
            "scan:requests=1e12",
            "--policy",
            "lru",
            "--size",
            "10",
        ],
    ] {
        refused(home.larder(words).args(["--max-memory", "3M"]));
    }
    assert!(!home.path().join("x.oracleGeneral").exists() && !home.path().join("x.u32le").exists());
}

#[test]
fn what_memory_does_not_hold_for_opt_is_in_a_file_of_which_it_is_said_how_large() {
    let home = Home::new();
    bomb(&home);
    let sim = |more: &[&str]| {
        let what = ["sim", "bomb.zst", "--format", "u32le", "--policy", "opt"];
        let within = ["--size", "1", "--max-memory", "3M", "--json"];
        finish(
            home.larder(&[&what[..], &within, more].concat())
                .env("TMPDIR", home.path()),
        )
    };
    let (code, out, err) = sim(&[]);
    // Twice what fits, eight times over: the numbers and the next uses.
    assert!(
        code == 4 && err.contains("24 MiB") && err.contains("--max-spill"),
        "{err}"
    );
    assert_eq!(out, "");
    let (code, out, err) = sim(&["--max-spill", "100M"]);
    assert!(code == 0 && out.contains("\"hits\":6291455"), "{err}");
    let dir = home.path().display();
    assert!(
        err.contains(&format!("in a file without a name in {dir}")),
        "{err}"
    );
    assert!(
        err.contains("opt needs 25.2 MB for the next uses")
            || err.contains("opt needs 24 MiB for the next uses"),
        "{err}"
    );
    let (code, _, err) = sim(&["--max-spill", "100M", "--mrc"]);
    assert!(code == 0 && err.contains("opt needs"), "{err}");
    let left = std::fs::read_dir(home.path())
        .unwrap()
        .map(|e| e.unwrap().file_name());
    assert!(
        left.into_iter()
            .all(|name| !name.to_string_lossy().contains("larder-"))
    );
    let (code, _, err) = sim(&["--spill", "none"]);
    assert!(code == 5 && err.contains("cannot be kept in none"), "{err}");
    // A shard keeps nothing where no rule must know the future.
    let (code, _, err) = finish(
        home.larder(&["sim", "run", "--shard", "1/1", "bomb.zst"])
            .args([
                "--format",
                "u32le",
                "--policy",
                "lru",
                "--size",
                "1",
                "--max-memory",
                "3M",
                "--max-spill",
                "0",
            ]),
    );
    assert_eq!(code, 0, "{err}");
}

#[test]
fn the_caches_of_all_rules_together_are_within_the_bound() {
    let home = Home::new();
    let sim = |policy| {
        let what = ["sim", "-", "--stream", "--policy", policy];
        home.run(&[&what[..], &["--size", "10k", "--max-memory", "1M"]].concat())
    };
    let (code, _, err) = sim("lru");
    assert!(code == 5 && err.contains("no request"), "it fits: {err}");
    let (code, _, err) = sim("lru,fifo");
    assert!(code == 2 && err.contains("read twice"), "{err}");
}

#[test]
fn names_that_never_end_stop_at_the_bound() {
    let home = Home::new();
    let endless = "i=0; while echo $i,$((i+1)); do i=$((i+2)); done 2>/dev/null";
    for (format, more) in [
        ("txt", &[][..]),
        ("csv", &["--columns", "id=1"]),
        ("csv", &["--columns", "file=1,id=2"]),
    ] {
        let mut source = Command::new("sh")
            .args(["-c", endless])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut command = home.larder(&[
            "trace",
            "info",
            "-",
            "--text-ids",
            "--max-memory",
            "1M",
            "--format",
            format,
        ]);
        let (code, _, err) = finish(command.args(more).stdin(source.stdout.take().unwrap()));
        assert_eq!(
            code,
            if err.contains("names until here") {
                5
            } else {
                4
            },
            "{err}"
        );
        assert!(
            err.contains("1 MiB") && err.contains("--max-memory"),
            "{err}"
        );
        // The pipe's end in the command keeps the source alive.
        drop(command);
        source.wait().unwrap();
    }
}

#[test]
fn what_keeps_nothing_has_no_bound_and_what_fits_is_read() {
    let home = Home::new();
    bomb(&home);
    for words in [
        &[
            "sim", "--stream", "bomb.zst", "--policy", "lru", "--size", "10",
        ][..],
        &["trace", "info", "bomb.zst"],
        &["trace", "convert", "bomb.zst", "/dev/null", "--to", "u32be"],
    ] {
        let (code, _, err) =
            finish(
                home.larder(words)
                    .args(["--format", "u32le", "--max-memory", "1M"]),
            );
        assert_eq!(code, 0, "{words:?}: {err}");
    }
    let (code, _, err) = home.run(&[
        "sim",
        "bomb.zst",
        "--format",
        "u32le",
        "--policy",
        "lru",
        "--size",
        "1",
        "--max-memory",
        "30MiB",
    ]);
    assert_eq!(code, 0, "{err}");
    for bad in ["0", "x", "-1", "1T", "99999999999G"] {
        let (code, _, err) =
            home.run(&["trace", "info", "bomb.zst", &format!("--max-memory={bad}")]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("500M"), "{err}");
    }
}
