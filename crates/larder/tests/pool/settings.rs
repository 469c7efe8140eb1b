//! The settings file: any text is read or refused, and a refusal says where it is wrong.

#![cfg(feature = "settings")]

use larder::os::zero::Zeroing;
use larder::pages::{ClusterSize, MAX_CLUSTER_PAGES, PagePool};
use larder::settings::{Settings, VERSION};
use proptest::prelude::*;

/// What the lab writes: comments, the values, and evidence for each.
fn file(
    cluster: &str,
    zeroing: &str,
    prezero: bool,
    run: &str,
    because: &str,
    ratio: f64,
) -> String {
    let quoted = |s: &str| toml::Value::String(s.to_owned()).to_string();
    format!(
        "# Measured by `larder measure`, written by `larder settings`.\n# machine 1f, 2026-01-01T00:00:00Z\n\n\
         version = {VERSION}\n\n[pages]\ncluster_pages = {cluster}\nzeroing = {}\nprezero = {prezero}\n\n\
         [evidence.pages.cluster_pages]\nrun = {}\nbecause = {}\nratio = {ratio:?}\nlo = {ratio:?}\nhi = {ratio:?}\n",
        quoted(zeroing),
        quoted(run),
        quoted(because),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Settings>();
    }

    #[test]
    fn text_that_looks_like_settings_is_read_or_refused(
        text in "(version|\\[|\\]|=|1|2|-|pages|evidence|cluster_pages|zeroing|prezero|true|\"auto\"|\"|\\.|#|\n|\n| |9223372036854775807|1e400|nan|\\{|\\}|,){0,40}"
    ) {
        let _ = text.parse::<Settings>();
    }

    #[test]
    fn what_was_written_is_read(
        pages in 1..=MAX_CLUSTER_PAGES,
        which in 0..Zeroing::ALL.len(),
        prezero in any::<bool>(),
        run in any::<String>(),
        because in any::<String>(),
        ratio in 0.1_f64..10.0,
    ) {
        let zeroing = Zeroing::ALL[which];
        let text = file(&pages.to_string(), zeroing.name(), prezero, &run, &because, ratio);
        let settings: Settings = text.parse().unwrap();
        let read = settings.pages();
        prop_assert_eq!(read.cluster_pages, Some(ClusterSize::pages(pages).unwrap()));
        prop_assert_eq!(read.zeroing, Some(zeroing));
        prop_assert_eq!(read.prezero, prezero);
        let evidence = settings.evidence("pages", "cluster_pages").unwrap();
        prop_assert_eq!(&evidence.run, &run);
        prop_assert_eq!(&evidence.because, &because);
        prop_assert_eq!(evidence.ratio, Some(ratio));
        prop_assert!(settings.evidence("pages", "zeroing").is_none());
    }

    #[test]
    fn a_cut_file_is_refused_or_says_less(cut in 0_usize..400) {
        let whole = file("64", "auto", true, "run", "because it was best", 1.01);
        let text = &whole[..cut.min(whole.len())];
        match text.parse::<Settings>() {
            // A cut at the end of a line is a shorter file; what it says is still what was written.
            Ok(settings) => {
                let pages = settings.pages().cluster_pages.map(ClusterSize::resolve);
                // `64` may have lost a digit, which the parser cannot see.
                prop_assert!(matches!(pages, None | Some(6 | 64)));
            }
            Err(error) => prop_assert!(error.to_string().contains("line") || error.to_string().contains("version"), "{}", error),
        }
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line(key in "[a-z][a-z_]{2,12}", section in 0_usize..3) {
        prop_assume!(!["version", "pages", "evidence", "cluster_pages", "zeroing", "prezero", "run", "because", "ratio", "hi", "date", "machine"].contains(&key.as_str()));
        let sections = ["", "\n[pages]", "\n[evidence.pages.zeroing]\nrun = \"r\""];
        let text = format!("version = 1{}\n{key} = 7\n", sections[section]);
        let line = 1 + text.lines().position(|l| l.starts_with(&format!("{key} "))).unwrap();
        let error = text.parse::<Settings>().unwrap_err().to_string();
        prop_assert!(error.contains(&key), "{}", error);
        prop_assert!(error.contains(&format!("line {line}")), "{}", error);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named(value in prop_oneof![Just("[]"), Just("{}"), Just("2026-01-01"), Just("1.5"), Just("true")]) {
        for key in ["cluster_pages", "zeroing"] {
            let error = format!("version = 1\n[pages]\n{key} = {value}\n").parse::<Settings>().unwrap_err().to_string();
            prop_assert!(error.contains(key), "{}", error);
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused_with_the_number() {
    for number in [
        "0",
        "-1",
        "1048577",
        "9223372036854775807",
        "-9223372036854775808",
    ] {
        let error = format!("version = 1\n[pages]\ncluster_pages = {number}\n")
            .parse::<Settings>()
            .unwrap_err()
            .to_string();
        assert!(error.contains("pages.cluster_pages"), "{error}");
        assert!(error.contains(number), "{error}");
    }
    for version in ["0", "2", "-1", "4294967296", "\"1\"", "1.0"] {
        let error = format!("version = {version}\n")
            .parse::<Settings>()
            .unwrap_err()
            .to_string();
        assert!(error.contains("version"), "{error}");
    }
}

#[test]
fn settings_of_the_malloc_become_the_variables_that_it_reads() {
    let read = |lines: &str| {
        let settings = format!("version = 1\n[malloc]\n{lines}\n").parse::<Settings>();
        settings.map(|settings| settings.malloc())
    };
    let all = read("mode = \"per-cpu\"\ndecay_ms = 0\ncache_bytes = \"64M\"").unwrap();
    assert_eq!(
        all.environment(),
        [
            ("LARDER_MALLOC_MODE", "per-cpu".to_owned()),
            ("LARDER_MALLOC_DECAY", "0".to_owned()),
            ("LARDER_MALLOC_CACHE", (64 << 20).to_string()),
        ]
    );
    let never = read("decay_ms = \"never\"\ncache_bytes = 0").unwrap();
    assert_eq!(
        never.environment(),
        [
            ("LARDER_MALLOC_DECAY", "never".to_owned()),
            ("LARDER_MALLOC_CACHE", "0".to_owned()),
        ]
    );
    assert_eq!(read("cache_bytes = \"auto\"").unwrap().environment(), []);
    for (line, part) in [
        ("mode = \"hardened\"", "malloc.mode: 'hardened'"),
        ("decay_ms = 86400001", "malloc.decay_ms: '86400001'"),
        ("decay_ms = -1", "malloc.decay_ms: '-1'"),
        ("cache_bytes = \"1MB\"", "malloc.cache_bytes: '1MB'"),
        ("decay = 7", "decay"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn a_pool_follows_its_settings_unless_told_otherwise() {
    let settings: Settings = file("96", "portable", true, "r", "b", 1.0).parse().unwrap();
    let pool = PagePool::builder()
        .ignore_environment()
        .settings(&settings)
        .build()
        .unwrap();
    assert_eq!(pool.cluster_pages(), 96);
    let pool = PagePool::builder()
        .ignore_environment()
        .cluster(ClusterSize::pages(7).unwrap())
        .settings(&settings)
        .build()
        .unwrap();
    assert_eq!(pool.cluster_pages(), 7, "what is set by hand stands");
    pool.set_cluster(ClusterSize::AUTO);
    assert_eq!(pool.cluster_pages(), 96, "what was measured is automatic");
    let pool = PagePool::builder()
        .ignore_environment()
        .cluster(ClusterSize::AUTO)
        .settings(&settings)
        .build()
        .unwrap();
    assert_eq!(pool.cluster_pages(), 96);
}
