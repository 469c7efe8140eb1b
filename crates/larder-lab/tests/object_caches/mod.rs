//! Why the second thread is slow, contestant by contestant.

use larder_lab::model::{Analysis, Value};

use super::analysis;

#[test]
fn each_variant_has_its_own_reason() {
    let analysis = analysis();
    let row = |name: &str| second_thread(&analysis, name);
    let says = |name: &str, words: &str| {
        let row = row(name);
        assert_eq!(row[2], Value::Text(words.to_owned()), "{name}");
    };
    for name in ["hashed-16", "explicit-handle"] {
        says(name, "false sharing between the slab's pieces");
    }
    says("hashed-2", "false sharing in the arrays of the threads");
    for name in ["hashed-mutex", "global-locked"] {
        says(name, "waiting for the lock");
    }
    says("malloc", "no cost");
    let time = format!("{:?}", row("hashed-16")[5]);
    assert!(time.contains("value: 5.99"), "{time}");
}

/// The row of a contestant under the question why the second thread is slow.
fn second_thread(analysis: &Analysis, name: &str) -> Vec<Value> {
    let finding = analysis
        .findings
        .iter()
        .find(|f| f.question.starts_with("Why is the second thread"))
        .expect("asked");
    let table = finding.table.as_ref().expect("a row for each");
    let named = |row: &&Vec<Value>| row[0] == Value::Text(name.to_owned());
    table.rows.iter().find(named).expect("it ran").clone()
}

#[test]
fn the_second_thread_is_counted() {
    let row = second_thread(&analysis(), "hashed-mutex");
    let sleeps = format!("{:?}", row[8]);
    assert!(sleeps.contains("(499.8"), "{sleeps}");
}
