//! The duties of every store, as functions over a store and a clock that the test moves.
//!
//! [`store_conformance!`](crate::store_conformance) makes one test of each for a database.

pub mod alerts;
pub mod audit;
pub mod backup;
pub mod claim_and_start;
pub mod claims;
pub mod control;
pub mod deletion;
pub mod deliveries;
pub mod expectations;
pub mod feed;
pub mod fixture;
pub mod jobs;
pub mod listing;
pub mod live_output;
pub mod lost_commits;
pub mod monitors;
pub mod overlaps;
pub mod random_walk;
pub mod reports;
pub mod run_params;
pub mod run_transitions;
pub mod sessions;
pub mod settling;
pub mod sign_in;
pub mod successor_claim;
pub mod writing_back;

pub use backup::Backups;
pub use fixture::StoreFixture;

/// Makes one test of every case, each on a store of its own that `$new` makes: an async function that answers a [`StoreFixture`].
///
/// After `once`, a module `cases` has every case as a function. A case runs once in the process, whether its own test comes first or
/// a test that needs all of them (`cases::all`).
#[macro_export]
macro_rules! store_conformance {
    ($new:ident) => {
        $crate::store_conformance!(@list each $new);
    };
    (once $new:ident) => {
        $crate::store_conformance!(@list once $new);
    };
    (@list $how:ident $new:ident) => {
        $crate::store_conformance!(@$how $new,
            jobs: creates_replaces_and_leaves_unchanged, one_refused_job_does_not_hold_up_the_batch,
                a_name_twice_in_one_batch_is_put_twice, a_lost_update_is_refused, pausing_with_a_put;
            claims: takes_what_comes_up_within_the_horizon, keeps_to_partitions_limit_and_executors,
                the_first_are_taken_wherever_they_are,
                a_paused_job_is_not_claimed, an_ended_session_claims_nothing, skipped_misfires_are_recorded,
                fire_once_carries_the_latest, catch_up_works_off_the_newest_hundred, peek_tells_what_comes_up,
                peek_tells_what_others_leave_unclaimed, peek_tells_what_waits_beside, an_unknown_partition_is_an_error;
            run_transitions: starts_on_time_only, a_late_start_carries_the_latest,
                a_late_start_goes_back_where_misfires_are_skipped, many_that_outlive_due_times_are_recorded_together,
                allow_runs_beside, a_record_keeps_what_was_measured, a_run_ends_once, output_is_kept, a_retry_draws_a_new_run,
                overlap_skip_records_what_passed, overlap_delay_keeps_one_waiter, overlap_replace_arms_the_newest,
                overlap_replace_follows_what_was_changed_since, a_one_shot_completes,
                a_poisoned_member_does_not_wedge_the_batch, reset_gives_back;
            successor_claim: a_finish_claims_what_comes_up_next, a_finish_that_is_repeated_finds_what_it_has_claimed,
                a_finish_claims_nothing_that_is_not_to_be_had,
                a_session_that_does_not_claim_gets_nothing_along, what_was_claimed_along_is_swept_with_its_session;
            claim_and_start: a_finish_starts_what_is_due_already, a_backlog_is_worked_off_by_finishes,
                a_repeated_finish_settles_what_it_has_started, a_claim_starts_what_is_due_already,
                what_starts_along_keeps_to_the_overlap, what_starts_along_is_replaced_in_its_time,
                a_manual_run_starts_by_itself, what_an_unanswered_claim_has_started_is_found;
            overlaps: older_runs_beside_are_waited_for, older_runs_beside_are_replaced,
                a_backlog_runs_one_at_a_time_though_overlap_is_allowed, tokens_grow_over_all_rows_of_a_job,
                a_row_that_was_written_to_since_says_so;
            sessions: heartbeats_are_fenced_after_expiry, expiry_only_of_the_sequence_seen,
                a_swept_preparation_keeps_its_due_time, a_swept_run_is_lost, a_lost_run_is_run_again_if_asked,
                a_swept_run_beside_is_lost, a_live_session_is_not_swept,
                a_session_that_closes_while_it_holds_is_swept, a_tombstone_stays_until_the_last_row_is_swept,
                a_session_that_holds_nothing_is_removed_when_it_closes;
            lost_commits: a_sequence_behind_what_was_acknowledged_is_noticed, a_claim_notices_and_does_nothing_else,
                a_start_notices_and_does_nothing_else, a_session_that_was_forgotten_is_over,
                the_last_that_is_known_may_be_the_end_of_a_session,
                those_who_notice_later_extend_the_window, nobody_claims_or_starts_until_it_is_accepted,
                what_may_have_started_is_lost_or_started_again_as_asked,
                what_was_prepared_before_is_not_started_either, a_definition_of_lost_commits_is_forgotten,
                nobody_is_ended_by_a_silence_before_it_is_accepted,
                a_session_that_is_over_is_remembered_for_a_day;
            writing_back: a_living_run_has_its_row_again,
                a_run_whose_row_stands_elsewhere_gets_one_beside_it,
                an_end_that_was_lost_is_recorded_again,
                a_firing_that_was_tried_again_is_not_run_once_more,
                runs_beside_are_written_back_too,
                a_run_of_a_job_that_is_forgotten_has_no_row,
                nothing_is_written_where_nothing_is_open,
                a_loss_is_accepted_once_every_live_session_has_written_back,
                a_node_that_is_dead_holds_nothing_up_for_long;
            settling: a_settled_start_disarms_the_stray, a_settled_run_that_started_is_found,
                a_withdrawn_run_says_so, a_settled_run_beside_is_found, what_is_gone_is_gone;
            control: pause_and_resume_in_every_phase, an_update_in_every_phase, trigger_in_every_phase,
                cancel_in_every_phase, cancel_beside, a_pause_ends_by_itself,
                two_waiting_manual_runs_are_both_accounted_for;
            deletion: delete_in_every_phase, a_deleted_name_is_free_at_once, history_outlives_its_job,
                delete_of_runs_beside, tokens_of_a_name_grow_though_the_clock_goes_back;
            listing: jobs_page_by_page, jobs_by_filter, runs_page_by_page, runs_by_filter, runs_of_one_due_time, a_job_shows_its_last_run,
                sessions_show_what_they_hold, purge_forgets, purge_goes_round, purge_counts_in_parts,
                filtered_pages_see_all, many_look_at_once, jobs_whose_name_contains_a_text, jobs_by_their_last_end,
                jobs_in_the_order_in_which_they_come_up;
            run_params: they_are_used_by_the_run_alone, retries_keep_them, they_survive_the_node_that_held_the_run,
                a_skipped_run_keeps_them, purge_takes_them_with_the_last_record;
            reports: recent_runs_are_the_newest_of_each_job, runs_between_keep_to_their_range,
                a_job_is_in_trouble_until_a_run_succeeds, the_newest_trouble_comes_first,
                a_run_beside_gets_its_job_into_trouble_and_out, overdue_and_coming_jobs_are_listed,
                running_runs_are_listed, each_record_is_counted_once, days_tell_what_is_counted_and_what_is_not;
            live_output: what_is_asked_for_is_published, a_full_part_comes_through,
                runs_beside_are_asked_for_until_they_end, what_nobody_asks_for_is_not_published,
                purge_forgets_what_nobody_reads;
            sign_in: the_first_key_is_the_key_of_all, a_link_is_used_once, a_link_expires;
            feed: a_look_tells_what_was_recorded_since, a_look_shows_what_executes, a_look_shows_the_sessions,
                rows_are_found_by_their_numbers, a_number_is_never_used_again, a_look_tells_who_changed_what, the_numbers_of_a_job_follow_its_commits,
                a_tail_tells_every_record_once;
            audit: every_change_has_one_entry, an_acceptance_has_one_entry, a_batch_has_an_entry_for_each_job,
                entries_of_a_job_follow_its_commits, a_change_that_is_rolled_back_leaves_none,
                entries_by_filter_and_page_by_page, old_entries_are_purged_in_steps, nodes_leave_no_entries,
                a_name_that_comes_again_is_told_apart;
            alerts: a_route_is_stored_and_its_changes_are_told_without_secrets, a_failure_and_its_end_are_told_once,
                what_begins_and_ends_between_two_steps_is_told, a_route_is_not_told_the_past,
                nodes_that_step_at_once_judge_once, a_step_is_bounded, a_failure_waits_for_its_next_attempt, a_failure_that_was_tried_again_is_not_told_when_its_job_is_gone,
                a_deleted_job_has_no_incidents, a_job_that_leaves_a_route_has_no_incidents_there, a_changed_route_keeps_what_still_means_the_same,
                output_is_told_where_it_is_asked_for, a_trouble_of_the_cluster_is_told_until_it_is_over,
                a_lost_node_is_told_and_its_return,
                a_node_that_is_back_before_it_is_missed_is_told, each_target_gets_a_delivery;
            deliveries: a_delivery_is_sent_by_one_node, a_lease_that_ran_out_is_followed_by_another_node,
                a_refused_delivery_is_given_up_and_sent_again, a_delivery_follows_its_route,
                a_receiver_who_was_refused_gets_a_delivery_alone, a_claim_keeps_to_the_limit_of_each_host, deliveries_page_by_page, old_deliveries_are_purged, counts_are_bounded,
                a_route_is_tried, tests_and_repeats_have_entries_in_the_audit_log;
            monitors: a_monitor_is_called_at_the_end_of_a_run, a_failure_whose_next_attempt_is_dropped_calls_its_monitor,
                a_failure_that_is_tried_again_calls_its_monitor_once;
            expectations: what_broke_while_everything_was_down_is_told_once,
                an_expectation_that_is_kept_again_ends_the_trouble, those_of_a_deleted_job_are_dropped,
                what_is_kept_again_before_the_next_step_ends_the_trouble,
                a_change_of_the_job_keeps_what_is_under_watch, a_look_tells_when_the_next_is_due;
        );
    };
    (@each $new:ident, $($module:ident: $($case:ident),+;)+) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $case() {
                let bench = super::$new().await;
                $crate::conformance::$module::$case(&bench).await;
            })+
        })+
    };
    (@once $new:ident, $($module:ident: $($case:ident),+;)+) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $case() {
                super::cases::$module::$case().await;
            })+
        })+
        pub(super) mod cases {
            $(pub mod $module {
                $(pub async fn $case() {
                    static RUN: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
                    let run = async || {
                        let bench = super::super::$new().await;
                        $crate::conformance::$module::$case(&bench).await;
                    };
                    RUN.get_or_init(run).await;
                })+
            })+

            /// Runs the cases that no test has run yet, and waits for those that run.
            pub async fn all() {
                $($(Box::pin($module::$case()).await;)+)+
            }
        }
    };
}
