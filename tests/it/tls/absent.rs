//! Without the feature, TLS brings nothing to a build.

use crate::capi::library::cargo;
use crate::prelude::*;

/// As many crates as the library without features may consist of, itself included.
const MOST_CRATES: usize = 13;

/// The crates of a build for this machine with these features, without their versions.
fn crates(features: &str) -> BTreeSet<String> {
    let mut command = cargo("tree --offline --edges normal --prefix none --features");
    succeeds(command.arg(features).current_dir(root()))
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn not_one_crate_more() {
    let of_tls = [
        "rcgen",
        "ring",
        "rustls",
        "rustls-native-certs",
        "rustls-pki-types",
        "rustls-webpki",
    ];
    for features in ["", "capi,cli,embedded,log,metrics,tracing"] {
        let crates = crates(features);
        assert!(
            of_tls.iter().all(|name| !crates.contains(*name)),
            "{features}: {crates:?}"
        );
    }
    assert!(crates("").len() <= MOST_CRATES, "{:?}", crates(""));
    // The list belongs to the feature; what makes certificates for tests is not in it.
    let with: Vec<_> = crates("tls-native-roots")
        .into_iter()
        .filter(|name| of_tls.contains(&name.as_str()))
        .collect();
    assert_eq!(with, of_tls[1..]);
}
