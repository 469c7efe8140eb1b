//! Folders that have a part of the cache for themselves.

use std::fs;
use std::path::Path;

use larder_fs::{FolderBudget, FolderStats, FsError, MountOptions, Tune};

use crate::{Mounted, directory, mounted};

fn part(folder: &str, bytes: Option<usize>, rule: Option<&str>) -> FolderBudget {
    FolderBudget {
        folder: folder.into(),
        bytes,
        rule: rule.map(str::to_owned),
    }
}

fn stats(mounted: &Mounted, folder: &str) -> FolderStats {
    let all = mounted.mount.stats().folders;
    let found = all
        .into_iter()
        .find(|stats| stats.folder == Path::new(folder));
    found.unwrap_or_else(|| panic!("no {folder}"))
}

fn tune(mounted: &Mounted, budgets: impl Into<Vec<FolderBudget>>) -> Result<(), FsError> {
    mounted.mount.tune(&Tune {
        budgets: budgets.into(),
        ..Tune::default()
    })
}

#[test]
fn a_folder_keeps_to_its_part_and_the_others_to_theirs() {
    let part_bytes = 256 << 10;
    let parts = |options: MountOptions| {
        options
            .rule("lru")
            .budget(part("a/logs", Some(part_bytes), Some("fifo")))
            .budget(part("a/logs/deep/", Some(part_bytes), None))
    };
    let Some(mounted) = mounted(parts) else {
        return;
    };
    fs::create_dir_all(mounted.at.join("a/logs/deep/er")).unwrap();
    mounted.put("a/kept", vec![1; 1 << 20]);
    mounted.put("a/logs/deep/er/kept", vec![2; 200 << 10]);
    mounted.get("a/kept");
    let before = mounted.mount.stats().misses;
    // More than the whole cache.
    for n in 0..20 {
        mounted.put(&format!("a/logs/{n}"), vec![n; 500 << 10]);
        assert_eq!(mounted.get(&format!("a/logs/{n}")), vec![n; 500 << 10]);
        assert!(stats(&mounted, "a/logs").resident_bytes <= part_bytes as u64);
    }
    let logs = stats(&mounted, "a/logs");
    assert_eq!(
        (logs.rule.as_str(), logs.capacity_bytes),
        ("fifo", 256 << 10)
    );
    assert!(logs.misses > 0 && logs.resident_bytes > 0, "{logs:?}");
    assert!(mounted.mount.stats().misses > before);
    let deep = stats(&mounted, "a/logs/deep");
    assert_eq!(
        (deep.rule.as_str(), deep.resident_bytes),
        ("lru", 200 << 10)
    );
    // Nothing of the others had to go for it.
    let reads = mounted.mount.stats().backing_reads;
    mounted.get("a/kept");
    mounted.get("a/logs/deep/er/kept");
    assert_eq!(mounted.mount.stats().backing_reads, reads);
}

#[test]
fn parts_and_rules_change_while_it_is_mounted() {
    let Some(mounted) = mounted(|options| options.rule("lru").most_bytes(8 << 20)) else {
        return;
    };
    assert!(mounted.mount.stats().folders.is_empty());
    let rule = Some("lirs".to_owned());
    let with_rule = Tune {
        rule,
        ..Tune::default()
    };
    mounted.mount.tune(&with_rule).unwrap();
    assert_eq!(mounted.mount.stats().rule, "lirs");
    // The folder comes later, goes, and comes again.
    tune(&mounted, [part("new", Some(128 << 10), None)]).unwrap();
    for _ in 0..2 {
        fs::create_dir(mounted.at.join("new")).unwrap();
        mounted.put("new/file", vec![1; 500 << 10]);
        let new = stats(&mounted, "new");
        assert_eq!((new.resident_bytes, new.rule.as_str()), (128 << 10, "lirs"));
        fs::remove_dir_all(mounted.at.join("new")).unwrap();
    }
    // More for it than the cache had, in one command.
    let whole = Tune {
        cache_bytes: Some(8 << 20),
        budgets: vec![part("new", Some(5 << 20), Some("clock"))],
        ..Tune::default()
    };
    mounted.mount.tune(&whole).unwrap();
    let new = stats(&mounted, "new");
    assert_eq!((new.capacity_bytes, new.rule.as_str()), (5 << 20, "clock"));
    // And back, with what is here still.
    let small = Tune {
        cache_bytes: Some(4 << 20),
        budgets: vec![part("new", Some(64 << 10), None)],
        ..Tune::default()
    };
    mounted.mount.tune(&small).unwrap();
    tune(
        &mounted,
        [part("new", None, None), part("never", None, None)],
    )
    .unwrap();
    assert!(mounted.mount.stats().folders.is_empty());
    fs::create_dir(mounted.at.join("new")).unwrap();
    mounted.put("new/other", vec![1; 500 << 10]);
    assert!(mounted.mount.stats().resident_bytes >= 500 << 10);
}

#[test]
fn what_is_no_folder_and_what_is_too_much_is_refused() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    for bad in ["", ".", "/logs", "../logs"] {
        let refused = tune(&mounted, [part(bad, Some(1 << 20), None)]);
        assert!(matches!(refused, Err(FsError::Folder { .. })), "{bad}");
    }
    for (bytes, rule) in [(1 << 30, None), (1, None), (1 << 20, Some("best"))] {
        let refused = tune(&mounted, [part("logs", Some(bytes), rule)]);
        assert!(matches!(refused, Err(FsError::Cache(_))), "{bytes}");
    }
    assert!(mounted.mount.stats().folders.is_empty());
    let (source, at) = (directory(), directory());
    let options = MountOptions::new(source.path(), at.path());
    let refused = options.budget(part("logs", Some(1 << 30), None)).mount();
    assert!(matches!(refused, Err(FsError::Cache(_))));
}
