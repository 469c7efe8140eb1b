//! What a reader needs to check a run or to repeat it: the machine, the noise, the groups, what was skipped.

use super::table::TableView;
use crate::model::{Field, MachineRecord, NoiseRecord, RunRecord, Skipped, Table, Value};
use crate::report::{Document, number, text};

/// A name with its value, or with the reason why there is none.
pub(super) struct Fact {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) unknown: bool,
}

impl Fact {
    fn new(name: &str, value: impl ToString) -> Self {
        Self::maybe(name, Some(value.to_string()))
    }

    fn maybe(name: &str, value: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            unknown: value.is_none(),
            value: value.unwrap_or_else(|| "unknown".to_owned()),
        }
    }

    fn field(name: &str, field: Option<&Field>) -> Self {
        match field {
            Some(Field::Known(v)) => Self::new(name, v),
            Some(Field::Unknown(why)) => Self {
                unknown: true,
                ..Self::new(name, format!("unknown: {why}"))
            },
            None => Self::maybe(name, None),
        }
    }
}

/// A machine: the fields that a reader asks for first, and all of them.
pub(super) struct MachineView {
    pub(super) key: Vec<Fact>,
    pub(super) rest: Vec<Fact>,
}

/// How a run was taken.
pub(super) struct Manifest {
    pub(super) command: String,
    pub(super) facts: Vec<Fact>,
    pub(super) groups: Option<TableView>,
    pub(super) skipped: Vec<Skipped>,
}

/// The machines of all runs, each once.
pub(super) fn machines(doc: &Document) -> Vec<MachineView> {
    let mut seen: Vec<&MachineRecord> = Vec::new();
    for (run, _) in &doc.runs {
        let same = |m: &&MachineRecord| {
            if run.machine.fingerprint.is_empty() {
                **m == run.machine
            } else {
                m.fingerprint == run.machine.fingerprint
            }
        };
        if !seen.iter().any(same) {
            seen.push(&run.machine);
        }
    }
    seen.into_iter().map(machine).collect()
}

/// The fields that a reader asks for first.
const KEY_FIELDS: [(&str, &str); 8] = [
    ("cpu.model", "processor"),
    ("cpu.online", "CPUs online"),
    ("cache.l2", "level 2 cache"),
    ("cache.l3", "level 3 cache"),
    ("memory.total", "memory"),
    ("kernel.release", "kernel"),
    ("thp.enabled", "transparent huge pages"),
    ("virtualisation", "virtualisation"),
];

fn machine(m: &MachineRecord) -> MachineView {
    let mut key: Vec<Fact> = KEY_FIELDS
        .iter()
        .filter(|(name, _)| *name == "cpu.model" || m.fields.contains_key(*name))
        .map(|(name, label)| Fact::field(label, m.fields.get(*name)))
        .collect();
    if !m.fingerprint.is_empty() {
        key.push(Fact::new("fingerprint", &m.fingerprint));
    }
    MachineView {
        key,
        rest: m
            .fields
            .iter()
            .map(|(name, field)| Fact::field(name, Some(field)))
            .collect(),
    }
}

/// How a run was taken.
pub(super) fn manifest(run: &RunRecord) -> Manifest {
    let mut facts = vec![
        Fact::new("run", &run.id),
        Fact::new("started", &run.started),
        Fact::new("took", number::number(run.seconds, "s")),
        Fact::new("seed", run.seed),
        Fact::new("larder", &run.version),
        Fact::new("depth", &run.depth),
        Fact::new("samples", number::count(run.samples.len() as i64)),
    ];
    facts.extend(noise(&run.noise));
    let rows = run.groups.iter().map(|g| {
        vec![
            Value::Text(g.name.clone()),
            Value::Text(g.reference.to_string()),
            Value::Text(g.metric.clone()),
            Value::Count(i64::from(g.rounds)),
            Value::Text(text::stopped(g.stopped).to_owned()),
        ]
    });
    let columns = [
        "group",
        "compared with",
        "judged by",
        "rounds",
        "stopped because",
    ];
    let groups = Table::new("Groups", &columns, rows);
    Manifest {
        command: text::command(run),
        facts,
        groups: (!run.groups.is_empty()).then(|| TableView::new(&groups, false)),
        skipped: run.skipped.clone(),
    }
}

fn noise(n: &NoiseRecord) -> Vec<Fact> {
    let percent = |name: &str, v: Option<f64>| Fact::maybe(name, v.map(|p| number::number(p, "%")));
    vec![
        percent("CPU pressure", n.cpu_pressure_percent),
        percent("memory pressure", n.memory_pressure_percent),
        percent("input and output pressure", n.io_pressure_percent),
        percent("CPU time stolen", n.steal_percent),
        Fact::maybe(
            "load before, after",
            n.load
                .map(|(a, b)| format!("{}, {}", number::number(a, ""), number::number(b, ""))),
        ),
        Fact::new(
            "noise",
            if n.noisy {
                "too much to trust small differences"
            } else {
                "within bounds"
            },
        ),
    ]
}
