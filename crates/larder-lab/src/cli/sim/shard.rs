//! Which shard of a sweep this process is: from its arguments, or from the batch engine's variables.

use super::args::RunShard;
use crate::cli::failure::Failure;

/// larder's own, for engines that set no such variable by themselves but can be configured to.
const INDEX: &str = "LARDER_SHARD_INDEX";
const SHARDS: &str = "LARDER_SHARDS";
/// Slurm's job arrays (sbatch(1), "Job array support").
const SLURM_ID: &str = "SLURM_ARRAY_TASK_ID";
const SLURM_LEAST: &str = "SLURM_ARRAY_TASK_MIN";
const SLURM_COUNT: &str = "SLURM_ARRAY_TASK_COUNT";
/// Kubernetes' jobs with `completionMode: Indexed`.
const KUBERNETES: &str = "JOB_COMPLETION_INDEX";
/// HTCondor sets these for every job, and no number of the job (its manual, "Environment and services for a running job").
const CONDOR: [&str; 2] = ["_CONDOR_JOB_AD", "_CONDOR_SCRATCH_DIR"];

struct Environment<F>(F);

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    fn number(&self, name: &str) -> Result<Option<u32>, Failure> {
        let Some(text) = (self.0)(name) else {
            return Ok(None);
        };
        text.trim().parse().map(Some).map_err(|_| {
            Failure::usage(format!(
                "{name} is '{text}'; it must be a whole number from 0 to {}",
                u32::MAX
            ))
        })
    }

    /// How many shards: the word before the variable.
    fn shards(&self, args: &RunShard, name: &str, index: &str) -> Result<u32, Failure> {
        let found = match args.shards {
            Some(shards) => Some(shards),
            None => self.number(name)?,
        };
        found.ok_or_else(|| {
            Failure::usage(format!(
                "{index} says which shard this is, but not of how many; set {name}, or say --shards N"
            ))
        })
    }
}

fn checked(index: u32, shards: u32, how: &str) -> Result<(u32, u32), Failure> {
    if index < shards {
        Ok((index + 1, shards))
    } else {
        Err(Failure::usage(format!(
            "{how}: index {index} is not below the number of shards, {shards}"
        )))
    }
}

