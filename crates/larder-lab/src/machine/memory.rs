//! Memory, swap, huge pages and the rules of the memory manager.

use super::Root;
use super::capture::Fields;
use super::root::{chosen, line_value};
use crate::model::Field;

const THP: &str = "sys/kernel/mm/transparent_hugepage";

pub(super) fn read(root: &Root, fields: &mut Fields) {
    let info = root.read("proc/meminfo");
    for (name, key) in [
        ("memory.total", "MemTotal"),
        ("memory.available", "MemAvailable"),
        ("swap.total", "SwapTotal"),
        ("hugetlb.pages", "HugePages_Total"),
        ("hugetlb.size", "Hugepagesize"),
    ] {
        fields.insert(name.to_owned(), from_meminfo(&info, key));
    }
    fields.insert(
        "memory.page_size".to_owned(),
        Field::Known(rustix::param::page_size().to_string()),
    );
    for (name, file) in [
        ("thp.enabled", "enabled"),
        ("thp.defrag", "defrag"),
        ("thp.shmem", "shmem_enabled"),
        ("thp.zero_page", "use_zero_page"),
    ] {
        let field = match root.field(&format!("{THP}/{file}")) {
            Field::Known(text) => Field::Known(chosen(&text)),
            unknown => unknown,
        };
        fields.insert(name.to_owned(), field);
    }
    fields.insert("mthp.enabled".to_owned(), mthp(root));
    for (name, path) in [
        ("vm.overcommit_memory", "proc/sys/vm/overcommit_memory"),
        ("vm.max_map_count", "proc/sys/vm/max_map_count"),
        ("vm.swappiness", "proc/sys/vm/swappiness"),
        ("vm.zone_reclaim", "proc/sys/vm/zone_reclaim_mode"),
        ("vm.lru_gen", "sys/kernel/mm/lru_gen/enabled"),
        ("ksm.run", "sys/kernel/mm/ksm/run"),
        (
            "page_reporting.order",
            "sys/module/page_reporting/parameters/page_reporting_order",
        ),
    ] {
        fields.insert(name.to_owned(), root.field(path));
    }
}

/// Bytes that this process may use: the machine's memory, its control group's limit, or its own, whichever is least.
#[must_use]
pub fn memory_limit(root: &Root) -> Option<u64> {
    let number = |field: Field| match field {
        Field::Known(text) => text.split_whitespace().next()?.parse::<u64>().ok(),
        Field::Unknown(_) => None,
    };
    let machine = number(from_meminfo(&root.read("proc/meminfo"), "MemTotal"));
    let group = number(super::cgroup::limit(root, "memory.max"));
    let own = rustix::process::getrlimit(rustix::process::Resource::As).current;
    [machine, group, own].into_iter().flatten().min()
}

/// `/proc/meminfo` counts in kB, which are KiB; sizes are kept in bytes.
fn from_meminfo(info: &Result<String, String>, key: &str) -> Field {
    let text = match info {
        Ok(text) => text,
        Err(why) => return Field::Unknown(why.clone()),
    };
    let Some(value) = line_value(text, key) else {
        return Field::Unknown(format!("/proc/meminfo has no '{key}'"));
    };
    match value.strip_suffix(" kB") {
        None => Field::Known(value),
        Some(kib) => match kib.trim().parse::<u64>() {
            Ok(kib) => Field::Known(format!("{} bytes", kib.saturating_mul(1024))),
            Err(_) => Field::Unknown(format!("/proc/meminfo says '{key}: {value}'")),
        },
    }
}

/// The sizes of multi-size huge pages that are on, with their rule.
fn mthp(root: &Root) -> Field {
    let sizes: Vec<String> = root
        .names(THP)
        .into_iter()
        .filter(|n| n.starts_with("hugepages-"))
        .collect();
    if sizes.is_empty() {
        return Field::Unknown(format!(
            "/{THP} has no hugepages-*: the kernel is older than 6.8"
        ));
    }
    let on: Vec<String> = sizes
        .iter()
        .filter_map(|dir| {
            let rule = chosen(&root.read(&format!("{THP}/{dir}/enabled")).ok()?);
            let size = dir.strip_prefix("hugepages-")?;
            (rule != "never").then(|| format!("{size} {rule}"))
        })
        .collect();
    Field::Known(if on.is_empty() {
        "none".to_owned()
    } else {
        on.join(", ")
    })
}
