//! A fake tree of /proc and /sys.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{NoiseMeter, Root, capture_from};
use crate::model::{Field, MachineRecord, Measures};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A machine with two CPUs.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let cpuinfo = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\
                   model name\t: AMD EPYC 9\nstepping\t: 1\nmicrocode\t: 0xa\n\
                   flags\t\t: fpu sse2 erms avx2 hypervisor\n\nprocessor\t: 1\nmodel name\t: other\n";
    for (path, text) in [
        ("proc/cpuinfo", cpuinfo),
        (
            "proc/meminfo",
            "MemTotal:   4194304 kB\nSwapTotal: 0 kB\nHugePages_Total:  3\nHugepagesize: 2048 kB\n",
        ),
        ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n"),
        ("proc/self/cgroup", "0::/user.slice/user-1000.slice/job\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-fake\n"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n"),
        ("proc/sys/kernel/hostname", "secret-host\n"),
        ("proc/version", "Linux version 6.1 (builder@secret-host)\n"),
        (
            "proc/cmdline",
            "root=UUID=secret-disk init_on_alloc=1 quiet\n",
        ),
        (
            "proc/stat",
            "cpu  100 0 100 800 0 0 0 0 0 0\nbtime 1700000000\n",
        ),
        ("proc/loadavg", "0.50 0.40 0.30 1/99 1234\n"),
        (
            "proc/pressure/cpu",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0 total=0\n",
        ),
        (
            "proc/pressure/memory",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        ),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
        ("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n"),
        ("sys/devices/system/cpu/cpu0/cache/index2/size", "512K\n"),
        (
            "sys/devices/system/cpu/vulnerabilities/meltdown",
            "Not affected\n",
        ),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
            "always inherit [madvise] never\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/hugepages-128kB/enabled",
            "always inherit madvise [never]\n",
        ),
        (
            "sys/fs/cgroup/user.slice/user-1000.slice/job/cpu.max",
            "max 100000\n",
        ),
        ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
        (
            "sys/fs/cgroup/user.slice/user-1000.slice/job/memory.max",
            "max\n",
        ),
    ] {
        write(dir.path(), path, text);
    }
    dir
}

fn captured(dir: &tempfile::TempDir) -> MachineRecord {
    capture_from(&Root::at(dir.path()))
}

