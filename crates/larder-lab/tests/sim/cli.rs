//! `larder sim` and `larder trace` as a user meets them.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::home::{Home, finish, install};
use crate::samples;

/// A home with a trace of some thousand uses: a loop with a hot part.
fn home() -> Home {
    let home = Home::new();
    let mut text = String::new();
    for n in 0..6000_u64 {
        let block = if n % 3 == 0 {
            n % 40
        } else {
            100 + n * 7 % 701
        };
        text.push_str(&format!("{block}\n"));
    }
    fs::write(home.path().join("a.txt"), text).unwrap();
    home
}

pub(crate) fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// The rows as a merge prints them: it does not read the traces, so it does not say where their curves bend.
pub(crate) fn without_knees(text: &str) -> String {
    let row = |line: &str| {
        let (row, knee) = line.split_once(",\"knee\":{").unwrap();
        assert!(knee.ends_with("}}"), "{line}");
        format!("{row}}}\n")
    };
    text.lines().map(row).collect()
}

/// Runs the program with this text on its standard input.
fn fed(home: &Home, words: &[&str], text: &[u8]) -> (i32, String, String) {
    let mut child = home
        .larder(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let out = child.wait_with_output().unwrap();
    (
        out.status.code().unwrap_or(-1),
        String::from_utf8(out.stdout).unwrap(),
        String::from_utf8(out.stderr).unwrap(),
    )
}

#[test]
fn hits_are_counted_and_opt_has_the_most() {
    let home = home();
    let (code, out, err) = home.run(&[
        "sim",
        "a.txt",
        "--policy",
        "lru,opt,fifo",
        "--size",
        "10,5%,100%",
        "--json",
    ]);
    assert_eq!(code, 0, "{err}");
    let rows = lines(&out);
    assert_eq!(rows.len(), 9);
    for at in rows.chunks(3) {
        let hits = |n: usize| at[n]["tally"]["hits"].as_u64().unwrap();
        assert!(hits(0) <= hits(1) && hits(2) <= hits(1));
        assert_eq!(hits(0) + at[0]["tally"]["misses"].as_u64().unwrap(), 6000);
        assert_eq!(at[0]["counts"]["uses"], 6000);
    }
    // Everything fits: all rules hit alike, and there is no gap to close.
    assert_eq!(rows[6]["tally"]["hits"], rows[7]["tally"]["hits"]);
    assert!(rows[6]["gap_closed_percent"].is_null());
    assert_eq!(rows[0]["gap_closed_percent"], 0.0);
    assert_eq!(rows[1]["gap_closed_percent"], 100.0);
    let (code, table, _) = home.run(&["sim", "a.txt", "--policy", "lru,opt", "--size", "10"]);
    assert_eq!(code, 0);
    assert!(
        table.contains("6000 uses of") && table.contains("opt"),
        "{table}"
    );
    let (_, csv, _) = home.run(&["sim", "a.txt", "--policy", "lru", "--size", "10", "--csv"]);
    assert!(csv.starts_with("trace,format,uses") && csv.lines().count() == 2);
}

#[test]
fn all_rules_run_and_streams_agree() {
    let home = home();
    let (code, out, err) = home.run(&["sim", "a.txt", "--size", "50", "--json"]);
    assert_eq!(code, 0, "{err}");
    let all = lines(&out);
    assert!(all.len() > 10);
    let opt = all.iter().find(|r| r["policy"] == "opt").unwrap()["tally"]["hits"]
        .as_u64()
        .unwrap();
    assert!(
        all.iter()
            .all(|r| r["tally"]["hits"].as_u64().unwrap() <= opt)
    );
    let (code, streamed, err) = home.run(&[
        "sim",
        "a.txt",
        "--size",
        "50",
        "--json",
        "--stream",
        "--threads",
        "2",
    ]);
    assert_eq!(code, 0, "{err}");
    let streamed = lines(&streamed);
    assert_eq!(streamed.len(), all.len() - 1);
    for row in streamed {
        let same = all.iter().find(|r| r["policy"] == row["policy"]).unwrap();
        assert_eq!(
            (&same["tally"], &same["counts"]),
            (&row["tally"], &row["counts"])
        );
    }
    // Shares are known after a first reading, which standard input does not allow.
    let shares = ["--policy", "lru,fifo", "--size", "5%", "--json"];
    let (code, small, err) = home.run(&[&["sim", "a.txt"][..], &shares].concat());
    assert_eq!(code, 0, "{err}");
    let with_opt = ["--policy", "lru,fifo,opt", "--size", "5%", "--json"];
    let (_, whole, _) = home.run(&[&["sim", "a.txt"][..], &with_opt].concat());
    let (small, whole) = (lines(&small), lines(&whole));
    assert_eq!(small[1]["tally"], whole[1]["tally"]);
    assert_eq!(small[1]["asked"], "5%");
    let (code, _, err) = home.run(&["sim", "-", "--stream", "--size", "5%"]);
    assert!(code == 2 && err.contains("read twice"), "{err}");
    assert_eq!(
        home.run(&["sim", "a.txt", "--stream", "--size", "9", "--policy", "opt"])
            .0,
        2
    );
}

#[test]
fn a_sweep_in_shards_is_the_sweep_bit_for_bit() {
    let home = home();
    fs::copy(home.path().join("a.txt"), home.path().join("b.txt")).unwrap();
    let what = [
        "a.txt",
        "b.txt",
        "--policy",
        "lru,fifo,opt",
        "--size",
        "10,1%,50%",
    ];
    let (code, whole, err) = home.run(&[&["sim"][..], &what, &["--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let (code, plan, _) = home.run(&[&["sim", "plan"][..], &what, &["--shards", "4"]].concat());
    assert!(
        code == 0 && plan.contains("18 cells") && plan.contains("shard 4/4"),
        "{plan}"
    );
    for index in 0..4 {
        // As Slurm's job array numbers its tasks, here from 3.
        let mut command =
            home.larder(&[&["sim", "run"][..], &what, &["--out", "part-%k.jsonl"]].concat());
        command
            .env("SLURM_ARRAY_TASK_ID", (index + 3).to_string())
            .env("SLURM_ARRAY_TASK_MIN", "3")
            .env("SLURM_ARRAY_TASK_COUNT", "4");
        let (code, _, err) = finish(&mut command);
        assert_eq!(code, 0, "{err}");
    }
    let parts = [
        "part-3.jsonl",
        "part-1.jsonl",
        "part-4.jsonl",
        "part-2.jsonl",
    ];
    let (code, merged, err) = home.run(&[&["sim", "merge"][..], &parts, &["--json"]].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(merged, without_knees(&whole));
    let (code, _, err) = home.run(&[&["sim", "merge"][..], &parts[..3]].concat());
    assert!(code == 4 && err.contains("missing"), "{err}");
    let (code, _, err) = home.run(&[&["sim", "run"][..], &what].concat());
    assert!(code == 2 && err.contains("--shard"), "{err}");
}

#[test]
fn curves_say_their_error() {
    let home = home();
    let (code, out, err) = home.run(&[
        "sim",
        "a.txt",
        "--mrc",
        "--policy",
        "lru,fifo",
        "--json",
        "--mrc-rate",
        "0.5",
    ]);
    assert_eq!(code, 0, "{err}");
    let curves = lines(&out);
    let exact = curves
        .iter()
        .find(|c| c["policy"] == "lru" && c["method"].as_str().unwrap().starts_with("exact"))
        .unwrap();
    let sizes = exact["sizes"].as_array().unwrap();
    let at = sizes.len() / 2;
    let size = sizes[at].to_string();
    let (_, row, _) = home.run(&["sim", "a.txt", "--policy", "lru", "--size", &size, "--json"]);
    assert_eq!(lines(&row)[0]["hit_percent"], exact["hit_percent"][at]);
    let sampled: Vec<_> = curves
        .iter()
        .filter(|c| !c["method"].as_str().unwrap().starts_with("exact"))
        .collect();
    assert_eq!(sampled.len(), 4);
    assert!(
        sampled
            .iter()
            .all(|c| c["error_points"]["mean"].is_number())
    );
    let (code, text, _) = home.run(&[
        "sim",
        "a.txt",
        "--mrc",
        "--policy",
        "fifo",
        "--mrc-sampled",
        "--html",
        "p.html",
    ]);
    assert!(
        code == 0 && text.contains("not compared with an exact curve"),
        "{text}"
    );
    assert!(
        fs::read_to_string(home.path().join("p.html"))
            .unwrap()
            .contains("<svg")
    );
    assert_eq!(home.run(&["sim", "a.txt", "--mrc", "--mrc-rate", "0"]).0, 2);
    // Drawn, with what is possible, and the best one's mark at the top.
    let (code, drawn, err) = home.run(&["sim", "a.txt", "--mrc"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        drawn.contains("1 opt") && drawn.contains("bends at"),
        "{drawn}"
    );
    let top = drawn.lines().nth(1).unwrap();
    assert!(top.contains('|') && top.ends_with('1'), "{drawn}");
}

#[test]
fn the_page_of_curves_draws_each_rule_once() {
    let home = home();
    let (code, _, err) = home.run(&["sim", "a.txt", "--mrc", "--html", "p.html"]);
    assert_eq!(code, 0, "{err}");
    let page = fs::read_to_string(home.path().join("p.html")).unwrap();
    for rule in ["opt", "adaptive", "s3-fifo", "arc", "lru"] {
        assert!(page.contains(&format!("{rule}, exact")), "{rule}");
    }
    assert!(!page.contains("lru, SHARDS") && !page.contains("arc, miniature"));
}

#[test]
fn a_knee_from_a_sample_is_an_estimate_within_the_trace() {
    let home = Home::new();
    let sim = [
        "sim",
        "loop:blocks=100000,requests=500000",
        "--policy",
        "lru,fifo",
        "--size",
        "100000",
    ];
    let (code, text, err) = home.run(&sim);
    assert_eq!(code, 0, "{err}");
    assert!(
        text.contains("bends at about 100\u{202f}000 blocks")
            && text.contains("; an estimate from 8."),
        "{text}"
    );
    let (_, rows, _) = home.run(&[&sim[..], &["--json"]].concat());
    for row in lines(&rows) {
        let knee = &row["knee"];
        assert_eq!(knee["size"], 100_000, "{row}");
        assert!(knee["a_tenth_more"].is_null(), "{row}");
        let rate = knee["rate"].as_f64().unwrap();
        assert!(rate > 0.07 && rate < 0.1, "{row}");
    }
}

#[test]
fn the_end_says_which_rule_and_which_size() {
    let home = home();
    let what = ["sim", "a.txt", "--policy", "lru,fifo,lirs,adaptive,opt"];
    let sized = |more: &[&str]| home.run(&[&what[..], more].concat());
    let (code, out, err) = sized(&["--size", "30,100%", "--json"]);
    assert_eq!(code, 0, "{err}");
    let rows = lines(&out);
    let hits = |row: &serde_json::Value| row["tally"]["hits"].as_u64().unwrap();
    for cell in rows.chunks(5) {
        let best: Vec<_> = cell.iter().filter(|r| r["best"] == true).collect();
        assert_eq!(best.len(), 1);
        assert_ne!(best[0]["policy"], "opt");
        let most = cell.iter().filter(|r| r["policy"] != "opt").map(hits).max();
        assert_eq!(Some(hits(best[0])), most);
        let (saved, lru) = (
            best[0]["misses_saved_percent"].as_f64().unwrap(),
            hits(&cell[0]),
        );
        let truly = (hits(best[0]) - lru) as f64 / (6000 - lru) as f64 * 100.0;
        assert!((saved - truly).abs() < 1e-9, "{saved} {truly}");
    }
    let name = rows[..5].iter().find(|r| r["best"] == true).unwrap()["policy"].clone();
    assert_ne!(name, "lru", "the loop is larger than the cache");
    // Where everything fits all are equal, and the simplest is named.
    assert_eq!(rows[5]["best"], true);
    let (_, text, _) = sized(&["--size", "30,100%"]);
    let said = format!("a.txt, 30 blocks (120 KiB): {}; ", name.as_str().unwrap());
    assert!(text.contains(&said), "{text}");
    // The loop's 701 blocks and the hot 40 fit at once, or none of the loop's does.
    assert!(
        text.contains("a.txt: the curve under lru bends at"),
        "{text}"
    );
    assert!(text.contains("fewer misses than lru; "), "{text}");
    let (_, alone, _) = home.run(&["sim", "a.txt", "--policy", "lru", "--size", "30"]);
    assert!(
        !alone.contains("(120 KiB): lru"),
        "there was nothing to choose: {alone}"
    );
}

#[test]
fn a_disk_behind_the_cache_is_modelled_and_has_an_answer() {
    let home = home();
    let what = ["a.txt", "--policy", "lru,lirs,adaptive", "--size", "30,5%"];
    let disk = "--disk=seek=0,rate=4.096";
    let (code, out, err) = home.run(&[&["sim"][..], &what, &[disk, "--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let (rows, bare) = (
        lines(&out),
        home.run(&[&["sim"][..], &what, &["--json"]].concat()),
    );
    for (row, bare) in rows.iter().zip(lines(&bare.1)) {
        assert_eq!(row["tally"], bare["tally"], "nothing is written");
        let (read, all) = (
            &row["disk"]["read"],
            row["disk"]["total_s"].as_f64().unwrap(),
        );
        assert_eq!(read, &row["tally"]["misses"]);
        assert!((all - read.as_f64().unwrap() * 1e-3).abs() < 1e-6, "{row}");
    }
    let (_, text, _) = home.run(&[&["sim"][..], &what, &[disk, "--html", "p.html"]].concat());
    assert!(
        text.contains("on the disk: lirs in ") && text.contains(" % less than lru"),
        "{text}"
    );
    let page = fs::read_to_string(home.path().join("p.html")).unwrap();
    assert!(page.contains("on the modelled disk?") && page.contains("blocks read"));
    // In parts as whole.
    let run = [
        &["sim", "run", "--shard", "1/1", "--out", "p"][..],
        &what,
        &[disk],
    ]
    .concat();
    assert_eq!(home.run(&run).0, 0);
    let (_, merged, _) = home.run(&["sim", "merge", "p", "--json"]);
    assert_eq!(merged, without_knees(&out));
    let (code, all, err) = home.run(&["sim", "a.txt", "--size", "30", "--disk", "--csv"]);
    assert!(code == 0 && !all.contains(",opt,"), "{err}");
    for (bad, why) in [
        (&["--disk=speed=1"][..], "there is no 'speed'"),
        (&["--disk=seek=-1"], "seek is '-1'"),
        (&["--disk=rate=0"], "rate is '0'"),
        (&["--disk=rate=nan"], "rate is 'nan'"),
        (&["--disk", "--policy", "opt"], "--disk, or the rule"),
        (&["--disk", "--mrc"], "cannot be used with"),
        (&["--disk", "--tick", "3"], "cannot be used with"),
    ] {
        let (code, _, err) = home.run(&[&["sim", "a.txt"][..], bad].concat());
        assert!(code == 2 && err.contains(why), "{bad:?}: {err}");
    }
}

#[test]
fn a_cell_on_the_disk_depends_on_its_own_size_alone() {
    let home = Home::new();
    let writes = (0..3000).map(|n| format!("write,{}\n", n % 1000));
    let text = "op,id\n".to_owned() + &writes.collect::<String>();
    fs::write(home.path().join("w.csv"), text).unwrap();
    // So slow that the kernels' rules see seconds pass.
    let disk = ["sim", "w.csv", "--disk=rate=0.4096", "--json"];
    let rules = ["--policy", "lru,linux-2.4.7"];
    let rows = |more: &[&str]| {
        let (code, out, err) = home.run(&[&disk[..], &rules, more].concat());
        assert_eq!(code, 0, "{err}");
        lines(&out)
    };
    for size in ["2000", "20000"] {
        let alone = rows(&["--size", size]);
        let beside = rows(&["--size", &format!("{size},100%")]);
        assert_eq!(alone[..], beside[..2], "{size}");
        assert_eq!(alone, rows(&["--size", size, "--max-memory", "1M"]));
    }
    // 800 of 2000 blocks may be dirty, and 400 of the trace's.
    let both = rows(&["--size", "2000,100%"]);
    assert_eq!(both[0]["disk"]["written"], 2200);
    assert_eq!(both[2]["disk"]["written"], 2600);
}

#[test]
fn the_settings_have_the_rule_that_the_answer_names_on_the_disk() {
    let home = Home::new();
    // Under fifo 11 is read once more, on the way from 10 to 12; under lru the head comes to 12 from 10, and seeks.
    fs::write(home.path().join("u.txt"), "11\n50\n11\n10\n11\n12\n").unwrap();
    let sim = ["sim", "u.txt", "--policy", "lru,fifo", "--size", "2"];
    let settings = ["--disk=seek=1000,rate=4.096", "--settings", "larder.toml"];
    let (code, out, err) = home.run(&[&sim[..], &settings].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("2 blocks (8 KiB): lru;"), "{out}");
    assert!(out.contains("on the disk: fifo in "), "{out}");
    let text = fs::read_to_string(home.path().join("larder.toml")).unwrap();
    assert!(
        text.contains("policy = \"fifo\"") && text.contains("of the modelled disk on u.txt"),
        "{text}"
    );
}

#[test]
fn a_cache_far_larger_than_the_trace_takes_no_more_than_the_trace() {
    let home = home();
    for rule in ["lru", "arc", "adaptive"] {
        let sim = |size: &str| {
            let what = ["sim", "a.txt", "--policy", rule, "--json", "--times"];
            home.run(&[&what[..], &["--max-memory", "1M", "--size", size]].concat())
        };
        let (code, large, err) = sim("4M");
        assert_eq!(code, 0, "{err}");
        let state = err.split("records/s").nth(1).unwrap().trim();
        let mib: f64 = state.split(' ').next().unwrap().parse().unwrap();
        assert!(mib < 1.0, "{err}");
        let (large, all) = (&lines(&large)[0], &lines(&sim("100%").1)[0]);
        assert_eq!(
            (&large["tally"], &large["size"]),
            (&all["tally"], &(4 << 20).into())
        );
    }
}

#[test]
fn a_trace_that_cannot_be_read_does_not_take_the_others_along() {
    let home = home();
    fs::copy(home.path().join("a.txt"), home.path().join("b.txt")).unwrap();
    let traces = ["sim", "none", "a.txt", "lost", "b.txt"];
    let rest = ["--policy", "lru,fifo", "--size", "10", "--json"];
    let (code, out, err) = home.run(&[&traces[..], &rest].concat());
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("none") && err.contains("lost"), "{err}");
    let rows = lines(&out);
    let read: Vec<_> = rows.iter().map(|r| r["trace"].as_str().unwrap()).collect();
    assert_eq!(read, ["a.txt", "a.txt", "b.txt", "b.txt"]);
}

#[test]
fn sizes_may_be_bytes() {
    let home = home();
    let hits = |more: &[&str]| {
        let (code, out, err) =
            home.run(&[&["sim", "a.txt", "--policy", "opt", "--json"][..], more].concat());
        assert_eq!(code, 0, "{err}");
        lines(&out)[0]["tally"].clone()
    };
    assert_eq!(hits(&["--size", "200KiB"]), hits(&["--size", "50"]));
    assert_ne!(hits(&["--size", "200KiB"]), hits(&["--size", "49"]));
    assert_eq!(
        hits(&["--size", "200KiB", "--block-size", "8192"]),
        hits(&["--size", "25"])
    );
    let (code, _, err) = home.run(&["sim", "a.txt", "--size", "2KiB"]);
    assert!(
        code == 2 && err.contains("less than a block of 4096 bytes"),
        "{err}"
    );
}

#[test]
fn bytes_are_no_number_of_objects() {
    let home = Home::new();
    let web = |name: &str, bytes: [u32; 2]| {
        let uses = (0..40).map(|n| format!("{n},{},{}\n", n % 4, bytes[n % 2]));
        let text = "time,id,size\n".to_owned() + &uses.collect::<String>();
        fs::write(home.path().join(name), text).unwrap();
    };
    web("large.csv", [1_000_000, 3_000_000]);
    web("small.csv", [100, 300]);
    web("pages.csv", [100, 4096]);
    let (code, _, err) = home.run(&["trace", "convert", "small.csv", "s.oracleGeneral"]);
    assert_eq!(code, 0, "{err}");
    let sized = |more: &[&str], size: &str| {
        let what = ["sim", "--policy", "lru,fifo", "--size", size];
        home.run(&[&what[..], more].concat())
    };
    for words in [
        &["large.csv"][..],
        &["large.csv", "--mrc"],
        &["large.csv", "--policy", "lru,opt"],
        &["large.csv", "--disk"],
        &["s.oracleGeneral"],
    ] {
        let (code, out, err) = sized(words, "8KiB");
        assert!(
            code == 2 && err.contains("objects of up to") && err.contains("a share (1%)"),
            "{words:?}: {err}"
        );
        assert_eq!(out, "");
    }
    let (_, text, err) = sized(&["large.csv"], "2");
    assert!(text.contains("large.csv, 2 blocks: "), "{text} {err}");
    assert!(
        text.contains("bends at ") && !text.contains("iB)"),
        "{text}"
    );
    let (code, _, err) = sized(&["large.csv", "--settings", "larder.toml"], "2");
    assert!(code == 2 && err.contains("blocks of one size"), "{err}");
    // What a block's requests use of it may be less than the block, so small sizes in a table say nothing.
    for trace in ["small.csv", "pages.csv"] {
        let (code, _, err) = sized(&[trace], "8KiB");
        assert_eq!(code, 0, "{trace}: {err}");
    }
}

#[test]
fn the_page_has_tables_and_a_chart() {
    let home = home();
    let (code, _, err) = home.run(&[
        "sim",
        "a.txt",
        "--policy",
        "lru,opt,fifo",
        "--size",
        "10,100,300",
        "--html",
        "p.html",
    ]);
    assert_eq!(code, 0, "{err}");
    let page = fs::read_to_string(home.path().join("p.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("LRU to OPT"));
    assert!(page.contains("Which rule, at the sizes") && !page.contains("No samples"));
}

#[test]
fn what_cannot_be_read_is_said_with_a_code() {
    let home = home();
    let path = home.path();
    fs::write(path.join("empty"), "").unwrap();
    fs::write(path.join("negative.txt"), "1\n-2\n").unwrap();
    fs::write(path.join("short.oracleGeneral"), [0; 30]).unwrap();
    fs::write(path.join("bare"), [7_u8; 400]).unwrap();
    fs::create_dir(path.join("dir")).unwrap();
    for (words, code, why) in [
        (&["sim", "none"][..], 5, "cannot be opened"),
        (&["sim", "dir"], 2, "is a directory"),
        (&["sim", "empty"], 5, "no request"),
        (&["sim", "negative.txt", "--format", "txt"], 5, "line 2"),
        (
            &["sim", "short.oracleGeneral", "--format", "oracleGeneral"],
            5,
            "byte 24",
        ),
        (&["sim", "bare"], 2, "--format"),
        (
            &["sim", "a.txt", "--format", "xls"],
            2,
            "there is no format",
        ),
        (&["sim", "a.txt", "--policy", "lur"], 2, "lru"),
        (&["sim", "a.txt", "--size", "0"], 2, "no cache"),
        (&["sim", "a.txt", "--size", "-5"], 2, "no size"),
        (&["sim", "a.txt", "--size", "120%"], 2, "no share"),
        (&["sim"], 2, "needs a trace"),
        (
            &["sim", "a.txt", "--format", "txt", "--columns", "id=1"],
            2,
            "--columns says how csv is read",
        ),
        (
            &[
                "trace",
                "info",
                "a.txt",
                "--format",
                "txt",
                "--delimiter",
                ";",
            ],
            2,
            "--delimiter says how csv is read",
        ),
        (
            &["sim", "a.txt", "--format", "txt", "--mmap", "none"],
            2,
            "--mmap says how strace is read",
        ),
        (
            &["sim", "a.txt", "--mrc", "--times"],
            2,
            "cannot be used with",
        ),
        (
            &["sim", "zipf:blocks=0"],
            2,
            "blocks is '0'; it is a whole number from 1 to",
        ),
        (
            &["trace", "info", "zipf:size=9"],
            2,
            "no parameter 'size'; there are blocks",
        ),
        (&["sim", "zipf"], 5, "is written zipf:"),
        (&["sim", "dbench:file=none"], 5, "none: cannot be opened"),
        (&["sim", "dbench:file=a.txt"], 5, "no operation of dbench"),
        (&["trace", "convert", "a.txt", "x.lcs"], 2, "does not write"),
        (&["trace", "convert", "a.txt", "x"], 2, "--to"),
        (
            &["trace", "convert", "a.txt", "none/x.csv"],
            5,
            "cannot be written",
        ),
        (
            &[
                "trace",
                "record",
                "-o",
                "x.csv",
                "--strace",
                "no-such-strace",
                "--",
                "true",
            ],
            4,
            "install strace",
        ),
    ] {
        let (got, out, err) = home.run(words);
        assert!(
            got == code && err.contains(why),
            "{words:?}: {got} {out} {err}"
        );
    }
}

#[test]
fn standard_input_is_a_trace() {
    let home = home();
    let words = ["sim", "-", "--policy", "lru", "--size", "2", "--json"];
    let (_, out, err) = fed(&home, &words, b"1\n2\n1\n3\n1\n2\n");
    assert_eq!(lines(&out)[0]["tally"]["hits"], 2, "{err}");
}

#[test]
fn what_is_no_file_is_read_only_once() {
    let home = home();
    let text = fs::read(home.path().join("a.txt")).unwrap();
    // Shares, for which a file is read twice.
    let words = |path| ["sim", path, "--policy", "lru,arc", "--json"];
    let (code, out, err) = fed(&home, &words("/dev/stdin"), &text);
    assert_eq!(code, 0, "{err}");
    let tallies = |out: &str| {
        let rows = lines(out).into_iter();
        rows.map(|row| row["tally"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(tallies(&out), tallies(&home.run(&words("a.txt")).1));
    for words in [
        &["sim", "/dev/stdin", "--stream"][..],
        &["sim", "run", "--shard", "1/1", "/dev/stdin"],
    ] {
        let (code, _, err) = fed(&home, words, b"");
        assert!(code == 2 && err.contains("/dev/stdin"), "{words:?}: {err}");
    }
}

#[test]
fn facts_of_a_trace_are_counted() {
    let home = Home::new();
    let info = |name: &str, text: &str| {
        fs::write(home.path().join(name), text).unwrap();
        home.json(&["trace", "info", name, "--json"])
    };
    // Volumes that are far apart, and one alone.
    let volumes = |all: &[u32]| {
        let line = |n: &u32| format!("{n},R,0,4096,1577808144360767\n");
        info("volumes", &all.iter().map(line).collect::<String>())["files"].clone()
    };
    assert_eq!(
        (volumes(&[419, 7, 419]), volumes(&[419])),
        (2.into(), 1.into())
    );
    let tenants = info("t.csv", "op,id,tenant_number\nread,1,900\nread,2,40\n");
    assert_eq!(tenants["tenants"], 2);
    // What is removed unused takes no hit away, and what is read ahead is hit by its first use.
    let removed = info("r.csv", "op,id\nget,1\nget,1\ndelete,2\ndelete,3\n");
    assert_eq!(removed["possible_hits"], 1);
    let (_, text, _) = home.run(&["trace", "info", "r.csv"]);
    assert!(text.contains("at most       50.00 % hits"), "{text}");
    let ahead = "op,id\nreadahead,5\nread,5\nremove,5\nread,5\nread,5\n";
    assert_eq!(info("h.csv", ahead)["possible_hits"], 2);
}

#[test]
fn conversions_come_back_equal() {
    let home = home();
    let checksum = |name: &str| home.json(&["trace", "info", name, "--json"])["checksum"].clone();
    let original = checksum("a.txt");
    let mut last = "a.txt".to_owned();
    for name in [
        "b.oracleGeneral.zst",
        "c.csv",
        "d.txt.gz",
        "e.u32be",
        "f.i64le.xz",
        "g.oracleGeneral",
        "h.i32le",
        "i.u32le",
        "j.i64be",
        "k.i32be",
        "m.u64le",
        "n.u64be.gz",
        "l.txt",
    ] {
        let (code, _, err) = home.run(&["trace", "convert", &last, name]);
        assert_eq!(code, 0, "{last} to {name}: {err}");
        assert_eq!(checksum(name), original, "{name}");
        last = name.to_owned();
    }
    let same = |name: &str| fs::read(home.path().join(name)).unwrap();
    assert_eq!(same("l.txt"), same("a.txt"));
    // The next access in oracleGeneral is right: each record says where its block comes again.
    let bytes = same("g.oracleGeneral");
    let records: Vec<(u64, i64)> = bytes
        .chunks(24)
        .map(|r| {
            (
                u64::from_le_bytes(r[4..12].try_into().unwrap()),
                i64::from_le_bytes(r[16..24].try_into().unwrap()),
            )
        })
        .collect();
    for (n, (block, next)) in records.iter().enumerate() {
        let found = records[n + 1..].iter().position(|(b, _)| b == block);
        assert_eq!(*next, found.map_or(-1, |k| (n + 1 + k) as i64));
    }
    // Files, processes, requests, kinds and removals survive in CSV only, and there the blocks' own numbers do as well.
    fs::write(home.path().join("s.strace"), samples::STRACE).unwrap();
    let (code, _, err) = home.run(&["trace", "convert", "s.strace", "s.csv", "--dense"]);
    assert_eq!(code, 0, "{err}");
    let info = home.json(&["trace", "info", "s.csv", "--json"]);
    let strace = home.json(&["trace", "info", "s.strace", "--json"]);
    for key in [
        "uses", "writes", "removed", "requests", "blocks", "checksum",
    ] {
        assert_eq!(info[key], strace[key], "{key}");
    }
    let facts = |name: &str| {
        let mut facts = home.json(&["trace", "info", name, "--json"]);
        for own in ["trace", "format"] {
            facts.as_object_mut().unwrap().remove(own);
        }
        facts
    };
    let (_, _, err) = home.run(&["trace", "convert", "s.strace", "whole.csv.gz"]);
    assert!(!err.contains("lose"), "{err}");
    assert_eq!(facts("whole.csv.gz"), facts("s.strace"));
    assert_eq!(
        (&strace["files"], &strace["tenants"]),
        (&2.into(), &2.into())
    );
    home.run(&["trace", "convert", "whole.csv.gz", "again.csv"]);
    assert_eq!(facts("again.csv"), facts("s.strace"));
    let (code, _, err) = home.run(&["trace", "convert", "s.strace", "s.u32le"]);
    assert!(code == 4 && err.contains("--dense"), "{err}");
    assert!(!home.path().join("s.u32le").exists());
    let (_, _, err) = home.run(&["trace", "convert", "s.strace", "s.txt"]);
    assert!(
        err.contains("2 removals were left out") && err.contains("writes are plain"),
        "{err}"
    );
    for lost in [
        "their file",
        "their process or tenant",
        "their number of bytes",
    ] {
        assert!(err.contains(lost), "{err}");
    }
    let without = [
        "sim", "s.strace", "--policy", "lru", "--size", "9", "--json",
    ];
    let uses = |more: &[&str]| home.json(&[&without[..], more].concat())["counts"]["uses"].clone();
    assert_eq!(
        (uses(&[]), uses(&["--mmap", "none"])),
        (11.into(), 9.into())
    );
}

#[test]
fn a_full_disk_leaves_no_half_file() {
    let home = home();
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let (code, _, err) = home.run(&["trace", "convert", "a.txt", "/dev/full", "--to", "csv"]);
    assert!(
        code == 5 && err.contains("/dev/full cannot be written"),
        "{err}"
    );
}

#[test]
fn a_command_is_recorded_if_strace_is_there() {
    let home = home();
    let there = std::process::Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|o| o.status.success());
    // Containers may forbid ptrace: then nothing can be said.
    let may = there
        && std::process::Command::new("strace")
            .args(["-o", "/dev/null", "true"])
            .status()
            .is_ok_and(|s| s.success());
    if !may {
        eprintln!("skipped: strace is missing or forbidden");
        return;
    }
    fs::write(home.path().join("data"), vec![1; 20_000]).unwrap();
    let script = "dd if=data of=copy bs=4096 2>/dev/null; dd if=data of=/dev/null bs=4096 2>/dev/null; rm copy";
    let (code, _, err) = home.run(&[
        "trace", "record", "-o", "r.strace", "--", "sh", "-c", script,
    ]);
    assert_eq!(code, 0, "{err}");
    let records = home.path().join("r.csv");
    let (code, _, err) = home.run(&["trace", "convert", "r.strace", "r.csv"]);
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(records).unwrap();
    // Five blocks written by the first dd, and removed by rm.
    assert_eq!(
        text.lines().filter(|l| l.contains(",write,")).count(),
        5,
        "{text}"
    );
    assert_eq!(
        text.lines().filter(|l| l.contains(",remove,")).count(),
        5,
        "{text}"
    );
    let (code, _, err) = home.run(&["trace", "record", "-o", "d.csv.gz", "--", "cat", "data"]);
    assert!(code == 0 && home.path().join("d.csv.gz").exists(), "{err}");
    let left: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().into_string().ok())
        .collect();
    assert!(
        left.iter()
            .all(|n| !n.contains(".calls") && !n.contains(".part")),
        "{left:?}"
    );
}

/// A program in strace's place that keeps its arguments and traces nothing that can be read.
const NO_STRACE: &str = r#"#!/bin/sh
echo "$@" > asked
while [ "$1" != -o ]; do shift; done
echo nonsense > "$2"
exit "$ENDS"
"#;

#[test]
fn the_code_of_a_recording_is_the_commands_unless_that_succeeds() {
    let home = Home::new();
    let path = home.path();
    fs::write(path.join("text"), NO_STRACE).unwrap();
    install(&path.join("text"), &path.join("no-strace"));
    let record = [
        "trace",
        "record",
        "-o",
        "x.csv",
        "--strace",
        "./no-strace",
        "--",
        "true",
    ];
    for (ends, code) in [("0", 5), ("7", 7)] {
        let (got, _, err) = finish(home.larder(&record).env("ENDS", ends));
        assert!(
            got == code && err.contains("is kept in x.csv.strace"),
            "{got}: {err}"
        );
    }
    // A mapping's end needs the file's size.
    let asked = fs::read_to_string(path.join("asked")).unwrap();
    assert!(asked.contains(",fstat,newfstatat,statx,"), "{asked}");
    let (_, help, _) = home.run(&["trace", "record", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("the command succeeds and no trace can be made of it"),
        "{help}"
    );
}

#[test]
fn rules_and_formats_are_listed() {
    let home = Home::new();
    let (_, rules, _) = home.run(&["sim", "--rules"]);
    assert!(rules.contains("lru") && rules.contains("\nopt "));
    let formats = home.json(&["trace", "formats", "--json"]);
    assert_eq!(formats["formats"].as_array().unwrap().len(), 25);
}

#[test]
fn the_answer_becomes_the_settings_of_a_block_cache() {
    let home = home();
    let path = home.path().join("larder.toml");
    fs::write(&path, "version = 1\n[pages]\nprezero = true\n").unwrap();
    let sim = ["sim", "a.txt", "--policy", "fifo,arc,linux-2.4.7,opt"];
    let asked = ["--size", "256KiB", "--settings", "larder.toml"];
    let (code, out, err) = home.run(&[&sim[..], &asked].concat());
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("larder.toml"), "{err}");
    let settings = larder::settings::Settings::read(&path).unwrap();
    assert!(settings.pages().prezero, "the rest of the file stays");
    let storage = larder_cache::MemoryStorage::default();
    let cache = larder_cache::BlockCache::builder(storage).settings(&settings);
    let stats = cache.build().unwrap().stats();
    assert_eq!(stats.capacity * 4096, 256 << 10);
    assert!(out.contains(&format!(": {};", stats.policy)), "{out}");
    assert!(settings.evidence("cache", "policy").is_some());
    for (more, said) in [
        (&["--size", "1%,2%"][..], "one trace"),
        (&[], "--size"),
        (&["--size", "10", "b.txt"], "one trace"),
    ] {
        let all = [&sim[..], more, &["--settings", "larder.toml"]].concat();
        let (code, _, err) = home.run(&all);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(said), "{err}");
    }
}
