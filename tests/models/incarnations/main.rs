//! What nodes remember of themselves, searched through: all states that one, two or three nodes,
//! and the programs that come and go, can come to.
//!
//! The rules are the library's own, `algorithm::incarnation`. Around them is a world of nodes, each
//! with its key and one lock, and of programs that know nothing when they begin ([`world`]). Nodes
//! lose what they have, or get an older copy of it; they do not reply; their clocks are set
//! ([`faults`]). [`note`] stores a key by ages, [`judge`] asks the rules. What must hold in every
//! state that [`search`] reaches:
//! 1. At most one program holds the lock.
//! 2. When no program is at work, one that begins finds that all nodes count, at the latest when
//!    `max_ttl` has passed twice; and that enough of them count at once, where nothing was lost.
//!
//! What the design leaves open is passed over ([`scope::open`]). A search that does not pass over
//! one of these finds its trace, and with `Strict` there is none.
//!
//! | open by default | with `Strict` |
//! |---|---|
//! | all that answer lost the key or never had it | closed |
//! | a loss while a deployment is founded, or a moment later | closed |
//! | a loss without a new process, between a look and what is done because of it | closed, unless a clock is set then |
//! | every node that knew of a longer `max_ttl` is lost or silent | open |
//!
//! Not in any scope, as it takes 7.4 million states: a node's clock that is set back and forward
//! again, while the node waits, ends the wait a second early.
//!
//! The rules without one of their clauses ([`rules`]) are searched by the same code, and each is
//! refuted by the shortest trace there is. One that is not weaker holds: a longer `max_ttl` that is
//! stored only at nodes whose votes count, as no program counts an age before all nodes have
//! replied.
//!
//! ```text
//!   cargo test --release -p models --test incarnations -- --nocapture        figures and traces
//!   QUORUMLOCK_INCARNATION_MODEL=full cargo test --release -p models --test incarnations -- --nocapture
//! ```

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test"
)]

mod faults;
mod judge;
mod note;
mod rules;
mod scope;
#[path = "../search.rs"]
mod search;
mod steps;
mod world;

use quorumlock::algorithm::quarantine::RestartPolicy;
use rules::Rule;
use scope::Fault::{Deleted, Demoted, Empty, Flushed, Hang, Lost, Renamed, Saved, Step, Unheard};
use scope::{Scope, open};
use world::World;

const ONE: Scope = Scope {
    nodes: 1,
    policy: RestartPolicy::Observed,
    founders: 0,
    faults: 2,
    kinds: &[Empty],
    longer: false,
    extends: false,
    apart: false,
    patience: 0,
    prompt: false,
    open: open::ALL,
};
const TWO: Scope = Scope { nodes: 2, ..ONE };
const THREE: Scope = Scope { nodes: 3, ..ONE };
/// No attempt takes a tick.
const PROMPT: Scope = Scope {
    prompt: true,
    ..THREE
};
const STRICT: Scope = Scope {
    policy: RestartPolicy::Strict,
    open: open::NONE,
    ..THREE
};

fn holds(scope: Scope) {
    search::holds::<World>(Rule::Proved, scope);
}

fn is_refuted(rule: Rule, scope: Scope) {
    search::is_refuted::<World>(rule, scope);
}

fn is_full() -> bool {
    std::env::var("QUORUMLOCK_INCARNATION_MODEL").is_ok_and(|value| value == "full")
}

#[test]
fn one_node() {
    let kinds = &[
        Deleted, Demoted, Empty, Flushed, Hang, Lost, Renamed, Saved, Unheard,
    ];
    holds(Scope {
        faults: 3,
        kinds,
        patience: 1,
        ..ONE
    });
    holds(Scope {
        kinds,
        apart: true,
        ..ONE
    });
    holds(Scope {
        kinds: &[Empty, Saved, Step],
        extends: true,
        ..ONE
    });
}

#[test]
fn two_nodes() {
    holds(Scope {
        kinds: &[Empty, Hang, Saved],
        ..TWO
    });
    holds(Scope {
        kinds: &[Empty, Step],
        ..TWO
    });
    holds(Scope {
        kinds: &[Empty, Hang],
        longer: true,
        ..TWO
    });
}

#[test]
fn three_nodes_that_restart() {
    holds(Scope {
        faults: 3,
        kinds: &[Empty, Hang],
        ..PROMPT
    });
    holds(Scope {
        kinds: &[Empty, Hang, Lost, Unheard],
        ..PROMPT
    });
    holds(Scope {
        kinds: &[Deleted, Empty, Saved],
        ..PROMPT
    });
    if !cfg!(debug_assertions) {
        holds(Scope {
            kinds: &[Empty, Hang],
            ..THREE
        });
    }
    if is_full() {
        holds(Scope {
            kinds: &[Empty, Hang],
            patience: 1,
            ..THREE
        });
        holds(Scope {
            kinds: &[Empty, Hang, Saved],
            ..THREE
        });
    }
}

