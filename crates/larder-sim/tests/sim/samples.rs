//! A small good trace of every format, made here.

use larder_sim::{Encoder, Format, Record};

/// The blocks of most samples.
pub(crate) const BLOCKS: [u64; 8] = [5, 6, 5, 7, 8, 5, 6, 900];

fn word(bytes: &mut Vec<u8>, n: u64, width: usize) {
    bytes.extend_from_slice(&n.to_le_bytes()[..width]);
}

fn encoded(format: Format) -> Vec<u8> {
    let mut encoder = Encoder::new(format, false);
    let mut bytes = Vec::new();
    encoder.begin(&mut bytes);
    for (n, &block) in BLOCKS.iter().enumerate() {
        let record = Record {
            block,
            time: n as u64,
            request: n as u32,
            bytes: 512,
            ..Record::default()
        };
        let next = BLOCKS[n + 1..]
            .iter()
            .position(|b| *b == block)
            .map(|k| (n + 1 + k) as u64);
        encoder.record(&record, next, &mut bytes).unwrap();
    }
    bytes
}

/// lcs of a version, with the header of 1024 or 8192 bytes.
pub(crate) fn lcs(version: u64, header: usize) -> Vec<u8> {
    const MAGIC: u64 = 0x1234_5678_9abc_def0;
    let mut bytes = Vec::new();
    for n in [MAGIC, version, 1, BLOCKS.len() as u64] {
        word(&mut bytes, n, 8);
    }
    bytes.resize(header - 8, 0);
    word(&mut bytes, MAGIC, 8);
    for (n, &block) in BLOCKS.iter().enumerate() {
        word(&mut bytes, n as u64, 4);
        word(&mut bytes, block, 8);
        word(&mut bytes, 512, if version >= 3 { 8 } else { 4 });
        if version >= 2 {
            // Operation 13 writes, 12 reads; tenant 9.
            word(&mut bytes, if n == 1 { 13 } else { 12 } | (9 << 8), 4);
        }
        if version >= 3 {
            word(&mut bytes, 60, 4);
        }
        word(&mut bytes, u64::MAX, 8);
        let features = [0, 0, 0, 0, 1, 2, 4, 8, 16][version as usize];
        bytes.resize(bytes.len() + 4 * features, 0);
    }
    bytes
}

fn vscsi(version: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (n, &block) in BLOCKS.iter().enumerate() {
        let (command, ver, sector) = (0x28, version << 8, block * 8);
        let fields: &[(u64, usize)] = if version == 1 {
            &[
                (n as u64, 4),
                (4096, 4),
                (1, 4),
                (command, 2),
                (ver, 2),
                (sector, 8),
                (n as u64, 8),
            ]
        } else {
            &[
                (command, 2),
                (ver, 2),
                (n as u64, 4),
                (4096, 4),
                (1, 4),
                (sector, 8),
                (n as u64, 8),
                (7, 8),
            ]
        };
        fields
            .iter()
            .for_each(|(n, width)| word(&mut bytes, *n, *width));
    }
    bytes
}

fn lines(line: impl Fn(usize, u64) -> String) -> Vec<u8> {
    BLOCKS
        .iter()
        .enumerate()
        .map(|(n, b)| line(n, *b) + "\n")
        .collect::<String>()
        .into_bytes()
}

pub(crate) const STRACE: &str = r#"100 execve("/bin/x", ["x"], 0x7ffe /* 3 vars */) = 0
100 openat(AT_FDCWD</tmp>, "a,b)", O_RDONLY) = 3</tmp/a,b)>
100 read(3</tmp/a,b)>, "\1\")\2"..., 4096) = 4096
100 read(3</tmp/a,b)>, "x"..., 8192) = 5000
100 pread64(3</tmp/a,b)>, "x"..., 10, 0) = 10
100 lseek(3</tmp/a,b)>, 0, SEEK_SET) = 0
100 vfork( <unfinished ...>
101 read(3</tmp/a,b)>, "y"..., 1) = 1
100 <... vfork resumed>) = 101
101 read(3</tmp/a,b)>,  <unfinished ...>
100 --- SIGCHLD {si_signo=SIGCHLD} ---
101 <... read resumed>"z"..., 4096) = 4096
101 +++ exited with 0 +++
100 read(0<pipe:[123]>, "p", 10) = 1
100 openat(AT_FDCWD</tmp>, "new", O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, 0666) = 4</tmp/new>
100 write(4</tmp/new>, "w"..., 4097) = 4097
100 openat(AT_FDCWD</tmp>, "none", O_RDONLY) = -1 ENOENT (No such file or directory)
100 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</tmp/a,b)>, 0x1000) = 0x7f0000000000
100 close(3</tmp/a,b)>) = 0
100 unlink("/tmp/new") = 0
100 exit_group(0) = ?
"#;

