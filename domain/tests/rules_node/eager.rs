//! The flow keeps nothing correct: with the eager one the node behaves the same, but for the calls that wait for others.

use std::panic::catch_unwind;

use carillon_domain::node::FlowKind;

use super::cells::BEHAVIOURS;
use super::driver::with_flow;

/// The tests of the tuned flow itself.
const OF_THE_TUNED_FLOW: &[&str] = &[
    "finishing::runs_that_end_soon_after_each_other_share_a_finish",
    "finishing::the_first_of_many_that_execute_waits_for_others_to_end",
    "finishing::nobody_waits_for_a_record_until_half_a_second_after_the_run_was_due",
    "finishing::a_record_that_keeps_a_place_is_not_waited_with_for_long",
    "finishing::a_full_batch_of_ended_runs_is_not_waited_with",
    "finishing::a_finish_records_no_more_than_others_can_wait_for",
    "finishing::what_waits_to_start_goes_before_what_has_ended",
    "finishing::a_start_that_takes_long_keeps_no_record_waiting_for_long",
    "asking::a_start_is_sent_when_the_one_before_it_was_answered",
    "asking::what_fills_a_batch_goes_beside_the_start_that_is_on_its_way",
    "asking::many_that_are_due_together_start_in_parts",
    "asking::a_second_call_goes_only_where_the_others_leave_the_database_time",
    "asking::finishes_go_in_two_lanes_as_well_and_one_that_fails_is_repeated_alone",
    "asking::recovery_lets_starts_go_first_for_a_while",
    "claim_and_start::a_claim_keeps_places_only_where_something_was_due_and_leaves_a_quarter",
    "claim_and_start::places_that_are_kept_are_nobody_elses",
    "capacity::among_others_a_node_claims_in_proportion_to_what_is_free",
    "capacity::among_others_a_node_leaves_to_them_what_it_cannot_start_soon",
    "capacity::a_node_for_one_run_at_a_time_keeps_one_waiting",
    "stealing::a_full_theft_goes_on_and_a_short_one_is_over",
    "start_rate::few_firings_wait_for_nobody_and_many_share_their_starts",
    "answers::a_run_that_ends_while_it_waits_for_a_look_is_not_looked_at",
];

#[test]
fn every_behaviour_but_those_of_the_tuned_flow_holds_with_the_eager_flow() {
    let mut wrong = Vec::new();
    for (name, behaviour) in BEHAVIOURS {
        let name = name.replace(' ', "");
        let holds = std::thread::scope(|scope| {
            scope
                .spawn(|| catch_unwind(|| with_flow(FlowKind::Eager, behaviour)).is_ok())
                .join()
                .is_ok_and(|holds| holds)
        });
        if holds == OF_THE_TUNED_FLOW.contains(&name.as_str()) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "these hold though they are of the tuned flow, or do not hold: {wrong:#?}");
}
