//! All tools, in the order in which they are listed.

use super::Effect::{Adds, Overwrites, Reads};
use super::{Tool, change, look, runs};

/// The tools, reading ones first.
pub(in crate::mcp) const TOOLS: &[Tool] = &[
    Tool {
        name: "list_jobs",
        title: "List jobs",
        description: "Lists jobs in the order of their names, in short: schedule, state, next due time, how the last run ended.",
        effect: Reads,
        takes: look::listing,
        answers: look::job_page,
        work: look::list_jobs,
    },
    Tool {
        name: "show_job",
        title: "Show a job",
        description: "Shows the whole definition of a job and how it stands. Values of secrets are not shown.",
        effect: Reads,
        takes: look::one_job,
        answers: look::job,
        work: look::show_job,
    },
    Tool {
        name: "explain_schedule",
        title: "Explain a schedule",
        description: "Says in words when a schedule is due and lists its next due times. It needs no job, and asks no server.",
        effect: Reads,
        takes: look::schedule_question,
        answers: look::schedule_answer,
        work: look::explain_schedule,
    },
    Tool {
        name: "next_due_times",
        title: "Forecast a job",
        description: "Lists the coming due times of a job, with its time zone, jitter, start and end.",
        effect: Reads,
        takes: look::next_question,
        answers: look::due_times,
        work: look::next_due_times,
    },
    Tool {
        name: "explain_due_time",
        title: "Say why a job ran or did not",
        description: "Says in one sentence why a due time of a job ran, did not run, or has not run yet. Call it when somebody \
                      asks why something did not run.",
        effect: Reads,
        takes: look::why_question,
        answers: look::explanation,
        work: look::explain_due_time,
    },
    Tool {
        name: "list_runs",
        title: "List runs",
        description: "Lists runs, newest first, also those that go on and due times that did not run, with the reason.",
        effect: Reads,
        takes: runs::listing,
        answers: runs::page,
        work: runs::list_runs,
    },
    Tool {
        name: "show_run",
        title: "Show a run",
        description: "Shows one run: due, started and ended, exit code, reason, node. read_output has what it printed.",
        effect: Reads,
        takes: runs::one_run,
        answers: runs::run_without_output,
        work: runs::show_run,
    },
    Tool {
        name: "read_output",
        title: "Read the output of a run",
        description: "Reads the end of what a run printed. With wait_seconds it waits until the run ends, or the time is over.",
        effect: Reads,
        takes: runs::output_question,
        answers: runs::output,
        work: runs::read_output,
    },
    Tool {
        name: "list_executors",
        title: "List executors",
        description: "Lists what can run jobs at the server, each with the schema of its params. \"shell\" runs commands.",
        effect: Reads,
        takes: look::nothing,
        answers: look::executors,
        work: look::list_executors,
    },
    Tool {
        name: "show_cluster",
        title: "Show the cluster",
        description: "Shows the nodes with what they hold, the database, and whether the database lost commits.",
        effect: Reads,
        takes: look::nothing,
        answers: look::cluster,
        work: look::show_cluster,
    },
    Tool {
        name: "create_job",
        title: "Create a job",
        description: "Creates a job. First without dry_run: the server checks the definition, stores nothing, and answers what it \
                      would store and the due times. Then with dry_run = false.",
        effect: Adds,
        takes: change::new_job,
        answers: change::outcome,
        work: change::create_job,
    },
    Tool {
        name: "change_job",
        title: "Change a job",
        description: "Changes some fields of a job and leaves the rest. First without dry_run: it answers the difference, the due \
                      times before and after, and a version. Then with dry_run = false and that version.",
        effect: Overwrites,
        takes: change::changed_job,
        answers: change::outcome,
        work: change::change_job,
    },
    Tool {
        name: "delete_job",
        title: "Delete a job",
        description: "Deletes a job. A run goes on, and the history stays. First without dry_run: it answers what would go, and a \
                      version. Then with dry_run = false and that version.",
        effect: Overwrites,
        takes: change::deleted_job,
        answers: change::outcome,
        work: change::delete_job,
    },
    Tool {
        name: "pause_job",
        title: "Pause a job",
        description: "Keeps a job from coming up until it is resumed, or until a time. A run goes on.",
        effect: Overwrites,
        takes: change::pause_question,
        answers: change::standing,
        work: change::pause_job,
    },
    Tool {
        name: "resume_job",
        title: "Resume a job",
        description: "Ends a pause. Due times of the pause are recorded, and not made good.",
        effect: Overwrites,
        takes: look::one_job,
        answers: change::standing,
        work: change::resume_job,
    },
    Tool {
        name: "run_job",
        title: "Run a job now",
        description: "Starts a run of a job now, whatever its schedule says. Params for this run alone need the role admin.",
        effect: Adds,
        takes: runs::run_question,
        answers: runs::output,
        work: runs::run_job,
    },
    Tool {
        name: "cancel_run",
        title: "Cancel a run",
        description: "Asks a run to end: its processes get SIGTERM, and after the job's kill_grace SIGKILL.",
        effect: Overwrites,
        takes: runs::one_run,
        answers: runs::run,
        work: runs::cancel_run,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_tool_has_a_name_of_its_own_and_schemas_of_objects() {
        let names: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        for tool in TOOLS {
            for schema in [(tool.takes)(), (tool.answers)()] {
                assert_eq!(schema["type"], "object", "{}: {schema}", tool.name);
                jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
            }
        }
    }
}
