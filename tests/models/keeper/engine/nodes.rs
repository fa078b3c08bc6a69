//! What is asked of the nodes: the types of the engine.

#[path = "../../../../src/engine/nodes/submission.rs"]
pub(crate) mod submission;

/// How an attempt is made in turn. None is made here.
pub(crate) mod commands {
    #[derive(Clone, Copy)]
    pub(crate) struct InTurn;

    impl InTurn {
        pub(crate) const AS_A_NEWCOMER: InTurn = InTurn;
    }
}
