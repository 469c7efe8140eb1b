//! SQLite: a table filled, indexed, joined, grouped and changed, in memory and in a file.

use super::super::process::{Malloc, Step};
use super::super::shop::{Shop, which};
use super::{Program, commands, python};
use crate::model::Measures;

/// In memory.
pub(super) const SQLITE: Program = Program {
    name: "sqlite",
    about: "sqlite3, or python3's sqlite3: rows inserted, indexed, joined, grouped and deleted, in memory",
    tools: &[],
    lacks: || {
        (which("sqlite3").is_none() && which("python3").is_none())
            .then(|| "neither sqlite3 nor python3 is installed".to_owned())
    },
    scale: 12,
    quick: true,
    run: |shop, malloc| run(shop, malloc, ":memory:"),
};

/// In a file.
pub(super) const FILE: Program = Program {
    name: "sqlite-file",
    about: "the same in a file, without waiting for the disk",
    quick: false,
    run: |shop, malloc| run(shop, malloc, "work.db"),
    ..SQLITE
};

fn run(shop: &Shop, malloc: &Malloc, database: &str) -> anyhow::Result<Measures> {
    let script = shop.write("work.sql", &sql(shop.scale))?;
    let step = match which("sqlite3") {
        Some(program) => Step::new(program, &["-batch", database]).reads(script),
        None => {
            let file = shop.write("work.py", PYTHON)?;
            let words = ["-S", &*file.to_string_lossy(), database];
            Step::new(python::interpreter(shop)?, &words)
        }
    };
    commands(shop, malloc, &[step])
}

/// What `sqlite3 DATABASE < work.sql` does.
const PYTHON: &str = r#"
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in open("work.sql"):
    for row in base.execute(line):
        print("|".join(map(str, row)))
"#;

/// One statement to a line.
fn sql(scale: usize) -> String {
    let rows = 10_000 * scale;
    format!(
        "pragma synchronous = off;\n\
         create table item (id integer primary key, kind integer, name text, price real);\n\
         create table sale (item integer, day integer, count integer);\n\
         with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows}) insert into item select i, i * 7919 % 101, 'item number ' || (i * 31 % 9973), i * 0.37 from n;\n\
         with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows}) insert into sale select i * 17 % {rows} + 1, i % 365, i % 9 from n;\n\
         create index item_name on item (name);\n\
         create index sale_item on sale (item);\n\
         select kind, count(*), round(sum(price), 2), min(name), max(name) from item group by kind order by kind;\n\
         select day, round(sum(count * price), 2) from sale join item on item.id = sale.item group by day order by day limit 40;\n\
         select count(distinct name), sum(length(name)) from item where name like '%7%';\n\
         select name, group_concat(id) from item where id % 50 = 3 group by name order by length(group_concat(id)) desc, name limit 20;\n\
         update item set name = name || ' (old)' where kind < 20;\n\
         delete from sale where day % 3 = 0;\n\
         select count(*), sum(length(name)) from item;\n\
         select count(*), sum(count) from sale;\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::process::Output;
    use super::*;

    #[test]
    fn both_ways_say_the_same() {
        if which("sqlite3").is_none() || which("python3").is_none() {
            eprintln!("skipped: sqlite3 and python3 are not both installed");
            return;
        }
        let shop = Shop::open(1).expect("room");
        let script = shop.write("work.sql", &sql(1)).expect("written");
        let file = shop.write("work.py", PYTHON).expect("written");
        let own =
            Step::new(which("sqlite3").expect("there"), &["-batch", ":memory:"]).reads(script);
        let words = ["-S", &*file.to_string_lossy(), ":memory:"];
        let python = Step::new(python::interpreter(&shop).expect("there"), &words);
        let numbers = [own, python].map(|step| {
            let mut output = Output::default();
            Malloc::default()
                .run(&shop, &[step], &mut output)
                .expect("runs");
            output.number()
        });
        assert_eq!(numbers[0], numbers[1]);
    }
}