#[test]
fn three_nodes_that_lose_data_in_one_process() {
    holds(Scope {
        faults: 1,
        kinds: &[Deleted, Demoted, Flushed],
        apart: true,
        ..PROMPT
    });
    if !cfg!(debug_assertions) {
        holds(Scope {
            kinds: &[Deleted, Demoted, Empty, Flushed, Hang],
            ..PROMPT
        });
    }
    if is_full() {
        holds(Scope {
            faults: 1,
            kinds: &[Flushed],
            apart: true,
            ..THREE
        });
    }
}

#[test]
fn three_nodes_whose_clocks_are_set() {
    holds(Scope {
        kinds: &[Empty, Hang, Step],
        ..PROMPT
    });
    holds(Scope {
        founders: 2,
        kinds: &[Empty, Step],
        ..THREE
    });
    if is_full() {
        holds(Scope {
            kinds: &[Empty, Step],
            ..THREE
        });
    }
}

#[test]
fn three_nodes_and_programs_with_a_longer_time_to_live() {
    holds(Scope {
        faults: 1,
        longer: true,
        ..PROMPT
    });
    search::holds::<World>(
        Rule::StoresAtVotes,
        Scope {
            faults: 1,
            longer: true,
            ..PROMPT
        },
    );
    if !cfg!(debug_assertions) {
        holds(Scope {
            kinds: &[Empty, Hang],
            longer: true,
            ..PROMPT
        });
    }
    if is_full() {
        search::holds::<World>(
            Rule::StoresAtVotes,
            Scope {
                kinds: &[Empty, Hang],
                longer: true,
                ..PROMPT
            },
        );
        holds(Scope {
            kinds: &[Empty, Hang],
            longer: true,
            extends: true,
            ..PROMPT
        });
        holds(Scope {
            faults: 1,
            longer: true,
            ..THREE
        });
    }
}

#[test]
fn three_nodes_and_holders_that_extend_and_repair() {
    holds(Scope {
        kinds: &[Empty, Hang],
        extends: true,
        ..PROMPT
    });
    if is_full() {
        holds(Scope {
            kinds: &[Empty, Hang],
            extends: true,
            ..THREE
        });
    }
}

#[test]
fn nothing_is_passed_over_with_strict() {
    let kinds = &[
        Deleted, Demoted, Empty, Flushed, Hang, Lost, Renamed, Saved, Unheard,
    ];
    holds(Scope {
        nodes: 1,
        kinds,
        apart: true,
        patience: 1,
        ..STRICT
    });
    holds(Scope {
        nodes: 1,
        kinds: &[Empty, Hang, Lost, Saved, Step],
        apart: true,
        patience: 1,
        ..STRICT
    });
    holds(Scope {
        kinds: &[Empty, Hang],
        prompt: true,
        ..STRICT
    });
    holds(Scope {
        kinds: &[Empty, Step],
        prompt: true,
        ..STRICT
    });
    if !cfg!(debug_assertions) {
        holds(Scope {
            nodes: 2,
            faults: 1,
            kinds: &[Demoted, Empty, Flushed, Saved],
            apart: true,
            ..STRICT
        });
        holds(Scope {
            kinds: &[Empty, Hang],
            ..STRICT
        });
        holds(Scope {
            faults: 1,
            kinds: &[Demoted, Flushed],
            apart: true,
            prompt: true,
            ..STRICT
        });
    }
    if is_full() {
        holds(Scope {
            nodes: 1,
            faults: 3,
            kinds,
            apart: true,
            patience: 1,
            ..STRICT
        });
        holds(Scope {
            kinds: &[Empty, Hang],
            extends: true,
            ..STRICT
        });
        holds(Scope {
            kinds: &[Empty, Hang],
            longer: true,
            prompt: true,
            open: open::LONGER,
            ..STRICT
        });
    }
}

