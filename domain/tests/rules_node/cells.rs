//! The matrix decides: each cell is changed in turn, and a test of the node's behaviour fails.
//!
//! The behaviours are the other tests of this folder. None of them reads the matrix. A change that no behaviour could ever notice
//! stands in [`without_effect`], with its reason.

use std::cell::Cell;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use carillon_domain::matrix::{Event, Reaction, react, with_cell_changed};

use super::*;

/// A list of tests, by their paths.
macro_rules! behaviours {
    ($($behaviour:path,)+) => {
        &[$((stringify!($behaviour), $behaviour as fn())),+]
    };
}

pub const BEHAVIOURS: &[(&str, fn())] = behaviours![
    matrix::an_unknown_outcome_is_settled_until_the_store_acknowledges,
    matrix::a_run_that_a_draining_node_finds_prepared_is_released,
    matrix::a_claim_follows_a_firing_that_went_back_to_idle,
    matrix::a_record_that_was_kept_before_ends_the_run,
    replacing::a_run_whose_row_is_gone_goes_on_until_the_heartbeat_tells,
    matrix::a_claim_that_failed_for_certain_is_forgotten_and_made_again,
    matrix::a_claim_of_unknown_outcome_is_adopted_when_recovery_lists_it,
    matrix::what_recovery_lists_and_nobody_knows_is_given_back_until_that_is_acknowledged,
    matrix::a_start_follows_its_answer,
    matrix::a_start_of_unknown_outcome_is_settled_and_follows_what_is_found,
    matrix::a_finish_is_asked_for_ever_and_kept_until_it_is_recorded,
    matrix::a_reset_that_is_acknowledged_late_takes_nothing_from_a_run_that_was_claimed_again,
    matrix::a_manual_run_that_comes_up_again_while_it_lives_is_not_taken_for_another,
    matrix::no_more_runs_execute_than_allowed_even_if_starts_are_in_doubt,
    matrix::no_more_runs_are_held_than_allowed_and_a_free_place_is_used_at_once,
    matrix::a_row_that_was_written_to_before_its_start_is_settled_and_started_at_once,
    finishing::a_run_ends_when_the_databases_clock_says_so,
    finishing::what_comes_up_within_the_horizon_after_a_run_is_claimed_at_once,
    finishing::a_finish_may_claim_what_comes_up_next_of_its_job,
    finishing::a_finish_of_unknown_outcome_is_repeated_with_the_same_id_and_recovery_leaves_that_alone,
    finishing::nothing_is_claimed_along_by_a_node_that_drains_is_full_or_whose_partition_has_moved,
    finishing::what_was_claimed_along_is_given_back_by_a_node_that_drains_meanwhile,
    finishing::ids_that_a_claim_has_not_used_are_not_drawn_twice_when_a_finish_has_drawn_others,
    finishing::runs_that_end_soon_after_each_other_share_a_finish,
    finishing::the_first_of_many_that_execute_waits_for_others_to_end,
    finishing::nobody_waits_for_a_record_until_half_a_second_after_the_run_was_due,
    finishing::a_record_that_keeps_a_place_is_not_waited_with_for_long,
    finishing::a_full_batch_of_ended_runs_is_not_waited_with,
    finishing::a_finish_records_no_more_than_others_can_wait_for,
    finishing::what_waits_to_start_goes_before_what_has_ended,
    finishing::a_start_that_takes_long_keeps_no_record_waiting_for_long,
    finishing::where_no_place_is_free_what_has_ended_makes_one,
    asking::a_start_is_sent_when_the_one_before_it_was_answered,
    asking::what_fills_a_batch_goes_beside_the_start_that_is_on_its_way,
    asking::many_that_are_due_together_start_in_parts,
    asking::a_second_call_goes_only_where_the_others_leave_the_database_time,
    asking::finishes_go_in_two_lanes_as_well_and_one_that_fails_is_repeated_alone,
    asking::the_ids_of_a_claim_without_an_answer_are_looked_for_by_three_recoveries,
    asking::what_failed_is_asked_again_later_and_later_and_after_a_success_from_the_beginning,
    asking::a_row_that_is_listed_before_its_claim_is_answered_is_left_alone,
    asking::recovery_lets_starts_go_first_for_a_while,
    claim_and_start::a_claim_keeps_places_only_where_something_was_due_and_leaves_a_quarter,
    claim_and_start::the_claim_after_a_full_one_keeps_places_where_the_last_of_that_was_due,
    claim_and_start::what_a_claim_has_started_is_spawned_at_once,
    claim_and_start::places_that_are_kept_are_nobody_elses,
    claim_and_start::a_finish_may_start_what_is_due_unless_the_next_start_is_short_of_places,
    claim_and_start::what_was_started_along_is_given_back_by_a_node_that_drains_meanwhile,
    claim_and_start::a_claim_of_unknown_outcome_spawns_nothing_before_it_is_settled,
    suspension::only_the_sequence_that_was_acknowledged_is_carried,
    suspension::while_it_lasts_nothing_is_claimed_and_what_is_prepared_is_given_back,
    suspension::what_was_claimed_on_the_way_is_given_back,
    suspension::runs_go_on_and_are_recorded,
    suspension::a_start_that_the_store_withholds_is_given_back_and_the_reason_asked_for,
    suspension::a_start_in_doubt_that_is_found_is_given_back,
    suspension::an_acknowledged_start_is_spawned_whatever_is_told_meanwhile,
    suspension::a_node_that_the_database_has_forgotten_ends_itself,
    suspension::the_moment_that_it_is_over_what_came_up_meanwhile_is_looked_for,
    suspension::a_start_that_failed_on_the_way_is_not_asked_for_again_but_given_back,
    suspension::while_it_lasts_and_for_a_while_after_it_nobody_is_ended_for_its_silence,
    writing_back::what_runs_is_written_back_and_recorded_where_it_was_written,
    writing_back::it_is_written_once_for_each_loss,
    writing_back::a_node_without_runs_says_so,
    writing_back::a_run_without_a_row_goes_on,
    writing_back::what_failed_is_written_again,
    writing_back::what_the_store_did_not_take_is_written_again_while_the_loss_is_open,
    writing_back::ends_that_were_acknowledged_are_written_too_unless_they_are_safe,
    writing_back::no_more_ends_are_remembered_than_configured,
    writing_back::a_start_and_a_record_on_their_way_are_waited_for,
    writing_back::a_claim_on_its_way_is_waited_for,
    writing_back::a_question_for_an_outcome_is_waited_for,
    writing_back::an_outcome_is_asked_for_when_everything_is_written,
    writing_back::many_runs_are_written_in_batches_of_which_the_last_one_says_so,
    writing_back::a_node_that_drains_writes_before_it_leaves,
    replacing::a_newer_firing_takes_the_place_of_a_running_one_in_time,
    replacing::a_job_that_was_paused_deleted_or_changed_meanwhile_runs_on,
    replacing::without_an_answer_the_store_is_asked_again,
    replacing::a_row_that_somebody_wrote_to_is_looked_at_because_replace_may_be_new,
    replacing::a_list_from_before_the_start_tells_nothing_of_the_row,
    replacing::the_end_of_one_run_holds_up_the_replacement_of_no_other,
    replacing::what_is_seen_of_one_run_holds_up_the_replacement_of_no_other,
    ending::a_node_past_its_deadline_ends_itself_and_starts_nothing,
    ending::an_acknowledgement_that_comes_after_the_deadline_does_not_bring_a_node_back,
    ending::a_lease_counts_from_before_the_heartbeat_was_sent,
    ending::a_fenced_node_starts_nothing,
    ending::a_drain_gives_back_what_is_prepared_and_waits_for_what_runs,
    ending::a_run_is_cancelled_though_its_node_drains,
    ending::the_deadline_of_a_drain_or_a_second_signal_cancels_what_runs,
    ending::runs_that_died_with_the_keeper_are_recorded_as_lost_before_the_node_ends,
    ending::a_start_in_doubt_is_not_spawned_without_a_keeper,
    ending::a_run_may_be_cancelled_at_every_moment,
    ending::a_silent_session_is_ended_once_a_heartbeat_and_its_sequence_is_the_one_that_was_seen,
    ending::an_ended_session_is_swept_at_every_heartbeat_until_it_is_gone,
    ending::sessions_that_are_over_are_swept_one_right_after_another,
    ending::a_drain_does_not_leave_while_the_store_still_holds_a_row_for_it,
    ending::a_look_that_was_on_its_way_before_the_hand_back_is_not_the_last_word,
    ending::a_run_says_why_it_was_stopped_if_it_was_that_what_ended_it,
    ending::a_drain_waits_for_a_claim_that_is_on_its_way_or_without_an_answer,
    ending::a_node_that_has_drained_is_not_woken_by_the_deadline_of_its_drain,
    capacity::a_node_that_is_alone_claims_full_batches_however_busy_it_is,
    capacity::among_others_a_node_claims_in_proportion_to_what_is_free,
    capacity::among_others_a_node_leaves_to_them_what_it_cannot_start_soon,
    capacity::a_node_for_one_run_at_a_time_keeps_one_waiting,
    capacity::a_place_that_a_run_given_back_leaves_is_used_at_once,
    capacity::no_run_id_is_used_by_two_claims,
    clock::a_node_whose_store_never_answers_sleeps,
    clock::a_heartbeat_on_its_way_wakes_nobody_where_the_lease_is_a_file,
    clock::a_failure_that_leaves_nothing_to_ask_again_wakes_nobody_for_ever,
    clock::a_failed_recovery_is_tried_again_after_its_backoff,
    clock::a_clock_that_was_set_back_neither_starts_early_nor_hammers_the_store,
    clock::a_clock_that_was_set_forward_makes_a_prepared_run_due,
    stealing::a_row_that_stands_unclaimed_is_taken_after_steal_after_and_not_before,
    stealing::an_owner_that_makes_progress_is_never_robbed,
    stealing::rows_that_an_owner_is_about_to_claim_do_not_hide_the_one_it_leaves_lying,
    stealing::all_partitions_of_a_node_that_is_gone_are_taken_in_one_claim,
    stealing::each_executor_is_taken_by_itself_the_one_that_comes_up_first_in_front,
    stealing::a_full_theft_goes_on_and_a_short_one_is_over,
    stealing::only_what_was_still_there_when_the_look_was_sent_counts,
    stealing::my_own_come_first_and_what_has_become_mine_is_no_theft,
    stealing::a_look_that_shows_that_the_other_one_left_leads_to_its_share_before_the_next_heartbeat,
    stealing::a_node_that_drains_or_is_full_takes_nothing,
    stealing::steal_after_is_what_is_configured,
    start_rate::few_firings_wait_for_nobody_and_many_share_their_starts,
    answers::a_node_looks_anew_once_the_look_before_is_answered,
    answers::one_settling_write_is_in_flight,
    answers::one_session_is_swept_at_a_time,
    answers::a_full_sweep_goes_on_and_a_short_one_is_over,
    answers::one_write_back_is_in_flight,
    answers::an_answer_of_another_length_is_none,
    answers::ids_that_a_claim_has_not_used_are_forgotten,
    answers::runs_that_died_with_the_keeper_say_so,
    answers::calls_have_the_names_that_logs_show,
    answers::a_node_begins_at_once,
    answers::a_node_whose_lease_is_a_file_outlives_it,
    answers::a_node_that_leaves_heeds_no_answer,
    answers::a_node_without_runs_that_drains_says_that_it_has_none_before_it_leaves,
    answers::a_run_that_ends_while_it_waits_for_a_look_is_not_looked_at,
    answers::a_run_that_is_recorded_is_not_woken_up_for,
];

