//! The tables parse, and damaged ones say where.

use super::*;

#[test]
fn every_table_parses_to_its_number_of_rows() {
    assert_eq!(walfield_elapsed().len(), 38 * 5);
    assert_eq!(walfield_stddev().len(), 8 * 5);
    assert_eq!(walfield_stderr().len(), 8);
    assert_eq!(zerofill_machines().len(), 7);
    assert_eq!(zerofill_derived().len(), 7);
    assert_eq!(zerofill_mmap().len(), 4);
    assert_eq!((franke_getpid().len(), franke_limit256().len()), (87, 87));
    assert_eq!((magazine_single().len(), magazine_threads().len()), (7, 29));
    assert_eq!(lord_dbench().len(), 2 * 8 * 3);
    assert_eq!(lord_dbench()[0].throughput_mb_s, 6.77363);
}

#[test]
fn known_cells_are_where_they_were_printed() {
    let best = walfield_elapsed()
        .iter()
        .find(|r| r.pool_pages == 30 && r.allocations == 1_048_576)
        .unwrap();
    assert_eq!(best.elapsed_s, 30.22);
    let ghz = &zerofill_machines()[1];
    assert_eq!(ghz.cpu_machine, "1 GHz G4");
    assert_eq!(
        (
            ghz.alloc1_us,
            ghz.alloc1_fault_us,
            ghz.alloc2_us,
            ghz.alloc2_fault_us
        ),
        (11.2, 24.0, Some(11.5), 33.6)
    );
    assert_eq!(zerofill_machines()[0].alloc2_us, None);
    assert_eq!(zerofill_mmap()[3].vm_allocate_us, 77.3);
    assert_eq!(walfield_stderr()[5].stderr_s_1m, 0.0197);
    assert_eq!(walfield_stddev()[39].stddev_s, 0.4676);
    let row = franke_getpid().iter().find(|r| r.tasks == 22_000).unwrap();
    assert_eq!((row.searches_algo0, row.us_algo1), (5177, 3788.19));
    let row = franke_limit256().iter().find(|r| r.tasks == 1000).unwrap();
    assert_eq!((row.searches_algo2, row.searches_algo2_256), (1, 3));
}

#[test]
fn the_mail_on_magazines_is_as_it_was_printed() {
    let cell = |variant: &str, threads| {
        magazine_threads()
            .iter()
            .find(|r| r.variant == variant && r.threads == threads)
            .unwrap()
    };
    assert_eq!(cell("padded16", 2).elapsed_s, 8.25);
    assert_eq!(cell("explicit_handle", 10).mcycles_s, Some(21.0));
    assert_eq!(cell("padded16_typical", 6).mcycles_s, None);
    assert_eq!(magazine_single()[5].mcycles_s, 20.0);
}

#[test]
fn a_kernel_is_built_faster_with_use_once() {
    let build: Vec<(&str, f64)> = lord_build()
        .iter()
        .map(|row| (row.kernel.as_str(), row.elapsed_s))
        .collect();
    let printed = [
        ("vanilla", 525.88),
        ("vanilla", 523.68),
        ("use-once", 509.49),
        ("use-once", 509.35),
    ];
    assert_eq!(build, printed);
}

#[test]
fn damaged_tables_say_where() {
    let error = |text: &str| parse::<ZerofillDerived>(text).unwrap_err().to_string();
    assert!(error("quantity,ms\na,1\n").contains("missing field `us`"));
    assert!(error("quantity,us\na,1\nb,2,3\n").contains("line: 3"));
    for bad in ["", "x"] {
        let text = format!("quantity,us\na,{bad}\n");
        assert!(error(&text).contains("line: 2"), "{}", error(&text));
    }
}