#[test]
fn the_open_cases_are_there() {
    let without = |case: u8, scope: Scope| {
        is_refuted(
            Rule::Proved,
            Scope {
                open: open::ALL & !case,
                ..scope
            },
        )
    };
    without(open::ALL_LOST, Scope { faults: 1, ..ONE });
    without(
        open::ALL_LOST,
        Scope {
            founders: 2,
            kinds: &[Empty, Hang],
            ..PROMPT
        },
    );
    without(
        open::FOUNDING,
        Scope {
            faults: 1,
            ..PROMPT
        },
    );
    without(
        open::MOMENT,
        Scope {
            founders: 3,
            faults: 1,
            kinds: &[Flushed],
            apart: true,
            ..PROMPT
        },
    );
    without(
        open::MOMENT,
        Scope {
            founders: 3,
            faults: 1,
            kinds: &[Demoted],
            apart: true,
            ..PROMPT
        },
    );
    without(
        open::LONGER,
        Scope {
            founders: 3,
            kinds: &[Empty, Hang],
            faults: 3,
            longer: true,
            ..PROMPT
        },
    );
    // These are open with `Strict` too.
    let longer = Scope {
        kinds: &[Empty, Hang],
        faults: 3,
        longer: true,
        prompt: true,
        ..STRICT
    };
    is_refuted(
        Rule::Proved,
        Scope {
            founders: 3,
            ..longer
        },
    );
    is_refuted(
        Rule::Proved,
        Scope {
            nodes: 1,
            kinds: &[Flushed, Step],
            apart: true,
            patience: 1,
            ..STRICT
        },
    );
}

#[test]
fn judging_by_the_first_quorum_is_refuted() {
    is_refuted(Rule::FirstQuorum, PROMPT);
    is_refuted(
        Rule::FirstQuorum,
        Scope {
            founders: 2,
            faults: 1,
            ..PROMPT
        },
    );
}

#[test]
fn a_note_of_another_incarnation_that_counts_is_refuted() {
    is_refuted(
        Rule::AnyIncarnation,
        Scope {
            faults: 1,
            kinds: &[Saved],
            ..ONE
        },
    );
    is_refuted(
        Rule::AnyIncarnation,
        Scope {
            founders: 3,
            faults: 1,
            kinds: &[Saved],
            ..PROMPT
        },
    );
}

#[test]
fn a_founder_that_counts_unheard_is_refuted() {
    is_refuted(
        Rule::FoundsUnheard,
        Scope {
            faults: 3,
            kinds: &[Empty, Lost],
            ..PROMPT
        },
    );
}

#[test]
fn a_longer_time_to_live_that_is_overlooked_is_refuted() {
    is_refuted(
        Rule::OwnTtl,
        Scope {
            founders: 3,
            faults: 1,
            longer: true,
            ..PROMPT
        },
    );
    let scope = Scope {
        founders: 3,
        kinds: &[Empty, Hang],
        longer: true,
        ..PROMPT
    };
    is_refuted(Rule::OwnNote, scope);
    is_refuted(Rule::CountsEarly, scope);
}

#[test]
fn one_clock_alone_is_refuted() {
    is_refuted(
        Rule::ClockOfNode,
        Scope {
            founders: 3,
            kinds: &[Empty, Step],
            ..PROMPT
        },
    );
    is_refuted(
        Rule::YoungByEither,
        Scope {
            founders: 2,
            kinds: &[Empty, Step],
            ..PROMPT
        },
    );
}

#[test]
fn a_note_that_is_written_whatever_is_there_is_refuted() {
    is_refuted(
        Rule::Unconditional,
        Scope {
            faults: 1,
            longer: true,
            ..PROMPT
        },
    );
}

#[test]
fn a_note_by_an_old_look_is_refuted() {
    is_refuted(
        Rule::LateNotes,
        Scope {
            faults: 1,
            kinds: &[Flushed],
            ..THREE
        },
    );
}

#[test]
fn a_program_that_notes_nothing_is_refuted() {
    is_refuted(
        Rule::SomeNoteNothing,
        Scope {
            faults: 1,
            ..PROMPT
        },
    );
}

#[test]
fn founding_and_looks_without_names_are_refuted_with_strict() {
    is_refuted(
        Rule::StrictFoundsAll,
        Scope {
            nodes: 1,
            faults: 1,
            ..STRICT
        },
    );
    is_refuted(
        Rule::StrictReadsNoNames,
        Scope {
            nodes: 1,
            faults: 1,
            kinds: &[Demoted],
            apart: true,
            ..STRICT
        },
    );
}

#[test]
fn waits_without_need_are_refuted() {
    is_refuted(
        Rule::IdAlone,
        Scope {
            nodes: 1,
            kinds: &[Renamed],
            ..PROMPT
        },
    );
    is_refuted(
        Rule::IdAlone,
        Scope {
            kinds: &[Renamed],
            ..PROMPT
        },
    );
    is_refuted(
        Rule::NothingYoung,
        Scope {
            faults: 0,
            kinds: &[],
            ..PROMPT
        },
    );
    is_refuted(
        Rule::WithoutQuorum,
        Scope {
            kinds: &[Hang],
            ..PROMPT
        },
    );
    holds(Scope {
        kinds: &[Hang, Renamed],
        ..PROMPT
    });
}

#[test]
fn a_note_that_is_ahead_and_kept_is_refuted() {
    is_refuted(
        Rule::KeepsAhead,
        Scope {
            kinds: &[Empty, Step],
            ..TWO
        },
    );
}
