//! Tables: which column is what, and no guess where that is not clear.

use larder_sim::{Encoder, Format, Kind, ReadOptions, Record, SimError, Trace};

fn options(format: Option<Format>) -> ReadOptions {
    ReadOptions {
        format,
        ..ReadOptions::default()
    }
}

fn columns(columns: &str) -> ReadOptions {
    ReadOptions {
        columns: Some(columns.to_owned()),
        ..ReadOptions::default()
    }
}

fn read(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Format, Vec<Record>), SimError> {
    let mut trace = Trace::over(name, std::io::Cursor::new(bytes.to_vec()), options)?;
    let mut records = Vec::new();
    while trace.fill(&mut records)? {}
    Ok((trace.format().unwrap(), records))
}

fn blocks(text: &str, options: &ReadOptions) -> Result<Vec<u64>, SimError> {
    let (_, records) = read("t", text.as_bytes(), options)?;
    Ok(records.iter().map(|r| r.block).collect())
}

#[test]
fn a_column_that_could_tell_blocks_apart_is_asked_about() {
    for name in [
        "relation",
        "table",
        "rel",
        "relfilenode",
        "lun",
        "space",
        "space_id",
        "fork",
        "database",
        "host",
        "namespace",
        "unit",
        "dev",
        "what",
        "index",
        "tid",
        "é",
        "a b",
    ] {
        for delimiter in [",", ";", "\t", "|"] {
            for quote in ["", "\""] {
                let text =
                    format!("{quote}{name}{quote},{quote}block{quote},size\n7,1,512\n8,1,512\n")
                        .replace(',', delimiter);
                for asked in [
                    options(None),
                    options(Some(Format::Csv)),
                    ReadOptions {
                        text_ids: true,
                        ..options(None)
                    },
                ] {
                    let said = blocks(&text, &asked).unwrap_err();
                    assert!(matches!(said, SimError::Columns { .. }), "{text}: {said}");
                    let said = said.to_string();
                    let shown = if name.is_ascii() && !name.contains(' ') {
                        name
                    } else {
                        "1"
                    };
                    assert!(
                        said.contains(&format!(
                            "--columns file={shown},block=block,size=size if it is"
                        )) && said.contains("--columns block=block,size=size if it is not"),
                        "{said}"
                    );
                    // What the error proposes is what works.
                    let with = columns(&format!("file={shown},block=block,size=size"));
                    let without = columns("block=block,size=size");
                    if shown == name {
                        assert_eq!(blocks(&text, &with).unwrap(), [1, (1 << 40) | 1]);
                    }
                    assert_eq!(blocks(&text, &without).unwrap(), [1, 1]);
                }
            }
        }
    }
}