thread_local! {
    static EXPECTS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// A behaviour that fails on purpose says nothing.
fn silence_expected_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTS_PANIC.get() {
                usual(info);
            }
        }));
    });
}

/// The first behaviour that fails while a cell is changed.
fn noticed_by(event: Event, reaction: Reaction) -> Option<&'static str> {
    silence_expected_panics();
    EXPECTS_PANIC.set(true);
    let fails =
        |behaviour: &fn()| with_cell_changed(event, reaction, || catch_unwind(AssertUnwindSafe(behaviour)).is_err());
    let found = BEHAVIOURS.iter().find(|(_, behaviour)| fails(behaviour)).map(|(name, _)| *name);
    EXPECTS_PANIC.set(false);
    found
}

/// Changes that no behaviour can notice, because the node then does the same.
fn without_effect(event: Event, reaction: Reaction) -> bool {
    use Reaction::*;
    let same: &[Reaction] = match event {
        // The id belongs to no run, so there is nothing to move.
        Event::ClaimUnused => {
            &[Spawn, Settle, Release, RecordAgain, Recorded, Refresh, KeepRunning, Recheck, WriteAgain]
        }
        // The same, and the claim is repeated anyway.
        Event::ClaimRolledBack | Event::ClaimRefused => &[
            Wait,
            WaitUntil,
            Spawn,
            Settle,
            Release,
            ReleaseAndBeat,
            RecordAgain,
            ForgetAndClaim,
            Recorded,
            Refresh,
            KeepRunning,
            Recheck,
            WriteAgain,
        ],
        // The answer carries nothing to spawn or to record, so the run stays in its stage.
        Event::ClaimLivesHere => &[Spawn, RecordAgain, Refresh, Recheck, WriteAgain],
        Event::RecheckFailed => &[Spawn, RecordAgain, KeepPending, WriteAgain],
        Event::RecheckGone => &[Refresh],
        Event::WritebackNowhere => &[Spawn, RecordAgain, Refresh],
        Event::ReleaseRolledBack | Event::ReleaseRefused | Event::ReleaseUnknown => {
            &[Spawn, ReleaseAndBeat, RecordAgain, Refresh, KeepRunning, Recheck, WriteAgain]
        }
        Event::SettleRolledBack | Event::SettleRefused | Event::SettleUnknown => {
            &[Spawn, RecordAgain, KeepPending, Refresh, KeepRunning, Recheck, WriteAgain]
        }
        // A drain releases prepared runs by itself.
        Event::SettleClosed => {
            &[Wait, WaitUntil, ReleaseAndBeat, RecordAgain, Refresh, KeepRunning, Recheck, WriteAgain]
        }
        Event::SettleUnrunnable => &[Wait, WaitUntil, ReleaseAndBeat],
        Event::StartUnrunnable => &[WaitUntil, ReleaseAndBeat],
        // A millisecond later, after the backoff.
        Event::StartRolledBack => &[WaitUntil],
        // A heartbeat that comes early is harmless.
        Event::ClaimClosed | Event::SettleWithdrawn | Event::StartRefused => &[ReleaseAndBeat],
        // A claim that finds nothing is harmless, and a second word of a record too.
        Event::SettleGone => &[ForgetAndClaim, Recorded],
        _ => &[],
    };
    same.contains(&reaction)
}

#[test]
fn a_behaviour_notices_the_change_of_each_cell() {
    let (mut table, mut missed) = (String::new(), Vec::new());
    for event in Event::ALL {
        let mut noticing = Vec::new();
        let changes = Reaction::ALL.into_iter().filter(|reaction| *reaction != react(event));
        for reaction in changes.filter(|reaction| !without_effect(event, *reaction)) {
            match noticed_by(event, reaction) {
                Some(name) => noticing.push(name),
                None => missed.push((event, reaction)),
            }
        }
        assert!(!noticing.is_empty(), "no behaviour depends on {event:?}");
        let _ = writeln!(table, "| {event:?} | {:?} | {} | `{}` |", react(event), noticing.len(), noticing[0]);
    }
    println!("| cell | reaction | changes noticed | first by |\n|---|---|---|---|\n{table}");
    assert!(missed.is_empty(), "no behaviour notices {missed:?}");
}
