use std::cell::RefCell;

use larder::ids::rule::Cyclic;
use larder::ids::{Handle, IdRange, Ids, Snapshot, Widths};
use serde_json::{from_str, to_string};

fn snapshot() -> Snapshot {
    let mut ids = Ids::new(10u32..100_000, Cyclic).unwrap();
    for _ in 0..5 {
        ids.alloc().unwrap();
    }
    ids.reserve(70_000u32..90_000).unwrap();
    ids.free(12).unwrap();
    Snapshot::of(&RefCell::new(ids), &Cyclic).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let range = IdRange::new(3, u64::MAX).unwrap();
    assert_eq!(to_string(&range).unwrap(), format!("[3,{}]", u64::MAX));
    assert_eq!(
        from_str::<IdRange>(&to_string(&range).unwrap()).unwrap(),
        range
    );
    let handle = Handle::from_raw(u64::MAX);
    assert_eq!(
        from_str::<Handle>(&to_string(&handle).unwrap()).unwrap(),
        handle
    );
    assert_eq!(to_string(&Widths::W16).unwrap(), "[16,12]");
    assert_eq!(from_str::<Widths>("[32,20]").unwrap(), Widths::W32);
    let text = to_string(&snapshot()).unwrap();
    assert_eq!(
        text,
        r#"{"range":[10,99999],"rule":"Cyclic","cursor":14,"runs":[[10,11],[13,14],[70000,89999]]}"#
    );
    assert_eq!(from_str::<Snapshot>(&text).unwrap(), snapshot());
}

#[test]
fn what_is_absurd_is_refused() {
    for text in [
        "[5,4]",
        "[1]",
        "[1,2,3]",
        "[-1,2]",
        "[0,18446744073709551616]",
        "{}",
        "null",
    ] {
        assert!(from_str::<IdRange>(text).is_err(), "{text}");
    }
    for text in [
        "[7,3]",
        "[65,3]",
        "[16,16]",
        "[16,0]",
        "[4294967295,4294967295]",
    ] {
        assert!(from_str::<Widths>(text).is_err(), "{text}");
    }
    let whole = |range: &str, cursor: &str, runs: &str| {
        format!(r#"{{"range":{range},"rule":"Cyclic","cursor":{cursor},"runs":{runs}}}"#)
    };
    assert!(from_str::<Snapshot>(&whole("[0,9]", "null", "[[1,2],[4,4]]")).is_ok());
    for (range, cursor, runs) in [
        ("[9,0]", "null", "[]"),
        ("[0,9]", "10", "[]"),
        ("[0,9]", "null", "[[2,1]]"),
        ("[0,9]", "null", "[[9,10]]"),
        ("[0,9]", "null", "[[1,2],[3,4]]"),
        ("[0,9]", "null", "[[5,6],[1,2]]"),
        ("[0,9]", "null", "[[1,5],[2,3]]"),
        ("[0,9]", "null", "7"),
        (
            "[0,18446744073709551615]",
            "null",
            "[[0,18446744073709551615]]",
        ),
        (
            "[0,18446744073709551615]",
            "null",
            "[[5,18446744073709551615],[5,6]]",
        ),
        ("[0,18446744073709551615]", "null", "[[0,4294967296]]"),
    ] {
        let text = whole(range, cursor, runs);
        assert!(from_str::<Snapshot>(&text).is_err(), "{text}");
    }
    assert!(from_str::<Snapshot>(r#"{"range":[0,9],"rule":"L","runs":[],"more":1}"#).is_err());
    let long = format!(
        r#"{{"range":[0,9],"rule":"{}","runs":[]}}"#,
        "x".repeat(256)
    );
    assert!(from_str::<Snapshot>(&long).is_err());
}