#[test]
fn several_columns_name_a_file_together() {
    let text = "spc,rel,fork,device,block\n1,11,0,x,5\n11,1,0,x,5\n1,11,0,x,5\n1,11,1,x,5\n";
    let said = blocks(text, &options(None)).unwrap_err().to_string();
    assert!(said.contains("'spc', 'rel', 'fork'"), "{said}");
    assert!(
        said.contains("file=device+spc+rel+fork,block=block"),
        "{said}"
    );
    let file = |n: u64| (n << 40) | 5;
    assert_eq!(
        blocks(text, &columns("file=spc+rel+fork,block=5")).unwrap(),
        [file(0), file(1), file(0), file(2)]
    );
    assert_eq!(blocks("a,b,1\n", &columns("file=1+2,id=3")).unwrap(), [1]);
    for (bad, part) in [
        ("file=1+,id=3", "no column is headed ''"),
        ("file=1+0,id=3", "from 1"),
        ("id=1+2", "'1+2'"),
    ] {
        let said = blocks("a,b,1\n", &columns(bad)).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn columns_that_never_name_a_block_are_passed_over() {
    for heading in [
        "latency",
        "Latency (us)",
        "response_time",
        "response-time",
        "duration_ms",
        "ttl",
        "hit",
        "status",
        "cpu",
        "value_size",
        "next_access_vtime",
        "time_us",
        "size_bytes",
        "",
        "comm",
    ] {
        let text = format!("time,id,size,op,{heading}\n1,7,512,read,x\n2,8,512,write,y\n");
        assert_eq!(blocks(&text, &options(None)).unwrap(), [7, 8], "{heading}");
    }
    // Known as parts of the name, and used as such.
    for heading in ["file", "inode", "device", "volume", "disk"] {
        let text = format!("{heading},block\na,1\nb,1\n");
        assert_eq!(blocks(&text, &options(None)).unwrap(), [1, (1 << 40) | 1]);
    }
    let said = blocks("device,inode,block\na,1,1\n", &options(None))
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("two columns") && said.contains("--columns"),
        "{said}"
    );
}

#[test]
fn a_table_without_headings_or_with_two_delimiters_is_asked_about() {
    for text in [
        "5,7\n5,8\n",
        "1283,R,4096,0,7\n1283,W,4096,1,8\n",
        "4 7 512\n3 8 512\n",
    ] {
        let said = blocks(text, &options(None)).unwrap_err().to_string();
        assert!(said.contains("--columns time=1,id=2,size=3"), "{said}");
    }
    assert_eq!(
        blocks("5,7\n6,7\n", &columns("file=1,block=2")).unwrap(),
        [7, (1 << 40) | 7]
    );
    let blanks = ReadOptions {
        delimiter: Some(' '),
        ..columns("time=1,id=2,size=3")
    };
    assert_eq!(blocks("3 7 512\n4 8 512\n", &blanks).unwrap(), [7, 8]);
    let two = "table;block,time\n5;7,1\n";
    let said = blocks(two, &options(None)).unwrap_err().to_string();
    assert!(said.contains("--delimiter"), "{said}");
    let said = blocks("5;7,1\n", &columns("id=2")).unwrap_err().to_string();
    assert!(said.contains("--delimiter"), "{said}");
    // A delimiter inside quotes would move the cells.
    for text in ["file,block\n\"a,b\",5\n", "file,key\n\"a,1\",5\n"] {
        let said = blocks(
            text,
            &ReadOptions {
                text_ids: true,
                ..options(None)
            },
        )
        .unwrap_err()
        .to_string();
        assert!(said.contains("line 2") && said.contains("quote"), "{said}");
    }
}

#[test]
fn keys_that_are_no_number_of_64_bits_without_a_sign_have_a_way_in() {
    for (text, part) in [
        ("id\n-8123456789012345678\n", "negative"),
        ("id\n99999999999999999999\n", "64 bits"),
    ] {
        let said = blocks(text, &options(Some(Format::Csv)))
            .unwrap_err()
            .to_string();
        assert!(said.contains(part) && said.contains("--text-ids"), "{said}");
        assert_eq!(
            blocks(
                text,
                &ReadOptions {
                    text_ids: true,
                    ..options(Some(Format::Csv))
                }
            )
            .unwrap(),
            [0]
        );
    }
    assert_eq!(
        blocks("id\n18446744073709551615\n", &options(None)).unwrap(),
        [u64::MAX]
    );
    let key = 0xfedc_ba98_7654_3210_u64;
    let said = read("k.i64le", &key.to_le_bytes(), &options(None))
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("negative") && said.contains("u64le"),
        "{said}"
    );
    let little = read("k.u64le", &key.to_le_bytes(), &options(None)).unwrap();
    let big = read("k.u64be", &key.to_be_bytes(), &options(None)).unwrap();
    assert_eq!((little.1[0].block, big.1[0].block), (key, key));
}

#[test]
fn csv_columns_by_heading_number_and_text() {
    let asked = |columns: &str, text: &str| {
        let options = ReadOptions {
            columns: Some(columns.to_owned()),
            ..options(None)
        };
        read("t", text.as_bytes(), &options)
            .map(|(_, r)| r)
            .map_err(|e| e.to_string())
    };
    let records = asked("time=1,id=3,op=2", "5,w,77\n6,r,78\n").unwrap();
    assert_eq!(
        (records[0].block, records[0].kind, records[0].time),
        (77, Kind::Write, 5)
    );
    assert_eq!(records.len(), 2);
    let records = asked("offset=pos,size=n", "x;pos;n\n0;4096;8192\n").unwrap();
    assert_eq!(records.iter().map(|r| r.block).collect::<Vec<_>>(), [1, 2]);
    assert!(asked("id=9", "1,2\n").unwrap_err().contains("9 are needed"));
    assert!(asked("id=0", "1,2\n").unwrap_err().contains("from 1"));
    assert!(
        asked("weight=1", "1,2\n")
            .unwrap_err()
            .contains("no column that is known")
    );
    assert!(
        asked("time=1", "1,2\n")
            .unwrap_err()
            .contains("which block")
    );
    let names = ReadOptions {
        text_ids: true,
        columns: Some("id=1".into()),
        ..options(None)
    };
    let (_, records) = read("t", b"\"a\",1\nb,2\na,3\n", &names).unwrap();
    assert_eq!(
        records.iter().map(|r| r.block).collect::<Vec<_>>(),
        [0, 1, 0]
    );
    // Uses of one request stay together, also where another one comes in between.
    let (_, records) = read("t", b"id,request\n1,4\n2,5\n3,4\n", &options(None)).unwrap();
    assert_eq!(
        records.iter().map(|r| r.request).collect::<Vec<_>>(),
        [4, 5, 4]
    );
}

