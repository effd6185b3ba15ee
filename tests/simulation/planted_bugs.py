"""The bugs that are planted into each simulated world, and the seeds that find them."""

from collections.abc import Callable
from typing import Any, Final

import branches_sim_bugs
import brokers_sim_bugs
import cuts_sim_bugs
import groups_sim_bugs
import leases_sim_bugs
import mixed_sim_bugs
import registry_sim_bugs
import sim_bugs
import streams_sim_bugs
import transactions_sim_bugs
from branches_sim_run import run_branches
from brokers_sim_run import run_brokers
from cuts_sim_run import run_cuts
from groups_sim_run import run_group
from leases_sim_run import run_leases
from mixed_sim_run import run_mixed
from moments_sim_run import run_branch_moment, run_cut_moment
from registry_sim_run import run_registries
from sim_run import run
from sim_running import Planted
from streams_sim_run import run_streams
from transactions_sim_run import run_transactions

SIMULATIONS: Final[dict[str, tuple[Callable[..., Any], dict[str, Planted]]]] = {
    "log": (run, sim_bugs.BUGS),
    "groups": (run_group, groups_sim_bugs.BUGS),
    "mixed groups": (run_mixed, mixed_sim_bugs.BUGS),
    "transactions": (run_transactions, transactions_sim_bugs.BUGS),
    "brokers": (run_brokers, brokers_sim_bugs.BUGS),
    "cuts": (run_cuts, cuts_sim_bugs.BUGS),
    "registries": (run_registries, registry_sim_bugs.BUGS),
    "leases": (run_leases, leases_sim_bugs.BUGS),
    "branches": (run_branches, branches_sim_bugs.BUGS),
    "streams": (run_streams, streams_sim_bugs.BUGS),
    "moments of cuts": (run_cut_moment, cuts_sim_bugs.AT_A_MOMENT),
    "moments of branches": (run_branch_moment, branches_sim_bugs.AT_A_MOMENT),
}
# The seed that found a bug when it was last searched for: it is tried first, then all others.
FOUND_BY: Final = {
    "takes_its_own_success_for_somebody_elses": 2,
    "lets_writers_into_a_branch_that_is_being_made": 7,
    "goes_on_with_another_cut": 3,
    "applies_nothing_for_a_cut": 10,
    "holds_nothing": 251,
    "lets_positions_be_past_the_end": 205,
    "minds_no_torn_transaction": 208,
    "lets_positions_be_anywhere": 221,
    "takes_offsets_of_another_topic": 3,
    "gives_a_name_again": 2,
    "takes_what_is_live_alone": 8,
    "begins_with_what_is_not_synced": 8,
    "acknowledges_without_a_look_at_the_floors": 9,
    "goes_by_its_own_clocks_alone": 44,
    "deletes_before_it_publishes_the_floor": 9,
    "rests_the_floor_on_a_checkpoint_that_is_not_synced": 3,
    "writes_checkpoints_over_unsynced_segments": 101,
    "deletes_its_segments_after_an_unknown_outcome": 43,
    "takes_every_batch_for_a_new_one": 4,
    "keeps_no_sequences": 4,
    "gives_an_unknown_outcome_up_for_lost": 18,
    "stages_a_repeat_again": 47,
    "trusts_a_listing_of_floors": 28,
    "takes_commits_of_any_generation": 3,
    "hands_out_what_another_still_owns": 21,
    "starts_generations_again_when_a_group_is_empty": 1,
    "lets_a_fenced_static_member_come_back": 13,
    "watches_nobody_but_followers": 9,
    "keeps_what_it_owned_after_an_eviction": 3,
    "takes_commits_of_any_epoch": 1,
    "takes_late_commits_for_what_was_given_up": 2,
    "turns_a_group_without_what_its_members_own": 4,
    "takes_a_join_for_a_revocation": 60,
    "takes_an_intent_after_an_abort": 1,
    "answers_a_repeat_with_the_newest_offset": 1,
    "brings_old_commits_up_again": 1,
    "commits_what_has_landed_once_more": 32,
    "never_times_a_transaction_out": 20,
    "deals_leaders_by_itself": 5,
    "judges_what_it_stages_ahead_by_what_has_landed": 6,
    "takes_what_follows_an_entry_that_failed": 6,
    "stages_a_repeated_batch_again": 6,
    "appends_wherever_the_topic_ends": 1,
    "frees_ids_with_their_schemas": 13,
    "goes_on_after_a_long_sleep": 96,
    "misses_tombstones": 17,
    "renews_too_late": 0,
    "waits_for_a_store_that_hangs": 3,
    "gives_a_lease_up_after_an_error": 1,
}
# What it takes more than a second to find: `make mutants` searches for these, too, and `make test` for all others.
LONG_SEARCHES: Final = frozenset(
    {
        *(branches_sim_bugs.BUGS.keys() - {"takes_members_along", "takes_what_is_the_sources_own"}),
        "writes_checkpoints_over_unsynced_segments",
        "deletes_its_segments_after_an_unknown_outcome",
        "takes_commits_of_any_generation",
        "lets_a_fenced_static_member_come_back",
        "keeps_what_it_owned_after_an_eviction",
        "rolls_an_intent_forward_again",
        "takes_an_intent_after_an_abort",
        "lets_an_old_epoch_go_on",
        "takes_repeats_for_new_records",
        "answers_a_repeat_with_the_newest_offset",
        "deals_leaders_by_itself",
        "changes_leaders_at_every_look",
        "commits_what_has_landed_once_more",
        "stages_again_what_it_handed_over",
        "judges_what_it_stages_ahead_by_what_has_landed",
        "takes_what_follows_an_entry_that_failed",
        "forgets_the_parts_of_a_topic",
        "takes_the_requests_of_a_fenced_epoch",
        "stages_a_repeated_batch_again",
        "never_times_a_transaction_out",
        "applies_the_offsets_of_aborted_transactions",
        "goes_on_after_a_long_sleep",
        "misses_tombstones",
        "applies_nothing_for_a_cut",
        "cuts_groups_at_their_heads",
        "cuts_what_it_remembers",
        "keeps_without_a_hold",
        "rewinds_what_was_there_before",
        "rewinds_what_comes_meanwhile",
    }
)
