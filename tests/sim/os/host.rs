//! What the simulated machine is called.

pub(crate) fn name() -> String {
    "simulated".to_owned()
}