#[test]
fn an_offset_without_a_size_is_refused_and_a_size_has_several_names() {
    for size in [
        "size",
        "size_bytes",
        "length_bytes",
        "request_size",
        "Req_Size",
    ] {
        for (begin, at) in [("offset", 4096), ("sector", 8)] {
            let text = format!("{begin},op,{size}\n{at},read,8192\n");
            assert_eq!(blocks(&text, &options(None)).unwrap(), [1, 2], "{text}");
        }
    }
    let plainer = "offset,request_size,size\n0,x,8192\n";
    assert_eq!(blocks(plainer, &options(None)).unwrap(), [0, 1]);
    for size in ["value_size", "io_size"] {
        for (begin, at) in [("offset", 4096), ("sector", 8)] {
            let text = format!("{begin},op,{size}\n{at},read,8192\n");
            for asked in [
                options(None),
                options(Some(Format::Csv)),
                columns(&format!("{begin}=1,op=2")),
            ] {
                let said = blocks(&text, &asked).unwrap_err();
                assert!(matches!(said, SimError::Columns { .. }), "{said}");
                let said = said.to_string();
                assert!(
                    said.contains(&format!("'{begin}', 'op', '{size}'"))
                        && said.contains(&format!("--columns {begin}=1,size=")),
                    "{said}"
                );
            }
            let named = columns(&format!("{begin}=1,size=3"));
            assert_eq!(blocks(&text, &named).unwrap(), [1, 2]);
        }
    }
}

/// A trace in another format, as `larder trace convert` writes it.
fn converted(bytes: &[u8], to: Format) -> Vec<u8> {
    let input = std::io::Cursor::new(bytes.to_vec());
    let mut trace = Trace::over("t", input, &options(None)).unwrap();
    let mut encoder = Encoder::new(to, trace.in_microseconds());
    let (mut records, mut written) = (Vec::new(), Vec::new());
    while trace.fill(&mut records).unwrap() {}
    encoder.begin(&mut written);
    for record in &records {
        encoder.record(record, None, &mut written).unwrap();
    }
    written
}

#[test]
fn microseconds_stay_microseconds_through_a_table() {
    let strace = b"1 1700000000.500000 openat(AT_FDCWD</tmp>, \"a\", O_RDONLY) = 3</tmp/a>\n\
        1 1700000001.250000 read(3</tmp/a>, \"x\"..., 4096) = 4096\n\
        1 1700000003.000000 read(3</tmp/a>, \"x\"..., 4096) = 4096\n";
    let table = converted(strace, Format::Csv);
    assert!(table.starts_with(b"time_us,id,"));
    assert_eq!(converted(&table, Format::Csv), table);
    let direct = converted(strace, Format::OracleGeneral);
    assert_eq!(converted(&table, Format::OracleGeneral), direct);
    assert_eq!(direct[..4], 1_700_000_001_u32.to_le_bytes());
    // Of another table the unit is not known.
    assert!(converted(b"time,id\n5,7\n", Format::Csv).starts_with(b"time,id,"));
}

#[test]
fn a_time_with_an_exponent_is_not_cut_at_its_point() {
    let read_time = |cell: &str| {
        let text = format!("time,id\n{cell},7\n");
        read("t", text.as_bytes(), &options(Some(Format::Csv))).map(|(_, records)| records[0].time)
    };
    for (cell, time) in [
        ("1.700000000000000000e+09", 1_700_000_000),
        ("17E8", 1_700_000_000),
        ("25e-1", 2),
        ("12.75", 12),
    ] {
        assert_eq!(read_time(cell).unwrap(), time, "{cell}");
    }
    for cell in ["-1e5", "1e20", "1e999", "e", "1.x", "1.5.2"] {
        let said = read_time(cell).unwrap_err().to_string();
        assert!(said.contains(&format!("the time is '{cell}'")), "{said}");
    }
}

#[test]
fn numbers_of_files_and_tenants_are_kept_and_name_no_block() {
    let text = "id,file_number,tenant_number\n18446744073709551615,4000000000,65535\n7,0,3\n";
    let (_, records) = read("t", text.as_bytes(), &options(None)).unwrap();
    let all: Vec<_> = records
        .iter()
        .map(|r| (r.block, r.file, r.tenant))
        .collect();
    assert_eq!(all, [(u64::MAX, 4_000_000_000, 65535), (7, 0, 3)]);
    for (text, part) in [
        ("id,file,file_number\n1,a,1\n", "file and file_number"),
        ("id,file_number\n1,x\n", "the file's number is 'x'"),
    ] {
        let said = blocks(text, &options(Some(Format::Csv))).unwrap_err();
        assert!(said.to_string().contains(part), "{said}");
    }
}

#[test]
fn a_mark_before_the_text_and_other_ends_of_lines_change_nothing() {
    for text in [
        "\u{feff}id,size\r\n7,512\r\n8,512",
        "\u{feff}\"id\",size\n\"7\",512\n\n8,512\n",
    ] {
        assert_eq!(blocks(text, &options(None)).unwrap(), [7, 8]);
    }
    assert_eq!(blocks("\u{feff}7\n8\n", &options(None)).unwrap(), [7, 8]);
    assert!(matches!(
        blocks("\u{feff}", &options(None)).unwrap_err(),
        SimError::Empty { .. }
    ));
    // In numbers it is one.
    let (_, records) = read("t", b"\xef\xbb\xbf\0", &options(Some(Format::U32le))).unwrap();
    assert_eq!(records[0].block, 0xbf_bbef);
}
