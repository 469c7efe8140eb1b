//! dbench's loadfile.

use std::collections::BTreeSet;
use std::io::Read;

use larder_sim::{Format, Kind, ReadOptions, Record, SimError, Trace};

fn loadfile(bytes: impl Read + Send + 'static) -> Result<Vec<Record>, SimError> {
    let options = ReadOptions {
        format: Some(Format::Dbench),
        ..ReadOptions::default()
    };
    let mut trace = Trace::over("client.txt", bytes, &options)?;
    let mut records = Vec::new();
    while trace.fill(&mut records)? {}
    Ok(records)
}

#[test]
fn a_loadfile_becomes_page_touches() {
    let text = "Mkdir \"\\clients\" NT_STATUS_OK\r\n\
        NTCreateX \"\\clients\\client1\\my file\" 0x40 0x2 5 NT_STATUS_OK\r\n\
        WriteX 5 65534 1 1 NT_STATUS_OK\r\n\
        ReadX 5 4000 200 200 NT_STATUS_OK\r\n\
        ReadX 5 0 10 0 NT_STATUS_END_OF_FILE\r\n\
        Close 5 NT_STATUS_OK\r\n\
        \r\n\
        ReadX 99 0 4096 4096 NT_STATUS_OK\r\n";
    let records = loadfile(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let said: Vec<(Kind, u64, u32, u32)> = records
        .iter()
        .map(|r| (r.kind, r.block, r.request, r.bytes))
        .collect();
    assert_eq!(
        said,
        [
            (Kind::Write, 15, 0, 1),
            (Kind::Read, 0, 1, 96),
            (Kind::Read, 1, 1, 104)
        ]
    );
}

#[test]
fn renames_keep_pages_and_a_new_file_of_an_old_name_has_new_ones() {
    let text = "NTCreateX \"\\a\" 0x40 0x2 1 NT_STATUS_OK\nWriteX 1 0 1 1 NT_STATUS_OK\n\
        Rename \"\\a\" \"\\b\" NT_STATUS_OK\n\
        NTCreateX \"\\a\" 0x40 0x2 2 NT_STATUS_OK\nWriteX 2 0 1 1 NT_STATUS_OK\n\
        NTCreateX \"\\B\" 0x40 0x1 3 NT_STATUS_OK\nReadX 3 0 1 1 NT_STATUS_OK\n\
        NTCreateX \"\\b\" 0x40 0x5 4 NT_STATUS_OK\nWriteX 4 0 1 1 NT_STATUS_OK\n\
        Deltree \"\\\" NT_STATUS_OK\n";
    let records = loadfile(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let said: Vec<(Kind, u32)> = records.iter().map(|r| (r.kind, r.file)).collect();
    use Kind::{Read, Remove, Write};
    assert_eq!(
        said,
        [(Write, 0), (Write, 1), (Read, 0), (Remove, 0), (Write, 2)]
    );
}

#[test]
fn a_broken_loadfile_names_the_line() {
    for (text, line, what) in [
        (
            "Flush 1 NT_STATUS_OK\nReedX 1 2 3 4 NT_STATUS_OK\n",
            "line 2",
            "ReedX",
        ),
        ("ReadX 1 x 3 4 NT_STATUS_OK\n", "line 1", "offset"),
        (
            "NTCreateX \"\\a\" 0x40 NT_STATUS_OK\n",
            "line 1",
            "disposition",
        ),
        (
            "NTCreateX \"\\a\" 0x40 0x2 1 NT_STATUS_OK\nReadX 1 0 99999999999 1 NT_STATUS_OK\n",
            "line 2",
            "99999999999",
        ),
        (
            "NTCreateX \"\\a\" 0x40 0x2 1 NT_STATUS_OK\nReadX 1 18446744073709551615 2 2 NT_STATUS_OK\n",
            "line 2",
            "2^40",
        ),
    ] {
        let error = loadfile(text.as_bytes())
            .map(|_| ())
            .map_err(|error| error.to_string());
        assert!(
            error
                .clone()
                .is_err_and(|e| e.contains(line) && e.contains(what)),
            "{error:?}"
        );
    }
    assert!(loadfile(&[0xff, 0xfe, b'\n'][..]).is_err());
}

#[test]
fn the_loadfile_of_dbench_4_has_as_many_touches_as_was_counted_apart() {
    let path =
        std::env::var_os("LARDER_DBENCH").unwrap_or_else(|| "/usr/share/dbench/client.txt".into());
    let Ok(file) = std::fs::File::open(&path) else {
        eprintln!(
            "skipped: no {} (Debian: dbench; or name it in LARDER_DBENCH)",
            path.display()
        );
        return;
    };
    let (mut touches, mut blocks) = (0, BTreeSet::new());
    for record in loadfile(file).unwrap_or_else(|error| panic!("{error}")) {
        if record.kind != Kind::Remove {
            touches += 1;
            blocks.insert(record.block);
        }
    }
    assert_eq!((touches, blocks.len()), (654_379, 122_556));
}