/// The shard, from 1, and of how many. The words win over the environment, and there larder's own variables over the engines'.
pub(super) fn of(
    args: &RunShard,
    env: impl Fn(&str) -> Option<String>,
) -> Result<(u32, u32), Failure> {
    if let Some(text) = &args.shard {
        let pair = text
            .split_once('/')
            .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        return match pair {
            Some((k, n)) if (1..=n).contains(&k) => Ok((k, n)),
            _ => Err(Failure::usage(format!(
                "--shard {text}: write K/N with K from 1 to N, for instance 3/16"
            ))),
        };
    }
    if let (Some(index), Some(shards)) = (args.index, args.shards) {
        return checked(index, shards, "--index");
    }
    let env = Environment(env);
    if let Some(index) = env.number(INDEX)? {
        return checked(index, env.shards(args, SHARDS, INDEX)?, INDEX);
    }
    if let Some(id) = env.number(SLURM_ID)? {
        let least = env.number(SLURM_LEAST)?.unwrap_or(0);
        let index = id
            .checked_sub(least)
            .ok_or_else(|| Failure::usage(format!("{SLURM_ID} is less than {SLURM_LEAST}")))?;
        let shards = env.shards(args, SLURM_COUNT, SLURM_ID)?;
        return checked(index, shards, "Slurm's job array");
    }
    if let Some(index) = env.number(KUBERNETES)? {
        return checked(index, env.shards(args, SHARDS, KUBERNETES)?, KUBERNETES);
    }
    if (env.0)(SHARDS).is_some() {
        return Err(Failure::usage(format!(
            "{SHARDS} says how many shards there are, but not which this is; set {INDEX}, counted from 0"
        )));
    }
    if CONDOR.iter().any(|name| (env.0)(name).is_some()) {
        return Err(Failure::usage(format!(
            "which shard is this? HTCondor does not tell a job its number; write environment = \"{INDEX}=$(Process) {SHARDS}=N\" into the submit file, \
             with the N of its queue N"
        )));
    }
    Err(Failure::usage(format!(
        "which shard is this? Say --shard K/N, or --index I --shards N, or set {INDEX} and {SHARDS}, or start it as a Slurm job array or a Kubernetes indexed job"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        run: RunShard,
    }

    fn asked(words: &[&str], env: &[(&str, &str)]) -> Result<(u32, u32), String> {
        let words = Words::try_parse_from([&["run", "t"], words].concat()).unwrap();
        let env = |name: &str| {
            let found = env.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        of(&words.run, env).map_err(|failure| match failure {
            Failure::Because(_, why) => why,
            Failure::ClosedPipe => unreachable!(),
        })
    }

    const OURS: [(&str, &str); 2] = [("LARDER_SHARD_INDEX", "5"), ("LARDER_SHARDS", "9")];
    const SLURM: [(&str, &str); 3] = [
        ("SLURM_ARRAY_TASK_ID", "5"),
        ("SLURM_ARRAY_TASK_MIN", "3"),
        ("SLURM_ARRAY_TASK_COUNT", "4"),
    ];
    const KUBERNETES: [(&str, &str); 1] = [("JOB_COMPLETION_INDEX", "7")];
    const CONDOR: [(&str, &str); 2] = [
        ("_CONDOR_SCRATCH_DIR", "/var/lib/condor/execute/dir_1"),
        ("_CONDOR_JOB_AD", "/var/lib/condor/execute/dir_1/.job.ad"),
    ];

    #[test]
    fn each_engine_says_which_shard_it_is() {
        assert_eq!(asked(&["--shard", "2/3"], &[]), Ok((2, 3)));
        assert_eq!(asked(&["--index", "0", "--shards", "3"], &[]), Ok((1, 3)));
        assert_eq!(asked(&[], &OURS), Ok((6, 9)));
        assert_eq!(asked(&["--shards", "6"], &OURS[..1]), Ok((6, 6)));
        assert_eq!(asked(&[], &SLURM), Ok((3, 4)));
        assert_eq!(asked(&["--shards", "8"], &KUBERNETES), Ok((8, 8)));
        let counted = [KUBERNETES[0], ("LARDER_SHARDS", "9")];
        assert_eq!(asked(&[], &counted), Ok((8, 9)));
        // HTCondor's submit file with its environment line, and with the words.
        let condor = [&CONDOR[..], &OURS].concat();
        assert_eq!(asked(&[], &condor), Ok((6, 9)));
        assert_eq!(
            asked(&["--index", "2", "--shards", "9"], &CONDOR),
            Ok((3, 9))
        );
    }

    #[test]
    fn of_several_the_first_in_the_list_wins() {
        let all = [&CONDOR[..], &KUBERNETES, &SLURM, &OURS].concat();
        assert_eq!(asked(&["--shard", "2/3"], &all), Ok((2, 3)));
        assert_eq!(asked(&["--index", "0", "--shards", "3"], &all), Ok((1, 3)));
        assert_eq!(asked(&[], &all), Ok((6, 9)));
        let engines = [&KUBERNETES[..], &SLURM].concat();
        assert_eq!(asked(&[], &engines), Ok((3, 4)));
        // The word before the variable.
        assert_eq!(asked(&["--shards", "7"], &all), Ok((6, 7)));
    }

    #[test]
    fn what_is_missing_or_no_number_is_named() {
        let none: &[(&str, &str)] = &[];
        for (words, env, said) in [
            (&["--shard", "0/3"][..], none, "--shard 0/3: write K/N"),
            (&["--shard", "4/3"], none, "--shard 4/3: write K/N"),
            (&["--shard", "x"], none, "--shard x: write K/N"),
            (
                &["--index", "3", "--shards", "3"],
                none,
                "--index: index 3 is not below the number of shards, 3",
            ),
            (&[], none, "set LARDER_SHARD_INDEX and LARDER_SHARDS"),
            (&[], &CONDOR, "LARDER_SHARD_INDEX=$(Process)"),
            (&[], &OURS[..1], "set LARDER_SHARDS, or say --shards N"),
            (&[], &OURS[1..], "not which this is; set LARDER_SHARD_INDEX"),
            (&[], &KUBERNETES, "set LARDER_SHARDS, or say --shards N"),
            (
                &[],
                &SLURM[..2],
                "set SLURM_ARRAY_TASK_COUNT, or say --shards N",
            ),
            (
                &["--shards", "5"],
                &OURS,
                "LARDER_SHARD_INDEX: index 5 is not below the number of shards, 5",
            ),
            (
                &[],
                &[("LARDER_SHARD_INDEX", "$(Process)"), ("LARDER_SHARDS", "9")],
                "LARDER_SHARD_INDEX is '$(Process)'; it must be a whole number",
            ),
            (
                &[],
                &[("LARDER_SHARD_INDEX", "1"), ("LARDER_SHARDS", "")],
                "LARDER_SHARDS is ''; it must be",
            ),
            (
                &[],
                &[("LARDER_SHARD_INDEX", "0"), ("LARDER_SHARDS", "0")],
                "index 0 is not below the number of shards, 0",
            ),
            (
                &[],
                &[
                    ("SLURM_ARRAY_TASK_ID", "9"),
                    ("SLURM_ARRAY_TASK_COUNT", "4"),
                ],
                "Slurm's job array: index 9",
            ),
            (
                &[],
                &[
                    ("SLURM_ARRAY_TASK_ID", "-1"),
                    ("SLURM_ARRAY_TASK_COUNT", "4"),
                ],
                "SLURM_ARRAY_TASK_ID is '-1'",
            ),
            (
                &["--shards", "8"],
                &[("JOB_COMPLETION_INDEX", "x")],
                "JOB_COMPLETION_INDEX is 'x'",
            ),
        ] {
            let why = asked(words, env).unwrap_err();
            assert!(why.contains(said), "{words:?} {env:?}: {why}");
        }
    }
}