#[test]
fn the_fields_come_from_the_tree() {
    let record = captured(&tree());
    for (name, value) in [
        ("cpu.model", "AMD EPYC 9"),
        ("cpu.model_number", "17"),
        ("cpu.family", "25"),
        ("cpu.features", "sse2 avx2 erms"),
        ("cpu.affinity", "0-1"),
        ("cache.l1d", "32K"),
        ("cache.l2", "512K"),
        ("memory.total", "4294967296 bytes"),
        ("hugetlb.pages", "3"),
        ("thp.enabled", "madvise"),
        ("mthp.enabled", "64kB madvise"),
        ("kernel.release", "6.1.0-fake"),
        ("kernel.preemption", "PREEMPT_DYNAMIC"),
        ("init_on_alloc", "on"),
        ("mitigation.meltdown", "Not affected"),
        ("frequency.turbo", "off"),
        ("virtualisation", "virtual machine"),
        ("cgroup.cpu_max", "150000 100000"),
        ("cgroup.memory_max", "none"),
        ("boot.time", "2023-11-14T22:13:20Z"),
    ] {
        assert_eq!(record.text(name), value, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_a_reason() {
    let record = captured(&tree());
    let Some(Field::Unknown(why)) = record.fields.get("frequency.governor") else {
        panic!("{:?}", record.fields.get("frequency.governor"));
    };
    assert!(why.contains("scaling_governor is not there"), "{why}");
    // An empty machine has the same fields, all of them unknown or the program's own.
    let empty = tempfile::tempdir().unwrap();
    let nothing = captured(&empty);
    assert!(nothing.fields.len() > 30);
    for (name, field) in &nothing.fields {
        let own = name.starts_with("build.")
            || ["libc.version", "memory.page_size"].contains(&name.as_str());
        assert!(
            own || matches!(field, Field::Unknown(why) if !why.is_empty()),
            "{name}"
        );
    }
    assert_eq!(nothing.fingerprint.len(), 16);
}

#[test]
fn garbage_is_no_panic() {
    let dir = tree();
    for path in [
        "proc/meminfo",
        "proc/cpuinfo",
        "proc/stat",
        "proc/loadavg",
        "proc/pressure/cpu",
        "proc/self/cgroup",
    ] {
        fs::write(dir.path().join(path), [0xff, b':', 0, b'\n', b':', 0xfe]).unwrap();
        let _ = captured(&dir);
        let _ = NoiseMeter::begin(Root::at(dir.path())).finish();
    }
    write(dir.path(), "proc/meminfo", "MemTotal: many kB\n");
    let record = captured(&dir);
    assert!(matches!(
        record.fields.get("memory.total"),
        Some(Field::Unknown(_))
    ));
}

#[test]
fn no_name_of_host_user_or_disk_is_kept() {
    let json = serde_json::to_string(&captured(&tree())).unwrap();
    for secret in ["secret", "user-1000", "UUID"] {
        assert!(!json.contains(secret), "{secret} in {json}");
    }
}

#[test]
fn the_fingerprint_is_of_the_hardware_and_the_kernel_only() {
    let dir = tree();
    let before = captured(&dir).fingerprint;
    for (path, text) in [
        ("proc/loadavg", "9.00 9.00 9.00 1/99 1234\n"),
        ("proc/stat", "cpu  1 1 1 1 1 1 1 1 1 1\nbtime 1800000000\n"),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never\n",
        ),
        // What the kernel keeps for itself at boot varies a little.
        ("proc/meminfo", "MemTotal:   4194000 kB\n"),
    ] {
        write(dir.path(), path, text);
        assert_eq!(captured(&dir).fingerprint, before, "{path}");
    }
    for (path, text) in [
        ("proc/meminfo", "MemTotal:   8388608 kB\n"),
        ("proc/sys/kernel/osrelease", "6.2.0\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/cpu0/cache/index2/size", "1024K\n"),
    ] {
        let dir = tree();
        write(dir.path(), path, text);
        assert_ne!(captured(&dir).fingerprint, before, "{path}");
    }
}

fn pressure(dir: &tempfile::TempDir, what: &str, total: u64) {
    let text =
        format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0 total=0\n");
    write(dir.path(), &format!("proc/pressure/{what}"), &text);
}

fn used(cpu_seconds: f64) -> Measures {
    Measures::new()
        .with("proc.user_seconds", cpu_seconds)
        .with("proc.system_seconds", 0.0)
}

#[test]
fn pressure_during_single_threaded_cells_is_noise() {
    let dir = tree();
    let mut meter = NoiseMeter::begin(Root::at(dir.path()));
    let second = Duration::from_secs(1);
    meter.cell_begins();
    pressure(&dir, "cpu", 1000 + 600_000);
    let m = meter.cell_ends(second, used(0.9));
    assert_eq!(m.get("proc.cpu_pressure_percent"), Some(60.0));
    meter.cell_begins();
    let m = meter.cell_ends(second, used(0.9));
    assert_eq!(m.get("proc.cpu_pressure_percent"), Some(0.0));
    let noise = meter.finish();
    assert_eq!(noise.cpu_pressure_percent, Some(30.0));
    assert!(noise.noisy);
    assert!(noise.warnings[0].contains("30 %"), "{:?}", noise.warnings);
}

#[test]
fn a_worker_that_says_how_long_it_waited_is_believed_over_the_pressure() {
    let dir = tree();
    let second = Duration::from_secs(1);
    for (waited, noisy) in [(0.01, false), (0.3, true)] {
        pressure(&dir, "cpu", 1000);
        let mut meter = NoiseMeter::begin(Root::at(dir.path()));
        meter.cell_begins();
        // The starts of the cells make tasks wait on the quietest machine.
        pressure(&dir, "cpu", 1000 + 600_000);
        let m = meter.cell_ends(second, used(0.6).with("proc.waited_seconds", waited));
        let others = m.get("proc.others_percent").unwrap();
        assert!((others - 100.0 * waited / (0.6 + waited)).abs() < 1e-9);
        let noise = meter.finish();
        assert_eq!(noise.noisy, noisy, "{noise:?}");
        assert_eq!(noise.others_percent, Some(others));
    }
}

#[test]
fn time_stolen_from_a_cell_is_in_its_sample() {
    let dir = tree();
    let mut meter = NoiseMeter::begin(Root::at(dir.path()));
    meter.cell_begins();
    write(
        dir.path(),
        "proc/stat",
        "cpu  150 0 100 790 0 0 0 60 50 0\n",
    );
    let m = meter.cell_ends(Duration::from_secs(1), used(0.6));
    assert_eq!(m.get("proc.others_percent"), Some(60.0));
    meter.cell_begins();
    // One tick of two says nothing.
    write(
        dir.path(),
        "proc/stat",
        "cpu  151 0 100 790 0 0 0 61 50 0\n",
    );
    let m = meter.cell_ends(Duration::from_millis(10), used(0.001));
    assert_eq!(m.get("proc.others_percent"), None);
}

#[test]
fn pressure_that_a_contestant_makes_itself_is_not() {
    let dir = tree();
    let mut meter = NoiseMeter::begin(Root::at(dir.path()));
    meter.cell_begins();
    pressure(&dir, "cpu", 1000 + 1_000_000);
    // Eight threads on two CPUs: a thread always waits.
    let m = meter.cell_ends(Duration::from_secs(1), used(1.9));
    assert_eq!(m.get("proc.cpu_pressure_percent"), Some(100.0));
    let noise = meter.finish();
    assert_eq!(noise.cpu_pressure_percent, None);
    assert!(!noise.noisy && noise.warnings.is_empty());
}

#[test]
fn stolen_time_and_load_are_told() {
    let dir = tree();
    let meter = NoiseMeter::begin(Root::at(dir.path()));
    // 100 more ticks, 3 of them stolen; guest ticks are in user ticks already.
    write(dir.path(), "proc/stat", "cpu  150 0 100 847 0 0 0 3 50 0\n");
    write(dir.path(), "proc/loadavg", "1.50 0.40 0.30 1/99 1234\n");
    let noise = meter.finish();
    assert_eq!(noise.steal_percent, Some(3.0));
    assert_eq!(noise.load, Some((0.5, 1.5)));
    assert!(
        noise.noisy && noise.warnings[0].contains("hypervisor"),
        "{noise:?}"
    );
    assert_eq!(noise.io_pressure_percent, None);
}

#[test]
fn memory_pressure_is_told() {
    let dir = tree();
    let meter = NoiseMeter::begin(Root::at(dir.path()));
    // More than any wall time of this test.
    pressure(&dir, "memory", 1 << 50);
    let noise = meter.finish();
    assert_eq!(noise.memory_pressure_percent, Some(100.0));
    assert!(noise.noisy && noise.warnings[0].contains("reclaiming"));
}

#[test]
fn a_machine_without_pressure_files_is_unknown_and_quiet() {
    let empty = tempfile::tempdir().unwrap();
    let mut meter = NoiseMeter::begin(Root::at(empty.path()));
    meter.cell_begins();
    let m = meter.cell_ends(Duration::from_secs(1), used(0.9));
    assert_eq!(m.get("proc.cpu_pressure_percent"), None);
    let noise = meter.finish();
    assert_eq!(noise.cpu_pressure_percent, None);
    assert_eq!(noise.steal_percent, None);
    assert!(!noise.noisy);
}

#[test]
fn the_running_machine_can_be_captured() {
    let record = super::capture();
    assert_ne!(record.text("kernel.release"), "unknown");
    assert_eq!(record.fingerprint, super::capture().fingerprint);
}