pub(crate) const FIO: &str = "fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda read 0 8192
/dev/sdb write 4096 4096
/dev/sda trim 0 4096
/dev/sda close
";

pub(crate) const BLKPARSE: &str = "  8,0    1        1     0.000000000  4162  Q   R 16 + 16 [dd]
  8,0    1        2     0.000001000  4162  G   R 16 + 16 [dd]
  8,0    1        3     0.000002000  4162  Q  WS 8 + 8 [dd]
  8,0    1        4     0.000003000  4162  Q FWS [dd]
  8,0    1        5     0.000004000     0  C   R 16 + 16 [0]
CPU1 (sda):
 Reads Queued:           2,        8KiB  Writes Queued:           0,        0KiB
";

pub(crate) const DBENCH: &str = r#"Mkdir "\clients\client1" NT_STATUS_OK
NTCreateX "\clients\client1\my file" 0x40 0x2 5 NT_STATUS_OK
WriteX 5 65534 4098 4098 NT_STATUS_OK
ReadX 5 4000 200 200 NT_STATUS_OK
QUERY_PATH_INFORMATION "\clients" 1011 NT_STATUS_OK
Close 5 NT_STATUS_OK
Unlink "\clients\client1\MY FILE" 0x6 NT_STATUS_OK
"#;

/// Every format with a good trace. The first blocks of most are [`BLOCKS`].
pub(crate) fn all() -> Vec<(Format, Vec<u8>)> {
    vec![
        (Format::OracleGeneral, encoded(Format::OracleGeneral)),
        (Format::Lcs, lcs(2, 1024)),
        (Format::Csv, encoded(Format::Csv)),
        (Format::Txt, encoded(Format::Txt)),
        (Format::Vscsi1, vscsi(1)),
        (Format::Vscsi2, vscsi(2)),
        (Format::Arc, lines(|n, b| format!("{b} 1 0 {n}"))),
        (Format::U32le, encoded(Format::U32le)),
        (Format::U32be, encoded(Format::U32be)),
        (Format::I32le, encoded(Format::I32le)),
        (Format::I32be, encoded(Format::I32be)),
        (Format::I64le, encoded(Format::I64le)),
        (Format::I64be, encoded(Format::I64be)),
        (Format::U64le, encoded(Format::U64le)),
        (Format::U64be, encoded(Format::U64be)),
        (
            Format::Spc,
            lines(|n, b| format!("0,{},4096,r,{n}.5", b * 8)),
        ),
        (
            Format::Msr,
            lines(|n, b| {
                format!(
                    "{},usr,0,Read,{},4096,12",
                    128_166_372_003_061_629_u64 + n as u64,
                    b * 4096
                )
            }),
        ),
        (
            Format::Alibaba,
            lines(|n, b| {
                format!(
                    "0,R,{},4096,{}",
                    b * 4096,
                    1_577_808_144_360_767_u64 + n as u64
                )
            }),
        ),
        (
            Format::Tencent,
            lines(|n, b| format!("{},{},8,0,0", 1_538_323_199 + n as u64, b * 8)),
        ),
        (
            Format::Twitter,
            lines(|n, b| format!("{n},q:q:1:{b},17,213,4,get,0")),
        ),
        (Format::Webcachesim, lines(|n, b| format!("{n} {b} 512"))),
        (Format::Fio, FIO.into()),
        (Format::Blkparse, BLKPARSE.into()),
        (Format::Strace, STRACE.into()),
        (Format::Dbench, DBENCH.into()),
    ]
}
