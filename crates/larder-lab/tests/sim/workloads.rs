//! Workloads and loadfiles where a trace stands.

use std::fs;

use crate::cli::{lines, without_knees};
use crate::home::Home;
use crate::samples;

#[test]
fn workloads_stand_where_traces_do() {
    let home = Home::new();
    let zipf = "zipf:blocks=300,requests=5e3,alpha=0.9,seed=3";
    let (code, out, err) = home.run(&[
        "sim",
        zipf,
        "loop:blocks=50,requests=500",
        "--size",
        "40",
        "--policy",
        "lru,opt",
        "--json",
    ]);
    assert_eq!(code, 0, "{err}");
    let rows = lines(&out);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["trace"], zipf);
    assert_eq!(rows[0]["format"], "generated");
    assert_eq!(rows[0]["counts"]["uses"], 5000);
    // A loop that does not fit: nothing for LRU; OPT keeps all but one place of it.
    assert_eq!(rows[2]["tally"]["hits"], 0);
    assert!(rows[3]["tally"]["hits"].as_u64().unwrap() > 300);
    // Streamed, cut short, and written to a file, it is the same.
    let (_, streamed, err) = home.run(&[
        "sim", zipf, "--stream", "--sizes", "40", "--rule", "lru", "--json",
    ]);
    assert_eq!(lines(&streamed)[0]["tally"], rows[0]["tally"], "{err}");
    let (code, _, err) = home.run(&["trace", "convert", zipf, "z.oracleGeneral.zst"]);
    assert_eq!(code, 0, "{err}");
    let (_, file, _) = home.run(&[
        "sim",
        "z.oracleGeneral.zst",
        "--size",
        "40",
        "--policy",
        "lru,opt",
        "--json",
    ]);
    let file = lines(&file);
    assert_eq!(
        (&file[0]["tally"], &file[1]["tally"]),
        (&rows[0]["tally"], &rows[1]["tally"])
    );
    let info = home.json(&["trace", "info", zipf, "--limit", "7", "--json"]);
    assert_eq!(
        (&info["uses"], &info["format"]),
        (&7.into(), &"generated".into())
    );
    // Shards make it anew.
    for k in ["1/2", "2/2"] {
        let (code, _, err) = home.run(&[
            "sim", "run", zipf, "--size", "40", "--policy", "lru,opt", "--shard", k, "--out",
            "part-%k",
        ]);
        assert_eq!(code, 0, "{err}");
    }
    let (_, merged, err) = home.run(&["sim", "merge", "part-1", "part-2", "--json"]);
    assert_eq!(
        lines(&merged)[..],
        lines(&without_knees(&out))[..2],
        "{err}"
    );
    let all = home.json(&["sim", "--workloads", "--json"]);
    assert_eq!(all["workloads"].as_array().unwrap().len(), 8);
    let (_, text, _) = home.run(&["sim", "--workloads"]);
    assert!(text.contains("zipf:blocks=100000,requests=1000000,alpha=1,seed=1"));
}

#[test]
fn clients_of_a_loadfile_have_files_of_their_own() {
    let home = Home::new();
    fs::write(home.path().join("client.txt"), samples::DBENCH).unwrap();
    let info = |trace: &str| home.json(&["trace", "info", trace, "--json"]);
    let (one, three) = (info("client.txt"), info("dbench:file=client.txt,clients=3"));
    assert_eq!(one["format"], "dbench");
    assert_eq!(
        (&one["uses"], &one["blocks"], &one["removed"]),
        (&4.into(), &4.into(), &4.into())
    );
    assert_eq!(
        (&three["uses"], &three["blocks"], &three["tenants"]),
        (&12.into(), &12.into(), &3.into())
    );
}
