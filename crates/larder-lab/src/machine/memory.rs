//! Memory, swap, huge pages and the rules of the memory manager.

use super::Root;
use super::fields::{Fields, Reading};
use super::root::{chosen, line_value};

const MEMINFO: &str = "proc/meminfo";
const THP: &str = "sys/kernel/mm/transparent_hugepage";

pub(super) fn read(root: &Root, fields: &mut Fields) {
    let info = root.read(MEMINFO);
    for (name, key) in [
        ("memory.total", "MemTotal"),
        ("memory.available", "MemAvailable"),
        ("swap.total", "SwapTotal"),
        ("hugetlb.pages", "HugePages_Total"),
        ("hugetlb.size", "Hugepagesize"),
    ] {
        fields.put(name, from_meminfo(&info, key));
    }
    let page = rustix::param::page_size();
    fields.put("memory.page_size", Ok(page.to_string()));
    for (name, file) in [
        ("thp.enabled", "enabled"),
        ("thp.defrag", "defrag"),
        ("thp.shmem", "shmem_enabled"),
        ("thp.zero_page", "use_zero_page"),
    ] {
        let text = root.value(&format!("{THP}/{file}"));
        fields.put(name, text.map(|text| chosen(&text)));
    }
    fields.put("mthp.enabled", mthp(root));
    fields.put_files(
        root,
        &[
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
        ],
    );
}

/// Bytes that this process may use: the machine's memory, its control group's limit, or its own, whichever is least.
#[must_use]
pub fn memory_limit(root: &Root) -> Option<u64> {
    let number = |value: Reading| value.ok()?.split_whitespace().next()?.parse::<u64>().ok();
    let machine = number(from_meminfo(&root.read(MEMINFO), "MemTotal"));
    let group = number(super::cgroup::limit(root, "memory.max"));
    let own = rustix::process::getrlimit(rustix::process::Resource::As).current;
    [machine, group, own].into_iter().flatten().min()
}

/// `/proc/meminfo` counts in kB, which are KiB; sizes are kept in bytes.
fn from_meminfo(info: &Reading, key: &str) -> Reading {
    let value = line_value(info.as_ref()?, MEMINFO, key)?;
    match value.strip_suffix(" kB") {
        None => Ok(value),
        Some(kib) => match kib.trim().parse::<u64>() {
            Ok(kib) => Ok(format!("{} bytes", kib.saturating_mul(1024))),
            Err(_) => Err(format!("/{MEMINFO} says '{key}: {value}'")),
        },
    }
}

/// The sizes of multi-size huge pages that are on, with their rule.
fn mthp(root: &Root) -> Reading {
    let sizes: Vec<String> = root
        .names(THP)
        .into_iter()
        .filter(|n| n.starts_with("hugepages-"))
        .collect();
    if sizes.is_empty() {
        return Err(format!(
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
    Ok(if on.is_empty() {
        "none".to_owned()
    } else {
        on.join(", ")
    })
}
