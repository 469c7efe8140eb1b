//! `completions` and `man`: for the shell and the manual.

use std::io::Write;

use clap::CommandFactory;

use super::args::{Cli, Completions, Man};
use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output;

pub(super) fn completions(args: &Completions, out: &mut dyn Write) -> Outcome {
    // The generator panics when it cannot write, so it writes into memory.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "larder", &mut text);
    out.write_all(&text)?;
    Ok(())
}

pub(super) fn man(global: &Global, args: &Man, out: &mut dyn Write) -> Outcome {
    let mut command = Cli::command();
    command.build();
    let Some(dir) = &args.dir else {
        out.write_all(&page(command)?)?;
        return Ok(());
    };
    std::fs::create_dir_all(dir)
        .map_err(|e| Failure::io(format!("{} cannot be made: {e}", dir.display())))?;
    let mut pages = 1;
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("larder-{}", sub.get_name());
        let text = page(sub.clone())?;
        output::write_file(
            &dir.join(format!("{name}.1")),
            &String::from_utf8_lossy(&text),
        )?;
        pages += 1;
    }
    let text = page(command)?;
    output::write_file(&dir.join("larder.1"), &String::from_utf8_lossy(&text))?;
    output::hint(global, &format!("{pages} pages in {}", dir.display()));
    Ok(())
}

fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}
