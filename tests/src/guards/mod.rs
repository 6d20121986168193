//! How it is shown of every guard that it is needed: a story each, which asks the invariants of the domain.
//!
//! A story is deterministic. It passes while its guard stands and ends with a violation of what the guard keeps when that is
//! removed. Where another guard stands behind the first one, the story passes without either of them and fails without both.
//! `tests/tests/guards.rs` runs all of them.

mod alerts;
mod concurrent;
mod fixtures;
mod keeper;
mod lost;
mod nodes;
mod races;
mod rows;
mod script;
mod sessions;
mod statements;

use carillon_domain::guard::Guard;
use carillon_domain::invariants::Verdict;

pub use fixtures::DATABASE;
pub use keeper::main as keeper_main;

/// Something that happens, and what the invariants say of it.
pub type Story = fn() -> Verdict;

/// How it shows that a guard is needed.
pub enum Proof {
    /// The story fails without it.
    Alone(Story),
    /// Another one stands behind it: the story fails only without both.
    WithBehind(Guard, Story),
    /// Nothing that must hold breaks without it; why it stays.
    Comfort(&'static str),
}

use Proof::{Alone, Comfort, WithBehind};

/// The proof of each guard.
pub fn proof(guard: Guard) -> Proof {
    match guard {
        Guard::ClaimIdle => WithBehind(Guard::HeldNotDue, rows::another_claims_what_is_held),
        Guard::HeldNotDue => WithBehind(Guard::ClaimIdle, rows::another_claims_what_is_held),
        Guard::RunId => Alone(rows::a_finish_is_repeated_after_the_next_start),
        Guard::Owner => Alone(rows::a_finish_speaks_of_a_manual_run_that_another_has),
        Guard::SweepOwn => Alone(rows::a_sweep_meets_what_another_holds),
        Guard::NotEarly => Alone(rows::a_start_comes_early),
        Guard::NotLate => Alone(rows::a_start_comes_late),
        Guard::PauseReleases => Alone(rows::a_pause_meets_what_is_prepared),
        Guard::ClaimUnpaused => Alone(rows::a_manual_run_of_a_paused_job),
        Guard::FinishDeleted => Alone(rows::a_run_ends_after_its_job_was_deleted),
        Guard::ResetDeleted => Alone(rows::a_start_in_doubt_is_given_back_after_its_job_was_deleted),
        Guard::SettleRechecks => Alone(rows::a_start_in_doubt_is_settled_after_a_pause),
        Guard::CursorForward => Alone(rows::a_manual_run_is_lost_before_what_was_given_back),
        Guard::ResetVersion => Alone(rows::a_stray_reset_lands_on_the_same_manual_run),
        Guard::HighestVersion => Alone(rows::a_name_is_used_again_after_the_clock_was_set_back),
        Guard::WithdrawnEnds => Alone(concurrent::a_run_beside_fails_after_a_pause),
        Guard::PropagateToConcurrent => Alone(concurrent::a_further_attempt_waits_beside_when_a_pause_comes),
        Guard::NoForbiddenOverlap => Alone(concurrent::an_older_run_lives_beside_when_overlap_ends),
        Guard::TokenOfJob => Alone(concurrent::tokens_of_all_rows),
        Guard::ClaimAlive => Alone(sessions::a_session_that_is_gone_claims),
        Guard::StartAlive => Alone(sessions::a_session_that_was_ended_starts),
        Guard::OptimisticStanding => Alone(sessions::a_session_that_was_ended_starts_what_it_knows),
        Guard::SweepEnded => Alone(sessions::a_session_that_lives_is_swept),
        Guard::ExpireSeenSinceLoss => Alone(sessions::an_end_comes_after_a_loss),
        Guard::TombstoneStays => Alone(sessions::a_sweep_takes_less_than_all),
        Guard::HeartbeatNotEnded => Alone(sessions::a_heartbeat_comes_after_the_end),
        Guard::HeartbeatNewer => Alone(sessions::a_heartbeat_comes_late),
        Guard::EndSeen => Alone(sessions::an_end_comes_after_a_new_heartbeat),
        Guard::LiveForward => Alone(sessions::an_output_comes_late),
        Guard::FileLease => Alone(sessions::a_second_server_comes_to_a_file),
        Guard::VersionLift => Alone(lost::tokens_after_a_loss),
        Guard::LostCommitsStart => Alone(lost::claimed_before_the_loss_was_noticed),
        Guard::LostCommitsClaim => WithBehind(Guard::LostCommitsStart, lost::claimed_after_the_loss_was_accepted),
        Guard::LostCommitsKnown => Alone(lost::a_rerun_of_a_firing_that_is_known),
        Guard::WriteBack => Alone(nodes::a_run_lives_whose_start_is_lost),
        Guard::AcceptAfterWriteBack => Alone(nodes::a_loss_is_accepted_before_a_node_has_written_back),
        Guard::StartDetectsLoss => Alone(lost::a_start_after_a_loss),
        Guard::ClaimDetectsLoss => WithBehind(Guard::StartDetectsLoss, lost::a_claim_after_a_loss),
        Guard::HeartbeatDetectsLoss => Alone(lost::a_heartbeat_before_the_claim_of_another),
        Guard::SuspendClaims => WithBehind(Guard::SuspendStarts, lost::a_rerun_while_the_loss_is_open),
        Guard::SuspendStarts => WithBehind(Guard::SuspendClaims, lost::a_rerun_while_the_loss_is_open),
        Guard::EndedSequenceKept => Alone(nodes::a_heartbeat_of_a_fenced_node_comes_late),
        Guard::Recovery => Alone(nodes::a_claim_was_applied_and_forgotten),
        Guard::PendingKept => Comfort(
            "recovery gives back what it does not know, which is as safe: a firing is claimed twice instead of adopted",
        ),
        Guard::ClaimInFlight => WithBehind(Guard::ResetVersion, nodes::recovery_meets_a_claim_on_its_way),
        Guard::SettleUnknown => WithBehind(Guard::Recovery, nodes::the_answer_to_a_start_is_lost),
        Guard::SettleDisarms | Guard::StartVersion => WithBehind(Guard::Recovery, nodes::a_stray_start_lands),
        Guard::FinishRepeats => Alone(nodes::a_finish_is_refused),
        Guard::ResetRepeats => WithBehind(Guard::Recovery, nodes::a_reset_is_refused),
        Guard::LeaseFromSending => Alone(nodes::the_answer_to_a_heartbeat_takes_long),
        Guard::LeaseFromRegistering => Comfort(
            "before its first heartbeat is acknowledged a node claims nothing: it only ends sooner where it cannot begin",
        ),
        Guard::SelfKill => Alone(nodes::no_heartbeat_goes_through),
        Guard::HeartbeatRestartsExpiry => Alone(nodes::two_nodes_live_for_long),
        Guard::LossRestartsExpiry => Alone(nodes::a_heartbeat_is_lost_that_a_survivor_had_not_seen),
        Guard::FencingInequality => Alone(nodes::others_are_told_to_act_too_soon),
        Guard::DrainListsHeld => {
            WithBehind(Guard::CloseLeavesTombstone, nodes::a_row_is_written_to_while_it_is_given_back)
        }
        Guard::CloseLeavesTombstone => {
            WithBehind(Guard::DrainListsHeld, nodes::a_row_is_written_to_while_it_is_given_back)
        }
        Guard::Bisect => Alone(nodes::one_of_two_outputs_is_refused),
        Guard::UpdateVersion | Guard::UpdateMatches => Alone(races::a_pause_passes_a_start),
        Guard::UpdateConcurrentVersion => Alone(races::a_pause_passes_an_end_beside),
        Guard::DeleteVersion => Alone(races::a_start_passes_a_deletion),
        Guard::DeleteMatches => Alone(races::a_start_passes_a_deletion_that_is_answered),
        Guard::DeleteConcurrentVersion => Alone(races::a_start_passes_a_cancellation_beside),
        Guard::ClaimLocks | Guard::SweepLocks => Alone(races::a_sweep_passes_a_claim),
        Guard::LockRowExists => Alone(races::a_sweep_passes_a_claim_without_lock_rows),
        Guard::RecordTwice => Alone(statements::a_record_is_there_already),
        Guard::OutputTwice => Alone(statements::an_output_is_there_already),
        Guard::AlertCursorLocks => Alone(alerts::nodes_step_at_once),
        Guard::JournalGaps => Alone(alerts::a_failure_commits_late),
        Guard::DeliveryReclaimed => Alone(alerts::senders_die),
        Guard::KeeperDeadline => Alone(keeper::the_deadline_passes),
        Guard::KeeperAbandons => WithBehind(Guard::KeeperDeadline, keeper::the_node_goes_before_its_deadline),
        Guard::KeeperSpawn => WithBehind(Guard::KeeperExec, keeper::an_order_comes_after_the_deadline),
        Guard::KeeperExec => WithBehind(Guard::KeeperSpawn, keeper::an_order_comes_after_the_deadline),
        Guard::KeeperHolds => Alone(keeper::the_server_goes_before_its_child),
    }
}

/// Whether the proof needs a MariaDB.
pub fn needs_a_server(guard: Guard) -> bool {
    let place = guard.place();
    place.contains("store/src/mysql/")
        || place.contains("store/src/cluster/")
        || matches!(guard, Guard::ClaimLocks | Guard::SweepLocks | Guard::JournalGaps)
}
